//! What one connection is doing, so that the idle can make place for others and the end can wait for the right ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Shared by a connection and the request on it: HTTP/1 has one at a time.
#[derive(Clone)]
pub(super) struct Activity(Arc<Mutex<Doing>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// No request is under way; the last answer may still be being written.
    Waiting { since: Instant },
    /// A request has come and is not answered yet.
    Answering,
    /// An event stream is open.
    Streaming,
}

impl Activity {
    pub(super) fn new() -> Activity {
        Activity(Arc::new(Mutex::new(Doing::Waiting { since: Instant::now() })))
    }

    pub(super) fn begin_answer(&self) {
        *self.doing() = Doing::Answering;
    }

    /// The answer's head is there; if it is a stream, its [`Streaming`] says when it ends.
    pub(super) fn end_answer(&self) {
        let mut doing = self.doing();
        if *doing == Doing::Answering {
            *doing = Doing::Waiting { since: Instant::now() };
        }
    }

    pub(super) fn begin_stream(&self) -> Streaming {
        *self.doing() = Doing::Streaming;
        Streaming(self.clone())
    }

    pub(super) fn is_answering(&self) -> bool {
        *self.doing() == Doing::Answering
    }

    /// Whether nothing has been under way for at least so long.
    pub(super) fn is_idle_for(&self, duration: Duration) -> bool {
        matches!(*self.doing(), Doing::Waiting { since } if since.elapsed() >= duration)
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        // Each change is one assignment, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event stream that is open as long as this is.
pub(super) struct Streaming(Activity);

impl Drop for Streaming {
    fn drop(&mut self) {
        *self.0.doing() = Doing::Waiting { since: Instant::now() };
    }
}
