//! Who a node is and how two nodes seal what passes between them.
//!
//! Identities and their signed cards, the tickets people exchange, the hello that gives two nodes a shared root, the
//! packet keys that come from a root and the runs of both sides, and the bytes of the place in which a link remembers
//! itself. `docs/keys.md` lists every key.
//!
//! What this room must never know: sockets, files, clocks, random sources (entropy is handed in), nor what a datagram or
//! a record looks like; to it those are bytes.
//!
//! How its parts meet: [`labels`] names every use of a key; `schedule` is the only caller of the hash and of HKDF,
//! `aead` of the cipher, `kem` of X-Wing. [`Identity`], [`Card`] and [`Ticket`] are who; [`hello`] makes a [`Root`] of two
//! cards and two runs; [`Root`] makes [`Pair`]s and hails, which are [`Direction`]s; [`memo`] keeps roots over a restart.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aead;
mod card;
pub mod hello;
mod identity;
mod kem;
pub mod labels;
pub mod memo;
mod root;
mod run;
mod schedule;
mod text;
mod ticket;
#[cfg(test)]
mod vectors;

pub use aead::{OpenError, TAG_BYTES};
pub use card::{Card, CardError};
pub use identity::{Identity, NodeId, NodeIdError};
pub use root::{Direction, LinkIds, Pair, Root, Toward};
pub use run::{RUN_BYTES, Run, Tag};
pub use ticket::{TICKET_ADDRESSES_MAX, Ticket, TicketError};

/// What holds a secret erases it when dropped: said by the types, so that a feature switched off does not compile.
#[cfg(test)]
const _: () = {
    const fn erased_when_dropped<T: zeroize::ZeroizeOnDrop>() {}
    erased_when_dropped::<ed25519_dalek::SigningKey>();
    erased_when_dropped::<x_wing::DecapsulationKey>();
    erased_when_dropped::<aes_gcm::Aes256Gcm>();
    erased_when_dropped::<Root>();
    erased_when_dropped::<schedule::Secret>();
};
