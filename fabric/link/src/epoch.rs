//! The change of a link's root: an epoch that carried something ends, so that nobody who seizes a node later can open it.
//!
//! Only the initiator offers, in packets of the root that speaks; the responder answers there and keeps the next root
//! beside it. From then on it is as after a hello: the initiator speaks under the pending root, and the first packet that
//! opens under it erases the one before ([`receive`](crate::receive)). Must not know addresses or streams.

use sealing::memo::Role;
use sealing::{EpochOffer, OFFER_ACCEPT_BYTES, OFFER_BYTES, accept_offer};

use crate::effect::Effect;
use crate::fault::PeerMisbehaved;
use crate::frame::Frame;
use crate::hello::key_of;
use crate::limits::{EPOCH_BYTES, EPOCH_SPAN, PROBES_BEFORE_CHANGE, REST_AFTER};
use crate::link::{Call, Link, Which};
use crate::recovery::Content;
use crate::session::{Session, Standing};
use crate::time::{Span, Time};

/// Parts of an offered key: one does not fit a datagram.
pub(crate) const OFFER_PARTS: usize = 2;
/// Bytes of each.
pub(crate) const OFFER_PART_BYTES: usize = OFFER_BYTES / OFFER_PARTS;

/// When the epochs of all links of a node end that carried something. The default is right but for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epochs {
    /// After this time.
    pub span: Span,
    /// After so many bytes of datagrams in both directions.
    pub bytes: u64,
    /// Once nothing is to be said or waited for so long: before the link rests.
    pub rest_after: Span,
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs { span: EPOCH_SPAN, bytes: EPOCH_BYTES, rest_after: REST_AFTER }
    }
}

/// What of an epoch change is under way under the root that speaks. It ends with that root and its pair of runs.
#[derive(Debug, Default)]
pub(crate) struct EpochChange {
    offering: Option<Offering>,
    gathering: Option<Gathering>,
    accepting: Option<Accepting>,
    /// It ends now, whatever it carried (§10.7).
    pub(crate) is_over: bool,
    /// The peer did not answer, and nothing else is to be said: it is not asked until it is heard.
    gave_up: bool,
}

/// This node offers a key.
#[derive(Debug)]
struct Offering {
    key: [u8; 8],
    offer: EpochOffer,
    due: [bool; OFFER_PARTS],
}

/// Parts of a key that the peer offers.
#[derive(Debug)]
struct Gathering {
    key: [u8; 8],
    parts: [Option<[u8; OFFER_PART_BYTES]>; OFFER_PARTS],
}

/// The pending root came from this offer.
#[derive(Debug)]
struct Accepting {
    key: [u8; 8],
    ciphertext: Box<[u8; OFFER_ACCEPT_BYTES]>,
    due: bool,
}

impl EpochChange {
    /// Whether something is to be said.
    pub(crate) fn wants(&self) -> bool {
        self.offering.as_ref().is_some_and(|offering| offering.due.contains(&true))
            || self.accepting.as_ref().is_some_and(|accepting| accepting.due)
    }

    /// Whether nothing of a change is under way, or was given up.
    pub(crate) fn is_still(&self) -> bool {
        self.offering.is_none()
            && self.gathering.is_none()
            && self.accepting.is_none()
            && !self.is_over
            && !self.gave_up
    }

    /// The peer was heard: what was given up is worth another try.
    pub(crate) fn heard(&mut self) {
        if std::mem::take(&mut self.gave_up)
            && let Some(offering) = &mut self.offering
        {
            offering.due = [true; OFFER_PARTS];
        }
    }

    fn give_up(&mut self) {
        self.gave_up = true;
        if let Some(offering) = &mut self.offering {
            offering.due = [false; OFFER_PARTS];
        }
        if let Some(accepting) = &mut self.accepting {
            accepting.due = false;
        }
    }

