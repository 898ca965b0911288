//! What a link gets: packets and hails are opened, checked whole, and only then applied.

use std::net::SocketAddr;

use sealing::memo::Role;
use sealing::{NodeId, Run};

use crate::command::Transient;
use crate::datagram::{PACKET_OVERHEAD_BYTES, Sealed};
use crate::effect::{Effect, MemoPlace, PeerState};
use crate::fault::PeerMisbehaved;
use crate::frame::{self, Frame};
use crate::limits::ACK_DELAY_MAX;
use crate::link::{Call, Link, Which};
use crate::recovery::Content;
use crate::session::Standing;
use crate::time::Span;

/// Eliciting packets after which an acknowledgement goes at once (RFC 9000, 13.2.2).
const PACKETS_PER_ACKNOWLEDGEMENT: u32 = 2;

/// How a packet came.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) from: SocketAddr,
    /// Bytes of the datagram.
    pub(crate) bytes: usize,
}

impl Link {
    fn which(&self, id: [u8; 8]) -> Option<Which> {
        [Which::Current, Which::Pending]
            .into_iter()
            .find(|which| self.session(*which).is_some_and(|session| session.id_in == id))
    }

    /// The peer broke the protocol under keys that it alone has (§2.1).
    fn misbehaved(&mut self, fault: PeerMisbehaved, call: &mut Call<'_>) {
        self.fault = Some(fault);
        if self.faults_told.take(call.now) {
            call.effects.push(Effect::Misbehaved { peer: self.node, fault });
        }
    }

    /// A packet with an id of this link.
    pub(crate) fn on_packet(&mut self, sealed: &Sealed<'_>, arrival: Arrival, call: &mut Call<'_>) {
        let Some(which) = self.which(sealed.id) else { return };
        let Some(session) = self.session(which) else { return };
        let Some((number, bytes)) = session.open(sealed) else {
            let speaks = self.speaking() == Some(which) || self.is_between_epochs();
            if session.standing == Standing::Hailing && speaks {
                self.provoked(arrival.from, arrival.bytes, call);
            }
            return;
        };
        let newest = number >= session.received.expected();
        if let Some(session) = self.session_mut(which) {
            session.bytes += arrival.bytes as u64;
        }
        let frames = match frame::decode(&bytes) {
            Ok(frames) => frames,
            Err(fault) => return self.misbehaved(fault, call),
        };
        self.heard(call.now);
        self.promote(which, call);
        if self.speaking() != Some(Which::Current) {
            // It may not know of the next root. What is on its way under that asks for an answer already (§10.5).
            self.ping_due |= self.is_between_epochs() && !self.conversation.recovery.is_waiting();
            self.work_is_due = true;
            return;
        }
        if let Err(fault) = self.check(&frames) {
            return self.misbehaved(fault, call);
        }
        let moves = newest && self.shows_place(&frames);
        self.on_proof(arrival, moves, call);
        self.apply(&frames, number, arrival, call);
        // What hails carried and this packet did not say to have come is due again.
        if let Some(hailed) = self.hail_in_flight.take() {
            self.conversation.lost(&hailed.contents);
        }
        self.work_is_due = true;
    }

    /// A packet or hail under the pending root opened: the old one is erased.
    fn promote(&mut self, which: Which, call: &mut Call<'_>) {
        if which == Which::Current {
            return;
        }
        self.current = self.pending.take();
        let first_frames = self.answer.take().map(|answer| answer.first_frames).unwrap_or_default();
        self.said = None;
        self.said_contents.clear();
        self.hello_wanted = false;
        self.bind();
        self.save_memo(call.effects);
        if !first_frames.is_empty() {
            self.apply_first_frames(&first_frames, call);
        }
    }

