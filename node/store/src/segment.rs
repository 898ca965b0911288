//! stub
/// The newest format of a segment that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// How large segments are, in bytes; each a multiple of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The first segment's; each next one is twice as large.
    pub first: u64,
    /// The greatest.
    pub most: u64,
}
