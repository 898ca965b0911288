//! The link protocol: datagrams and time in, effects out: pure.

pub mod command;
pub mod effect;
mod endpoint;
pub mod ledger;
pub mod limits;
mod time;

pub use command::{Command, Config, Declaration, Peer, Record, StreamId, WindowFull};
pub use effect::{DownReason, Effect, PeerState, PeerStatus};
pub use endpoint::Endpoint;
pub use limits::{RECORD_BYTES_MAX, WINDOW_BYTES, WINDOW_RECORDS};
pub use time::{Span, Time};
