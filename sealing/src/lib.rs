//! Who a node is and how two nodes seal what passes between them.
//!
//! Identities and what they state with a signature, the safety number that people compare, envelopes for who is not there,
//! the hello that gives two nodes a shared root, the packet keys that come from a root and the runs of both sides, and the
//! bytes of the place in which a link remembers itself. `docs/keys.md` lists every key.
//!
//! What this room must never know: sockets, files, clocks, random sources (entropy is handed in; but for
//! [`KeySource::Library`], which the driver asks for), nor what a datagram or a record looks like; to it those are bytes.
//!
//! How its parts meet: [`labels`] names every use of a key; `schedule` is the only caller of the hash and of HKDF,
//! `aead` of the cipher, `kem` of X-Wing, `envelope` of HPKE. [`Identity`] is who; [`Card`], [`Whereabouts`], [`Roster`] and
//! [`Ticket`] are what it states (`statement`): there is none that was not signed here or verified. [`seal_envelope`] makes
//! what anybody may carry to a node; [`hello`] makes a [`Root`] of two cards and two runs, an [`EpochOffer`] the next one; [`Root`] makes [`Pair`]s and hails, which are [`Direction`]s; [`memo`] keeps roots over a restart.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address_token;
mod addresses;
mod aead;
mod card;
mod envelope;
mod epoch;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod hello;
mod identity;
mod kem;
#[cfg(test)]
mod known_answers;
pub mod labels;
pub mod memo;
mod root;
mod roster;
mod run;
mod safety;
mod schedule;
mod statement;
mod text;
mod ticket;
#[cfg(test)]
mod vectors;
mod whereabouts;

pub use address_token::{ADDRESS_TOKEN_BYTES, AddressTokens};
pub use addresses::ADDRESSES_MAX;
pub use aead::{OpenError, TAG_BYTES};
pub use card::{Card, CardError};
pub use envelope::{
    ENVELOPE_OVERHEAD_BYTES, ENVELOPE_PAYLOAD_BYTES_MAX, Envelope, EnvelopeError, EnvelopeNumber,
    open_envelope, seal_envelope,
};
pub use epoch::{EpochOffer, OFFER_ACCEPT_BYTES, OFFER_BYTES, accept_offer};
pub use identity::{Identity, NodeId, NodeIdError};
pub use kem::{FreshKeys, KeySource};
pub use root::{Direction, LinkIds, Pair, Root, Toward};
pub use roster::{
    Member, MemberCard, ROSTER_BYTES_MAX, ROSTER_MEMBERS_MAX, ROSTER_NAME_BYTES_MAX, Roster, RosterError,
};
pub use run::{RUN_BYTES, Run, Tag};
pub use safety::SafetyNumber;
pub use ticket::{Ticket, TicketError};
pub use whereabouts::{Whereabouts, WhereaboutsError};

/// What holds a secret erases it when dropped: said by the types, so that a feature switched off does not compile.
#[cfg(test)]
const _: () = {
    const fn erased_when_dropped<T: zeroize::ZeroizeOnDrop>() {}
    erased_when_dropped::<ed25519_dalek::SigningKey>();
    erased_when_dropped::<x_wing::DecapsulationKey>();
    erased_when_dropped::<Root>();
    erased_when_dropped::<schedule::Secret>();
};
