//! A view as a stream of server-sent events: at once, and again each time its JSON has changed.
//!
//! The stream is pulled: nothing is computed or kept for a reader that has not taken what it has, so a slow one stalls
//! nobody and next sees the newest. What it was told last is kept to tell a change from a batch that changed other rows.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::activity::{Activity, Streaming};
use super::apps::{Question, look};
use super::doors;
use super::limits::{EVENT_KEEP_ALIVE, RETRY_AFTER_SECONDS};
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::Handle;

/// Where a stream is.
struct Watching<H> {
    shared: Arc<Shared<H>>,
    question: Arc<Question>,
    published: watch::Receiver<u64>,
    stopping: watch::Receiver<()>,
    told: Told,
    _streaming: Option<Streaming>,
    _place: OwnedSemaphorePermit,
}

enum Told {
    Nothing { first: String },
    Last(String),
    Failed,
}

/// Answers with the stream, or with what is wrong with the question: a view that fails at once has a status of its own.
pub(super) async fn stream<H: Handle>(
    shared: Arc<Shared<H>>,
    question: Arc<Question>,
    activity: Option<&Activity>,
) -> Result<Response, Problem> {
    let place = Arc::clone(&shared.event_streams).try_acquire_owned().map_err(|_| {
        Problem::full("as many event streams are open as the node keeps", RETRY_AFTER_SECONDS)
    })?;
    let Some(mut published) = shared.handle.watch(&question.app) else {
        return Err(doors::no_such_app(&shared.handle, &question.app));
    };
    // Seen before the view is computed: what is published in between is looked at again.
    published.borrow_and_update();
    let first = look(&shared, &question).await?;
    let stopping = shared.stopping.clone();
    let told = Told::Nothing { first };
    let streaming = activity.map(Activity::begin_stream);
    let watching =
        Watching { shared, question, published, stopping, told, _streaming: streaming, _place: place };
    let events = stream::unfold(watching, |watching| watching.next());
    let keep_alive = KeepAlive::new().interval(EVENT_KEEP_ALIVE).text("alive");
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

impl<H: Handle> Watching<H> {
    /// The next event; `None` ends the stream.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Watching<H>)> {
        let last = match std::mem::replace(&mut self.told, Told::Failed) {
            Told::Failed => return None,
            Told::Nothing { first } => return Some(self.tell(first)),
            Told::Last(last) => last,
        };
        loop {
            tokio::select! {
                changed = self.published.changed() => changed.ok()?,
                _ = self.stopping.changed() => return None,
            }
            match look(&self.shared, &self.question).await {
                Ok(now) if now == last => {}
                Ok(now) => return Some(self.tell(now)),
                Err(problem) => {
                    let event = Event::default().event("error").data(problem.json());
                    return Some((Ok(event), self));
                }
            }
        }
    }

    fn tell(mut self, json: String) -> (Result<Event, Infallible>, Watching<H>) {
        // One line an event; a raw line break in JSON is only ever space between tokens.
        let event = Event::default().data(json.replace(['\r', '\n'], " "));
        self.told = Told::Last(json);
        (Ok(event), self)
    }
}
