//! A node of the simulation: the endpoint under test, a store that commits with a delay, and the disk that a kill leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use link::ledger::{Heard, Verdict};
use link::{Config, Credits, Declaration, Endpoint, Epochs, Outcome, Peer, Record, StreamId, Time};
use sealing::{Card, Identity, NodeId, Run, Tag};

/// A stream of ours to one peer, as rows.
#[derive(Clone, Debug)]
pub struct Outbox {
    pub stream: StreamId,
    pub rows: BTreeMap<u64, (Tag, Arc<[u8]>)>,
    pub last: u64,
    pub oldest: u64,
    pub tag_before: Tag,
}

/// What happened to a record of ours, as its app was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With the answer, if there was one.
    Delivered(Option<Vec<u8>>),
    Refused(String),
    Unknown,
}

/// Everything that is committed together.
#[derive(Clone, Default)]
pub struct Store {
    pub outboxes: BTreeMap<NodeId, Outbox>,
    pub heard: BTreeMap<(NodeId, StreamId), Heard>,
    /// What the app here took, in order: sender, stream, number, payload, and whether it was refused.
    pub applied: Vec<(NodeId, StreamId, u64, Tag, bool)>,
    pub gaps: BTreeSet<(NodeId, StreamId, u64)>,
    pub fates: BTreeMap<(NodeId, StreamId, u64, Tag), Fate>,
}

/// What is done once a commit is synced.
#[derive(Clone, Debug)]
pub enum After {
    Send(NodeId, Record),
    Stored(NodeId, StreamId),
    Settled(NodeId, StreamId, u64),
}

/// What the world is told that it has to check or count.
#[derive(Debug)]
pub enum Event {
    Applied { peer: NodeId, stream: StreamId, number: u64, tag: Tag, payload: Vec<u8> },
    Gap,
    Forked,
    ToldForked,
    Waited,
    Duplicate,
    Outcome { peer: NodeId, stream: StreamId, number: u64, tag: Tag, fate: Fate },
}

pub struct Node {
    pub name: usize,
    pub identity: Arc<Identity>,
    pub card: Card,
    pub peers: Vec<Peer>,
    pub address: SocketAddr,
    pub home: SocketAddr,
    pub endpoint: Option<Endpoint>,
    pub runs: u64,
    pub run: Run,
    pub tag: Tag,
    pub disk: Store,
    pub store: Store,
    pub dirty: bool,
    pub after: Vec<After>,
    pub committing: Option<(Store, Vec<After>)>,
    pub memos: BTreeMap<NodeId, [u8; 256]>,
    pub memos_before: BTreeMap<NodeId, [u8; 256]>,
    forked: Vec<Arc<Declaration>>,
    declared: BTreeSet<StreamId>,
    /// The app is not there: records wait.
    pub absent: bool,
    /// A ledger with this planted bug does not look at tags.
    pub ignores_tags: bool,
    pub was_rolled_back: bool,
    fresh_streams: u8,
    /// What its clock shows more than the world's: since its start, from anywhere.
    pub clock_offset: u64,
    /// What its driver can send.
    pub datagram_bytes_max: usize,
    pub epochs: Epochs,
    pub credits: Credits,
    pub is_discreet: bool,
}

impl Node {
    pub fn new(name: usize) -> Node {
        let mut seed = [name as u8 + 1; 64];
        seed[63] = 7;
        let identity = Arc::new(Identity::from_seed(&seed));
        let home = SocketAddr::from(([10, 0, 0, name as u8 + 1], 4000));
        Node {
            name,
            card: identity.card(1),
            identity,
            peers: Vec::new(),
            address: home,
            home,
            endpoint: None,
            runs: 0,
            run: Run { counter: 0, random: [0; 16] },
            tag: Tag([0; 8]),
            disk: Store::default(),
            store: Store::default(),
            dirty: false,
            after: Vec::new(),
            committing: None,
            memos: BTreeMap::new(),
            memos_before: BTreeMap::new(),
            forked: Vec::new(),
            declared: BTreeSet::new(),
            absent: false,
            ignores_tags: false,
            was_rolled_back: false,
            fresh_streams: 0,
            clock_offset: 0,
            datagram_bytes_max: link::limits::DATAGRAM_BYTES_MAX,
            epochs: Epochs::default(),
            credits: Credits::default(),
            is_discreet: false,
        }
    }

    pub fn id(&self) -> NodeId {
        self.identity.id()
    }

