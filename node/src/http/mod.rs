//! The node over HTTP.
