//! What apps send to addresses on the web: a queue an app and address, in the order of its sends, one try at a time.
//!
//! A record is a row from the event that made it until the address has taken or refused it; it is tried until then, over
//! restarts, with the same key. Nobody there sorts out what came twice but the address itself, by that key. What a try
//! came to is judged here; how it is made must not be known here.

use crate::core::{Core, Postponed};
use crate::events::NoRoom;
use crate::interface::{ControlError, Reply, ReplyId};
use crate::outbox::RECORD_OVERHEAD_BYTES;
use crate::rows::{self, WebRow};
use crate::shares::Cause;
use engine::{EndpointSend, Event, EventError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The wait before the second try; it doubles from try to try.
const FIRST_WAIT_MILLISECONDS: u64 = 1_000;

/// The longest wait between two tries: how long an address that is back may still wait for what is due to it.
const WAIT_MILLISECONDS_MAX: u64 = 300_000;

/// Characters of an answer's text that a reason quotes.
const QUOTED_CHARACTERS_MAX: usize = 200;

/// Why a record that a person gave up was refused.
const GIVEN_UP: &str = "given up; arrival unknown";

/// Which queue: the app that sends and the address it sends to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebRoute {
    /// The app.
    pub app: String,
    /// The address, which begins with `http://` or `https://`.
    pub endpoint: String,
}

/// One try to be made: a POST.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebTry {
    /// From which app to which address.
    pub route: WebRoute,
    /// Which of its records; the answer says it again.
    pub number: u64,
    /// The same whenever this record is tried, and no other's.
    pub idempotency_key: String,
    /// The output's name.
    pub output: String,
    /// JSON object of its fields.
    pub body: Arc<str>,
    /// How long to wait before it is made.
    pub after_milliseconds: u64,
}

/// What came of a try. Each try has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebAnswer {
    /// As the try has it.
    pub route: WebRoute,
    /// As the try has it.
    pub number: u64,
    /// What came.
    pub outcome: WebOutcome,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebOutcome {
    /// An answer.
    Answered {
        /// Its HTTP status.
        status: u16,
        /// What could be read of its body.
        text: String,
    },
    /// No answer: it may have arrived or not.
    Failed(String),
    /// It is no address that could be asked.
    NoAddress(String),
}

/// What an outcome means for its record.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    Again(String),
    Refused(String),
}

fn judge(outcome: WebOutcome) -> Verdict {
    match outcome {
        WebOutcome::Failed(why) => Verdict::Again(why),
        WebOutcome::NoAddress(why) => Verdict::Refused(why),
        WebOutcome::Answered { status, text } => {
            let quoted: String = text.trim().chars().take(QUOTED_CHARACTERS_MAX).collect();
            let words = if quoted.is_empty() { status.to_string() } else { format!("{status}: {quoted}") };
            match status {
                200..=299 => Verdict::Taken,
                408 | 425 | 429 | 500..=599 => Verdict::Again(words),
                _ => Verdict::Refused(words),
            }
        }
    }
}

/// The wait after so many tries, from half to the whole of it by chance, so that nodes that failed together do not come
/// again together.
fn wait_after(tries: u32, chance: u64) -> u64 {
    let doublings = tries.saturating_sub(1).min(16);
    let whole = (FIRST_WAIT_MILLISECONDS << doublings).min(WAIT_MILLISECONDS_MAX);
    whole / 2 + chance % (whole / 2 + 1)
}

/// A send that has no outcome yet.
#[derive(Debug, Clone)]
pub struct WebRecord {
    number: u64,
    row: Arc<WebRow>,
    body: Arc<str>,
}

impl WebRecord {
    fn cost(&self) -> usize {
        let row = &self.row;
        let bytes = row.arguments.len() + row.body.len() + row.output.len() + row.endpoint.len();
        bytes + self.body.len() + RECORD_OVERHEAD_BYTES
    }
}

/// The records of one app to one address.
#[derive(Debug, Default)]
pub struct Queue {
    records: VecDeque<WebRecord>,
    /// The oldest is being tried, or its outcome waits to be heard.
    under_way: bool,
    /// Tries of the oldest so far in this process.
    pub tries: u32,
    /// The wait before the next one.
    after_milliseconds: u64,
    /// What the last try came to.
    pub waiting: Option<String>,
}

impl Queue {
    /// Records without an outcome.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Their outputs.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.records.iter().map(|record| record.row.output.as_str())
    }
}

/// All queues of a node.
#[derive(Debug, Default)]
pub struct Web {
    queues: BTreeMap<WebRoute, Queue>,
    /// The highest number allocated; numbers order records, and only among those that are there.
    last: u64,
}

impl Web {
    /// Adds a record that an event made, or that recovery found; its number and what it costs.
    fn push(&mut self, number: u64, row: WebRow) -> usize {
        self.last = self.last.max(number);
        let route = WebRoute { app: row.app.clone(), endpoint: row.endpoint.clone() };
        let body = Arc::from(row.body.as_str());
        let record = WebRecord { number, row: Arc::new(WebRow { body: String::new(), ..row }), body };
        let cost = record.cost();
        self.queues.entry(route).or_default().records.push_back(record);
        cost
    }

