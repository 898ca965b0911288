//! What inputs do: posts, records, outcomes. Each is one event of one app, whole or not at all, in the open batch.

use crate::core::{Core, Postponed};
use crate::inbox::Inbound;
use crate::interface::{Post, PostError, Reply};
use crate::outbox::{NO_ROOM, Route, Stream, Unsettled, payload, read_payload};
use crate::posts::{Posts, Repeat};
use crate::rows::{self, OutboxRow, PostRow};
use crate::shares::Cause;
use engine::{Applied, Context, Event, EventError, Send};
use link::ledger::Verdict;
use link::limits::REASON_BYTES_MAX;
use link::{Command, Declaration, Outcome, StreamId, Transient};
use sealing::{NodeId, Tag};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a record waits that would make the state larger, on the node whose disk is full.
const NO_DISK: &str = "the disk has no room";

/// Streams a peer may have here: one a pair of apps, and one more each time it was set back in time.
const STREAMS_PER_PEER_MAX: usize = 4_096;

/// Refusals and answers of a stream that its sender has not settled: twice its window, so that only one that never settles
/// waits.
const OUTCOMES_PER_STREAM_MAX: usize = 2 * link::WINDOW_RECORDS;

/// Ranges kept of what is missing of a stream; more become one.
const GAPS_PER_STREAM_MAX: usize = 64;

/// How long timers wait for room in the outbox before they try again.
const TIMERS_WAIT_MILLISECONDS: i64 = 1_000;

/// What became of an event that a peer's record makes.
enum Taken {
    /// With what is to be kept and told of it, if anything is.
    Done(Option<Outcome>),
    /// Not now: for a reason that may go away.
    Waits(Why),
}

/// Why a record waits, as it is said here and to its sender.
struct Why {
    here: String,
    there: String,
}

impl Why {
    /// The same words on both ends.
    fn both(words: String) -> Why {
        Why { here: words.clone(), there: words }
    }

    /// The app does not take what was sent, for which two versions of it run.
    fn of_versions(input: &str, error: &EventError) -> Why {
        let versions = "another version of the app: start the older of the two with the newer one";
        let input = match error {
            EventError::NoSuchInput { .. } => String::new(),
            _ => format!("input `{input}`: "),
        };
        Why {
            here: format!("{input}{error}. The sender runs {versions}"),
            there: format!("{input}{error}. The peer runs {versions}"),
        }
    }
}

/// What an event would send finds no more room than for so many sends.
pub(crate) struct NoRoom {
    pub room: usize,
}

impl Core {
    /// Runs one event of an app: its rows and sends go to the open batch.
    pub(crate) fn event(&mut self, app: &str, event: Event<'_>, cause: Cause) -> Result<Applied, EventError> {
        let room = self.outbox.shares.room(app, cause);
        let may_grow = cause == Cause::Outcome || self.short.is_none();
        let context = Context { now: self.now, entropy: self.entropy(), room };
        let installed = self.apps.get_mut(app).ok_or_else(|| EventError::NoSuchInput {
            app: app.to_owned(),
            name: event_name(&event).to_owned(),
        })?;
        let mut applied = match may_grow {
            true => installed.app.event(event, &context)?,
            false => installed.app.event_without_growth(event, &context)?,
        };
        if !applied.deltas.is_empty() || applied.transient {
            self.batch.touch(app);
        }
        for delta in &applied.deltas {
            let (list, key) = installed.numbered(delta.list, delta.key.to_vec());
            self.batch.change(list, key, delta.row.map(<[u8]>::to_vec));
        }
        for send in applied.sends.drain(..) {
            if send.transient { self.say(app, send) } else { self.send(app, send) }
        }
        for send in applied.endpoint_sends.drain(..) {
            self.send_to_endpoint(app, send);
        }
        Ok(applied)
    }

    /// Fires what is due, in the order of time, as far as the batch has room.
    pub(crate) fn fire_due(&mut self) {
        self.timers_wait = None;
        let mut without_room = BTreeSet::new();
        while self.batch.has_room() {
            let others = self.apps.iter().filter(|(name, _)| !without_room.contains(*name));
            let due = others.filter_map(|(name, installed)| Some((installed.app.next_due()?, name)));
            let Some((_, app)) = due.min().filter(|(due, _)| *due <= self.now) else { return };
            let app = app.clone();
            self.batch.count_input();
            match self.event(&app, Event::Due, Cause::Post) {
                Ok(Applied { failed: Some(failed), .. }) => self.notice(format!("{app}: {failed}")),
                Ok(_) => {}
                // The app's share of the outbox is full, or the disk, all that an event waits for; other apps go on.
                Err(_) => {
                    self.timers_wait = Some(self.now.saturating_add(TIMERS_WAIT_MILLISECONDS));
                    without_room.insert(app);
                }
            }
        }
    }

