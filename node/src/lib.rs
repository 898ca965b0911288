//! One process around the core: threads, HTTP, pushed views.
