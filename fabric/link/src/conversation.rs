//! The streams of a link in both directions, and what of them is on its way: what a session carries.
//!
//! It belongs to one root and one pair of runs at a time and begins anew with another one. It must not know keys,
//! addresses or how a session came to be.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sealing::{NodeId, Run};

use crate::command::{Declaration, NotTaken, Outcome, Record, StreamId, Transient};
use crate::credit::{Credits, Lent};
use crate::effect::Effect;
use crate::fault::PeerMisbehaved;
use crate::frame::Frame;
use crate::incoming::{Delivery, Held, Incoming};
use crate::limits::{APP_NAME_BYTES_MAX, STREAMS_PER_PEER_MAX, TRANSIENT_BYTES_MAX, TRANSIENTS_MAX};
use crate::outgoing::Outgoing;
use crate::recovery::{Content, Recovery};

/// What a conversation belongs to: the id that packets to the peer carry, and the peer's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) id: [u8; 8],
    pub(crate) peer_run: Run,
}

/// The streams of a link.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) bound: Option<Bound>,
    pub(crate) recovery: Recovery,
    record_bytes_max: usize,
    outgoing: BTreeMap<u64, Outgoing>,
    handles: BTreeMap<StreamId, u64>,
    next_handle: u64,
    /// The stream of ours that the next packet begins with: each has its turn, however much the others have to say.
    next_handle_to_write: u64,
    incoming: BTreeMap<u64, Incoming>,
    /// A stream of ours was declared in this pair of runs: the peer may know it.
    has_declared: bool,
    held: Held,
    outcomes: u64,
    transients: VecDeque<Transient>,
}

impl Conversation {
    pub(crate) fn new(record_bytes_max: usize) -> Conversation {
        Conversation {
            bound: None,
            recovery: Recovery::new(),
            record_bytes_max,
            outgoing: BTreeMap::new(),
            handles: BTreeMap::new(),
            next_handle: 0,
            next_handle_to_write: 0,
            incoming: BTreeMap::new(),
            has_declared: false,
            held: Held::default(),
            outcomes: 0,
            transients: VecDeque::new(),
        }
    }

    /// What is given to who sends. To be said before anything came.
    pub(crate) fn set_credits(&mut self, credits: Credits) {
        self.held.lent = Lent::new(credits);
    }

    /// Speaks under another root or in another pair of runs: all streams are declared and sent anew (§3.10).
    pub(crate) fn bind(&mut self, bound: Option<Bound>) {
        if self.bound == bound && bound.is_some() {
            return;
        }
        self.bound = bound;
        self.has_declared = false;
        self.recovery.restart();
        self.outgoing.values_mut().for_each(Outgoing::new_pair);
        self.incoming.clear();
        self.held = Held { lent: Lent::new(self.held.lent.credits), ..Held::default() };
        self.transients.clear();
    }

    /// Queues what goes with the next packets; what is too large is left out, and of too many the oldest.
    pub(crate) fn say(&mut self, transient: Transient) {
        let names = [&transient.from_app, &transient.to_app];
        let named = names.iter().all(|name| (1..=APP_NAME_BYTES_MAX).contains(&name.len()));
        if !named || transient.payload.len() > TRANSIENT_BYTES_MAX {
            return;
        }
        if self.transients.len() >= TRANSIENTS_MAX {
            self.transients.pop_front();
        }
        self.transients.push_back(transient);
    }

    /// Whether something waits that is worth something now.
    pub(crate) fn has_transients(&self) -> bool {
        !self.transients.is_empty()
    }

    /// Writes what is worth something now; nothing of it is kept. Whether anything was written (§5.11).
    pub(crate) fn write_transients(&mut self, out: &mut Vec<u8>, end: usize) -> bool {
        let before = out.len();
        while let Some(Transient { from_app, to_app, payload }) = self.transients.front() {
            if !(Frame::Transient { from_app, to_app, payload }).append(out, end) {
                break;
            }
            self.transients.pop_front();
        }
        out.len() > before
    }

