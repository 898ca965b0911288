//! What a person may see: peers, what waits for whom and why, what was refused, what is missing.

use crate::core::Core;
use crate::outbox::Stream;
use crate::web::{Queue, WebRoute};
use link::{Outcome, PeerState};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The state of a node, for people and for programs as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// This node.
    pub node: String,
    /// How often it started on this folder.
    pub run: u64,
    /// The apps that run.
    pub apps: Vec<String>,
    /// Its peers.
    pub peers: Vec<PeerStatus>,
    /// Streams to peers that have unsettled records.
    pub sending: Vec<Sending>,
    /// Addresses on the web that sends wait for.
    pub endpoints: Vec<EndpointStatus>,
    /// Streams of peers.
    pub receiving: Vec<Receiving>,
    /// Nodes that are not peers and would talk, newest last.
    pub strangers: Vec<String>,
    /// What went wrong without anybody asking, newest last.
    pub notices: Vec<String>,
}

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeerStatus {
    /// Its id.
    pub node: String,
    /// What it is called here.
    pub name: String,
    /// How the link to it is.
    pub link: String,
    /// Where it was last known to be.
    pub addresses: Vec<SocketAddr>,
}

/// A stream to a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sending {
    /// The peer.
    pub peer: String,
    /// The sending app.
    pub from_app: String,
    /// The receiving app.
    pub to_app: String,
    /// Records without an outcome.
    pub unsettled: usize,
    /// The oldest of them.
    pub oldest: u64,
    /// Why it waits, as far as it is known.
    pub why: Option<String>,
}

/// What an app sends to an address on the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointStatus {
    /// The address.
    pub endpoint: String,
    /// The sending app.
    pub app: String,
    /// Sends without an outcome.
    pub unsettled: usize,
    /// Why it waits, as far as it is known.
    pub why: Option<String>,
}

/// A stream of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receiving {
    /// The peer.
    pub peer: String,
    /// The sending app.
    pub from_app: String,
    /// The receiving app.
    pub to_app: String,
    /// The highest number with an outcome.
    pub heard: u64,
    /// Refusals the sender has not settled yet.
    pub refusals: Vec<(u64, String)>,
    /// Why the next record waits.
    pub waiting: Option<String>,
    /// Ranges of numbers that are missing because this node was set back in time.
    pub gaps: Vec<(u64, u64)>,
    /// The sender was set back in time and was told so.
    pub forked: bool,
}

/// A notice, and how often it was so.
fn notice(line: &str, times: u64) -> String {
    if times > 1 { format!("{line} ({times} times)") } else { line.to_owned() }
}

/// How often each name is there.
pub(crate) fn count<'n>(names: impl Iterator<Item = &'n str>) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

impl Core {
    /// What a person may see now.
    pub(crate) fn status(&self) -> Status {
        Status {
            node: self.me.to_string(),
            run: self.run.counter,
            apps: self.apps.keys().cloned().collect(),
            peers: self.peer_statuses(),
            sending: self.sending(),
            endpoints: self.endpoints(),
            receiving: self.receiving(),
            strangers: self.strangers.iter().map(ToString::to_string).collect(),
            notices: self.notices.iter().map(|(line, times)| notice(line, *times)).collect(),
        }
    }

    /// Sends of an app without an outcome, by their output's name.
    pub(crate) fn sends(&self, app: &str) -> BTreeMap<String, u64> {
        let streams = self.outbox.iter().filter(|stream| stream.route.from_app == app);
        let to_peers = streams.flat_map(Stream::outputs);
        let queues = self.web.iter().filter(|(route, _)| route.app == app);
        count(to_peers.chain(queues.flat_map(|(_, queue)| queue.outputs())))
    }

    fn peer_statuses(&self) -> Vec<PeerStatus> {
        let peers = self.peers.iter().filter(|(_, row)| !row.removed);
        peers
            .map(|(node, row)| PeerStatus {
                node: node.to_string(),
                name: row.name.clone(),
                link: self.link_states.get(node).unwrap_or(&PeerState::Quiet).to_string(),
                addresses: row.addresses.clone(),
            })
            .collect()
    }

    fn sending(&self) -> Vec<Sending> {
        let streams = self.outbox.iter().filter(|stream| stream.len() > 0);
        streams
            .map(|stream| Sending {
                peer: stream.route.peer.to_string(),
                from_app: stream.route.from_app.clone(),
                to_app: stream.route.to_app.clone(),
                unsettled: stream.len(),
                oldest: stream.settled + 1,
                why: self.why_it_waits(stream),
            })
            .collect()
    }

    fn why_it_waits(&self, stream: &Stream) -> Option<String> {
        let route = &stream.route;
        if !self.apps.contains_key(&route.from_app) {
            return Some(format!("{} does not run here", route.from_app));
        }
        if let Some(reason) = &stream.ended {
            return Some(format!("being refused: {reason}"));
        }
        if !self.is_peer(route.peer) {
            let is = if self.peers.contains_key(&route.peer) {
                "it was removed"
            } else {
                "it is not a peer of this node"
            };
            return Some(format!(
                "{is}: `selvedge peer add` with its ticket sends it, `selvedge peer remove` gives it up"
            ));
        }
        match (stream.waiting(), self.link_states.get(&route.peer)) {
            (Some(said), _) => Some(said.to_owned()),
            (None, Some(PeerState::Up)) => None,
            (None, Some(state)) => Some(state.to_string()),
            (None, None) => Some("no answer yet".to_owned()),
        }
    }

    fn endpoints(&self) -> Vec<EndpointStatus> {
        let why = |route: &WebRoute, queue: &Queue| match &queue.waiting {
            _ if !self.apps.contains_key(&route.app) => Some(format!("{} does not run here", route.app)),
            Some(why) if queue.tries == 1 => Some(format!("{why} (tried once)")),
            Some(why) => Some(format!("{why} (tried {} times)", queue.tries)),
            None => None,
        };
        let status = |(route, queue): (&WebRoute, &Queue)| EndpointStatus {
            endpoint: route.endpoint.clone(),
            app: route.app.clone(),
            unsettled: queue.len(),
            why: why(route, queue),
        };
        self.web.iter().map(status).collect()
    }

    fn receiving(&self) -> Vec<Receiving> {
        self.inbox
            .iter()
            .map(|((peer, _), inbound)| Receiving {
                peer: peer.to_string(),
                from_app: inbound.from_app.clone(),
                to_app: inbound.to_app.clone(),
                heard: inbound.heard.number,
                refusals: inbound
                    .heard
                    .outcomes
                    .iter()
                    .filter_map(|(number, outcome)| match outcome {
                        Outcome::Refused(why) => Some((*number, why.clone())),
                        Outcome::Answered(_) => None,
                    })
                    .collect(),
                waiting: inbound.waiting.clone(),
                gaps: inbound.gaps.clone(),
                forked: inbound.forked.is_some(),
            })
            .collect()
    }
}