    /// Starts the process: what the disk has, a new run, and every unsettled row sent again.
    pub fn start(&mut self, now: Time, entropy: [u8; 32]) {
        self.runs += 1;
        let mut random = [0; 16];
        random.copy_from_slice(&entropy[..16]);
        let run = Run { counter: self.runs, random };
        self.tag = run.tag();
        self.run = run;
        self.store = self.disk.clone();
        let (identity, card) = (self.identity.clone(), self.card.clone());
        let config = Config { identity, card, run, entropy, record_bytes_max: link::RECORD_BYTES_MAX };
        let mut endpoint = Endpoint::new(config);
        endpoint.set_datagram_bytes_max(self.datagram_bytes_max);
        endpoint.set_epochs(self.epochs);
        endpoint.set_credits(self.credits);
        endpoint.set_discreet(self.is_discreet);
        for peer in &self.peers {
            let memo = self.memos.get(&peer.node).copied().map(link::MemoPlace);
            endpoint.add_peer(now, Peer { memo, ..peer.clone() });
        }
        self.endpoint = Some(endpoint);
        for (peer, outbox) in self.store.outboxes.clone() {
            for (number, (tag, payload)) in outbox.rows {
                self.send(now, peer, Record { stream: outbox.stream, number, tag, payload });
            }
        }
    }

    /// The process dies: what was not committed is gone.
    pub fn kill(&mut self) {
        self.endpoint = None;
        self.dirty = false;
        self.after.clear();
        self.committing = None;
        self.forked.clear();
        self.declared.clear();
    }

