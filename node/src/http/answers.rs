//! What views answer: computed once for all who ask the same at the same time, kept once however many it is sent to,
//! and counted for as long as anybody holds it.
//!
//! An [`Answer`] is one buffer; whoever sends it holds a reference, and its bytes count against
//! [`ANSWERS_BYTES_MAX`] until the last of them is written out or its connection gone. Who asks is an [`Asked`], shared
//! by all who ask the same question now: event streams for as long as they are open, requests until they are answered.
//! So there are never more questions than connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use axum::body::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{ANSWERS_BYTES_MAX, RETRY_AFTER_SECONDS, UNCOUNTED_BYTES_MAX, VIEW_BYTES_MAX};
use super::problem::Problem;

/// One view with its arguments: what a request asks for, and an event stream asks again.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) app: String,
    pub(super) view: String,
    pub(super) arguments: Vec<(String, String)>,
}

/// A view's JSON on one line, in one buffer for all it is sent to.
#[derive(Clone)]
pub(super) struct Answer {
    /// As a server-sent event, which has the JSON within.
    event: Bytes,
    /// Of the JSON, to tell a change without keeping what was told last.
    pub(super) digest: [u8; 32],
}

const EVENT_BEGIN: &str = "data: ";
const EVENT_END: &str = "\n\n";

impl Answer {
    pub(super) fn json(&self) -> Bytes {
        self.event.slice(EVENT_BEGIN.len()..self.event.len() - EVENT_END.len())
    }

    pub(super) fn event(&self) -> Bytes {
        self.event.clone()
    }
}

/// A text and the room it takes, which is free again once nobody sends it any more.
struct Held {
    text: String,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The answers being sent, and the questions being asked.
pub(super) struct Answers {
    /// In bytes.
    room: Arc<Semaphore>,
    questions: Mutex<HashMap<Arc<Question>, Weak<Asked>>>,
}

impl Answers {
    pub(super) fn new() -> Arc<Answers> {
        Answers::with_room(ANSWERS_BYTES_MAX)
    }

    /// With room for so many bytes, [`ANSWERS_BYTES_MAX`] but in tests.
    pub(super) fn with_room(bytes: usize) -> Arc<Answers> {
        Arc::new(Answers { room: Arc::new(Semaphore::new(bytes)), questions: Mutex::default() })
    }

    /// Joins those who ask the same.
    pub(super) fn ask(self: &Arc<Answers>, question: Question) -> Arc<Asked> {
        let mut questions = self.questions();
        if let Some(asked) = questions.get(&question).and_then(Weak::upgrade) {
            return asked;
        }
        let question = Arc::new(question);
        let asked = Arc::new(Asked {
            question: Arc::clone(&question),
            answers: Arc::clone(self),
            computing: tokio::sync::Mutex::new(()),
            progress: Mutex::default(),
        });
        questions.insert(question, Arc::downgrade(&asked));
        asked
    }

    /// Makes a view's JSON an answer, if it is not too large and there is room. The same as before is the same buffer.
    pub(super) fn of_view(&self, json: String, before: Option<Answer>) -> Result<Answer, Problem> {
        if json.len() > VIEW_BYTES_MAX {
            let bytes = json.len();
            let message =
                format!("the view has {bytes} bytes, at most {VIEW_BYTES_MAX} are sent: take fewer rows");
            return Err(Problem::budget(message));
        }
        // A raw line break in JSON is only ever space between tokens; an event has none.
        let mut text = if json.contains(['\r', '\n']) { json.replace(['\r', '\n'], " ") } else { json };
        let digest = Sha256::digest(&text).into();
        if let Some(before) = before.filter(|before| before.digest == digest) {
            return Ok(before);
        }
        let room = self.room_for(text.len())?;
        text.reserve_exact(EVENT_BEGIN.len() + EVENT_END.len());
        text.insert_str(0, EVENT_BEGIN);
        text.push_str(EVENT_END);
        text.shrink_to_fit();
        Ok(Answer { event: Bytes::from_owner(Held { text, _room: room }), digest })
    }

    /// Counts any other text while it is being sent.
    pub(super) fn of_text(&self, mut text: String) -> Result<Bytes, Problem> {
        let room = self.room_for(text.len())?;
        text.shrink_to_fit();
        Ok(Bytes::from_owner(Held { text, _room: room }))
    }

