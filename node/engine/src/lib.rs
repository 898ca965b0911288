//! Runs a compiled app: events change its state whole or not at all, views read a snapshot of it.
//!
//! Must not know: a store, a link, a socket, a clock, a random source. `now` and entropy are handed in; changed rows,
//! sends and answers are handed out. The same state, input, `now` and entropy give the same bytes everywhere.
//!
//! How the parts meet: `app` takes events and views, reads their arguments (`json` from outside, `arguments` from
//! other nodes), and runs code on the `machine`, which has `access` to a `state`; `codec` turns rows and keys into bytes.
//! An event changes the state in place and `undo` remembers what was: where the event is refused it is played backward,
//! where not the log's deltas are what differs from it. `table` keeps the rows of a list; a snapshot shares its pages,
//! and what changes while one is held is copied once.

mod access;
mod allowance;
mod app;
mod arguments;
mod budget;
mod chance;
mod codec;
mod cursor;
mod deltas;
mod event;
mod json;
mod keyed;
mod machine;
mod rows;
mod state;
mod table;
pub mod testing;
mod text;
mod undo;

pub use allowance::Allowance;
pub use app::{App, Due, Rows, Snapshot, ViewLimits};
pub use budget::{BYTES_MAX, EVENT_BYTES_MAX, OPERATIONS_MAX, SEND_BYTES_MAX};
pub use deltas::{BorrowedDelta, Delta, Deltas, Iter};
pub use event::{
    Applied, Context, EndpointSend, Event, EventError, RestoreError, Send, SettingError, ViewError,
};
pub use json::default_of;
pub use rows::{row_as_json, row_of_json};
pub use state::{COUNTERS, TIMERS};
pub use text::{duration as written_duration, read_duration};
