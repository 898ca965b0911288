//! What an endpoint asks of its driver and tells its owner, and what it shows to people.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use sealing::memo::PLACE_BYTES;
use sealing::{Card, NodeId, Tag};

use crate::command::{Declaration, Outcome, StreamId, Transient};
use crate::fault::PeerMisbehaved;
use crate::time::Time;

/// The bytes of a memo place. They hold roots, so they are never shown (§9.6).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MemoPlace(pub [u8; PLACE_BYTES]);

impl fmt::Debug for MemoPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MemoPlace(secret)")
    }
}

/// One thing to be done, in the order of `poll_effect`.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Overwrite the peer's memo place and sync it before any later effect is carried out.
    SaveMemo {
        /// Whose place.
        peer: NodeId,
        /// The whole new contents.
        place: MemoPlace,
    },
    /// Read the peer's memo place and hand it to [`crate::Endpoint::place_read`], whether there is one or not: until then
    /// its link, which was at rest, does nothing.
    ReadMemo {
        /// Whose place.
        peer: NodeId,
    },
    /// The link to the peer went to rest, and the streams of ours that were declared to it are forgotten: declare each
    /// anew before its next record. A record that was sent meanwhile was not taken. One that is not named here was
    /// declared since, or never was.
    Rested {
        /// Whose link.
        peer: NodeId,
        /// What is forgotten.
        streams: Vec<StreamId>,
    },
    /// The link to the peer woke, and knows no more of it than its last address: add it again.
    Woke {
        /// Whose link.
        peer: NodeId,
    },
    /// Send a datagram.
    Datagram {
        /// Where to.
        to: SocketAddr,
        /// At most [`crate::limits::DATAGRAM_BYTES_MAX`] bytes, or as many as [`crate::Endpoint::set_datagram_bytes_max`]
        /// said.
        bytes: Vec<u8>,
    },
    /// A record came: per stream contiguous from `declaration.oldest`, once per pair of runs.
    Record {
        /// Who sent it, proven.
        peer: NodeId,
        /// What the sender said of the stream.
        declaration: Arc<Declaration>,
        /// Its number.
        number: u64,
        /// The tag of the run that made it.
        tag: Tag,
        /// Its bytes, exactly as sent.
        payload: Vec<u8>,
    },
    /// The peer said something that is worth something now or never: at most once in a pair of runs, in no order.
    Transient {
        /// Who sent it, proven.
        peer: NodeId,
        /// What.
        transient: Transient,
    },
    /// The peer committed and synced everything of the stream up to `upto`.
    Outcome {
        /// Who.
        peer: NodeId,
        /// Which of our streams.
        stream: StreamId,
        /// The highest number with an outcome.
        upto: u64,
        /// Those up to `upto` that the peer's app refused or answered, as far as they are not settled:
        /// a number up to `upto` that is not among them was delivered, without an answer.
        outcomes: Vec<(u64, Outcome)>,
    },
    /// The peer cannot take record `number` now (no such app, another shape); it asks again when it can.
    Waiting {
        /// Who.
        peer: NodeId,
        /// Which of our streams.
        stream: StreamId,
        /// The first record that waits.
        number: u64,
        /// Why, for people.
        reason: String,
    },
    /// The peer forgot its rows up to `upto`: refusals and answers up to it may be forgotten here.
    /// Also implied by a declaration, with `upto = oldest - 1`.
    Settled {
        /// Who.
        peer: NodeId,
        /// Which of its streams.
        stream: StreamId,
        /// The highest settled number.
        upto: u64,
    },
    /// The peer says that this node was set back in time as far as this stream of ours goes.
    Forked {
        /// Who.
        peer: NodeId,
        /// Which of our streams.
        stream: StreamId,
    },
    /// The peer sent what breaks the protocol under keys that it alone has; it was ignored. For people; rate limited.
    Misbehaved {
        /// Who.
        peer: NodeId,
        /// What was wrong.
        fault: PeerMisbehaved,
    },
    /// The peer knows a later start of this node, twice told by it under a key that it alone has: this node's folder was
    /// restored or copied. Take a start counter above `known` and make a new endpoint. Told once in a process.
    Behind {
        /// Who.
        peer: NodeId,
        /// The highest counter of a start of this node that the peer knows. A counter that is known again, with another
        /// random part, is behind too.
        known: u64,
    },
    /// The card of a peer was fetched and matches the hash in its ticket: keep it.
    Card {
        /// Whose.
        peer: NodeId,
        /// The card.
        card: Card,
    },
    /// The proven address of the peer changed: keep it.
    Address {
        /// Whose.
        peer: NodeId,
        /// Where it is now.
        address: SocketAddr,
    },
    /// A node that is not a peer said hello and proved who it is. Rate limited.
    Stranger {
        /// Who.
        node: NodeId,
    },
    /// The state of the link to a peer changed.
    Peer {
        /// Whose link.
        node: NodeId,
        /// What it is now.
        state: PeerState,
    },
}

/// The state of the link to a peer, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// Nothing was heard or asked in this process yet.
    Quiet,
    /// The peer answered: packets of this pair of runs open.
    Up,
    /// Nothing is known to arrive.
    Down {
        /// Why.
        why: DownReason,
    },
    /// The peer answered that it has not added this node.
    Declined,
}

/// Why a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownReason {
    /// Nothing is known about where it is.
    NoAddress,
    /// Its card is not held and no ticket's hash to fetch it by.
    NoCard,
    /// It does not answer at any known address.
    Silent,
    /// It heard a later start of this node: this one was set back in time, or there is a copy of it.
    Behind,
    /// It heard a later start of this node, whose run it had confirmed: there are two copies. Nothing is said on this link
    /// until a person decides ([`crate::Endpoint::resume`]).
    Fenced,
}

impl fmt::Display for DownReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            DownReason::NoAddress => "no address of it is known",
            DownReason::NoCard => "its card is not held, and there is no ticket to fetch it by",
            DownReason::Silent => "it does not answer at any known address",
            DownReason::Behind => {
                "it heard a later start of this node: this one is a restored or copied folder"
            }
            DownReason::Fenced => {
                "fenced: another copy of this node runs, and the peer took that one. Stop one of the two; for this one to \
                 go on: selvedge peer resume"
            }
        })
    }
}

impl fmt::Display for PeerState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerState::Quiet => formatter.write_str("quiet"),
            PeerState::Up => formatter.write_str("up"),
            PeerState::Down { why } => write!(formatter, "down: {why}"),
            PeerState::Declined => formatter.write_str("declined: it has not added this node"),
        }
    }
}

/// What people may know of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The state of the link, with why if it is down.
    pub state: PeerState,
    /// Where datagrams to it go now.
    pub address: Option<SocketAddr>,
    /// When a packet of it last opened, if one did in this process.
    pub last_heard: Option<Time>,
    /// A stream to it waits because it gives no credit: whoever receives there does not take what came before.
    pub waits_for_credit: bool,
    /// The last thing that it did wrong under proven keys in this process.
    pub fault: Option<PeerMisbehaved>,
}
