//! The paths.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{delete, get, post};
use tokio::sync::{Semaphore, watch};

use super::answers::Answers;
use super::limits::{COSTLY_VIEWS_AT_ONCE, EVENT_STREAMS_MAX, LITTLE_VIEWS_AT_ONCE};
use super::problem::Problem;
use super::{apps, backup, control, page};
use crate::handle::Handle;

/// What every route has at hand.
pub(super) struct Shared<H> {
    pub(super) handle: H,
    /// Its sender goes when the node stops.
    pub(super) stopping: watch::Receiver<()>,
    pub(super) event_streams: Arc<Semaphore>,
    /// Places for views being computed that cost little.
    pub(super) little_views: Arc<Semaphore>,
    /// Places for those that cost more.
    pub(super) costly_views: Arc<Semaphore>,
    pub(super) answers: Arc<Answers>,
}

pub(super) fn router<H: Handle>(handle: H, stopping: watch::Receiver<()>, answers: Arc<Answers>) -> Router {
    let shared = Shared {
        handle,
        stopping,
        event_streams: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
        little_views: Arc::new(Semaphore::new(LITTLE_VIEWS_AT_ONCE)),
        costly_views: Arc::new(Semaphore::new(COSTLY_VIEWS_AT_ONCE)),
        answers,
    };
    Router::new()
        .route("/", get(page::list::<H>))
        .route("/messenger", get(page::to_messenger))
        .route("/messenger/", get(page::messenger::<H>))
        .route("/messenger/page.css", get(page::style))
        .route("/messenger/page.js", get(page::script))
        .route("/messenger/icon.svg", get(page::icon))
        .route("/{app}", get(page::to_app::<H>))
        .route("/{app}/", get(page::app::<H>))
        .route("/-/peers", get(control::peers::<H>).post(control::add_peer::<H>))
        .route("/-/peers/{node}", delete(control::remove_peer::<H>))
        .route("/-/peers/{node}/resume", post(control::resume::<H>))
        .route("/-/backup", get(backup::backup::<H>))
        .route("/-/plan", post(control::plan::<H>))
        .route("/-/status", get(control::status::<H>))
        .route("/{app}/{name}", get(apps::view::<H>).post(apps::input::<H>))
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .with_state(Arc::new(shared))
}

async fn no_such_route(uri: Uri) -> Problem {
    Problem::no_such_route(format!("there is nothing at {}; GET / lists the apps", uri.path()))
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    let message = format!("{method} is not what {} takes; inputs are POST, views GET", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}