    fn send(&mut self, from_app: &str, send: Send) {
        let route = Route { peer: send.to, from_app: from_app.to_owned(), to_app: send.app };
        let tag = self.run.tag();
        let row = OutboxRow { tag: tag.0, output: send.output, arguments: send.arguments };
        let bytes = rows::encode(&row);
        let unsettled = Unsettled { tag, output: row.output, arguments: row.arguments.into() };
        let mut fresh = [0; 16];
        fresh.copy_from_slice(&self.entropy()[..16]);
        let (id, number) = self.outbox.push(&route, StreamId(fresh), unsettled);
        if number == 1 {
            self.write_stream(id);
        }
        self.batch.change(rows::OUTBOX, rows::outbox_key(id, number), Some(bytes));
        self.batch.streams.insert(id);
    }

    /// Sends once what is worth something now or never; it leaves with what the event changed, after its sync.
    fn say(&mut self, from_app: &str, send: Send) {
        if self.is_peer(send.to) {
            let payload = payload(&send.output, &send.arguments);
            self.batch.say(send.to, Transient { from_app: from_app.to_owned(), to_app: send.app, payload });
        }
    }

    /// A peer said something that is worth something now or never: what its app does not take is forgotten.
    pub(crate) fn hear(&mut self, peer: NodeId, transient: &Transient) {
        let Transient { from_app, to_app, payload } = transient;
        if self.is_peer(peer)
            && let Some((name, arguments)) = read_payload(payload)
        {
            let _ = self.event(to_app, Event::From { name, arguments, peer, app: from_app }, Cause::Post);
        }
    }

    fn write_stream(&mut self, id: StreamId) {
        let row = self.outbox.stream(id).map(|stream| rows::encode(&stream.row()));
        self.batch.change(rows::STREAMS, id.0.to_vec(), row);
    }

    /// An input of an app, from outside.
    pub(crate) fn post(&mut self, post: Post) {
        // Only a key asks which request it was.
        let request = if post.idempotency_key.is_some() { request_hash(&post) } else { [0; 16] };
        let posts = self.posts.get(&post.app);
        let known = post.idempotency_key.as_ref().and_then(|key| posts?.repeat(key, request));
        let reply = match known {
            Some(Repeat::Answer(answer)) => Reply::Applied(answer.map(str::to_owned)),
            Some(Repeat::Forgotten) => Reply::Refused(PostError::AnswerForgotten),
            Some(Repeat::Another) => Reply::Refused(PostError::Refused(
                "this Idempotency-Key was used for another request: use a new one".to_owned(),
            )),
            None => self.post_fresh(&post, request),
        };
        self.reply(post.reply, reply);
    }

    fn post_fresh(&mut self, post: &Post, request: [u8; 16]) -> Reply {
        let event = Event::Input { name: &post.input, arguments: &post.body, by: &post.by };
        match self.event(&post.app, event, Cause::Post) {
            Ok(applied) => {
                if let Some(key) = &post.idempotency_key {
                    self.remember_post(&post.app, key, request, applied.answer.clone());
                }
                Reply::Applied(applied.answer)
            }
            Err(EventError::Grows) => {
                Reply::Refused(PostError::NoRoom(self.short.clone().unwrap_or_default()))
            }
            Err(error) => Reply::Refused(post_error(error)),
        }
    }

    fn remember_post(&mut self, app: &str, key: &str, request: [u8; 16], answer: Option<String>) {
        let posts: &mut Posts = self.posts.entry(app.to_owned()).or_default();
        let row = PostRow { order: posts.next_order(), request, answer };
        self.batch.change(rows::POSTS, rows::post_key(app, key), Some(rows::encode(&row)));
        posts.insert(key.to_owned(), row);
        while let Some((key, row)) = posts.forget_one() {
            let row = row.map(|row| rows::encode(&row));
            self.batch.change(rows::POSTS, rows::post_key(app, &key), row);
        }
    }

