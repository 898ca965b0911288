//! The driver of the link: one thread with a socket, a timer, a file of memo places and a line of commands.
//!
//! It decides nothing about the link: it hands datagrams, commands and the time to [`link::Endpoint`] and carries out the
//! effects in their order. What it guarantees is that order, and that a memo place is on the disk before any later effect
//! is carried out; a disk that refuses stops it.
//!
//! What this room must never know: what is in a datagram or a record, what an app is, where the log is.
//!
//! How its parts meet: [`Driver::start`] makes the thread and gives a [`DriverHandle`]; commands come through its
//! [`CommandSender`] and wake the thread, what the endpoint tells comes back through the callback as [`FabricEvent`].
//! `memo_file` keeps the places, `socket` and `clock` are the system's side, [`addresses`] says where others find us.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod addresses;
mod clock;
mod driver;
mod error;
mod line;
mod memo_file;
mod socket;
#[cfg(test)]
mod tests;

pub use clock::now;
pub use driver::{Config, Driver, DriverHandle, FabricEvent};
pub use error::FabricError;
pub use line::{COMMANDS_MAX, CommandSender};
pub use memo_file::{MEMO_FILE, MEMO_PLACES_MAX};
pub use socket::{bind, local_address};
