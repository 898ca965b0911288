//! What is wrong with a source, said so that a person can mend it.

/// All errors of one file; `Display` renders them as rustc does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rendered}")]
pub struct Diagnostics {
    rendered: String,
}