    /// A record of a peer's stream: applied once, refused once, or waiting.
    pub(crate) fn record(
        &mut self,
        peer: NodeId,
        declaration: &Arc<Declaration>,
        number: u64,
        tag: Tag,
        payload: &[u8],
    ) {
        let key = (peer, declaration.stream);
        let known = self.inbox.get(&key);
        let forked = known.and_then(|inbound| inbound.forked.as_ref());
        if !self.is_peer(peer) || forked.is_some_and(|forked| Arc::ptr_eq(forked, declaration)) {
            return;
        }
        if !self.inbox.contains_key(&key) && self.streams_of(peer) >= STREAMS_PER_PEER_MAX {
            let reason = format!("this node keeps {STREAMS_PER_PEER_MAX} streams of a peer, and has as many");
            return self.waits(peer, declaration, number, Why::both(reason));
        }
        let fresh = || Inbound::new(&declaration.from_app, &declaration.to_app);
        let inbound = self.inbox.entry(key).or_insert_with(fresh);
        match inbound.heard.judge(declaration, number, tag) {
            Verdict::Forked => return self.tell_forked(peer, declaration),
            // Only the record at the number heard proves that the numbers below it are the same records. One above it
            // is out of turn behind one that waits, and comes again.
            Verdict::Duplicate if number != inbound.heard.number => {
                let stream = declaration.stream;
                return self.batch.commands.push(Command::Taken { peer, stream, upto: number });
            }
            Verdict::Duplicate => {
                self.batch.heard.insert(key);
                return;
            }
            Verdict::Gap { from, to } => self.commit_gap(peer, declaration, from, to),
            Verdict::Apply => {}
        }
        match self.take_record(peer, declaration, payload) {
            Taken::Done(outcome) => self.heard(key, number, tag, outcome),
            Taken::Waits(why) => self.waits(peer, declaration, number, why),
        }
    }

    fn streams_of(&self, peer: NodeId) -> usize {
        self.inbox.range((peer, StreamId([0; 16]))..=(peer, StreamId([255; 16]))).count()
    }

    fn take_record(&mut self, peer: NodeId, declaration: &Declaration, payload: &[u8]) -> Taken {
        let Declaration { from_app, to_app, .. } = declaration;
        let outcomes = self.inbox.get(&(peer, declaration.stream)).map_or(0, |i| i.heard.outcomes.len());
        if outcomes >= OUTCOMES_PER_STREAM_MAX {
            let why = format!("{outcomes} refusals and answers of this stream are not settled");
            return Taken::Waits(Why::both(why));
        }
        if !self.apps.contains_key(to_app) {
            return Taken::Waits(Why {
                here: format!("no app {to_app} runs here: start this node with it (--app)"),
                there: format!("no app {to_app} runs on the peer: start it there (--app)"),
            });
        }
        let Some((name, arguments)) = read_payload(payload) else {
            return Taken::Done(Some(Outcome::Refused("the record does not read".to_owned())));
        };
        match self.event(to_app, Event::From { name, arguments, peer, app: from_app }, Cause::Record) {
            Ok(applied) => Taken::Done(applied.carried.map(Outcome::Answered)),
            Err(EventError::NoRoom { .. }) if self.waits_for_who_has_no_room(to_app) => {
                let reason = format!(
                    "{NO_ROOM}{to_app} there has as much under way as it may, and what it sent waits for room, too"
                );
                Taken::Done(Some(Outcome::Refused(reason)))
            }
            Err(EventError::NoRoom { room }) => {
                self.waits.record(to_app, room);
                Taken::Waits(Why::both(format!(
                    "{NO_ROOM}{to_app} there has as much under way as it may; it goes on when some of that has its outcome"
                )))
            }
            Err(EventError::Grows) => {
                self.waits.record(to_app, 0);
                Taken::Waits(Why {
                    here: NO_DISK.to_owned(),
                    there: "the peer's disk has no room".to_owned(),
                })
            }
            Err(error @ (EventError::NoSuchInput { .. } | EventError::Shape { .. })) => {
                Taken::Waits(Why::of_versions(name, &error))
            }
            Err(error @ (EventError::Refused { .. } | EventError::Budget { .. })) => {
                Taken::Done(Some(Outcome::Refused(cut_reason(error.to_string()))))
            }
        }
    }

