//! What a link sends: packets and hails of whatever is due, and probes of what is not answered.

use std::net::SocketAddr;

use rand_core::Rng;

use crate::datagram::{HAIL_OVERHEAD_BYTES, PACKET_OVERHEAD_BYTES, cause_of};
use crate::effect::{DownReason, Effect};
use crate::frame::Frame;
use crate::hello::Retry;
use crate::limits::{
    AMPLIFICATION_MAX, CAUSES_MAX, DATAGRAM_BYTES_MAX, GREETING_INTERVAL_LONG, PACKETS_PER_SKIPPED_NUMBER,
    PROBES_BEFORE_CHANGE, PROBES_BEFORE_HELLO,
};
use crate::link::{Acknowledging, Call, HailInFlight, Link};
use crate::recovery::{Content, Timeout};
use crate::session::Standing;
use crate::time::Time;

/// Bytes of frames below which no packet is made for an unproven address: it waits until more may go.
const FRAMES_BYTES_MIN: usize = 24;

/// Bytes of a path challenge.
const CHALLENGE_FRAME_BYTES: usize = 9;

impl Link {
    /// Sends all that is due and may go.
    pub(crate) fn transmit(&mut self, call: &mut Call<'_>) {
        match self.speaker().map(|session| session.standing) {
            None => {}
            Some(Standing::Hailing)
                if self.hail_wanted || (self.has_work() && self.hail_in_flight.is_none()) =>
            {
                self.hail(call);
            }
            Some(Standing::Hailing) => {}
            Some(_) => {
                if self.path.is_unasked() && self.has_work() {
                    let challenge = call.random();
                    self.path.challenge_again(challenge);
                }
                let mut sent = false;
                while self.send_packet(call) {
                    sent = true;
                }
                if sent && self.path.is_proven() && self.is_proven() {
                    self.try_a_size(call);
                }
            }
        }
    }

    /// Sends one packet, if one is due and may go.
    fn send_packet(&mut self, call: &mut Call<'_>) -> bool {
        let Some(to) = self.path.address() else { return false };
        let forced = self.probes_due > 0;
        let full = self.conversation.recovery.datagram_bytes();
        let most =
            if forced && self.path.is_trusted() { DATAGRAM_BYTES_MAX } else { self.path.allowed_bytes() };
        let end = full.min(most).saturating_sub(PACKET_OVERHEAD_BYTES);
        if end < FRAMES_BYTES_MIN {
            return self.ask_for_proof(to, forced, call);
        }
        let (mut frames, mut contents) = (Vec::with_capacity(full), Vec::new());
        // Whatever is on its way: until it is answered hardly anything may go (§7.11).
        self.write_challenge(call.now, &mut frames, end, &mut contents);
        let has_room = forced || self.conversation.recovery.has_room(call.now);
        if has_room {
            // An accept has room beside little else.
            self.epoch.write(&mut frames, end, &mut contents);
        }
        let acknowledges = self.write_acknowledgement(call, &mut frames, end);
        let mut says = false;
        if has_room {
            self.write_frames(forced, &mut frames, end, &mut contents);
            says = self.is_proven() && self.conversation.write_transients(&mut frames, end);
        }
        if says || contents.iter().any(Content::carries) {
            self.carried(call.now);
        }
        if contents.is_empty() && !says && !(acknowledges && self.acknowledging.now) {
            return false;
        }
        if !contents.is_empty() {
            self.probes_due = self.probes_due.saturating_sub(1);
            self.ping_due = false;
        }
        if acknowledges {
            self.name_acknowledgement(&mut contents);
            let largest_at = self.acknowledging.largest_at;
            self.acknowledging = Acknowledging { largest_at, ..Acknowledging::default() };
        }
        self.pad_packet(&mut frames, PACKET_OVERHEAD_BYTES);
        self.send_frames(to, &frames, contents, call)
    }

    /// Sends a padded datagram, larger than those before, if it is time to try one.
    fn try_a_size(&mut self, call: &mut Call<'_>) {
        let Some(to) = self.path.address() else { return };
        let Some(size) = self.conversation.recovery.take_size_probe(call.now) else { return };
        let mut frames = Vec::with_capacity(size);
        Frame::Ping.encode(&mut frames);
        // Zeros are padding.
        frames.resize(size - PACKET_OVERHEAD_BYTES, 0);
        self.send_frames(to, &frames, vec![Content::SizeProbe], call);
    }

    /// No more may go to this address before it proved itself: the question alone does, one at a time or as a probe, so
    /// that the link does not fall silent.
    fn ask_for_proof(&mut self, to: SocketAddr, forced: bool, call: &mut Call<'_>) -> bool {
        if self.conversation.recovery.is_in_flight() && !forced {
            return false;
        }
        self.probes_due = 0;
        let (mut frames, mut contents) = (Vec::new(), Vec::new());
        self.write_challenge(call.now, &mut frames, CHALLENGE_FRAME_BYTES, &mut contents);
        self.pad_packet(&mut frames, PACKET_OVERHEAD_BYTES);
        !contents.is_empty() && self.send_frames(to, &frames, contents, call)
    }