    /// Takes the oldest record of a queue, which now has its outcome; a queue without records is forgotten.
    fn settle_oldest(&mut self, route: &WebRoute) -> Option<WebRecord> {
        let queue = self.queues.get_mut(route)?;
        let record = queue.records.pop_front();
        (queue.under_way, queue.tries, queue.after_milliseconds, queue.waiting) = (false, 0, 0, None);
        if queue.records.is_empty() {
            self.queues.remove(route);
        }
        record
    }

    /// The queue whose oldest record a try was of.
    fn tried(&mut self, route: &WebRoute, number: u64) -> Option<&mut Queue> {
        let is_tried = |queue: &&mut Queue| {
            queue.under_way && queue.records.front().is_some_and(|record| record.number == number)
        };
        self.queues.get_mut(route).filter(is_tried)
    }

    /// A batch is on disk in which a queue's oldest record was `oldest`: it is tried, unless a try is under way. If another
    /// is the oldest by now, the outcome of the one before it is not on disk yet.
    fn next_try(&mut self, route: &WebRoute, oldest: u64) -> Option<WebTry> {
        let queue = self.queues.get_mut(route)?;
        let record = queue.records.front().filter(|record| record.number == oldest && !queue.under_way)?;
        queue.under_way = true;
        Some(WebTry {
            route: route.clone(),
            number: record.number,
            idempotency_key: record.row.key.iter().map(|byte| format!("{byte:02x}")).collect(),
            output: record.row.output.clone(),
            body: Arc::clone(&record.body),
            after_milliseconds: queue.after_milliseconds,
        })
    }

    /// The number of a queue's oldest record.
    pub fn oldest(&self, route: &WebRoute) -> Option<u64> {
        self.queues.get(route)?.records.front().map(|record| record.number)
    }

    /// All queues.
    pub fn iter(&self) -> impl Iterator<Item = (&WebRoute, &Queue)> {
        self.queues.iter()
    }
}

impl Core {
    /// Keeps a send to an address with the event that made it.
    pub(crate) fn send_to_endpoint(&mut self, app: &str, send: EndpointSend) {
        let mut key = [0; 16];
        key.copy_from_slice(&self.entropy()[..16]);
        let EndpointSend { output, arguments: body, encoded: arguments, to: endpoint } = send;
        let row = WebRow { key, app: app.to_owned(), endpoint, output, arguments, body };
        let number = self.web.last + 1;
        self.batch.change(rows::WEB, rows::web_key(number), Some(rows::encode(&row)));
        self.batch.web.insert(WebRoute { app: app.to_owned(), endpoint: row.endpoint.clone() });
        self.restore_web(number, row);
    }

    /// A record that recovery found; in the order of their numbers.
    pub(crate) fn restore_web(&mut self, number: u64, row: WebRow) {
        let app = row.app.clone();
        let cost = self.web.push(number, row);
        self.outbox.shares.occupy(&app, cost);
    }

    /// A batch is on disk in which a queue's oldest record was `oldest`: it is tried, if its app runs.
    pub(crate) fn try_next(&mut self, route: &WebRoute, oldest: u64) -> Option<WebTry> {
        self.apps.contains_key(&route.app).then(|| self.web.next_try(route, oldest))?
    }

    /// A try came to something.
    pub(crate) fn web_answered(&mut self, answer: WebAnswer) {
        let WebAnswer { route, number, outcome } = answer;
        let mut chance = [0; 8];
        chance.copy_from_slice(&self.entropy()[..8]);
        let Some(queue) = self.web.tried(&route, number) else { return };
        let refusal = match judge(outcome) {
            Verdict::Taken => None,
            Verdict::Refused(reason) => Some(reason),
            Verdict::Again(why) => {
                queue.under_way = false;
                queue.tries = queue.tries.saturating_add(1);
                queue.after_milliseconds = wait_after(queue.tries, u64::from_le_bytes(chance));
                queue.waiting = Some(why);
                self.batch.web.insert(route);
                return;
            }
        };
        self.hear_web(route, number, refusal);
    }

    /// Settles a record, now or once there is room for what its app sends when it hears that.
    pub(crate) fn hear_web(&mut self, route: WebRoute, number: u64, refusal: Option<String>) {
        if let Err(NoRoom { room }) = self.settle_web(&route, number, refusal.as_deref()) {
            let app = route.app.clone();
            self.waits.outcome(&app, room, Postponed::Web { route, number, refusal });
        }
    }