    pub(crate) fn declare(&mut self, declaration: Declaration) {
        if self.handles.contains_key(&declaration.stream) || declaration.oldest == 0 {
            return;
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.handles.insert(declaration.stream, handle);
        self.outgoing.insert(handle, Outgoing::new(handle, declaration));
    }

    pub(crate) fn send(&mut self, record: Record) -> Result<(), NotTaken> {
        let (bytes, most) = (record.payload.len(), self.record_bytes_max);
        let outgoing = self.outgoing_of(record.stream).ok_or(NotTaken::NotDeclared)?;
        if bytes > most { Err(NotTaken::TooLarge { bytes, most }) } else { outgoing.push(record) }
    }

    fn outgoing_of(&mut self, stream: StreamId) -> Option<&mut Outgoing> {
        self.outgoing.get_mut(self.handles.get(&stream)?)
    }

    pub(crate) fn settled(&mut self, stream: StreamId, upto: u64) {
        if let Some(outgoing) = self.outgoing_of(stream) {
            outgoing.settle(upto);
        }
    }

    fn incoming_of(&mut self, stream: StreamId) -> Option<(&mut Incoming, &mut Held)> {
        let incoming = self.incoming.values_mut().find(|incoming| incoming.declaration.stream == stream)?;
        Some((incoming, &mut self.held))
    }

    /// The store has all up to `upto`: it has room for more that came.
    pub(crate) fn stored(
        &mut self,
        peer: NodeId,
        stream: StreamId,
        upto: u64,
        outcomes: Vec<(u64, Outcome)>,
        effects: &mut Vec<Effect>,
    ) {
        if let Some((incoming, held)) = self.incoming_of(stream) {
            let mut deliver = Vec::new();
            incoming.store(upto, outcomes, held, &mut deliver);
            hand_over(peer, &incoming.declaration, deliver, effects);
        }
        self.share_credit();
    }

    /// The store had all up to `upto` before.
    pub(crate) fn taken(&mut self, peer: NodeId, stream: StreamId, upto: u64, effects: &mut Vec<Effect>) {
        if let Some((incoming, held)) = self.incoming_of(stream) {
            let mut deliver = Vec::new();
            incoming.taken(upto, held, &mut deliver);
            hand_over(peer, &incoming.declaration, deliver, effects);
        }
        self.share_credit();
    }

    /// Streams that got less than they might have get more as soon as another one has used up what it got.
    fn share_credit(&mut self) {
        if std::mem::take(&mut self.held.lent.is_short) {
            for incoming in self.incoming.values_mut() {
                incoming.give_credit(&mut self.held);
            }
        }
    }

    pub(crate) fn waiting(&mut self, stream: StreamId, number: u64, reason: String) {
        if let Some((incoming, held)) = self.incoming_of(stream) {
            incoming.wait(number, reason, held);
        }
    }

    pub(crate) fn forked(&mut self, stream: StreamId) {
        if let Some((incoming, held)) = self.incoming_of(stream) {
            incoming.fork(held);
        }
    }

    /// An app came: its streams go on. Returns whether there was one.
    pub(crate) fn ready(&mut self, app: &str) -> bool {
        let mut any = false;
        for incoming in self.incoming.values_mut().filter(|incoming| incoming.declaration.to_app == app) {
            incoming.go_on();
            any = true;
        }
        any
    }

    /// Whether a stream of the peer waits for an app.
    pub(crate) fn waits(&self) -> bool {
        self.incoming.values().any(Incoming::waits)
    }

    /// Whether something is to be said of the peer's streams; forks only to a peer that is proven to be there.
    pub(crate) fn has_answers(&self, proven: bool) -> bool {
        self.incoming.values().any(|incoming| incoming.wants(proven))
    }

    /// Whether nothing of the streams is to be said or waited for, on either side.
    pub(crate) fn is_quiet(&self) -> bool {
        self.transients.is_empty()
            && self.outgoing.values().all(Outgoing::is_quiet)
            && self.incoming.values().all(Incoming::is_quiet)
    }

    /// Whether nothing of streams was said in this pair of runs or waits to be: nothing is lost if all are forgotten.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.has_declared && self.incoming.is_empty() && self.is_quiet()
    }

