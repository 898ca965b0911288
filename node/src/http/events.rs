//! A view as a stream of server-sent events: at once, and again each time its JSON has changed.
//!
//! The stream is pulled: nothing is computed or kept for a reader that has not taken what it has, so a slow one stalls
//! nobody and next sees the newest. All streams of one question send the same buffer; each keeps only a digest of what
//! it was told last, to tell a change from a batch that changed other rows.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{sleep, timeout};

use super::activity::{Activity, Streaming};
use super::answers::{Answer, Asked};
use super::apps::look;
use super::doors;
use super::limits::{EVENT_KEEP_ALIVE, RETRY_AFTER_SECONDS};
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::Handle;

/// Where a stream is.
struct Watching<H> {
    shared: Arc<Shared<H>>,
    asked: Arc<Asked>,
    published: watch::Receiver<u64>,
    stopping: watch::Receiver<()>,
    told: Told,
    _streaming: Option<Streaming>,
    _place: OwnedSemaphorePermit,
}

enum Told {
    Nothing {
        first: Answer,
    },
    /// The digest of what was told last.
    Last([u8; 32]),
    Failed,
}

/// Answers with the stream, or with what is wrong with the question: a view that fails at once has a status of its own.
pub(super) async fn stream<H: Handle>(
    shared: Arc<Shared<H>>,
    asked: Arc<Asked>,
    activity: Option<&Activity>,
) -> Result<Response, Problem> {
    let place = Arc::clone(&shared.event_streams).try_acquire_owned().map_err(|_| {
        Problem::full("as many event streams are open as the node keeps", RETRY_AFTER_SECONDS)
    })?;
    let app = &asked.question.app;
    let Some(mut published) = shared.handle.watch(app) else {
        return Err(doors::no_such_app(&shared.handle, app));
    };
    // Seen before the view is computed: what is published in between is looked at again.
    published.borrow_and_update();
    let first = look(&shared, &asked, asked.wanted(None)).await?;
    let stopping = shared.stopping.clone();
    let told = Told::Nothing { first };
    let streaming = activity.map(Activity::begin_stream);
    let watching =
        Watching { shared, asked, published, stopping, told, _streaming: streaming, _place: place };
    let events = kept_alive(stream::unfold(watching, Watching::next));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((head, Body::from_stream(events.map(Ok::<Bytes, Infallible>))).into_response())
}

/// Adds a comment wherever a stream has nothing to tell for [`EVENT_KEEP_ALIVE`].
fn kept_alive(events: impl Stream<Item = Bytes> + Send + 'static) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Box::pin(events), async |mut events| {
        let event = timeout(EVENT_KEEP_ALIVE, events.next()).await;
        Some((event.unwrap_or(Some(Bytes::from_static(b": alive\n\n")))?, events))
    })
}

impl<H: Handle> Watching<H> {
    /// The next event; `None` ends the stream.
    async fn next(mut self) -> Option<(Bytes, Watching<H>)> {
        let last = match std::mem::replace(&mut self.told, Told::Failed) {
            Told::Failed => return None,
            Told::Nothing { first } => return Some(self.tell(&first)),
            Told::Last(last) => last,
        };
        // No longer than until there is something new to look at, unless there was no room for it.
        let mut again_after: Option<Duration> = None;
        loop {
            tokio::select! {
                changed = self.published.changed(), if again_after.is_none() => changed.ok()?,
                () = sleep(again_after.unwrap_or_default()), if again_after.is_some() => {}
                _ = self.stopping.changed() => return None,
            }
            let version = *self.published.borrow_and_update();
            again_after = None;
            match look(&self.shared, &self.asked, self.asked.wanted(Some(version))).await {
                Ok(now) if now.digest == last => {}
                Ok(now) => return Some(self.tell(&now)),
                Err(Problem { retry_after_seconds: Some(seconds), .. }) => {
                    again_after = Some(Duration::from_secs(seconds.into()));
                }
                Err(problem) => {
                    return Some((format!("event: error\ndata: {}\n\n", problem.json()).into(), self));
                }
            }
        }
    }

    fn tell(mut self, answer: &Answer) -> (Bytes, Watching<H>) {
        self.told = Told::Last(answer.digest);
        (answer.event(), self)
    }
}
