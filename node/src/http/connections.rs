//! Accepts so many connections at once, times out the slow, drains at the end.
//!
//! `axum::serve` sets no timer, so its connections wait for headers for ever, and it accepts without a bound; hence this
//! loop around hyper's own connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::activity::Activity;
use super::answers::Answers;
use super::guard::{self, Caller};
use super::limits::{
    ACCEPT_PAUSE, BUFFER_BYTES_MAX, CROWDED_IDLE_SPARED, CROWDED_PAUSE, CROWDED_TIMEOUT, DRAIN_IDLE_TIMEOUT,
    DRAIN_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT,
};
use super::patience::Patient;
use super::routes;
use crate::handle::Handle;

/// See [`super::serve`]. `connections_max` is [`super::limits::CONNECTIONS_MAX`] but in tests.
pub(super) async fn serve<H: Handle>(
    listener: TcpListener,
    handle: H,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let bound = listener.local_addr()?;
    let (stop, stopping) = watch::channel(());
    let token: Arc<str> = handle.token().into();
    let router = routes::router(handle, stopping.clone(), Answers::new());
    let places = Arc::new(Semaphore::new(connections_max));
    let crowded = Arc::new(Notify::new());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, remote, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener, &places, &crowded) => accepted,
        };
        // The address it came to: of several the node may have, the one that requests may name as their host.
        let local = stream.local_addr().unwrap_or(bound);
        let connection = Connection {
            caller: Caller { local, remote },
            token: Arc::clone(&token),
            router: router.clone(),
            stopping: stopping.clone(),
            crowded: Arc::clone(&crowded),
        };
        connections.spawn(connection.serve(stream, place));
    }
    drop(listener);
    drop(stop);
    // Each connection ends by itself within the drain's bound.
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    crowded: &Notify,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        let place = free_place(places, crowded).await;
        match listener.accept().await {
            Ok((stream, remote)) => return (stream, remote, place),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Waits for a place. While there is none, connections that do nothing are asked to leave.
async fn free_place(places: &Arc<Semaphore>, crowded: &Notify) -> OwnedSemaphorePermit {
    let mut place = pin!(Arc::clone(places).acquire_owned());
    loop {
        match timeout(CROWDED_PAUSE, place.as_mut()).await {
            Ok(place) => return place.expect("the semaphore is never closed: nothing calls close on it"),
            Err(_) => crowded.notify_waiters(),
        }
    }
}

/// What one connection needs.
struct Connection {
    caller: Caller,
    token: Arc<str>,
    router: Router,
    stopping: watch::Receiver<()>,
    crowded: Arc<Notify>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let Connection { caller, token, router, mut stopping, crowded } = self;
        // Only a matter of speed: an answer is right without it.
        let _ = stream.set_nodelay(true);
        let activity = Activity::new();
        let of_requests = activity.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, token, activity) = (router.clone(), Arc::clone(&token), of_requests.clone());
            async move {
                activity.begin_answer();
                let response = answer(request, caller, &token, &activity, router).await;
                activity.end_answer();
                Ok::<Response, Infallible>(response)
            }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // hyper writes dates of the years 1970 to 9999 and panics at others, and a clock can show any. Nothing we
            // answer is kept by a cache, which is what the date would be for (RFC 9110, 6.6.1).
            .auto_date_header(false)
            .header_read_timeout(HEAD_TIMEOUT)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(BUFFER_BYTES_MAX);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(Patient::new(stream)), service));
        let patience = loop {
            tokio::select! {
                // A broken connection is the client's affair; nobody is left to be told.
                _ = connection.as_mut() => return,
                _ = stopping.changed() => {
                    break if activity.is_answering() { DRAIN_TIMEOUT } else { DRAIN_IDLE_TIMEOUT };
                }
                () = crowded.notified() => {
                    if activity.is_idle_for(CROWDED_IDLE_SPARED) {
                        break CROWDED_TIMEOUT;
                    }
                }
            }
        };
        connection.as_mut().graceful_shutdown();
        finish(poll_fn(|context| connection.as_mut().poll(context)), patience).await;
        drop(place);
    }
}

/// Waits for what is left of a connection, but no longer than `patience`.
async fn finish<T>(connection: impl Future<Output = T>, patience: Duration) {
    tokio::select! {
        _ = connection => {}
        () = sleep(patience) => {}
    }
}

async fn answer(
    mut request: Request<Incoming>,
    caller: Caller,
    token: &str,
    activity: &Activity,
    router: Router,
) -> Response {
    request.extensions_mut().insert(activity.clone());
    let mut response = match guard::admit(&request, caller, token) {
        Err(problem) => problem.into_response(),
        Ok(()) => match TowerToHyperService::new(router).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
    };
    guard::protect(response.headers_mut());
    response
}

#[cfg(test)]
mod tests;
