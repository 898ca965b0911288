//! The wall clock, read in this one place. Only apps and their timers see it; nothing else in the node decides by it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 UTC; 0 for a clock set before that.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
