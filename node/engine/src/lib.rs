//! Runs a compiled app: events change its state whole or not at all, views read a snapshot of it.
//!
//! Must not know: a store, a link, a socket, a clock, a random source. `now` and entropy are handed in; changed rows,
//! sends and answers are handed out.

mod app;

pub use app::{
    App, Applied, Context, Delta, Event, EventError, RestoreError, Send, Snapshot, ViewError,
};
