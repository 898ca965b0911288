//! Our link with its streams full, driven as the node's driver does.

use super::load::Load;
use super::network::Flow;
use crate::BenchError;
use ::link::{Config, Declaration, Effect, Endpoint, MemoPlace, NotTaken, Peer, Record, StreamId, Time};
use sealing::{Card, Identity, NodeId, Run, Tag};
use std::net::SocketAddr;
use std::sync::Arc;

const TAG: Tag = Tag([3; 8]);

/// An endpoint of a node that is made of this seed, in its run of this number.
pub fn endpoint(seed: u64, counter: u64) -> (Endpoint, Card) {
    let mut seeds = [7; 64];
    seeds[..8].copy_from_slice(&seed.to_be_bytes());
    let identity = Arc::new(Identity::from_seed(&seeds));
    let card = identity.card(1);
    let mut entropy = [9; 32];
    entropy[..8].copy_from_slice(&seed.to_be_bytes());
    entropy[8..16].copy_from_slice(&counter.to_be_bytes());
    let mut random = [5; 16];
    random[..8].copy_from_slice(&counter.to_be_bytes());
    let run = Run { counter, random };
    let record_bytes_max = link::RECORD_BYTES_MAX;
    let mut endpoint = Endpoint::new(Config { identity, card: card.clone(), run, entropy, record_bytes_max });
    // As the driver does.
    endpoint.set_library_keys(true);
    (endpoint, card)
}

/// Where a node is, by its number.
pub fn address(number: u64) -> SocketAddr {
    let [.., a, b, c] = number.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 4000))
}

/// A node as a peer, with its card held.
pub fn peer(card: &Card, address: SocketAddr, memo: Option<MemoPlace>) -> Peer {
    let (node, card_hash) = (card.node(), Some(card.hash()));
    Peer { node, card_hash, card: Some(card.clone()), addresses: vec![address], memo }
}

/// A stream from its first record on.
pub fn declaration(stream: u8) -> Declaration {
    Declaration {
        stream: StreamId([stream; 16]),
        from_app: "from".into(),
        to_app: "to".into(),
        oldest: 1,
        tag_before: Tag([0; 8]),
        last: 0,
    }
}

/// A record of a stream.
pub fn record(stream: u8, number: u64, payload: Arc<[u8]>) -> Record {
    Record { stream: StreamId([stream; 16]), number, tag: TAG, payload }
}

/// A link between two nodes, one of which has records without end in so many streams.
pub struct Ours {
    sender: Endpoint,
    receiver: Endpoint,
    cards: [Card; 2],
    addresses: [SocketAddr; 2],
    load: Load,
    /// The next number to be sent, and the one expected next.
    streams: Vec<(u64, u64)>,
    delivered: u64,
}

impl Ours {
    /// `datagram_bytes_max` is what each end may send.
    pub fn new(seed: u64, streams: u8, load: Load, datagram_bytes_max: usize) -> Ours {
        let ((mut sender, sender_card), (mut receiver, receiver_card)) =
            (endpoint(2 * seed, 1), endpoint(2 * seed + 1, 1));
        sender.set_datagram_bytes_max(datagram_bytes_max);
        receiver.set_datagram_bytes_max(datagram_bytes_max);
        Ours {
            sender,
            receiver,
            cards: [sender_card, receiver_card],
            addresses: [address(2 * seed), address(2 * seed + 1)],
            load,
            streams: vec![(1, 1); usize::from(streams)],
            delivered: 0,
        }
    }

    fn receiver_node(&self) -> NodeId {
        self.cards[1].node()
    }

    /// Sends records of a stream until its window is full.
    fn fill(&mut self, now: Time, at: usize) -> Result<(), BenchError> {
        let node = self.receiver_node();
        let next = &mut self.streams[at].0;
        loop {
            let record = record(at as u8, *next, Arc::clone(self.load.payload(*next)));
            match self.sender.send(now, node, record) {
                Ok(()) => *next += 1,
                Err(NotTaken::Full { .. }) => return Ok(()),
                Err(error) => return Err(BenchError::Process(error.to_string())),
            }
        }
    }

