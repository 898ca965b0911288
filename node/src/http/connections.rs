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
use std::sync::atomic::{AtomicUsize, Ordering};
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::guard::{self, Caller};
use super::limits::{
    ACCEPT_PAUSE, BUFFER_BYTES_MAX, DRAIN_IDLE_TIMEOUT, DRAIN_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT,
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
    let router = routes::router(handle, stopping.clone());
    let places = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, remote, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        // The address it came to: of several the node may have, the one that requests may name as their host.
        let local = stream.local_addr().unwrap_or(bound);
        let connection = Connection {
            caller: Caller { local, remote },
            token: Arc::clone(&token),
            router: router.clone(),
            stopping: stopping.clone(),
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
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        let place = Arc::clone(places)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed: nothing calls close on it");
        match listener.accept().await {
            Ok((stream, remote)) => return (stream, remote, place),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// What one connection needs.
struct Connection {
    caller: Caller,
    token: Arc<str>,
    router: Router,
    stopping: watch::Receiver<()>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let Connection { caller, token, router, mut stopping } = self;
        // Only a matter of speed: an answer is right without it.
        let _ = stream.set_nodelay(true);
        let under_way = Arc::new(AtomicUsize::new(0));
        let requests = Arc::clone(&under_way);
        let service = service_fn(move |request: Request<Incoming>| {
            let request_under_way = UnderWay::new(&requests);
            let router = router.clone();
            let token = Arc::clone(&token);
            async move {
                let response = answer(request, caller, &token, router).await;
                drop(request_under_way);
                Ok::<Response, Infallible>(response)
            }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(BUFFER_BYTES_MAX);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(Patient::new(stream)), service));
        tokio::select! {
            // A broken connection is the client's affair; nobody is left to be told.
            _ = connection.as_mut() => return,
            _ = stopping.changed() => connection.as_mut().graceful_shutdown(),
        }
        let patience = if under_way.load(Ordering::Relaxed) > 0 { DRAIN_TIMEOUT } else { DRAIN_IDLE_TIMEOUT };
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

async fn answer(request: Request<Incoming>, caller: Caller, token: &str, router: Router) -> Response {
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

/// Counts a request from its headers to its answer's.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(count: &Arc<AtomicUsize>) -> UnderWay {
        count.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
