//! The endpoint: routes datagrams to links, and is the only public way in.
#![allow(clippy::unimplemented)]

use std::net::SocketAddr;

use sealing::NodeId;

use crate::command::{Config, Declaration, Peer, Record, StreamId, WindowFull};
use crate::effect::{Effect, PeerStatus};
use crate::time::Time;

/// The links of one node.
pub struct Endpoint {
    config: Config,
}

impl Endpoint {
    /// An endpoint without peers. The start count in `config.run` is synced by then.
    pub fn new(config: Config) -> Endpoint {
        Endpoint { config }
    }

    /// Adds a peer, or takes newer addresses or a newer card of one that is there.
    pub fn add_peer(&mut self, _now: Time, _peer: Peer) {
        unimplemented!()
    }

    /// Ends the link to a peer at once and forgets it.
    pub fn remove_peer(&mut self, _node: NodeId) {
        unimplemented!()
    }

    /// Names a stream of ours before its first record in this process.
    pub fn declare(&mut self, _now: Time, _peer: NodeId, _declaration: Declaration) {
        unimplemented!()
    }

    /// Sends a record of a declared stream.
    pub fn send(&mut self, _now: Time, _peer: NodeId, _record: Record) -> Result<(), WindowFull> {
        unimplemented!()
    }

    /// All of a peer's stream up to `upto` is committed and synced here; `refusals` are those of it not settled yet.
    pub fn stored(
        &mut self,
        _now: Time,
        _peer: NodeId,
        _stream: StreamId,
        _upto: u64,
        _refusals: Vec<(u64, String)>,
    ) {
        unimplemented!()
    }

    /// Record `number` of a peer's stream cannot be taken now: the receive cursor goes back to it.
    pub fn waiting(&mut self, _now: Time, _peer: NodeId, _stream: StreamId, _number: u64, _reason: String) {
        unimplemented!()
    }

    /// An app came, or came back: streams that wait for it are asked for again.
    pub fn ready(&mut self, _now: Time, _app: &str) {
        unimplemented!()
    }

    /// The sender of a stream was set back in time: nothing of it is applied any more.
    pub fn forked(&mut self, _now: Time, _peer: NodeId, _stream: StreamId) {
        unimplemented!()
    }

    /// Our rows of a stream are gone up to `upto`, the events that told the app committed.
    pub fn settled(&mut self, _now: Time, _peer: NodeId, _stream: StreamId, _upto: u64) {
        unimplemented!()
    }

    /// A datagram came.
    pub fn handle_datagram(&mut self, _now: Time, _from: SocketAddr, _bytes: &[u8]) {
        unimplemented!()
    }

    /// The time of `next_timeout` came.
    pub fn handle_timeout(&mut self, _now: Time) {
        unimplemented!()
    }

    /// The next effect, in order: a memo is on disk before any later effect is carried out.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        let _ = &self.config;
        unimplemented!()
    }

    /// When `handle_timeout` is to be called, if nothing else comes before.
    pub fn next_timeout(&self) -> Option<Time> {
        unimplemented!()
    }

    /// What people may know of the link to a peer.
    pub fn peer_status(&self, _node: NodeId) -> Option<PeerStatus> {
        unimplemented!()
    }
}
