//! The log: what was acknowledged is there after any crash.
