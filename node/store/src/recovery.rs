//! stub
/// Bytes after the last whole frame that were a torn one, and are zero again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: String,
    /// Where the torn bytes began.
    pub offset: u64,
    /// How many there were, to the end of the last page that was not zero.
    pub bytes: u64,
}