    /// Seals frames as a packet and sends it; `contents` is what somebody waits for of them.
    fn send_frames(
        &mut self,
        to: SocketAddr,
        frames: &[u8],
        contents: Vec<Content>,
        call: &mut Call<'_>,
    ) -> bool {
        let which = self.speaking();
        let skips = call.rng.next_u32().is_multiple_of(PACKETS_PER_SKIPPED_NUMBER);
        let Some(session) = which.and_then(|which| self.session_mut(which)) else { return false };
        if skips {
            session.skip_number();
        }
        let Some((number, bytes)) = session.seal(frames) else {
            // Another root has numbers from 0 on.
            self.hello_wanted = true;
            return false;
        };
        if !contents.is_empty() {
            self.conversation.recovery.on_sent(call.now, number, bytes.len(), contents);
        }
        self.emit(to, bytes, call);
        true
    }

    /// Sends a packet or hail of the session that speaks. Each counts against what may go to its address, and a hint that
    /// echoes it is believed.
    pub(crate) fn emit(&mut self, to: SocketAddr, bytes: Vec<u8>, call: &mut Call<'_>) {
        self.active_at = call.now;
        self.remember_cause(&bytes);
        if self.path.address() == Some(to) {
            self.path.on_sent(bytes.len());
        }
        call.effects.push(Effect::Datagram { to, bytes });
    }

    fn write_challenge(&mut self, now: Time, frames: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) {
        if frames.len() + CHALLENGE_FRAME_BYTES <= end
            && let Some(data) = self.path.take_challenge(now)
        {
            Frame::PathChallenge(data).encode(frames);
            contents.push(Content::Challenge);
        }
    }

    fn write_acknowledgement(&self, call: &Call<'_>, frames: &mut Vec<u8>, end: usize) -> bool {
        if self.acknowledging.unacknowledged == 0 {
            return false;
        }
        let Some(session) = self.speaker() else { return false };
        let delay = (call.now - self.acknowledging.largest_at).0;
        Frame::Ack { ranges: session.received.to_acknowledge(), delay }.append(frames, end)
    }

    /// An acknowledgement in a packet that is waited for: once that came, it need not be said again.
    fn name_acknowledgement(&self, contents: &mut Vec<Content>) {
        let largest = self.speaker().and_then(|session| session.received.largest());
        if let Some(largest) = largest.filter(|_| !contents.is_empty()) {
            contents.push(Content::Acknowledgement { largest });
        }
    }

    fn write_frames(&mut self, forced: bool, frames: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) {
        if let Some(number) =
            self.hail_to_acknowledge.filter(|number| Frame::Hailed(*number).append(frames, end))
        {
            self.hail_to_acknowledge = None;
            contents.push(Content::Hailed { number });
        }
        let proven = self.is_proven();
        self.conversation.write_answers(proven, frames, end, contents);
        if self.may_send_records() {
            self.conversation.write_outgoing(frames, end, contents);
        }
        if contents.is_empty() && (self.ping_due || forced) && frames.len() < end {
            Frame::Ping.encode(frames);
            contents.push(Content::Ping);
        }
    }

    /// Hails the address in use.
    fn hail(&mut self, call: &mut Call<'_>) {
        let Some(to) = self.path.address() else { return };
        let again = self.hail_in_flight.is_some();
        let room = if self.path.is_trusted() { DATAGRAM_BYTES_MAX } else { self.path.allowed_bytes() };
        self.hail_to(to, room.clamp(HAIL_OVERHEAD_BYTES + 1, DATAGRAM_BYTES_MAX), call);
        if let Some(hail) = self.hail_in_flight.as_mut().filter(|_| again) {
            match hail.is_idle {
                true => hail.retry.sent_idly(call.now, GREETING_INTERVAL_LONG),
                false => hail.retry.sent(call.now),
            }
        }
    }

    /// A datagram that does not open came while the peer may not know this run: it is told where the datagram came
    /// from, with no more than may go to an unproven address (§4.4).
    pub(crate) fn provoked(&mut self, from: SocketAddr, bytes: usize, call: &mut Call<'_>) {
        let room = DATAGRAM_BYTES_MAX.min(bytes * AMPLIFICATION_MAX as usize);
        if room > HAIL_OVERHEAD_BYTES && self.provoked.take(call.now) {
            self.hail_to(from, room, call);
        }
    }