    /// The oldest record of a queue, if it is still this one, has its outcome: its app hears of it, its row goes, the next is
    /// tried after the sync. If the app lacks room for what it would send when it hears that, the outcome waits.
    fn settle_web(&mut self, route: &WebRoute, number: u64, refusal: Option<&str>) -> Result<(), NoRoom> {
        let oldest = self.web.queues.get(route).and_then(|queue| queue.records.front());
        let Some(oldest) = oldest.filter(|oldest| oldest.number == number) else { return Ok(()) };
        let row = Arc::clone(&oldest.row);
        self.batch.count_input();
        let (app, to, output) = (&route.app, &route.endpoint, &row.output);
        let event = Event::Answered { output, arguments: &row.arguments, to, refusal };
        match self.event(app, event, Cause::Outcome) {
            Ok(_) => {}
            Err(EventError::NoRoom { room }) => return Err(NoRoom { room }),
            Err(error) => {
                self.notice(format!("{app}: the outcome of `{output}` to {to} was not heard: {error}"));
            }
        }
        if let Some(reason) = refusal.filter(|_| !self.hears_refusals(app, output)) {
            self.notice(format!(
                "{app}: `{output}` to {to} was refused, and the app has no `on refused {output}`: {reason}"
            ));
        }
        if let Some(record) = self.web.settle_oldest(route) {
            self.batch.change(rows::WEB, rows::web_key(number), None);
            self.outbox.shares.vacate(app, record.cost());
        }
        self.batch.web.insert(route.clone());
        self.ask_again_for_room();
        Ok(())
    }

    /// A person gives up what waits for an address.
    pub(crate) fn give_up(&mut self, reply: ReplyId, endpoint: &str) -> Result<(), ControlError> {
        let queues = self.web.queues.iter().filter(|(route, _)| route.endpoint == endpoint);
        let newest = |queue: &Queue| queue.records.back().map(|record| record.number);
        let queues: Vec<_> =
            queues.filter_map(|(route, queue)| Some((route.clone(), newest(queue)?))).collect();
        if queues.is_empty() {
            return Err(ControlError::NothingWaits(endpoint.to_owned()));
        }
        if let Some((route, _)) = queues.iter().find(|(route, _)| !self.apps.contains_key(&route.app)) {
            let (app, endpoint) = (route.app.clone(), endpoint.to_owned());
            return Err(ControlError::AppAbsent { app, endpoint });
        }
        self.give_up_queues(reply, queues);
        Ok(())
    }

    /// Refuses the records of queues up to a number each, as far as the batch has room; then answers. Where an app has no
    /// room for what it sends when it hears that, the other apps' queues come first.
    pub(crate) fn give_up_queues(&mut self, reply: ReplyId, queues: Vec<(WebRoute, u64)>) {
        let (mut queues, mut waiting, mut first) = (VecDeque::from(queues), VecDeque::new(), None);
        while let Some((route, upto)) = queues.front().cloned() {
            let Some(number) = self.web.oldest(&route).filter(|oldest| *oldest <= upto) else {
                queues.pop_front();
                continue;
            };
            if !self.batch.has_room_for_pieces() {
                queues.append(&mut waiting);
                return self.postponed.push_back(Postponed::GiveUp { reply, queues: queues.into() });
            }
            if let Err(NoRoom { room }) = self.settle_web(&route, number, Some(GIVEN_UP)) {
                first.get_or_insert((route.app, room));
                waiting.extend(queues.pop_front());
            }
        }
        match first {
            Some((app, room)) => {
                self.waits.outcome(&app, room, Postponed::GiveUp { reply, queues: waiting.into() });
            }
            None => self.reply(reply, Reply::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_taken_tried_again_or_refused() {
        let check = |status: u16, text: &str, expected: Verdict| {
            let outcome = WebOutcome::Answered { status, text: text.to_owned() };
            assert_eq!(judge(outcome), expected, "{status} {text}");
        };
        for status in [200, 201, 204, 299] {
            check(status, "thanks", Verdict::Taken);
        }
        for status in [408, 425, 429, 500, 503, 599] {
            check(status, "", Verdict::Again(status.to_string()));
        }
        for status in [100, 301, 308, 400, 404, 409, 410, 422, 499, 600] {
            check(status, " no\n", Verdict::Refused(format!("{status}: no")));
        }
        let long = "é".repeat(1_000);
        check(404, &long, Verdict::Refused(format!("404: {}", "é".repeat(QUOTED_CHARACTERS_MAX))));
        assert_eq!(judge(WebOutcome::Failed("reset".into())), Verdict::Again("reset".into()));
        assert_eq!(judge(WebOutcome::NoAddress("no".into())), Verdict::Refused("no".into()));
    }

    #[test]
    fn waits_double_and_are_bounded_whatever_chance_says() {
        for (tries, whole) in [(1, 1_000), (2, 2_000), (9, 256_000), (10, 300_000), (u32::MAX, 300_000)] {
            for chance in [0, 1, u64::MAX / 3, u64::MAX] {
                let wait = wait_after(tries, chance);
                assert!((whole / 2..=whole).contains(&wait), "{tries} tries: {wait}");
            }
        }
    }
}
