//! What the operator does with the control token: peers and status.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealing::ADDRESSES_MAX;
use serde::Deserialize;

use super::apps::json;
use super::body::read_object;
use super::guard::is_authorized;
use super::limits::{CONTROL_BODY_BYTES_MAX, PLAN_BODY_BYTES_MAX};
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::{Control, ControlError, Handle};

/// The body of `POST /-/peers`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPeer {
    ticket: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    addresses: Vec<SocketAddr>,
}

/// The body of `POST /-/plan`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewVersion {
    source: String,
}

/// `GET /-/peers`
pub(super) async fn peers<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    carry_out(&shared, &headers, Control::Peers).await
}

/// `GET /-/status`
pub(super) async fn status<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    carry_out(&shared, &headers, Control::Status).await
}

/// `POST /-/peers`
pub(super) async fn add_peer<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    check_token(&shared, &head.headers)?;
    let body = read_object(&head.headers, body, CONTROL_BODY_BYTES_MAX).await?;
    let NewPeer { ticket, name, addresses } = serde_json::from_slice(&body).map_err(|error| {
        let shape = r#"{"ticket":"svt2…","name":"…","addresses":["192.0.2.1:4711"]}"#;
        Problem::shape(format!("a peer is {shape}, of which only the ticket must be there: {error}"))
    })?;
    if addresses.len() > ADDRESSES_MAX {
        return Err(Problem::shape(format!("a peer has at most {ADDRESSES_MAX} addresses")));
    }
    carry_out(&shared, &head.headers, Control::AddPeer { ticket, name, addresses }).await
}

/// `POST /-/plan`: another version of an app, looked at and not taken.
pub(super) async fn plan<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    check_token(&shared, &head.headers)?;
    let body = read_object(&head.headers, body, PLAN_BODY_BYTES_MAX).await?;
    let NewVersion { source } = serde_json::from_slice(&body).map_err(|error| {
        Problem::shape(format!(r#"a version of an app is {{"source":"app …"}}: {error}"#))
    })?;
    let mut stopping = shared.stopping.clone();
    tokio::select! {
        planned = carry_out(&shared, &head.headers, Control::Plan { source }) => planned,
        // Nothing is lost with it, and it may take longer than a node has for its end.
        _ = stopping.changed() => Err(ControlError::Stopping.into()),
    }
}

/// `DELETE /-/peers/{node}`
pub(super) async fn remove_peer<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_token(&shared, &headers)?;
    let Path(node) = path.map_err(|error| Problem::shape(error.body_text()))?;
    carry_out(&shared, &headers, Control::RemovePeer { node }).await
}

/// `POST /-/peers/{node}/resume`
pub(super) async fn resume<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_token(&shared, &headers)?;
    let Path(node) = path.map_err(|error| Problem::shape(error.body_text()))?;
    carry_out(&shared, &headers, Control::Resume { node }).await
}

async fn carry_out<H: Handle>(
    shared: &Shared<H>,
    headers: &HeaderMap,
    request: Control,
) -> Result<Response, Problem> {
    check_token(shared, headers)?;
    Ok(json(shared.handle.control(request).await?.to_string()))
}

pub(super) fn check_token<H: Handle>(shared: &Shared<H>, headers: &HeaderMap) -> Result<(), Problem> {
    if is_authorized(headers, shared.handle.token()) {
        return Ok(());
    }
    let message = "this needs the control token: Authorization: Bearer TOKEN";
    Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
}
