//! The receiver's side: what was heard of every stream of every peer, never deleted with the peer or the app.

use crate::rows::HeardRow;
use link::ledger::Heard;
use link::{Declaration, StreamId};
use sealing::{NodeId, Tag};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was heard of one stream.
#[derive(Debug)]
pub struct Inbound {
    /// The ledger: which numbers have their outcome.
    pub heard: Heard,
    /// The sending app.
    pub from_app: String,
    /// The receiving app.
    pub to_app: String,
    /// Ranges that are missing because this node was set back in time.
    pub gaps: Vec<(u64, u64)>,
    /// Why the next record waits here; not kept over a restart, found again at its next arrival.
    pub waiting: Option<String>,
    /// The declaration under which the sender turned out to be set back in time: nothing that comes under it is applied.
    /// Never kept over a restart, and another declaration is judged anew: a hello that somebody replays to a node whose
    /// memo is lost looks like that too.
    pub forked: Option<Arc<Declaration>>,
}

impl Inbound {
    /// A stream of which nothing was heard.
    pub fn new(from_app: &str, to_app: &str) -> Inbound {
        Inbound {
            heard: Heard::default(),
            from_app: from_app.to_owned(),
            to_app: to_app.to_owned(),
            gaps: Vec::new(),
            waiting: None,
            forked: None,
        }
    }

    /// The stream as its row says; its refusals and answers have rows of their own.
    pub fn restore(row: HeardRow) -> Inbound {
        Inbound {
            heard: Heard {
                number: row.number,
                tag: Tag(row.tag),
                outcomes: BTreeMap::new(),
                settled: row.settled,
            },
            gaps: row.gaps,
            ..Inbound::new(&row.from_app, &row.to_app)
        }
    }

    /// The stream's row.
    pub fn row(&self) -> HeardRow {
        HeardRow {
            number: self.heard.number,
            tag: self.heard.tag.0,
            settled: self.heard.settled,
            from_app: self.from_app.clone(),
            to_app: self.to_app.clone(),
            gaps: self.gaps.clone(),
        }
    }
}

/// Every stream that was ever heard of.
pub type Inbox = BTreeMap<(NodeId, StreamId), Inbound>;
