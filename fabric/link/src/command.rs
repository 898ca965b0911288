//! What the owner of an endpoint tells it: its configuration, peers, streams and records.
//!
//! These types carry no behaviour. They must not know datagrams or frames.

use std::net::SocketAddr;
use std::sync::Arc;

use sealing::{Card, Identity, NodeId, Run, Tag};

use crate::effect::MemoPlace;

/// A stream of records from one app of the sender to one app of the receiver: 16 random bytes that the sender chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub [u8; 16]);

/// What a sender says of one of its streams once in each pair of runs, before the first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The stream that is declared.
    pub stream: StreamId,
    /// Name of the app that sends: at most [`crate::limits::APP_NAME_BYTES_MAX`] bytes.
    pub from_app: String,
    /// Name of the app that receives: at most [`crate::limits::APP_NAME_BYTES_MAX`] bytes.
    pub to_app: String,
    /// The oldest number that is not settled yet; numbers start at 1. `last + 1` if all are settled.
    pub oldest: u64,
    /// The tag of record `oldest - 1`; zero if there was none.
    pub tag_before: Tag,
    /// The highest number given to a record when this was declared.
    pub last: u64,
}

/// What a receiving app made of a record, beside taking it: kept and told until its sender settled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was refused, for this reason.
    Refused(String),
    /// It was applied, and this is the answer: at most [`crate::ANSWER_BYTES_MAX`] bytes.
    Answered(Vec<u8>),
}

/// One record to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The stream that it belongs to; declared before.
    pub stream: StreamId,
    /// Its number, one above the record before it.
    pub number: u64,
    /// The tag of the run that made it.
    pub tag: Tag,
    /// Its bytes: at most [`Config::record_bytes_max`].
    pub payload: Arc<[u8]>,
}

/// What is worth something now or never: it is sent once, to a peer that is there, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transient {
    /// Name of the app that sends: at most [`crate::limits::APP_NAME_BYTES_MAX`] bytes.
    pub from_app: String,
    /// Name of the app that receives: at most [`crate::limits::APP_NAME_BYTES_MAX`] bytes.
    pub to_app: String,
    /// Its bytes: at most [`crate::limits::TRANSIENT_BYTES_MAX`].
    pub payload: Arc<[u8]>,
}

/// A node that this one exchanges records with.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who it is.
    pub node: NodeId,
    /// The hash of its card, as a ticket has it: the card is fetched by it if `card` is not there.
    pub card_hash: Option<[u8; 32]>,
    /// Its card, if it is held.
    pub card: Option<Card>,
    /// Where it may be reached, the most trusted first; the first
    /// [`crate::limits::ADDRESSES_PER_PEER_MAX`] are kept.
    pub addresses: Vec<SocketAddr>,
    /// The memo place of the link as last saved, if there is one. A damaged one counts as none.
    pub memo: Option<MemoPlace>,
}

/// What an endpoint is made of.
pub struct Config {
    /// This node's keys.
    pub identity: Arc<Identity>,
    /// This node's card.
    pub card: Card,
    /// This start of this node on its store: its counter is synced before the endpoint is made.
    pub run: Run,
    /// Fresh entropy; everything random in the endpoint is drawn from it.
    pub entropy: [u8; 32],
    /// Bytes of a record that this node sends or takes: at most [`crate::limits::RECORD_BYTES_MAX`]. What the owner holds
    /// of records that it was handed is bounded by it.
    pub record_bytes_max: usize,
}

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The window of the stream is full: send it again after the next `Outcome` of the stream.
    #[error(
        "the window of the stream is full ({records} records, {bytes} bytes on their way): wait for an outcome"
    )]
    Full {
        /// Records sent without an outcome.
        records: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The record is larger than any record may be.
    #[error("the record has {bytes} bytes, at most {most} are carried")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most that there may be.
        most: usize,
    },
    /// The peer was never added, or was removed.
    #[error("there is no such peer: add it first")]
    NoPeer,
    /// The stream was not declared to this peer, or it forked.
    #[error("the stream was not declared to this peer: declare it first")]
    NotDeclared,
    /// The number is not the one after the last one sent.
    #[error("record {number} does not follow: the stream goes on with {expected}")]
    OutOfOrder {
        /// The number that was offered.
        number: u64,
        /// The number that is next.
        expected: u64,
    },
}

/// What an endpoint is told; each is the call of the same name on [`crate::Endpoint`].
#[derive(Debug, Clone)]
pub enum Command {
    /// A peer, or what is newly known of it.
    AddPeer(Box<Peer>),
    /// A peer no more.
    RemovePeer(NodeId),
    /// A person decided that this copy of the node goes on with a peer that took another one.
    Resume(NodeId),
    /// A stream of ours, before its first record in this process and since [`Effect::Rested`](crate::Effect::Rested).
    Declare {
        /// To whom.
        peer: NodeId,
        /// What.
        declaration: Declaration,
    },
    /// A record of ours.
    Send {
        /// To whom.
        peer: NodeId,
        /// What.
        record: Record,
    },
    /// Something of ours that is worth something now or never.
    Transient {
        /// To whom.
        peer: NodeId,
        /// What.
        transient: Transient,
    },
    /// Everything up to a number has its outcome here.
    Stored {
        /// Whose stream.
        peer: NodeId,
        /// Which.
        stream: StreamId,
        /// Up to this number.
        upto: u64,
        /// What was refused or answered of it and is not settled yet.
        outcomes: Vec<(u64, Outcome)>,
    },
    /// Everything up to a number was here before: nothing of it is held any more.
    Taken {
        /// Whose stream.
        peer: NodeId,
        /// Which.
        stream: StreamId,
        /// Up to this number.
        upto: u64,
    },
    /// A record cannot be taken now.
    Waiting {
        /// Whose stream.
        peer: NodeId,
        /// Which.
        stream: StreamId,
        /// Which record.
        number: u64,
        /// Why.
        reason: String,
    },
    /// An app runs: what waits for it is asked for.
    Ready {
        /// The app.
        app: String,
    },
    /// The sender of a stream was set back in time.
    Forked {
        /// Whose stream.
        peer: NodeId,
        /// Which.
        stream: StreamId,
    },
    /// This node is another run from now on: everything of the run before is forgotten. Peers and streams are told anew,
    /// peers with their memo places.
    Restart {
        /// The run, whose counter is synced.
        run: Run,
    },
    /// Our rows up to a number are gone.
    Settled {
        /// To whom.
        peer: NodeId,
        /// Our stream.
        stream: StreamId,
        /// Up to this number.
        upto: u64,
    },
}

impl Command {
    /// The peer whose stream or record it is of; none for what is of a peer as a whole, or of all.
    #[must_use]
    pub fn stream_peer(&self) -> Option<NodeId> {
        match self {
            Command::Declare { peer, .. }
            | Command::Send { peer, .. }
            | Command::Transient { peer, .. }
            | Command::Stored { peer, .. }
            | Command::Taken { peer, .. }
            | Command::Waiting { peer, .. }
            | Command::Forked { peer, .. }
            | Command::Settled { peer, .. } => Some(*peer),
            Command::AddPeer(_)
            | Command::RemovePeer(_)
            | Command::Resume(_)
            | Command::Ready { .. }
            | Command::Restart { .. } => None,
        }
    }
}