    /// Writes what is due and fits.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, end: usize, contents: &mut Vec<Content>) {
        if let Some(Accepting { key, ciphertext, due }) = self.accepting.as_mut().filter(|found| found.due)
            && (Frame::Accept { key: *key, ciphertext }).append(out, end)
        {
            *due = false;
            contents.push(Content::Accept { key: *key });
        }
        let Some(Offering { key, offer, due }) = &mut self.offering else { return };
        for (index, bytes) in (0..).zip(offer.offered().as_chunks().0) {
            let due = &mut due[usize::from(index)];
            if *due && (Frame::Offer { key: *key, index, bytes }).append(out, end) {
                *due = false;
                contents.push(Content::Offer { key: *key, index });
            }
        }
    }

    /// A frame of ours is lost.
    pub(crate) fn lost(&mut self, content: &Content) {
        match *content {
            Content::Offer { key, index } => {
                if let Some(offering) = self.offering.as_mut().filter(|offering| offering.key == key) {
                    offering.due[usize::from(index)] = true;
                }
            }
            Content::Accept { key } => {
                if let Some(accepting) = self.accepting.as_mut().filter(|accepting| accepting.key == key) {
                    accepting.due = true;
                }
            }
            _ => {}
        }
    }

    /// Takes a part of the peer's offer; its key and the whole if that was the last part missing. An offer that was
    /// accepted and comes again is answered again.
    fn gather(
        &mut self,
        key: [u8; 8],
        index: u8,
        bytes: &[u8; OFFER_PART_BYTES],
    ) -> Option<[u8; OFFER_BYTES]> {
        if let Some(accepting) = self.accepting.as_mut().filter(|accepting| accepting.key == key) {
            accepting.due = true;
            return None;
        }
        if self.gathering.as_ref().is_none_or(|gathering| gathering.key != key) {
            self.gathering = Some(Gathering { key, parts: [None; OFFER_PARTS] });
        }
        let gathering = self.gathering.as_mut()?;
        *gathering.parts.get_mut(usize::from(index))? = Some(*bytes);
        let [Some(first), Some(second)] = &gathering.parts else { return None };
        let mut whole = [0; OFFER_BYTES];
        whole[..OFFER_PART_BYTES].copy_from_slice(first);
        whole[OFFER_PART_BYTES..].copy_from_slice(second);
        self.gathering = None;
        (key_of(&whole) == key).then_some(whole)
    }
}

impl Link {
    /// When the epoch that speaks ends, as far as nothing happens before (§10.1).
    pub(crate) fn epoch_ends_at(&self) -> Option<Time> {
        let session = self.speaker().filter(|_| self.speaking() == Some(Which::Current))?;
        let may_offer = session.role == Role::Initiator && session.standing == Standing::Proven;
        let silent = self.epoch.gave_up || self.conversation.recovery.probes() > 0;
        if !may_offer || silent || self.epoch.offering.is_some() {
            return None;
        }
        if self.epoch.is_over {
            return Some(Time(0));
        }
        let (first, last) = session.carried?;
        if session.bytes >= self.epochs.bytes {
            return Some(last);
        }
        let long = first + self.epochs.span;
        let rests = self.is_quiet() && !self.conversation.recovery.is_waiting();
        Some(if rests { long.min(last + self.epochs.rest_after) } else { long })
    }

    /// Whether nothing is to be said to the peer or waited for, epochs aside.
    fn is_quiet(&self) -> bool {
        self.was_met && self.said.is_none() && self.hail_in_flight.is_none() && self.conversation.is_quiet()
    }

    /// Offers the next epoch if this one is over.
    pub(crate) fn end_epoch(&mut self, call: &mut Call<'_>) {
        if self.epoch_ends_at().is_some_and(|at| at <= call.now) {
            let offer = EpochOffer::new(&mut call.keys());
            let key = key_of(offer.offered());
            self.epoch.offering = Some(Offering { key, offer, due: [true; OFFER_PARTS] });
        }
    }

    /// Only the initiator offers, only the responder accepts. Nothing changes (§10.2).
    pub(crate) fn check_epoch(&self, by: Role) -> Result<(), PeerMisbehaved> {
        match self.current.as_ref().map(|session| session.role) {
            Some(mine) if mine != by => Ok(()),
            _ => Err(PeerMisbehaved::FrameOutOfPlace),
        }
    }

