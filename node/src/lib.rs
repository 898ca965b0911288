//! One process around the core: threads, sockets, HTTP, pushed views.
//!
//! It decides nothing about messages or state: the core and the link's endpoint do, and this crate carries their effects
//! out. [`Node::start`] makes the folder, identity, log, core, link and HTTP of one node, in that order; `owner` is the
//! thread that everything meets in; [`http`] sees the node through a [`handle::Handle`], which `service` implements.
//!
//! `board`, `checkpointer`, `log_writer` and `room` are public for who measures them around a core without a network.
//!
//! Must not know: the bytes of frames, packets or rows.

pub mod backup;
pub mod board;
pub mod checkpointer;
mod clock;
mod folder;
mod foundation;
pub mod handle;
pub mod http;
pub mod libraries;
pub mod lines;
pub mod log_writer;
pub mod offline;
mod owner;
mod process;
mod rehearsal;
pub mod room;
pub mod salvage;
mod service;
pub mod source;
pub mod stored;
mod web;

pub use folder::ControlFile;
pub use process::{Config, Node, NodeError, Ready, Set, compile};
pub use rehearsal::NoPlan;
pub use weft::diagnostics::suggest;