    fn heard(&mut self, key: (NodeId, StreamId), number: u64, tag: Tag, outcome: Option<Outcome>) {
        if let Some(inbound) = self.inbox.get_mut(&key) {
            if let Some(outcome) = &outcome {
                let row = match outcome {
                    Outcome::Refused(reason) => rows::encode(reason),
                    Outcome::Answered(answer) => rows::encode(answer),
                };
                let place = rows::outcome_key(key.0, key.1, number);
                self.batch.change(outcome_list(outcome), place, Some(row));
            }
            inbound.heard.apply(number, tag, outcome);
            inbound.waiting = None;
            inbound.forked = None;
            self.write_heard(key);
            self.batch.heard.insert(key);
        }
    }

    fn write_heard(&mut self, key: (NodeId, StreamId)) {
        if let Some(inbound) = self.inbox.get(&key) {
            let row = rows::encode(&inbound.row());
            self.batch.change(rows::HEARD, rows::heard_key(key.0, key.1), Some(row));
        }
    }

    fn waits(&mut self, peer: NodeId, declaration: &Declaration, number: u64, Why { here, there }: Why) {
        let stream = declaration.stream;
        let reason = cut_reason(if peer == self.me { here.clone() } else { there });
        if let Some(inbound) = self.inbox.get_mut(&(peer, stream)) {
            inbound.waiting = Some(here);
        }
        self.batch.commands.push(Command::Waiting { peer, stream, number, reason });
    }

    fn tell_forked(&mut self, peer: NodeId, declaration: &Arc<Declaration>) {
        let stream = declaration.stream;
        if let Some(inbound) = self.inbox.get_mut(&(peer, stream)) {
            inbound.forked = Some(Arc::clone(declaration));
            let line = format!(
                "{peer} was set back in time: its {} sends again under a new stream",
                inbound.from_app
            );
            self.notice(line);
        }
        self.batch.commands.push(Command::Forked { peer, stream });
    }

    fn commit_gap(&mut self, peer: NodeId, declaration: &Declaration, from: u64, to: u64) {
        let key = (peer, declaration.stream);
        if let Some(inbound) = self.inbox.get_mut(&key) {
            inbound.heard.apply(to, declaration.tag_before, None);
            inbound.gaps.push((from, to));
            if inbound.gaps.len() > GAPS_PER_STREAM_MAX {
                let oldest = inbound.gaps.remove(0);
                inbound.gaps[0].0 = oldest.0;
            }
            self.write_heard(key);
            self.notice(format!(
                "this node was set back in time: records {from} to {to} that {peer} sent to {} are missing here",
                declaration.to_app
            ));
        }
    }

    /// Our stream of this identity, if it goes to this peer and has not ended.
    fn own_stream(&mut self, peer: NodeId, stream: StreamId) -> Option<&mut Stream> {
        self.outbox.stream_mut(stream).filter(|own| own.route.peer == peer && own.ended.is_none())
    }

    /// The peer committed everything of our stream up to `upto`: the rows go, the app hears how each ended.
    pub(crate) fn outcome(
        &mut self,
        peer: NodeId,
        stream: StreamId,
        upto: u64,
        outcomes: Vec<(u64, Outcome)>,
    ) {
        let Some(own) = self.own_stream(peer, stream) else { return };
        if upto > own.last() {
            // More than was ever allocated: this node forgot what it sent.
            return self.forked(peer, stream);
        }
        let (before, mut settled) = (own.settled, own.settled);
        self.outbox.set_waiting(stream, None);
        let outcomes: BTreeMap<u64, Outcome> = outcomes.into_iter().collect();
        let mut settles = Ok(());
        while settled < upto && settles.is_ok() && self.batch.has_room_for_pieces() {
            settles = self.settle_oldest(stream, outcomes.get(&(settled + 1)));
            settled += u64::from(settles.is_ok());
        }
        if settled > before {
            self.write_stream(stream);
        }
        if settled < upto {
            let outcomes = outcomes.into_iter().filter(|(number, _)| *number > settled).collect();
            self.postpone(stream, Postponed::Outcome { peer, stream, upto, outcomes }, settles);
        }
        self.batch.commands.push(Command::Settled { peer, stream, upto: settled });
        self.batch.streams.insert(stream);
    }

