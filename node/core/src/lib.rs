//! The owner: posts, records and outcomes in; frames, answers, snapshots, link commands and tries of the web out.
//!
//! It owns the apps, the outbox, what was heard of peers, the peers themselves and the idempotency keys, all of them
//! rows of one log. One input is handled at a time: it changes rows of the open batch. While a batch is being synced
//! the next one gathers; whatever an input leads to leaves when the batch that it read is on disk, never earlier, and
//! that is so by type ([`Released`]). The process around it, or a simulator, carries the effects out in their order.
//!
//! Must not know: threads, sockets, files, clocks, random sources (`now` and entropy are handed in), HTTP, datagrams.

mod apps;
mod batch;
mod core;
mod events;
mod gathered;
mod image;
mod inbox;
mod interface;
mod outbox;
mod posts;
mod recovery;
mod release;
mod rows;
mod shapes;
mod shares;
mod status;
mod web;

pub use crate::core::{Core, PEERS_MAX};
pub use batch::{BATCH_BYTES_MAX, BATCH_INPUTS_MAX};
pub use image::Image;
pub use interface::{Control, ControlError, Effect, Input, Out, Post, PostError, Reply, ReplyId};
pub use outbox::RECORD_BYTES_MAX;
pub use posts::POSTS_PER_APP_MAX;
pub use recovery::{Recovery, Source, Start, StartError};
pub use release::Released;
pub use rows::{app, app_of, owner};
pub use shapes::{Shapes, Shown};
pub use shares::{OUTBOX_BYTES_MAX, OUTBOX_RECORDS_MAX, OutboxSizes};
pub use status::{EndpointStatus, PeerStatus, Receiving, Sending, Status};
pub use web::{WebAnswer, WebOutcome, WebRoute, WebTry};