    /// Whether a stream of ours waits because the peer gives no credit.
    pub(crate) fn waits_for_credit(&self) -> bool {
        self.outgoing.values().any(Outgoing::waits_for_credit)
    }

    /// The streams of ours that were named here.
    pub(crate) fn own_streams(&self) -> Vec<StreamId> {
        self.handles.keys().copied().collect()
    }

    /// Whether a record of ours has no outcome.
    pub(crate) fn awaits_outcome(&self) -> bool {
        self.outgoing.values().any(Outgoing::awaits_outcome)
    }

    /// Counts outcomes that were news.
    pub(crate) fn outcomes(&self) -> u64 {
        self.outcomes
    }

    /// Whether records or `settled` wait, whoever is there.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.outgoing.values().any(Outgoing::wants)
    }

    /// Writes what is to be said of the peer's streams into a packet that may have `end` bytes of frames.
    pub(crate) fn write_answers(
        &mut self,
        proven: bool,
        out: &mut Vec<u8>,
        end: usize,
        contents: &mut Vec<Content>,
    ) {
        for (handle, incoming) in &mut self.incoming {
            incoming.write(*handle, proven, out, end.saturating_sub(out.len()), contents);
        }
    }

    /// Writes what is due of our own streams, beginning behind the one that the packet before began with
    /// (§7.12).
    pub(crate) fn write_outgoing(&mut self, out: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) {
        let begin = self.next_handle_to_write;
        let mut first = None;
        // Handles count up, so that these are all, each once.
        for handles in [begin..self.next_handle, 0..begin] {
            for (handle, outgoing) in self.outgoing.range_mut(handles) {
                let before = contents.len();
                outgoing.write(out, end.saturating_sub(out.len()), contents);
                if contents.len() > before {
                    first.get_or_insert(*handle);
                }
            }
        }
        if let Some(first) = first {
            self.next_handle_to_write = first + 1;
            self.has_declared = true;
        }
    }

    pub(crate) fn acknowledged(&mut self, contents: &[Content]) {
        for content in contents {
            if let Some(outgoing) = outgoing_handle(content).and_then(|handle| self.outgoing.get_mut(&handle))
            {
                outgoing.acknowledged(content);
            }
        }
    }

    pub(crate) fn lost(&mut self, contents: &[Content]) {
        for content in contents {
            if let Some(outgoing) = outgoing_handle(content).and_then(|handle| self.outgoing.get_mut(&handle))
            {
                outgoing.lost(content);
            }
            if let Some(incoming) = incoming_handle(content).and_then(|handle| self.incoming.get_mut(&handle))
            {
                incoming.lost(content);
            }
        }
    }

    /// Whether a frame about streams may come now. Nothing changes.
    pub(crate) fn check(&self, frame: &Frame<'_>) -> Result<(), PeerMisbehaved> {
        match frame {
            Frame::Declaration { handle, declaration } => self.check_declaration(*handle, declaration),
            Frame::Stored { handle, .. }
            | Frame::Waiting { handle, .. }
            | Frame::Ready { handle, .. }
            | Frame::Forked { handle }
            | Frame::Credit { handle, .. }
                if *handle >= self.next_handle =>
            {
                Err(PeerMisbehaved::UnknownStream(*handle))
            }
            Frame::Stored { handle, upto, .. } => {
                self.outgoing.get(handle).map_or(Ok(()), |outgoing| outgoing.check_stored(*upto))
            }
            Frame::Waiting { handle, turn, number, .. } | Frame::Ready { handle, turn, number } => {
                self.outgoing.get(handle).map_or(Ok(()), |outgoing| outgoing.check_turn(*turn, *number))
            }
            Frame::Piece { total, .. } if *total > self.record_bytes_max as u64 => {
                Err(PeerMisbehaved::RecordTooLarge)
            }
            // What is of records is kept or not when it is applied; the rest is the link's.
            Frame::Records { .. } | Frame::Piece { .. } | Frame::Settled { .. } | Frame::Forked { .. } => {
                Ok(())
            }
            Frame::Blocked { .. } | Frame::Credit { .. } => Ok(()),
            Frame::Padding
            | Frame::Ping
            | Frame::Ack { .. }
            | Frame::PathChallenge(_)
            | Frame::PathResponse(_)
            | Frame::Close
            | Frame::Offer { .. }
            | Frame::Accept { .. }
            | Frame::Transient { .. }
            | Frame::Hailed(_) => Ok(()),
        }
    }

    /// §2.5, §5.3.
    fn check_declaration(&self, handle: u64, declaration: &Declaration) -> Result<(), PeerMisbehaved> {
        let known = self.incoming.get(&handle);
        let twice = match known {
            Some(incoming) => incoming.declaration.stream != declaration.stream,
            None => self.incoming.values().any(|incoming| incoming.declaration.stream == declaration.stream),
        };
        if twice {
            return Err(PeerMisbehaved::DeclaredTwice(handle));
        }
        if known.is_none() && self.incoming.len() >= STREAMS_PER_PEER_MAX {
            return Err(PeerMisbehaved::TooManyStreams);
        }
        Ok(())
    }

    /// Applies a frame about streams that was checked. False if it could not be kept: its packet is not acknowledged.
    /// (§2.2)
    pub(crate) fn apply(&mut self, peer: NodeId, frame: &Frame<'_>, effects: &mut Vec<Effect>) -> bool {
        match frame {
            Frame::Declaration { handle, declaration } => {
                self.on_declaration(peer, *handle, declaration, effects)
            }
            Frame::Records { handle, first, tag, payloads } => {
                let Some(incoming) = self.incoming.get_mut(handle) else { return false };
                let mut deliver = Vec::new();
                let mut kept = true;
                for (number, payload) in (*first..).zip(payloads) {
                    kept &= incoming.take(number, *tag, payload, &mut self.held, &mut deliver);
                }
                hand_over(peer, &incoming.declaration, deliver, effects);
                kept
            }
            Frame::Piece { handle, number, tag, total, offset, bytes } => {
                let Some(incoming) = self.incoming.get_mut(handle) else { return false };
                let mut deliver = Vec::new();
                let record = (*number, *tag);
                let kept =
                    incoming.take_piece(record, (*total, *offset), bytes, &mut self.held, &mut deliver);
                hand_over(peer, &incoming.declaration, deliver, effects);
                kept
            }
            Frame::Settled { handle, upto } => {
                let Some(incoming) = self.incoming.get_mut(handle) else { return false };
                incoming.settle(*upto);
                effects.push(Effect::Settled { peer, stream: incoming.declaration.stream, upto: *upto });
                true
            }
            Frame::Blocked { handle, .. } => {
                let Some(incoming) = self.incoming.get_mut(handle) else { return false };
                incoming.blocked();
                true
            }
            Frame::Stored { .. }
            | Frame::Waiting { .. }
            | Frame::Ready { .. }
            | Frame::Forked { .. }
            | Frame::Credit { .. } => {
                self.on_answer(peer, frame, effects);
                true
            }
            // They ask nothing of streams; what is worth something now or never the link hands over itself.
            Frame::Padding | Frame::Ping | Frame::Transient { .. } => true,
            // The link applied them itself; in a hello or hail they may not be.
            Frame::Ack { .. }
            | Frame::PathChallenge(_)
            | Frame::PathResponse(_)
            | Frame::Close
            | Frame::Offer { .. }
            | Frame::Accept { .. }
            | Frame::Hailed(_) => false,
        }
    }

    fn on_declaration(
        &mut self,
        peer: NodeId,
        handle: u64,
        declaration: &Declaration,
        effects: &mut Vec<Effect>,
    ) -> bool {
        // Two declarations in one packet were checked before either was applied.
        if self.check_declaration(handle, declaration).is_err() {
            return false;
        }
        let news = match self.incoming.get_mut(&handle) {
            Some(incoming) => incoming.declare_again(declaration.clone(), &mut self.held),
            None => {
                let incoming = Incoming::new(declaration.clone(), &mut self.held);
                self.incoming.insert(handle, incoming);
                true
            }
        };
        if news && declaration.oldest > 1 {
            effects.push(Effect::Settled { peer, stream: declaration.stream, upto: declaration.oldest - 1 });
        }
        true
    }

    /// What the peer says of a stream of ours. One that is gone here was said of in vain.
    fn on_answer(&mut self, peer: NodeId, frame: &Frame<'_>, effects: &mut Vec<Effect>) {
        let (Frame::Stored { handle, .. }
        | Frame::Waiting { handle, .. }
        | Frame::Ready { handle, .. }
        | Frame::Forked { handle }
        | Frame::Credit { handle, .. }) = frame
        else {
            return;
        };
        if self.check(frame).is_err() {
            return;
        }
        let Some(outgoing) = self.outgoing.get_mut(handle) else { return };
        let stream = outgoing.declared().stream;
        match frame {
            Frame::Stored { upto, outcomes, .. } if outgoing.stored(*upto) => {
                let outcomes = outcomes.iter().map(|(number, told)| (*number, told.to_outcome())).collect();
                self.outcomes += 1;
                effects.push(Effect::Outcome { peer, stream, upto: *upto, outcomes });
            }
            Frame::Waiting { turn, number, reason, .. } if outgoing.wait(*turn, *number) => {
                effects.push(Effect::Waiting { peer, stream, number: *number, reason: (*reason).to_owned() });
            }
            Frame::Ready { turn, number, .. } => outgoing.go_on(*turn, *number),
            Frame::Credit { oldest, credit, .. } => outgoing.take_credit(*oldest, *credit),
            Frame::Forked { .. } => {
                self.outgoing.remove(handle);
                self.handles.remove(&stream);
                effects.push(Effect::Forked { peer, stream });
            }
            _ => {}
        }
    }
}

