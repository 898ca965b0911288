//! One process around the core: threads, HTTP, pushed views.

pub mod handle;
pub mod http;