    /// The app sends one record: the event and its row are one commit, and it goes out after that.
    pub fn write(&mut self, peer: NodeId, payload: Arc<[u8]>) -> Option<(StreamId, u64, Tag)> {
        let (tag, name, streams) = (self.tag, self.name as u8, self.fresh_streams);
        let outbox = self.store.outboxes.entry(peer).or_insert_with(|| Outbox {
            stream: StreamId([name, peer.0[0], peer.0[1], streams, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            rows: BTreeMap::new(),
            last: 0,
            oldest: 1,
            tag_before: Tag([0; 8]),
        });
        let bytes: usize = outbox.rows.values().map(|(_, payload)| payload.len()).sum();
        if outbox.rows.len() >= 100 || bytes + payload.len() > link::WINDOW_BYTES {
            return None;
        }
        outbox.last += 1;
        let (stream, number) = (outbox.stream, outbox.last);
        outbox.rows.insert(number, (tag, payload.clone()));
        self.after.push(After::Send(peer, Record { stream, number, tag, payload }));
        self.dirty = true;
        Some((stream, number, tag))
    }

    fn send(&mut self, now: Time, peer: NodeId, record: Record) {
        let Some(outbox) = self.store.outboxes.get(&peer) else { return };
        let Some(endpoint) = &mut self.endpoint else { return };
        if outbox.stream != record.stream || record.number < outbox.oldest {
            return;
        }
        if self.declared.insert(record.stream) {
            endpoint.declare(
                now,
                peer,
                Declaration {
                    stream: outbox.stream,
                    from_app: "messenger".into(),
                    to_app: "messenger".into(),
                    oldest: outbox.oldest,
                    tag_before: outbox.tag_before,
                    last: outbox.last,
                },
            );
        }
        // What is unsettled is within the window.
        endpoint.send(now, peer, record).expect("the window is never full here");
    }

    /// Begins a commit of everything since the last, if none is under way.
    pub fn begin_commit(&mut self) -> bool {
        let begins = self.dirty && self.committing.is_none() && self.endpoint.is_some();
        if begins {
            self.dirty = false;
            self.committing = Some((self.store.clone(), std::mem::take(&mut self.after)));
        }
        begins
    }

    /// The commit is synced: what waited for it happens.
    pub fn end_commit(&mut self, now: Time) {
        let Some((store, after)) = self.committing.take() else { return };
        self.disk = store;
        for action in after {
            match action {
                After::Send(peer, record) => self.send(now, peer, record),
                After::Stored(peer, stream) => {
                    let Some(heard) = self.disk.heard.get(&(peer, stream)) else { continue };
                    let outcomes = heard.outcomes.clone().into_iter().collect();
                    if let Some(endpoint) = &mut self.endpoint {
                        endpoint.stored(now, peer, stream, heard.number, outcomes);
                    }
                }
                After::Settled(peer, stream, upto) => {
                    if let Some(endpoint) = &mut self.endpoint {
                        endpoint.settled(now, peer, stream, upto);
                    }
                }
            }
        }
    }

    /// A record came.
    pub fn on_record(
        &mut self,
        now: Time,
        peer: NodeId,
        declaration: &Arc<Declaration>,
        (number, tag): (u64, Tag),
        payload: Vec<u8>,
        events: &mut Vec<Event>,
    ) {
        if self.forked.iter().any(|forked| Arc::ptr_eq(forked, declaration)) {
            return;
        }
        let stream = declaration.stream;
        let heard = self.store.heard.entry((peer, stream)).or_default();
        let verdict = match self.ignores_tags {
            false => heard.judge(declaration, number, tag),
            true => judge_without_tags(heard, declaration, number),
        };
        match verdict {
            Verdict::Duplicate => {
                events.push(Event::Duplicate);
                if number == heard.number {
                    self.after.push(After::Stored(peer, stream));
                    self.dirty = true;
                } else if let Some(endpoint) = &mut self.endpoint {
                    endpoint.taken(now, peer, stream, number);
                }
                return;
            }
            Verdict::Forked => {
                events.push(Event::Forked);
                self.forked.push(declaration.clone());
                if let Some(endpoint) = &mut self.endpoint {
                    endpoint.forked(now, peer, stream);
                }
                return;
            }
            Verdict::Apply | Verdict::Gap { .. } if self.absent => {
                events.push(Event::Waited);
                if let Some(endpoint) = &mut self.endpoint {
                    endpoint.waiting(now, peer, stream, number, "no such app".into());
                }
                return;
            }
            Verdict::Gap { from, to } => {
                events.push(Event::Gap);
                self.store.gaps.extend((from..=to).map(|missing| (peer, stream, missing)));
            }
            Verdict::Apply => {}
        }
        let refused = payload.first().is_some_and(|byte| byte % 5 == 0);
        let outcome = match refused {
            true => Some(Outcome::Refused(reason(&payload))),
            false => answer(&payload).map(Outcome::Answered),
        };
        heard.apply(number, tag, outcome);
        self.store.applied.push((peer, stream, number, tag, refused));
        self.after.push(After::Stored(peer, stream));
        self.dirty = true;
        events.push(Event::Applied { peer, stream, number, tag, payload });
    }

    /// The link to a peer forgot what was declared to it.
    pub fn on_rested(&mut self, streams: &[StreamId]) {
        self.declared.retain(|declared| !streams.contains(declared));
    }

    /// The link to a peer woke and knows nothing more of it.
    pub fn on_woke(&mut self, now: Time, peer: NodeId) {
        let known = self.peers.iter().find(|known| known.node == peer);
        if let (Some(endpoint), Some(known)) = (&mut self.endpoint, known) {
            endpoint.add_peer(now, Peer { memo: None, ..known.clone() });
        }
    }

    /// A peer is at another address: it stands before those that were known.
    pub fn keep_address(&mut self, peer: NodeId, address: SocketAddr) {
        for known in self.peers.iter_mut().filter(|known| known.node == peer) {
            known.addresses.retain(|known| *known != address);
            known.addresses.insert(0, address);
            known.addresses.truncate(link::limits::ADDRESSES_PER_PEER_MAX);
        }
    }

    /// The peer told outcomes of ours: rows go and the app is told, in one commit.
    pub fn on_outcome(
        &mut self,
        peer: NodeId,
        stream: StreamId,
        upto: u64,
        outcomes: &[(u64, Outcome)],
        events: &mut Vec<Event>,
    ) {
        let Some(outbox) = self.store.outboxes.get_mut(&peer).filter(|outbox| outbox.stream == stream) else {
            return;
        };
        while let Some(first) = outbox.rows.first_entry().filter(|row| *row.key() <= upto) {
            let (number, (tag, _)) = first.remove_entry();
            outbox.oldest = number + 1;
            outbox.tag_before = tag;
            let fate = match outcomes.iter().find(|(told, _)| *told == number) {
                Some((_, Outcome::Refused(reason))) => Fate::Refused(reason.clone()),
                Some((_, Outcome::Answered(answer))) => Fate::Delivered(Some(answer.clone())),
                None => Fate::Delivered(None),
            };
            self.store.fates.insert((peer, stream, number, tag), fate.clone());
            events.push(Event::Outcome { peer, stream, number, tag, fate });
        }
        let settled = outbox.oldest - 1;
        self.after.push(After::Settled(peer, stream, settled));
        self.dirty = true;
    }

    pub fn on_settled(&mut self, peer: NodeId, stream: StreamId, upto: u64) {
        if let Some(heard) = self.store.heard.get_mut(&(peer, stream)) {
            heard.settle(upto);
            self.dirty = true;
        }
    }

    /// The peer says that this node was set back: unsettled rows end as unknown, a fresh stream begins.
    pub fn on_forked(&mut self, peer: NodeId, stream: StreamId, events: &mut Vec<Event>) {
        let Some(outbox) = self.store.outboxes.remove(&peer) else { return };
        if outbox.stream != stream {
            self.store.outboxes.insert(peer, outbox);
            return;
        }
        for (number, (tag, _)) in outbox.rows {
            self.store.fates.insert((peer, stream, number, tag), Fate::Unknown);
        }
        self.fresh_streams += 1;
        self.dirty = true;
        events.push(Event::ToldForked);
    }
}

/// Why the app here refuses this payload: long sometimes, so that refusals do not fit one frame.
pub fn reason(payload: &[u8]) -> String {
    format!("refused {}", "because ".repeat(payload.len() % 40))
}

/// What the app here answers this payload: often nothing, and large sometimes, so that two do not fit one frame.
pub fn answer(payload: &[u8]) -> Option<Vec<u8>> {
    let first = *payload.first()?;
    let bytes = if first % 7 == 0 { link::ANSWER_BYTES_MAX } else { payload.len() % 50 };
    (first % 3 != 0).then(|| vec![first; bytes])
}

fn judge_without_tags(heard: &Heard, declaration: &Declaration, number: u64) -> Verdict {
    let zero = Tag([0; 8]);
    let heard = Heard { tag: zero, ..heard.clone() };
    let declaration = Declaration { tag_before: zero, ..declaration.clone() };
    heard.judge(&declaration, number, zero)
}
