//! What goes into the core and what comes out.

use crate::image::Image;
use crate::release::Released;
use crate::status::Status;
use crate::web::{WebAnswer, WebTry};
use engine::Snapshot;
use link::Command;
use sealing::{NodeId, Ticket};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use store::{Change, Synced};

/// Who is to be answered: a number that the process around the core made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyId(pub u64);

/// Something happened.
#[derive(Debug)]
pub enum Input {
    /// Somebody posts to an app.
    Post(Post),
    /// Somebody who owns the node asks something of it.
    Control {
        /// Who is to be answered.
        reply: ReplyId,
        /// What.
        control: Control,
    },
    /// The link says something. What a driver carries out, memo places and datagrams, is not for the core.
    Link(link::Effect),
    /// A try of [`Out::Web`] came to something.
    Web(WebAnswer),
    /// Everything up to this batch is on disk.
    Synced(Synced),
    /// The time of the last [`Effect::WakeAt`] has come.
    Time,
    /// So much was written that a checkpoint is due; then [`Effect::Checkpoint`].
    CheckpointDue,
    /// The disk has no room for more than there is, and why; none: it has again. What grows is refused meanwhile, outcomes
    /// but: the log has room for those, and for what removes.
    Room(Option<String>),
    /// A checkpoint could not be made, and why, for people; nothing is lost.
    CheckpointFailed(String),
    /// Whether somebody looks at an app's state, as at first: else it is not published. Who looks again gets the newest.
    Watched {
        /// The app's name.
        app: String,
        /// Whether somebody does.
        is_watched: bool,
    },
}

/// An input of an app, posted from outside.
#[derive(Debug)]
pub struct Post {
    /// Who is to be answered.
    pub reply: ReplyId,
    /// The app's name.
    pub app: String,
    /// The input's name.
    pub input: String,
    /// JSON object of its fields.
    pub body: Vec<u8>,
    /// Who posts.
    pub by: String,
    /// A repeat with the same key changes nothing and gets the first answer.
    pub idempotency_key: Option<String>,
}

/// What the owner of a node asks of it.
#[derive(Debug)]
pub enum Control {
    /// Exchange records with this node from now on; again: its newer name, card and addresses.
    AddPeer {
        /// The peer's ticket.
        ticket: Ticket,
        /// What it is called here.
        name: String,
        /// Where to reach it, in place of what the ticket says; empty: as the ticket says.
        addresses: Vec<SocketAddr>,
    },
    /// End it: links, and unsettled sends as unknown.
    RemovePeer(NodeId),
    /// This copy of the node goes on with a peer that took another one.
    Resume(NodeId),
    /// Give up what waits for this address on the web now: its apps hear that it was refused. The answer comes when all of
    /// it is.
    GiveUp(String),
    /// Nothing but an answer: everything taken before is on disk and said by then.
    Barrier,
    /// What waits and why.
    Status,
    /// Sends of an app without an outcome.
    Sends(String),
}

/// Something to be done, in order.
#[derive(Debug)]
pub enum Effect {
    /// Append these rows as one frame and sync it; then [`Input::Synced`].
    Append {
        /// The batch's number.
        sequence: u64,
        /// Its rows.
        changes: Vec<Change>,
    },
    /// Something leaves.
    Out(Released<Out>),
    /// Make a checkpoint of these rows: those of the log after the batch that this token is of.
    Checkpoint {
        /// The batch is durable.
        synced: Synced,
        /// Its rows.
        image: Box<Image>,
    },
    /// Hand in [`Input::Time`] at this time (milliseconds since 1970 UTC) and, as long as it is past, whenever the core
    /// has room; none: nothing is due. It stands until the next one.
    WakeAt(Option<i64>),
}

/// What leaves.
#[derive(Debug)]
pub enum Out {
    /// The state of an app that views read from now on.
    Publish {
        /// The app's name.
        app: String,
        /// Its state.
        snapshot: Snapshot,
    },
    /// The state of an app at which nobody looks ([`Input::Watched`]) is newer than what was published.
    Outdate {
        /// The app's name.
        app: String,
    },
    /// An answer.
    Reply {
        /// To whom.
        to: ReplyId,
        /// What.
        reply: Reply,
    },
    /// The link is told something.
    Link(Command),
    /// An address on the web is asked, after a while; then [`Input::Web`]. At most one an app and address is under way.
    Web(WebTry),
}

/// An answer.
#[derive(Debug)]
pub enum Reply {
    /// The post was applied; the answer's JSON if it has one.
    Applied(Option<String>),
    /// The post changed nothing.
    Refused(PostError),
    /// The control request was carried out.
    Done,
    /// The control request was not carried out, and why.
    NotDone(ControlError),
    /// What waits and why.
    Status(Box<Status>),
    /// How many, by their output's name.
    Sends(BTreeMap<String, u64>),
}

/// Why a post changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// No such app or input.
    #[error("there is no input {input} in an app {app} here")]
    NoSuchInput {
        /// The app asked for.
        app: String,
        /// The input asked for.
        input: String,
    },
    /// The body is not of the input's shape.
    #[error("{0}")]
    Shape(String),
    /// The app, or a rule of the language, refused.
    #[error("{0}")]
    Refused(String),
    /// The event cost more than it may.
    #[error("{0}")]
    Budget(String),
    /// A repeat of what was applied, and its answer is forgotten.
    #[error(
        "a post with this Idempotency-Key was applied before, and is not applied again; its answer is no longer kept"
    )]
    AnswerForgotten,
    /// The disk has no room for it.
    #[error("{}", no_room(.0))]
    NoRoom(String),
    /// It was applied, and the disk has no room yet to keep that.
    #[error(
        "the disk of this node has no room to keep it ({0}); it is kept when there is some, unless the node ends before"
    )]
    Waits(String),
}

/// What people are told who want what the disk has no room for.
fn no_room(why: &str) -> String {
    format!(
        "the disk of this node has no room for what makes its state larger ({why}). Free some space there; until then what \
         removes or replaces is taken, and views go on"
    )
}

/// Why a control request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// One's own ticket.
    #[error("this is the ticket of this node itself: add it on the other node")]
    OwnTicket,
    /// Another peer is called so.
    #[error("{node} is called {name} here: give this one another name, or remove that one")]
    NameTaken {
        /// The name.
        name: String,
        /// The peer that has it.
        node: NodeId,
    },
    /// No such peer.
    #[error("{0} is no peer of this node: `selvedge peer list` shows them")]
    NoSuchPeer(NodeId),
    /// There is no other copy of this node that it took.
    #[error(
        "{0} took no other copy of this node: only a link that `selvedge status` shows as fenced is to be resumed"
    )]
    NotFenced(NodeId),
    /// Nothing waits for it.
    #[error("nothing waits for {0}: `selvedge status` shows what does")]
    NothingWaits(String),
    /// The app that would hear of it does not run.
    #[error(
        "{app} sent what waits for {endpoint} and does not run now: start the node with it, then give it up"
    )]
    AppAbsent {
        /// The app.
        app: String,
        /// The address.
        endpoint: String,
    },
    /// The disk has no room for it.
    #[error("{}", no_room(.0))]
    NoRoom(String),
    /// Too many peers.
    #[error("this node has {0} peers, the most it takes: remove one first")]
    TooManyPeers(usize),
}