    /// A part of an offer came under the current root. The next root is in the memo before the accept leaves (§10.3).
    pub(crate) fn on_offer(
        &mut self,
        key: [u8; 8],
        index: u8,
        bytes: &[u8; OFFER_PART_BYTES],
        call: &mut Call<'_>,
    ) {
        let Some(offered) = self.epoch.gather(key, index, bytes) else { return };
        let Some(current) = &self.current else { return };
        let Some((ciphertext, root)) =
            accept_offer(&current.root, current.epoch + 1, &offered, &mut call.keys())
        else {
            return;
        };
        self.pending = Some(current.next(root));
        self.epoch.accepting = Some(Accepting { key, ciphertext: Box::new(ciphertext), due: true });
        self.begin_next(call.effects);
    }

    /// The offer of this node was accepted: it speaks under the next root from now on, and keeps the one before until
    /// the peer does (§10.4).
    pub(crate) fn on_accepted(
        &mut self,
        key: [u8; 8],
        ciphertext: &[u8; OFFER_ACCEPT_BYTES],
        call: &mut Call<'_>,
    ) {
        let Some(offering) = self.epoch.offering.as_ref().filter(|offering| offering.key == key) else {
            return;
        };
        let Some(current) = &self.current else { return };
        let Some(root) = offering.offer.accepted(&current.root, current.epoch + 1, ciphertext) else {
            return;
        };
        self.pending = Some(current.next(root));
        self.begin_next(call.effects);
        self.bind();
        self.ping_due = true;
    }

    /// There is a next root: what else was pending is not.
    fn begin_next(&mut self, effects: &mut Vec<Effect>) {
        self.answer = None;
        self.confirm_by = None;
        // Whoever speaks under it has not shown that it is where the one before was told to.
        self.told_to = None;
        self.save_memo(effects);
    }

    /// Whether the session that speaks is the next one of the current, which the peer may not have (§10.5).
    pub(crate) fn is_between_epochs(&self) -> bool {
        match (&self.current, &self.pending) {
            (Some(current), Some(pending)) => pending.is_next_of(current),
            _ => false,
        }
    }

    /// After a start with two roots the peer does not know the next one: the one before speaks, and the next is offered
    /// again. Only then: in the process that spoke under the next root, the streams went on from the one before (§10.5).
    pub(crate) fn fall_back(&mut self) -> bool {
        let is_restored = self.current.as_ref().is_some_and(|session| session.standing == Standing::Hailing);
        let falls_back = is_restored && self.is_between_epochs() && self.speaking() == Some(Which::Pending);
        if falls_back {
            self.pending = None;
            self.bind();
            self.hail_wanted = true;
        }
        falls_back
    }

    /// The peer does not answer, and all that is on its way is of an epoch change: it has time (§10.6).
    pub(crate) fn give_up_epoch(&mut self) -> bool {
        let is_of_epoch = |content: &Content| {
            matches!(
                content,
                Content::Offer { .. }
                    | Content::Accept { .. }
                    | Content::Ping
                    | Content::Challenge
                    | Content::Acknowledgement { .. }
            )
        };
        let recovery = &mut self.conversation.recovery;
        let gives_up = recovery.probes() > PROBES_BEFORE_CHANGE && recovery.carries_only(is_of_epoch);
        if !gives_up || !self.is_quiet() {
            return false;
        }
        self.conversation.recovery.abandon();
        self.epoch.give_up();
        self.ping_due = false;
        self.probes_due = 0;
        true
    }
}

impl Session {
    /// The session of the next epoch, in the same pair of runs.
    fn next(&self, root: sealing::Root) -> Session {
        Session::new(self.role, self.epoch + 1, root, (self.my_run, self.peer_run), Standing::Told)
    }

    fn is_next_of(&self, current: &Session) -> bool {
        self.role == current.role && self.epoch == current.epoch + 1
    }
}
