//! The link protocol: datagrams and time in, effects out.
//!
//! What a link is for: records of one node's apps reach another node's apps in order, can be read by nobody between, and
//! provably come from who they say; through loss, restarts, moves and weeks of silence. A link is soft: all of its state
//! may be lost at any instant on either side and costs a hello, never a record. What must not be lost or doubled is in the
//! two stores, and [`ledger`] is the rule by which the receiving one decides.
//!
//! What this crate must never know: sockets, files, clocks, random sources, tokio; what an app or a store is.
//!
//! How its parts meet: an [`Endpoint`] routes datagrams to links. A `link` is one peer: `greet` makes sessions by hello, `epoch` the next ones of those,
//! `session` is a root with the keys of one pair of runs, `conversation` the streams that it carries (`outgoing`,
//! `incoming`), `recovery` what is on its way, `path` where the peer is. `transmit` and `receive` turn due things into
//! datagrams and datagrams into applied frames. `datagram`, `frame` and `wire` are the bytes. docs/link.md is the
//! specification.

mod bucket;
mod card_fetch;
pub mod command;
mod congestion;
mod conversation;
mod credit;
mod datagram;
mod datagram_size;
mod discretion;
mod dispatch;
pub mod effect;
mod endpoint;
mod epoch;
pub mod fault;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod greet;
mod hello;
mod incoming;
pub mod ledger;
pub mod limits;
mod link;
mod outgoing;
mod pacing;
mod path;
mod ranges;
mod receive;
mod received;
mod recovery;
mod reordering;
mod rest;
mod resting;
mod round_trip;
mod session;
mod slow_start;
mod time;
mod transmit;
mod wire;

pub use command::{Command, Config, Declaration, NotTaken, Outcome, Peer, Record, StreamId, Transient};
pub use credit::Credits;
pub use effect::{DownReason, Effect, MemoPlace, PeerState, PeerStatus};
pub use endpoint::Endpoint;
pub use epoch::Epochs;
pub use fault::PeerMisbehaved;
pub use limits::{ANSWER_BYTES_MAX, RECORD_BYTES_MAX, TRANSIENT_BYTES_MAX, WINDOW_BYTES, WINDOW_RECORDS};
pub use time::{Span, Time};