    /// The peer spoke in this pair of runs: it is there, and where this came from.
    fn on_proof(&mut self, arrival: Arrival, moves: bool, call: &mut Call<'_>) {
        self.confirm_by = None;
        let Some(session) = &mut self.current else { return };
        let first = session.standing != Standing::Proven;
        session.standing = Standing::Proven;
        self.was_met = true;
        self.hail_wanted = false;
        if moves {
            self.follow(arrival.from, call);
        }
        self.path.on_received(arrival.from, arrival.bytes);
        if first && self.told_to == Some(arrival.from) {
            // What it says shows that it got what was sent to that address alone.
            self.prove_address(arrival.from, call);
        }
        self.set_state(PeerState::Up, call.effects);
    }

    /// Whether a packet says where the peer is: not if it only asks for or brings the proof of an address, or only
    /// acknowledges that (probing packets of RFC 9000, 9.1). If it did, each move would make the next one (§6.1).
    fn shows_place(&self, frames: &[Frame<'_>]) -> bool {
        frames.iter().any(|frame| match frame {
            Frame::Padding | Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::Close => false,
            Frame::Ack { ranges, .. } => self.conversation.recovery.acknowledges_content(ranges),
            _ => true,
        })
    }

    /// The newest packet says where the peer is.
    fn follow(&mut self, from: SocketAddr, call: &mut Call<'_>) {
        let challenge = call.random();
        if self.path.follow(call.now, from, challenge) {
            self.conversation.recovery.path_changed();
            self.moved();
        }
    }

    pub(crate) fn prove_address(&mut self, address: SocketAddr, call: &mut Call<'_>) {
        if self.path.prove(address) {
            call.effects.push(Effect::Address { peer: self.node, address });
        }
    }

    /// Whether every frame may come now. Nothing changes (§2.1).
    fn check(&self, frames: &[Frame<'_>]) -> Result<(), PeerMisbehaved> {
        let unsent = |ranges: &[(u64, u64)]| self.speaker().map_or(Some(0), |session| session.unsent(ranges));
        frames.iter().try_for_each(|frame| match frame {
            Frame::Ack { ranges, .. } => match unsent(ranges) {
                Some(number) => Err(PeerMisbehaved::AcknowledgedUnsent(number)),
                None => Ok(()),
            },
            Frame::Offer { .. } => self.check_epoch(Role::Initiator),
            Frame::Accept { .. } => self.check_epoch(Role::Responder),
            frame => self.conversation.check(frame),
        })
    }

    fn apply(&mut self, frames: &[Frame<'_>], number: u64, arrival: Arrival, call: &mut Call<'_>) {
        let mut kept = true;
        for frame in frames {
            if *frame == Frame::Close {
                self.forget_sessions(call.effects);
                self.set_state(PeerState::Declined, call.effects);
                return;
            }
            kept &= self.apply_frame(frame, call);
        }
        let challenged = frames.iter().rev().find_map(|frame| match frame {
            Frame::PathChallenge(data) => Some(*data),
            _ => None,
        });
        if let Some(data) = challenged {
            // To the peer this node is elsewhere, unless it asks with its first packet.
            if number > 0 {
                self.moved();
            }
            self.answer_challenge(data, arrival, call);
        }
        let Some(session) = self.current.as_mut().filter(|_| kept) else { return };
        let in_order = number == session.received.expected();
        if number >= session.received.expected() {
            self.acknowledging.largest_at = call.now;
        }
        session.received.insert(number);
        // Only now: a packet that is not kept may come again.
        for frame in frames {
            if let Frame::Transient { from_app, to_app, payload } = frame {
                let (from_app, to_app) = ((*from_app).to_owned(), (*to_app).to_owned());
                let transient = Transient { from_app, to_app, payload: (*payload).into() };
                call.effects.push(Effect::Transient { peer: self.node, transient });
            }
        }
        if frames.iter().any(Frame::is_eliciting) {
            let acknowledging = &mut self.acknowledging;
            acknowledging.unacknowledged += 1;
            acknowledging.now |= !in_order || acknowledging.unacknowledged >= PACKETS_PER_ACKNOWLEDGEMENT;
            acknowledging.at.get_or_insert(call.now + ACK_DELAY_MAX);
        }
        if frames.iter().any(Frame::carries) {
            self.carried(call.now);
        }
        // The last of all, since it ends what the other frames are about.
        let accepted = frames.iter().find_map(|frame| match frame {
            Frame::Accept { key, ciphertext } => Some((*key, *ciphertext)),
            _ => None,
        });
        if let Some((key, ciphertext)) = accepted {
            self.on_accepted(key, ciphertext, call);
        }
    }

    fn apply_frame(&mut self, frame: &Frame<'_>, call: &mut Call<'_>) -> bool {
        match frame {
            Frame::Ack { ranges, delay } => {
                let told = self.conversation.recovery.on_acknowledged(call.now, ranges, Span(*delay));
                self.conversation.acknowledged(&told.acknowledged);
                self.on_lost(&told.lost, call);
                if told.acknowledged.contains(&Content::Challenge) {
                    self.path.challenge_came();
                }
                self.acknowledgements_came(&told.acknowledged);
            }
            Frame::Offer { key, index, bytes } => self.on_offer(*key, *index, bytes, call),
            // Of several challenges in a packet the last one is answered; an accept is taken behind all else.
            Frame::PathChallenge(_) | Frame::Accept { .. } => {}
            Frame::PathResponse(data) => {
                if let Some(address) = self.path.answered(*data) {
                    call.effects.push(Effect::Address { peer: self.node, address });
                    self.memo_due = true;
                }
            }
            Frame::Hailed(number) => {
                if let Some(hailed) = self.hail_in_flight.take_if(|hailed| hailed.number == *number) {
                    self.conversation.acknowledged(&hailed.contents);
                }
            }
            frame => return self.conversation.apply(self.node, frame, call.effects),
        }
        true
    }

    fn acknowledgements_came(&mut self, acknowledged: &[Content]) {
        let came = acknowledged.iter().filter_map(|content| match content {
            Content::Acknowledgement { largest } => Some(*largest),
            _ => None,
        });
        if let (Some(largest), Some(session)) = (came.max(), &mut self.current) {
            session.received.told_upto(largest);
        }
    }

    /// The response goes where the challenge came from, whatever address is in use (RFC 9000, 8.2.2).
    fn answer_challenge(&mut self, data: [u8; 8], arrival: Arrival, call: &mut Call<'_>) {
        let mut frames = Vec::new();
        Frame::PathResponse(data).encode(&mut frames);
        self.pad_answer(&mut frames, PACKET_OVERHEAD_BYTES, arrival);
        let Some(session) = &mut self.current else { return };
        debug_assert!(frames.len() + PACKET_OVERHEAD_BYTES <= 3 * arrival.bytes);
        if let Some((_, bytes)) = session.seal(&frames) {
            self.emit(arrival.from, bytes, call);
        }
    }

    /// A hail with an id of this link (§4.2).
    pub(crate) fn on_hail(&mut self, run: Run, sealed: &Sealed<'_>, arrival: Arrival, call: &mut Call<'_>) {
        let Some(which) = self.which(sealed.id) else { return };
        let Some(hail) = self.session(which).and_then(|session| session.open_hail(&run, sealed)) else {
            return;
        };
        let mut frames = match frame::decode(&hail.frames) {
            Ok(frames) if frames.iter().all(Frame::may_be_in_hail) => frames,
            Ok(_) => return self.misbehaved(PeerMisbehaved::FrameOutOfPlace, call),
            Err(fault) => return self.misbehaved(fault, call),
        };
        self.heard(call.now);
        self.promote(which, call);
        if self.speaking() != Some(Which::Current) {
            return self.on_hail_between_epochs(run);
        }
        self.learn(run, hail.number);
        let fresh = hail.known == call.me.run;
        if !fresh {
            // Answers to another run of this node: their handles and numbers say nothing of what this one sent.
            frames.retain(|frame| !frame.is_answer());
        }
        if let Err(fault) = self.check(&frames) {
            return self.misbehaved(fault, call);
        }
        if fresh {
            self.on_proof(arrival, true, call);
        } else {
            self.tell_run(arrival, call);
        }
        let mut kept = true;
        for frame in &frames {
            kept &= self.apply_frame(frame, call);
        }
        if frames.iter().any(Frame::carries) {
            self.carried(call.now);
        }
        if kept {
            self.hail_to_acknowledge = Some(hail.number);
        }
        if !fresh && self.hail_wanted {
            self.answer_hail(arrival, call);
        }
        self.work_is_due = true;
    }

    /// The peer started anew and may not know of the next root, under which this node speaks: its run is that of both
    /// roots, and it hears of the next one at once (§10.5).
    fn on_hail_between_epochs(&mut self, run: Run) {
        if !self.is_between_epochs() {
            return;
        }
        for session in [&mut self.current, &mut self.pending].into_iter().flatten() {
            if run.counter > session.peer_run.counter {
                session.learn(run);
                if session.standing == Standing::Proven {
                    session.standing = Standing::Told;
                }
            }
        }
        self.bind();
        self.ping_due |= !self.conversation.recovery.is_waiting();
        self.work_is_due = true;
    }

    fn learn(&mut self, run: Run, number: u64) {
        let Some(session) = &mut self.current else { return };
        if session.peer_run != run {
            session.learn(run);
            if session.standing == Standing::Proven {
                // It knew the run of this node under its run before, and says what it knows now.
                session.standing = Standing::Told;
            }
            self.memo_due = true;
            self.bind();
        }
        if let Some(session) = &mut self.current {
            session.hail_received(number);
        }
    }

    /// The hailer does not know this run, unless a packet in this pair of runs opened before and the hail is late.
    fn tell_run(&mut self, arrival: Arrival, call: &mut Call<'_>) {
        let Some(session) = &mut self.current else { return };
        if session.standing == Standing::Proven {
            return;
        }
        session.standing = Standing::Hailing;
        self.hail_wanted = true;
        if self.path.address().is_none() {
            self.follow(arrival.from, call);
        }
        self.path.on_received(arrival.from, arrival.bytes);
    }

    /// The answer goes where the hail came from: it may be a replay, so the address in use stays.
    fn answer_hail(&mut self, arrival: Arrival, call: &mut Call<'_>) {
        let room = arrival.bytes * crate::limits::AMPLIFICATION_MAX as usize;
        let room = room.min(crate::limits::DATAGRAM_BYTES_MAX);
        self.hail_to(arrival.from, room, call);
    }

    /// Somebody says that the peer knows no link of this id (§4.5).
    pub(crate) fn on_hint(&mut self, id: [u8; 8], cause: [u8; 8], call: &mut Call<'_>) {
        let ours = self.speaker().is_some_and(|session| session.id_out == id);
        if ours && self.causes.contains(&cause) && self.fall_back() {
            self.work_is_due = true;
            return;
        }
        if ours && self.causes.contains(&cause) && self.hinted.take(call.now) {
            // One that is said already may have gone elsewhere: the hint shows that somebody is here.
            self.send_said(call);
            self.hello_wanted = self.said.is_none();
            self.work_is_due = true;
        }
    }

    /// Ends the link: the peer is told once, if it can be.
    pub(crate) fn close(&mut self, node: NodeId, effects: &mut Vec<Effect>) {
        let proven = self.is_proven();
        let to = self.path.address();
        if let (Some(session), Some(to), true) = (&mut self.current, to, proven) {
            let mut frames = Vec::new();
            Frame::Close.encode(&mut frames);
            let sealed = session.seal(&frames);
            effects.extend(sealed.map(|(_, bytes)| Effect::Datagram { to, bytes }));
        }
        effects.push(Effect::SaveMemo { peer: node, place: MemoPlace([0; sealing::memo::PLACE_BYTES]) });
    }
}
