//! The receiver's side: what was heard of every stream of every peer, never deleted with the peer or the app.

use crate::rows::HeardRow;
use link::StreamId;
use link::ledger::Heard;
use sealing::{NodeId, Tag};
use std::collections::BTreeMap;

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
    /// The sender was set back in time: nothing of this stream is applied in this process.
    pub forked: bool,
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
            forked: false,
        }
    }

    /// The stream as its row says.
    pub fn restore(row: HeardRow) -> Inbound {
        Inbound {
            heard: Heard {
                number: row.number,
                tag: Tag(row.tag),
                refusals: row.refusals.into_iter().collect(),
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
            refusals: self.heard.refusals.iter().map(|(number, why)| (*number, why.clone())).collect(),
            from_app: self.from_app.clone(),
            to_app: self.to_app.clone(),
            gaps: self.gaps.clone(),
        }
    }
}

/// Every stream that was ever heard of.
pub type Inbox = BTreeMap<(NodeId, StreamId), Inbound>;