    /// The oldest record of a stream has its outcome: its app hears of it, its row goes. The app's event cannot undo the
    /// outcome: if it fails, people are told. But if it lacks room for what it would send, the outcome waits.
    fn settle_oldest(&mut self, stream: StreamId, outcome: Option<&Outcome>) -> Result<(), NoRoom> {
        let Some(own) = self.outbox.stream(stream) else { return Ok(()) };
        let (app, peer) = (own.route.from_app.clone(), own.route.peer);
        let Some(unsettled) = own.oldest().cloned() else { return Ok(()) };
        self.batch.count_input();
        let Unsettled { output, arguments, .. } = &unsettled;
        let event = match outcome {
            Some(Outcome::Refused(reason)) => Event::Refused { output, arguments, peer, reason },
            Some(Outcome::Answered(answer)) => {
                Event::Delivered { output, arguments, peer, answer: Some(answer) }
            }
            None => Event::Delivered { output, arguments, peer, answer: None },
        };
        match self.event(&app, event, Cause::Outcome) {
            Ok(_) => {}
            Err(EventError::NoRoom { room }) => return Err(NoRoom { room }),
            Err(error) => {
                self.notice(format!("{app}: the outcome of `{output}` to {peer} was not heard: {error}"));
            }
        }
        if let Some(Outcome::Refused(reason)) = outcome
            && !self.hears_refusals(&app, output)
        {
            self.notice(format!(
                "{app}: `{output}` to {peer} was refused, and the app has no `on refused {output}`: {reason}"
            ));
        }
        if let Some((number, _)) = self.outbox.settle_oldest(stream) {
            self.batch.change(rows::OUTBOX, rows::outbox_key(stream, number), None);
        }
        self.ask_again_for_room();
        Ok(())
    }

    pub(crate) fn hears_refusals(&self, app: &str, output: &str) -> bool {
        self.apps.get(app).is_some_and(|installed| installed.app.module().hears_refusals(output))
    }

    /// What waits because there was no room goes on where there is more by now: outcomes, and records of peers.
    pub(crate) fn ask_again_for_room(&mut self) {
        let mut outcomes = self.waits.take_outcomes(&self.outbox.shares);
        self.postponed.append(&mut outcomes);
        // Without room on the disk, records wait for that.
        if self.short.is_none() {
            let apps = self.waits.apps_with_room(&self.outbox.shares);
            apps.iter().for_each(|app| self.ask_again_for(app));
        }
    }

    /// Asks for the records again that wait because their app had no room for what it would send.
    pub(crate) fn ask_again_for(&mut self, app: &str) {
        if !self.waits.take_record(app) {
            return;
        }
        self.batch.commands.push(Command::Ready { app: app.to_owned() });
        let me = self.me;
        let waits =
            |own: &&Stream| own.route.peer == me && own.route.to_app == app && own.waiting().is_some();
        self.batch.streams.extend(self.outbox.iter().filter(waits).map(|own| own.id));
    }

    /// Whether what fills the app's room waits, some of it at least, at nodes without room. Then it may be that these wait
    /// for this one: a record that it waited with for ever is refused instead, and frees a place at its sender. As long as
    /// what it sent is on its way, or for a node that is away, records wait.
    fn waits_for_who_has_no_room(&self, app: &str) -> bool {
        let own = self.outbox.shares.is_full_itself(app, Cause::Record);
        self.outbox.waits_without_room(own.then_some(app))
    }

    /// Ends our stream: what is unsettled is refused, what is sent next begins a fresh one.
    pub(crate) fn end_stream(&mut self, stream: StreamId, reason: &str) {
        if self.outbox.end(stream, reason) {
            self.write_stream(stream);
            self.refuse_unsettled(stream);
        }
    }

    /// Refuses what is unsettled of an ended stream, as far as the batch has room and once its app runs; then forgets
    /// the stream.
    pub(crate) fn refuse_unsettled(&mut self, stream: StreamId) {
        let Some(own) = self.outbox.stream(stream) else { return };
        let (reason, mut left) = (Outcome::Refused(own.ended.clone().unwrap_or_default()), own.len());
        if !self.apps.contains_key(&own.route.from_app) {
            return;
        }
        let mut settles = Ok(());
        while left > 0 && settles.is_ok() && self.batch.has_room_for_pieces() {
            settles = self.settle_oldest(stream, Some(&reason));
            left -= usize::from(settles.is_ok());
        }
        if left > 0 {
            self.write_stream(stream);
            self.postpone(stream, Postponed::End(stream), settles);
        } else {
            self.outbox.forget(stream);
            self.write_stream(stream);
        }
    }

