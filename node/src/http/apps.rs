//! An app's inputs and views.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::answers::{Answer, Asked, Question, Wanted};
use super::body::read_object;
use super::doors;
use super::events;
use super::limits::{BODY_BYTES_MAX, IDEMPOTENCY_KEY_CHARACTERS_MAX};
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::{Effort, Handle, Look, Post, PostError, ViewError};

/// Whoever asks on loopback while there are no users with tokens.
const BY_LOCAL: &str = "local";

/// A JSON text that is ready as it is.
pub(super) fn json(text: impl Into<Body>) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content_type)], text.into()).into_response()
}

/// `POST /{app}/{input}`
pub(super) async fn input<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let Path((app, input)) = path.map_err(|error| Problem::shape(error.body_text()))?;
    let (head, body) = request.into_parts();
    let idempotency_key = idempotency_key(&head.headers)?;
    // Where it goes comes before what it holds: who posts to a view is not helped by hearing of its body.
    let body = read_object(&head.headers, body, BODY_BYTES_MAX)
        .await
        .map_err(|problem| doors::not_an_input(&shared.handle, &app, &input).unwrap_or(problem))?;
    let post = Post { app, input, body, by: BY_LOCAL.to_owned(), idempotency_key };
    let answer = shared.handle.post(post).await.map_err(|error| post_problem(&shared.handle, error))?;
    let text = answer.map_or_else(|| "{}".to_owned(), |answer| format!(r#"{{"answer":{answer}}}"#));
    // What was done stays done, so this is not the 503 that says that nothing was.
    let text = shared.answers.of_text(text).map_err(|problem| {
        let message =
            format!("done, but {}; repeat it with its Idempotency-Key for the answer", problem.message);
        Problem::unknown(message)
    })?;
    Ok(json(text))
}

fn post_problem<H: Handle>(handle: &H, error: PostError) -> Problem {
    let better = match &error {
        PostError::NoSuchRoute { app, input } => doors::not_an_input(handle, app, input),
        _ => None,
    };
    better.unwrap_or_else(|| error.into())
}

fn view_problem<H: Handle>(handle: &H, error: ViewError) -> Problem {
    let better = match &error {
        ViewError::NoSuchRoute { app, view } => doors::not_a_view(handle, app, view),
        _ => None,
    };
    better.unwrap_or_else(|| error.into())
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let characters = value.as_bytes();
    let printable = characters.iter().all(|byte| (b' '..=b'~').contains(byte));
    let fits = (1..=IDEMPOTENCY_KEY_CHARACTERS_MAX).contains(&characters.len());
    if values.next().is_some() || !printable || !fits {
        let message = format!(
            "one Idempotency-Key of 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters, or none"
        );
        return Err(Problem::shape(message));
    }
    Ok(Some(String::from_utf8_lossy(characters).into_owned()))
}

/// Whether the bytes that a query escapes with `%` are UTF-8: what is not would be read as other characters.
fn decodes_to_utf8(query: &str) -> bool {
    percent_encoding::percent_decode_str(query).decode_utf8().is_ok()
}

/// `GET /{app}/{view}`, once or as a stream.
pub(super) async fn view<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let Path((app, view)) = path.map_err(|error| Problem::shape(error.body_text()))?;
    let Query(arguments) = query.map_err(|error| Problem::shape(error.body_text()))?;
    if !decodes_to_utf8(request.uri().query().unwrap_or_default()) {
        return Err(Problem::shape("the query is not UTF-8"));
    }
    let asked = shared.answers.ask(Question { app, view, arguments });
    if accepts(request.headers(), "text/event-stream") {
        return events::stream(shared, asked, request.extensions().get()).await;
    }
    let wanted = asked.wanted(None);
    Ok(json(look(&shared, &asked, wanted).await?.json()))
}

/// A view's answer that is as new as wanted: another's, or else computed for all who ask the same by now.
pub(super) async fn look<H: Handle>(
    shared: &Arc<Shared<H>>,
    asked: &Asked,
    wanted: Wanted,
) -> Result<Answer, Problem> {
    let _computing = asked.computing.lock().await;
    if let Some(result) = asked.computed(wanted) {
        return result;
    }
    let number = asked.begin();
    let version = shared.handle.watch(&asked.question.app).map(|published| *published.borrow());
    let result = compute(shared, asked).await;
    asked.end(number, version, result.clone());
    result
}

/// Computes a view, with little effort if that is enough: so one that costs little waits for none that costs much.
async fn compute<H: Handle>(shared: &Arc<Shared<H>>, asked: &Asked) -> Result<Answer, Problem> {
    match compute_with(Effort::Little, shared, asked).await {
        Some(result) => result,
        None => {
            let result = compute_with(Effort::Whole, shared, asked).await;
            result.unwrap_or_else(|| Err(ViewError::Costly.into()))
        }
    }
}

/// Computes a view where blocking is allowed, a few with an effort at a time. None if it costs more than that.
async fn compute_with<H: Handle>(
    effort: Effort,
    shared: &Arc<Shared<H>>,
    asked: &Asked,
) -> Option<Result<Answer, Problem>> {
    let places = match effort {
        Effort::Little => &shared.little_views,
        Effort::Whole => &shared.costly_views,
    };
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .expect("the semaphore is never closed: nothing calls close on it");
    let (handle, answers) = (shared.handle.clone(), Arc::clone(&shared.answers));
    let (question, before) = (Arc::clone(&asked.question), asked.before());
    let computed = tokio::task::spawn_blocking(move || {
        let _place = place;
        let Question { app, view, arguments: query } = &*question;
        match handle.view(Look { app, view, query, by: BY_LOCAL, effort }) {
            Ok(json) => Some(answers.of_view(json, before)),
            Err(ViewError::Costly) => None,
            Err(error) => Some(Err(view_problem(&handle, error))),
        }
    });
    let fault = || Problem::unknown("the view could not be computed; this is a fault of the node's");
    computed.await.unwrap_or_else(|_| Some(Err(fault())))
}

/// Whether a request's `Accept` names this media type. Weights are not weighed: nobody names a type it does not want.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|range| {
            range.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_of_utf8_are_taken() {
        for (query, is_taken) in [
            ("", true),
            ("t=a&n=1", true),
            ("t=%c3%a9", true),
            ("t=%C3%A9%2", true),
            ("t=%", true),
            ("t=%zz", true),
            ("t=%ff", false),
            ("t=%c3", false),
            ("%ff=1", false),
            ("t=%c3&u=%a9", false),
        ] {
            assert_eq!(decodes_to_utf8(query), is_taken, "{query}");
        }
    }
}