    /// Sends a hail with what is due. What the one before carried is due again; when it is sent again stays, since
    /// anybody may provoke a hail.
    pub(crate) fn hail_to(&mut self, to: SocketAddr, room: usize, call: &mut Call<'_>) {
        self.hail_wanted = false;
        let before = self.hail_in_flight.take();
        let retry = before.as_ref().map_or_else(|| Retry::after(call.now), |before| before.retry);
        if let Some(before) = before {
            self.conversation.lost(&before.contents);
        }
        let end = room - HAIL_OVERHEAD_BYTES;
        let (mut frames, mut contents) = (Vec::new(), Vec::new());
        if let Some(number) = self.hail_to_acknowledge {
            Frame::Hailed(number).append(&mut frames, end);
        }
        self.conversation.write_answers(false, &mut frames, end, &mut contents);
        self.conversation.write_outgoing(&mut frames, end, &mut contents);
        if frames.is_empty() {
            Frame::Ping.encode(&mut frames);
        }
        self.pad(&mut frames, HAIL_OVERHEAD_BYTES, DATAGRAM_BYTES_MAX, room);
        let which = self.speaking();
        let Some(session) = which.and_then(|which| self.session_mut(which)) else { return };
        let Some((number, bytes)) = session.seal_hail(&frames) else {
            self.conversation.lost(&contents);
            self.hello_wanted = true;
            return;
        };
        self.told_to = Some(to);
        let is_idle = contents.is_empty() && !self.has_work();
        let waits = !is_idle || !self.was_met;
        if contents.iter().any(Content::carries) {
            self.carried(call.now);
        }
        self.hail_in_flight = waits.then_some(HailInFlight { number, contents, retry, is_idle });
        self.emit(to, bytes, call);
    }

    pub(crate) fn on_hail_timeout(&mut self, call: &mut Call<'_>) {
        let Some(hailed) = self.hail_in_flight.as_ref().filter(|hailed| hailed.retry.at <= call.now) else {
            return;
        };
        let unanswered = hailed.retry.count;
        if unanswered >= PROBES_BEFORE_CHANGE {
            self.path.rotate();
            self.down(DownReason::Silent, call.effects);
        }
        self.hello_wanted |= unanswered >= PROBES_BEFORE_HELLO;
        self.hail(call);
    }

    pub(crate) fn on_recovery_timeout(&mut self, call: &mut Call<'_>) {
        match self.conversation.recovery.on_timeout(call.now) {
            Timeout::Nothing => {}
            Timeout::Lost(contents) => self.on_lost(&contents, call),
            Timeout::Probe(contents) => {
                self.on_lost(&contents, call);
                self.probes_due = 1;
                self.on_silence(call);
            }
        }
    }

    /// Another probe was not answered: the peer may be elsewhere, have another run, or have lost its memo.
    fn on_silence(&mut self, call: &mut Call<'_>) {
        if self.give_up_epoch() {
            return;
        }
        let unanswered = self.conversation.recovery.probes();
        let challenge = call.random();
        self.path.challenge_again(challenge);
        if unanswered > PROBES_BEFORE_CHANGE {
            self.down(DownReason::Silent, call.effects);
            if self.path.rotate() {
                self.conversation.recovery.path_changed();
            }
            // What this node knows of the peer's run may be a replay: a hail needs none of it.
            if self.path.is_trusted() {
                self.hail_as_probe(call);
            }
        }
        self.hello_wanted |= unanswered > PROBES_BEFORE_HELLO;
    }

    fn hail_as_probe(&mut self, call: &mut Call<'_>) {
        let which = self.speaking();
        let Some(to) = self.path.address() else { return };
        let mut frames = Vec::new();
        Frame::Ping.encode(&mut frames);
        self.pad(&mut frames, HAIL_OVERHEAD_BYTES, DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MAX);
        let Some(session) = which.and_then(|which| self.session_mut(which)) else { return };
        if let Some((_, bytes)) = session.seal_hail(&frames) {
            self.emit(to, bytes, call);
        }
    }

    /// What lost packets carried is due again.
    pub(crate) fn on_lost(&mut self, contents: &[Content], call: &mut Call<'_>) {
        self.conversation.lost(contents);
        for content in contents {
            self.epoch.lost(content);
            match content {
                Content::Hailed { number } => {
                    self.hail_to_acknowledge = self.hail_to_acknowledge.max(Some(*number))
                }
                Content::Challenge => {
                    let challenge = call.random();
                    self.path.challenge_again(challenge);
                }
                _ => {}
            }
        }
    }

    fn remember_cause(&mut self, datagram: &[u8]) {
        if self.causes.len() == CAUSES_MAX {
            self.causes.pop_front();
        }
        self.causes.push_back(cause_of(datagram));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RECORD_BYTES_MAX;
    use sealing::NodeId;

    /// Whatever is due: an address that proved nothing gets no more than it may (§6.1).
    #[test]
    fn frames_keep_to_their_room() {
        for end in 0..64 {
            let mut link = Link::new(NodeId::from_bytes([1; 32]), RECORD_BYTES_MAX);
            link.path.moved_to(SocketAddr::from(([10, 0, 0, 1], 1)), [7; 8]);
            link.hail_to_acknowledge = Some(1 << 20);
            link.ping_due = true;
            let (mut frames, mut contents) = (Vec::new(), Vec::new());
            link.write_challenge(Time(0), &mut frames, end, &mut contents);
            link.write_frames(true, &mut frames, end, &mut contents);
            assert!(frames.len() <= end, "{} of {end}", frames.len());
            // What found no room is still due.
            assert_eq!(
                contents.contains(&Content::Hailed { number: 1 << 20 }),
                link.hail_to_acknowledge.is_none()
            );
            assert_eq!(contents.contains(&Content::Challenge), link.path.take_challenge(Time(0)).is_none());
        }
    }
}