    fn take(&mut self, stream: StreamId, number: u64, payload: &[u8]) -> Result<(), BenchError> {
        let expected = &mut self.streams[usize::from(stream.0[0])].1;
        if number < *expected {
            // After another hello a stream begins at its oldest again, which the ledger of a store bears.
            return Ok(());
        }
        if *expected != number || self.load.bytes != payload.len() {
            BenchError::unless("our link", *expected, number)?;
            BenchError::unless("our link", self.load.bytes, payload.len())?;
        }
        self.load.check("our link", number, 0, payload)?;
        *expected += 1;
        self.delivered += 1;
        Ok(())
    }

    /// Carries out what the receiver asks for. What came is stored in one go, as a node's store does.
    fn carry_out_at_receiver(
        &mut self,
        now: Time,
        out: &mut dyn FnMut(bool, Vec<u8>),
    ) -> Result<(), BenchError> {
        let mut stored: Vec<(StreamId, u64)> = Vec::new();
        loop {
            while let Some(effect) = self.receiver.poll_effect() {
                match effect {
                    Effect::Datagram { bytes, .. } => out(false, bytes),
                    Effect::Record { declaration, number, payload, .. } => {
                        self.take(declaration.stream, number, &payload)?;
                        match stored.iter_mut().find(|(stream, _)| *stream == declaration.stream) {
                            Some(place) => place.1 = number,
                            None => stored.push((declaration.stream, number)),
                        }
                    }
                    Effect::Misbehaved { fault, .. } => return Err(BenchError::Process(fault.to_string())),
                    _ => {}
                }
            }
            if stored.is_empty() {
                return Ok(());
            }
            let sender = self.cards[0].node();
            for (stream, upto) in stored.drain(..) {
                self.receiver.stored(now, sender, stream, upto, Vec::new());
            }
        }
    }

    fn carry_out_at_sender(
        &mut self,
        now: Time,
        out: &mut dyn FnMut(bool, Vec<u8>),
    ) -> Result<(), BenchError> {
        let node = self.receiver_node();
        while let Some(effect) = self.sender.poll_effect() {
            match effect {
                Effect::Datagram { bytes, .. } => out(true, bytes),
                Effect::Outcome { stream, upto, .. } => {
                    self.sender.settled(now, node, stream, upto);
                    self.fill(now, usize::from(stream.0[0]))?;
                }
                Effect::Misbehaved { fault, .. } => return Err(BenchError::Process(fault.to_string())),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Flow for Ours {
    fn start(&mut self, now: u64) -> Result<(), BenchError> {
        let now = Time(now);
        self.receiver.add_peer(now, peer(&self.cards[0], self.addresses[0], None));
        self.sender.add_peer(now, peer(&self.cards[1], self.addresses[1], None));
        let node = self.receiver_node();
        for at in 0..self.streams.len() {
            self.sender.declare(now, node, declaration(at as u8));
            self.fill(now, at)?;
        }
        Ok(())
    }

    fn handle(&mut self, now: u64, at_receiver: bool, datagram: Vec<u8>) -> Result<(), BenchError> {
        match at_receiver {
            true => self.receiver.handle_datagram(Time(now), self.addresses[0], &datagram),
            false => self.sender.handle_datagram(Time(now), self.addresses[1], &datagram),
        }
        Ok(())
    }

    fn transmit(&mut self, now: u64, out: &mut dyn FnMut(bool, Vec<u8>)) -> Result<(), BenchError> {
        self.carry_out_at_receiver(Time(now), out)?;
        self.carry_out_at_sender(Time(now), out)
    }

    fn next_timeout(&mut self) -> Option<u64> {
        let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
        timers.into_iter().flatten().map(|at| at.0).min()
    }

    fn on_timeout(&mut self, now: u64) -> Result<(), BenchError> {
        for endpoint in [&mut self.sender, &mut self.receiver] {
            if endpoint.next_timeout().is_some_and(|at| at.0 <= now) {
                endpoint.handle_timeout(Time(now));
            }
        }
        Ok(())
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }
}