    fn room_for(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(None);
        }
        let take = || {
            let permits = u32::try_from(bytes).ok()?;
            Arc::clone(&self.room).try_acquire_many_owned(permits).ok()
        };
        let room = take().or_else(|| {
            self.forget_kept();
            take()
        });
        match room {
            Some(room) => Ok(Some(room)),
            None => {
                let message = format!(
                    "there is no room for an answer of {bytes} bytes: others that are being sent hold \
                     {ANSWERS_BYTES_MAX}"
                );
                Err(Problem::full(message, RETRY_AFTER_SECONDS))
            }
        }
    }

    /// Lets go of what is kept only so that it need not be computed again.
    fn forget_kept(&self) {
        // The last holder of a question takes the lock to leave, so none may be let go of under it.
        let asked: Vec<Arc<Asked>> = self.questions().values().filter_map(Weak::upgrade).collect();
        for asked in asked {
            asked.progress().latest = None;
        }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<Arc<Question>, Weak<Asked>>> {
        // Each change is one insertion or removal, so a panic elsewhere leaves nothing half done.
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question and all who ask it now.
pub(super) struct Asked {
    pub(super) question: Arc<Question>,
    answers: Arc<Answers>,
    /// Held by who computes for all.
    pub(super) computing: tokio::sync::Mutex<()>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Computations begun so far.
    begun: u64,
    latest: Option<Latest>,
}

/// What was computed last.
struct Latest {
    /// The how-manieth computation it was.
    number: u64,
    /// What had been published when it began.
    version: Option<u64>,
    result: Result<Answer, Problem>,
}

/// How new an answer must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Computations begun when it was asked for; the next has seen all that was there then.
    begun: u64,
    /// An earlier one will do if this was published before it.
    version: Option<u64>,
}

impl Asked {
    /// As of now: an event stream that was told of a published version takes that, every other asker also the time.
    pub(super) fn wanted(&self, version: Option<u64>) -> Wanted {
        Wanted { begun: self.progress().begun, version }
    }

    /// What another has computed in the meantime, if it is new enough.
    pub(super) fn computed(&self, wanted: Wanted) -> Option<Result<Answer, Problem>> {
        let progress = self.progress();
        let latest = progress.latest.as_ref()?;
        let published = wanted.version.is_some() && latest.version == wanted.version;
        (latest.number > wanted.begun || published).then(|| latest.result.clone())
    }

    /// Said before the state is read. Gives the number to [`Asked::end`] with.
    pub(super) fn begin(&self) -> u64 {
        let mut progress = self.progress();
        progress.begun += 1;
        progress.begun
    }

    /// The last answer, however old.
    pub(super) fn before(&self) -> Option<Answer> {
        self.progress().latest.as_ref()?.result.as_ref().ok().cloned()
    }

    pub(super) fn end(&self, number: u64, version: Option<u64>, result: Result<Answer, Problem>) {
        // That there is no room now says nothing about later, with the same version.
        let for_now = matches!(result, Err(Problem { retry_after_seconds: Some(_), .. }));
        let version = version.filter(|_| !for_now);
        self.progress().latest = Some(Latest { number, version, result });
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Each change is an assignment or two that stand alone, so a panic elsewhere leaves nothing half done.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut questions = self.answers.questions();
        // Another may have asked the same between our last holder's leaving and here.
        if questions.get(&self.question).is_some_and(|asked| asked.strong_count() == 0) {
            questions.remove(&self.question);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn question(argument: &str) -> Question {
        let arguments = vec![("a".to_owned(), argument.to_owned())];
        Question { app: "log".to_owned(), view: "seen".to_owned(), arguments }
    }

    fn status(result: Result<Answer, Problem>) -> (u16, Option<u32>) {
        result.map_or_else(|problem| (problem.status.as_u16(), problem.retry_after_seconds), |_| (200, None))
    }

    #[test]
    fn what_is_sent_takes_room_until_the_last_holder_lets_go() {
        let large = || "x".repeat(UNCOUNTED_BYTES_MAX + 1);
        let answers = Answers::with_room(2 * large().len());
        let first = answers.of_view(large(), None).unwrap();
        let (json, event) = (first.json(), first.event());
        let _second = answers.of_text(large()).unwrap();
        assert_eq!(status(answers.of_view(large(), None)), (503, Some(RETRY_AFTER_SECONDS)));
        // The small always find room.
        assert_eq!(status(answers.of_view("x".repeat(UNCOUNTED_BYTES_MAX), None)), (200, None));
        drop((first, event));
        assert_eq!(status(answers.of_view(large(), None)), (503, Some(RETRY_AFTER_SECONDS)));
        drop(json);
        assert_eq!(status(answers.of_view(large(), None)), (200, None));
    }

    #[test]
    fn what_is_kept_for_later_makes_room_for_what_is_asked_now() {
        let large = || "x".repeat(UNCOUNTED_BYTES_MAX + 1);
        let answers = Answers::with_room(large().len());
        let asked = answers.ask(question("kept"));
        let number = asked.begin();
        asked.end(number, Some(1), answers.of_view(large(), None));
        assert!(asked.computed(asked.wanted(Some(1))).is_some());
        assert_eq!(status(answers.of_view(large(), None)), (200, None));
        assert!(asked.computed(asked.wanted(Some(1))).is_none());
    }

    #[test]
    fn a_view_has_at_most_so_many_bytes() {
        let answers = Answers::new();
        let most = answers.of_view("x".repeat(VIEW_BYTES_MAX), None).unwrap();
        assert_eq!(most.json().len(), VIEW_BYTES_MAX);
        let Err(over) = answers.of_view("x".repeat(VIEW_BYTES_MAX + 1), None) else { panic!("it was taken") };
        assert_eq!((over.status.as_u16(), over.code), (413, "budget"));
        assert_eq!(over.message, "the view has 4194305 bytes, at most 4194304 are sent: take fewer rows");
    }

    /// Whether an answer computed as number `number` of version `version` is shared with one who wants it so.
    #[test]
    fn an_answer_is_shared_only_with_those_it_is_new_enough_for() {
        let answers = Answers::new();
        let asked = answers.ask(question("x"));
        let before = (asked.wanted(None), asked.wanted(Some(7)), asked.wanted(Some(8)));
        assert!(asked.computed(before.0).is_none());
        let number = asked.begin();
        let meanwhile = (asked.wanted(None), asked.wanted(Some(7)), asked.wanted(Some(8)));
        asked.end(number, Some(7), answers.of_view("[]".to_owned(), None));
        let shared = |wanted: Wanted| asked.computed(wanted).is_some();
        assert_eq!([shared(before.0), shared(before.1), shared(before.2)], [true, true, true]);
        assert_eq!([shared(meanwhile.0), shared(meanwhile.1), shared(meanwhile.2)], [false, true, false]);
    }

    #[test]
    fn that_there_was_no_room_is_not_shared_with_who_asks_again() {
        let answers = Answers::with_room(0);
        let asked = answers.ask(question("x"));
        let waiting = asked.wanted(Some(1));
        let number = asked.begin();
        asked.end(number, Some(1), answers.of_view("x".repeat(UNCOUNTED_BYTES_MAX + 1), None));
        assert!(asked.computed(waiting).is_some());
        assert!(asked.computed(asked.wanted(Some(1))).is_none());
    }

    #[test]
    fn the_same_again_is_the_same_buffer() {
        let answers = Answers::new();
        let first = answers.of_view("[ 1 ]".to_owned(), None).unwrap();
        let again = answers.of_view("[\n1\n]".to_owned(), Some(first.clone())).unwrap();
        let other = answers.of_view("[ 2 ]".to_owned(), Some(first.clone())).unwrap();
        assert_eq!(first.json().as_ptr(), again.json().as_ptr());
        assert_eq!((&first.json()[..], &first.event()[..]), (&b"[ 1 ]"[..], &b"data: [ 1 ]\n\n"[..]));
        assert_eq!(&other.event()[..], b"data: [ 2 ]\n\n");
    }

    #[test]
    fn who_asks_the_same_shares_and_the_last_leaves_nothing_behind() {
        let answers = Answers::new();
        let (first, second, other) =
            (answers.ask(question("x")), answers.ask(question("x")), answers.ask(question("y")));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        drop((first, other));
        assert_eq!(answers.questions().len(), 1);
        drop(second);
        assert_eq!(answers.questions().len(), 0);
    }
}