    /// Goes on with the rest when the batch has room, or else when the app has.
    fn postpone(&mut self, stream: StreamId, rest: Postponed, settles: Result<(), NoRoom>) {
        match settles {
            Ok(()) => self.postponed.push_back(rest),
            Err(NoRoom { room }) => {
                let app = self.outbox.stream(stream).map(|own| own.route.from_app.clone());
                self.waits.outcome(&app.unwrap_or_default(), room, rest);
            }
        }
    }

    /// The peer heard of our stream what we never sent: this node was set back in time.
    pub(crate) fn forked(&mut self, peer: NodeId, stream: StreamId) {
        if self.own_stream(peer, stream).is_some() {
            self.notice(format!(
                "this node was set back in time: what it sent to {peer} since is refused as unknown"
            ));
            self.end_stream(stream, "restored; arrival unknown");
        }
    }

    /// The peer forgot its rows up to `upto`: their refusals and answers are forgotten here.
    pub(crate) fn peer_settled(&mut self, peer: NodeId, stream: StreamId, upto: u64) {
        let key = (peer, stream);
        if let Some(inbound) = self.inbox.get_mut(&key) {
            let forgotten = inbound.heard.outcomes.range(..=upto);
            let forgotten: Vec<_> = forgotten.map(|(number, one)| (*number, outcome_list(one))).collect();
            if forgotten.is_empty() {
                return;
            }
            inbound.heard.settle(upto);
            // A record may wait because there were too many of them.
            let waits = inbound.waiting.is_some().then(|| inbound.to_app.clone());
            for (number, list) in forgotten {
                self.batch.change(list, rows::outcome_key(peer, stream, number), None);
            }
            self.write_heard(key);
            self.batch.commands.extend(waits.map(|app| Command::Ready { app }));
        }
    }

    /// The peer cannot take our next record yet.
    pub(crate) fn peer_waits(&mut self, peer: NodeId, stream: StreamId, number: u64, reason: String) {
        let Some(own) = self.own_stream(peer, stream) else { return };
        let (reason, to_app) = ((number > own.settled).then_some(reason), own.route.to_app.clone());
        let is_for_room = reason.as_ref().is_some_and(|why| why.starts_with(NO_ROOM) || why == NO_DISK);
        self.outbox.set_waiting(stream, reason);
        if peer == self.me && is_for_room && !self.waits.has_record(&to_app) {
            // It was asked for again before this word of it came round.
            self.batch.streams.insert(stream);
        }
        if self.short.is_none() {
            let mut apps = self.waits.apps();
            apps.retain(|app| self.waits_for_who_has_no_room(app));
            apps.iter().for_each(|app| self.ask_again_for(app));
        }
    }
}

/// The list that keeps this.
fn outcome_list(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Refused(_) => rows::REFUSALS,
        Outcome::Answered(_) => rows::ANSWERS,
    }
}

fn event_name<'a>(event: &Event<'a>) -> &'a str {
    match event {
        Event::Input { name, .. } | Event::From { name, .. } => name,
        Event::Delivered { output, .. } | Event::Refused { output, .. } | Event::Answered { output, .. } => {
            output
        }
        Event::Due => "timer",
    }
}

fn post_error(error: EventError) -> PostError {
    let words = error.to_string();
    match error {
        EventError::NoSuchInput { app, name } => PostError::NoSuchInput { app, input: name },
        EventError::Shape { .. } => PostError::Shape(words),
        EventError::Refused { .. } | EventError::NoRoom { .. } | EventError::Grows => {
            PostError::Refused(words)
        }
        EventError::Budget { .. } => PostError::Budget(words),
    }
}

/// What a post asked for, so that its key is not taken for another's.
fn request_hash(post: &Post) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update((post.input.len() as u64).to_be_bytes());
    hash.update(&post.input);
    hash.update(&post.body);
    let mut half = [0; 16];
    half.copy_from_slice(&hash.finalize()[..16]);
    half
}

/// A reason as long as a frame carries it, cut at a character.
fn cut_reason(mut reason: String) -> String {
    let end = reason.floor_char_boundary(REASON_BYTES_MAX);
    reason.truncate(end);
    reason
}