fn hand_over(
    peer: NodeId,
    declaration: &Arc<Declaration>,
    deliver: Vec<Delivery>,
    effects: &mut Vec<Effect>,
) {
    effects.extend(deliver.into_iter().map(|Delivery { number, tag, payload }| Effect::Record {
        peer,
        declaration: declaration.clone(),
        number,
        tag,
        payload,
    }));
}

/// The stream of ours that a frame of ours was about.
fn outgoing_handle(content: &Content) -> Option<u64> {
    match content {
        Content::Declaration { handle, .. }
        | Content::Records { handle, .. }
        | Content::Piece { handle, .. }
        | Content::Settled { handle, .. }
        | Content::Blocked { handle, .. } => Some(*handle),
        _ => None,
    }
}

/// The stream of the peer that a frame of ours was about.
fn incoming_handle(content: &Content) -> Option<u64> {
    match content {
        Content::Stored { handle, .. }
        | Content::Credit { handle, .. }
        | Content::Turn { handle, .. }
        | Content::Forked { handle } => Some(*handle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sealing::Tag;

    use super::*;
    use crate::frame;
    use crate::limits::{
        RECORD_BYTES_MAX, REORDER_BYTES_PER_PEER_MAX, TURN_BYTES_PER_PEER_MAX, WINDOW_BYTES, WIRE_BYTES,
    };

    const PEER: NodeId = NodeId([9; 32]);

    fn declaration(stream: u8) -> Declaration {
        Declaration {
            stream: StreamId([stream; 16]),
            from_app: "a".into(),
            to_app: "b".into(),
            oldest: 1,
            tag_before: Tag([0; 8]),
            last: 5,
        }
    }

    /// A conversation that has sent three records, as a peer with proven keys finds it.
    fn begun() -> Conversation {
        let mut conversation = Conversation::new(RECORD_BYTES_MAX);
        conversation.declare(declaration(1));
        for number in 1..4 {
            let payload = vec![7; 100].into();
            let record = Record { stream: StreamId([1; 16]), number, tag: Tag([1; 8]), payload };
            assert_eq!(conversation.send(record), Ok(()));
        }
        let (mut out, mut contents) = (Vec::new(), Vec::new());
        conversation.write_outgoing(&mut out, 1100, &mut contents);
        let mut effects = Vec::new();
        let theirs = Frame::Declaration { handle: 0, declaration: declaration(2) };
        assert!(conversation.apply(PEER, &theirs, &mut effects));
        conversation
    }

    /// Streams that fill a packet each take turns, whichever was declared first.
    #[test]
    fn streams_of_a_peer_take_turns() {
        let mut conversation = Conversation::new(RECORD_BYTES_MAX);
        for stream in 0..4 {
            conversation.declare(declaration(stream));
            for number in 1..41 {
                let record = Record {
                    stream: StreamId([stream; 16]),
                    number,
                    tag: Tag([1; 8]),
                    payload: vec![7; 800].into(),
                };
                assert_eq!(conversation.send(record), Ok(()));
            }
        }
        let mut records = [0; 4];
        for _ in 0..40 {
            let (mut out, mut contents) = (Vec::new(), Vec::new());
            conversation.write_outgoing(&mut out, 1_100, &mut contents);
            for content in contents {
                if let Content::Records { handle, count, .. } = content {
                    records[handle as usize] += count;
                }
            }
        }
        assert!(records.iter().all(|count| (8..=12).contains(count)), "{records:?}");
    }

    #[test]
    fn no_record_is_larger_than_this_node_takes() {
        let mut conversation = Conversation::new(1_000);
        conversation.declare(declaration(1));
        let record = |bytes: usize| Record {
            stream: StreamId([1; 16]),
            number: 1,
            tag: Tag([1; 8]),
            payload: vec![7; bytes].into(),
        };
        assert_eq!(conversation.send(record(1_001)), Err(NotTaken::TooLarge { bytes: 1_001, most: 1_000 }));
        assert_eq!(conversation.send(record(1_000)), Ok(()));
        let piece = |total: u64| {
            let (handle, number, tag) = (0, 1, Tag([1; 8]));
            conversation.check(&Frame::Piece { handle, number, tag, total, offset: 0, bytes: &[1] })
        };
        assert_eq!(piece(1_000), Ok(()));
        assert_eq!(piece(1_001), Err(PeerMisbehaved::RecordTooLarge));
    }

    /// Frames of the right types with small numbers, so that many of them fit the state.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let kind = prop::sample::select(vec![
            1u8, 2, 3, 4, 5, 6, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x24,
        ]);
        let small = prop::collection::vec(prop_oneof![8 => 0u8..6, 1 => any::<u8>()], 0..60);
        prop::collection::vec((kind, small), 1..4).prop_map(|frames| {
            frames.into_iter().flat_map(|(kind, rest)| [vec![kind], rest].concat()).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_frames_of_a_peer_are_borne(packets in prop::collection::vec(frames(), 1..30)) {
            let mut conversation = begun();
            let mut effects = Vec::new();
            for packet in packets {
                let Ok(frames) = frame::decode(&packet) else { continue };
                if frames.iter().any(|frame| conversation.check(frame).is_err()) {
                    continue;
                }
                for frame in &frames {
                    conversation.apply(PEER, frame, &mut effects);
                }
                conversation.stored(PEER, THEIRS, 1, Vec::new(), &mut effects);
                conversation.waiting(StreamId([2; 16]), 3, "no".into());
                conversation.ready("b");
                let (mut out, mut contents) = (Vec::new(), Vec::new());
                conversation.write_answers(true, &mut out, 1100, &mut contents);
                conversation.write_outgoing(&mut out, 1100, &mut contents);
                prop_assert!(out.len() <= 1100);
                prop_assert!(frame::decode(&out).is_ok() || out.is_empty());
                conversation.lost(&contents);
                prop_assert!(conversation.held.reorder_bytes <= REORDER_BYTES_PER_PEER_MAX);
                prop_assert!(conversation.held.turn_bytes <= TURN_BYTES_PER_PEER_MAX);
                prop_assert!(conversation.incoming.len() <= STREAMS_PER_PEER_MAX);
            }
        }
    }

    const THEIRS: StreamId = StreamId([2; 16]);
    const PIECE: usize = 1_000;
    const LARGE: usize = WINDOW_BYTES / 4;

    /// Record `number` comes in pieces, and those that were not kept once more after the store said `stored`. Returns
    /// whether all were kept the first time.
    fn take_large(
        conversation: &mut Conversation,
        number: u64,
        bytes: usize,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let (payload, total) = (vec![number as u8; bytes], bytes as u64);
        let piece = |at: usize, bytes| {
            let offset = (at * PIECE) as u64;
            Frame::Piece { handle: 0, number, tag: Tag([1; 8]), total, offset, bytes }
        };
        let mut refused: Vec<_> = payload.chunks(PIECE).enumerate().collect();
        refused.retain(|(at, bytes)| !conversation.apply(PEER, &piece(*at, bytes), effects));
        if !refused.is_empty() {
            conversation.stored(PEER, THEIRS, 1, Vec::new(), effects);
        }
        for (at, bytes) in &refused {
            assert!(conversation.apply(PEER, &piece(*at, bytes), effects));
        }
        refused.is_empty()
    }

    fn handed(effects: &[Effect]) -> Vec<u64> {
        let number = |effect: &Effect| match effect {
            Effect::Record { number, .. } => Some(*number),
            _ => None,
        };
        effects.iter().filter_map(number).collect()
    }

    #[test]
    fn what_was_acknowledged_is_handed_over_once_a_slow_store_has_room() {
        let mut conversation = begun();
        let mut effects = Vec::new();
        let window = (WIRE_BYTES / LARGE) as u64;
        for number in 1..window {
            assert!(take_large(&mut conversation, number, LARGE, &mut effects));
        }
        // It comes before its turn and is kept; the one before it fills what the store may have open.
        let early = Frame::Records {
            handle: 0,
            first: window + 1,
            tag: Tag([1; 8]),
            payloads: vec![b"early".as_slice()],
        };
        assert!(conversation.apply(PEER, &early, &mut effects));
        assert!(take_large(&mut conversation, window, LARGE, &mut effects));
        assert_eq!(handed(&effects), (1..=window).collect::<Vec<_>>());
        conversation.stored(PEER, THEIRS, 1, Vec::new(), &mut effects);
        assert_eq!(handed(&effects), (1..=window + 1).collect::<Vec<_>>());
        assert_eq!(conversation.held.reorder_bytes, 0);
    }

    #[test]
    fn a_large_record_that_does_not_fit_is_not_acknowledged() {
        let mut conversation = begun();
        let mut effects = Vec::new();
        let window = (WIRE_BYTES / LARGE) as u64;
        for number in 1..window {
            assert!(take_large(&mut conversation, number, LARGE, &mut effects));
        }
        assert!(take_large(&mut conversation, window, LARGE, &mut effects));
        let next = window + 1;
        assert!(!take_large(&mut conversation, next, 5_000, &mut effects));
        assert_eq!(handed(&effects), (1..=next).collect::<Vec<_>>());
        assert_eq!(conversation.held.turn_bytes, 0);
    }

    /// A sender, a receiver that gives little, and what they say to each other.
    struct Ends {
        sender: Conversation,
        receiver: Conversation,
        came: Vec<u64>,
    }

    impl Ends {
        fn new(credits: Credits) -> Ends {
            let mut sender = Conversation::new(RECORD_BYTES_MAX);
            sender.declare(Declaration { last: 0, ..declaration(2) });
            for number in 1..=20 {
                let record =
                    Record { stream: THEIRS, number, tag: Tag([1; 8]), payload: vec![7; 100].into() };
                assert_eq!(sender.send(record), Ok(()));
            }
            let mut receiver = Conversation::new(RECORD_BYTES_MAX);
            receiver.set_credits(credits);
            Ends { sender, receiver, came: Vec::new() }
        }

        /// All that either has to say, a packet a time. What of the receiver is lost it says again.
        fn talk(&mut self, mut loses: usize) {
            let mut effects = Vec::new();
            loop {
                let (mut out, mut said, mut answer, mut answered) = (vec![], vec![], vec![], vec![]);
                self.sender.write_outgoing(&mut out, 450, &mut said);
                let mut kept = true;
                for frame in &frame::decode(&out).unwrap_or_default() {
                    kept &= self.receiver.apply(PEER, frame, &mut effects);
                }
                match kept {
                    true => self.sender.acknowledged(&said),
                    false => self.sender.lost(&said),
                }
                self.receiver.write_answers(true, &mut answer, 1_100, &mut answered);
                if loses > 0 && !answered.is_empty() {
                    loses -= 1;
                    self.receiver.lost(&answered);
                } else {
                    frame::decode(&answer).unwrap_or_default().iter().for_each(|frame| {
                        self.sender.apply(PEER, frame, &mut effects);
                    });
                }
                if out.is_empty() && answer.is_empty() {
                    break;
                }
            }
            self.came.extend(handed(&effects));
        }
    }

    /// A receiver whose store takes nothing is sent no more than it gave, and the sender says that it waits; once it takes
    /// some, as much more comes, also if what it says of that is lost at first (§5.12).
    #[test]
    fn who_does_not_take_is_sent_no_more_than_it_gave() {
        let usual = Credits::default();
        for (credits, each) in [(Credits { records: 4, ..usual }, 4), (Credits { bytes: 350, ..usual }, 4)] {
            for loses in 0..3 {
                let mut ends = Ends::new(credits);
                for upto in (0..20).step_by(each) {
                    if upto > 0 {
                        ends.receiver.stored(PEER, THEIRS, upto as u64, Vec::new(), &mut Vec::new());
                    }
                    ends.talk(loses);
                    // What was sent before the first word of the receiver it did not keep.
                    assert_eq!(ends.came.len(), upto + each, "{credits:?} after {upto}");
                    assert_eq!(ends.sender.waits_for_credit(), upto + each < 20, "{credits:?} after {upto}");
                }
                assert!(ends.came.iter().copied().eq(1..=20));
            }
        }
    }

    /// §9.3.
    #[test]
    fn a_peer_pins_no_more_than_a_bound() {
        let mut conversation = begun();
        let mut effects = Vec::new();
        for handle in 1..STREAMS_PER_PEER_MAX as u64 {
            let mut declaration = declaration(2);
            declaration.stream.0[..8].copy_from_slice(&handle.to_be_bytes());
            let frame = Frame::Declaration { handle, declaration };
            assert!(conversation.apply(PEER, &frame, &mut effects));
            for number in 2..500 {
                let payload = [0; 800];
                let frame =
                    Frame::Records { handle, first: number, tag: Tag([1; 8]), payloads: vec![&payload] };
                conversation.apply(PEER, &frame, &mut effects);
            }
            let bytes = &[0; 1000][..];
            for (number, total) in [(1, RECORD_BYTES_MAX as u64), (501, RECORD_BYTES_MAX as u64 / 100)] {
                let piece = Frame::Piece { handle, number, tag: Tag([1; 8]), total, offset: 0, bytes };
                conversation.apply(PEER, &piece, &mut effects);
            }
        }
        let one_more = Frame::Declaration { handle: 999, declaration: declaration(3) };
        assert_eq!(conversation.check(&one_more), Err(PeerMisbehaved::TooManyStreams));
        assert!(effects.is_empty());
        assert!(conversation.held.reorder_bytes <= REORDER_BYTES_PER_PEER_MAX);
        assert_eq!(conversation.held.turn_bytes, TURN_BYTES_PER_PEER_MAX);
        conversation.bind(None);
        assert_eq!((conversation.held.reorder_bytes, conversation.held.turn_bytes), (0, 0));
    }
}
