//! A backup of all that the node keeps, with the token: made as it is read.
//!
//! The stream is pulled: no piece is made for a reader that has not taken the one before. A backup that does not go on ends
//! without its last piece, by which whoever reads it knows.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;

use super::activity::{Activity, Streaming};
use super::control::check_token;
use super::limits::BACKUP_PIECE_BYTES;
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::{Handle, Pieces};

/// Where a backup is.
struct Making {
    pieces: Pieces,
    stopping: watch::Receiver<()>,
    _streaming: Option<Streaming>,
}

/// `GET /-/backup`
pub(super) async fn backup<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    request: Request,
) -> Result<Response, Problem> {
    check_token(&shared, request.headers())?;
    let streaming = request.extensions().get().map(Activity::begin_stream);
    let pieces = shared.handle.backup().await?;
    let making = Making { pieces, stopping: shared.stopping.clone(), _streaming: streaming };
    let content_type = HeaderValue::from_static("application/octet-stream");
    let body = Body::from_stream(stream::try_unfold(making, next));
    Ok(([(header::CONTENT_TYPE, content_type)], body).into_response())
}

/// The next pieces, made where blocking is allowed.
async fn next(making: Making) -> io::Result<Option<(Bytes, Making)>> {
    let Making { mut pieces, mut stopping, _streaming } = making;
    let made = tokio::task::spawn_blocking(move || {
        let made = some(&mut pieces);
        made.map(|made| (made, pieces))
    });
    let made = tokio::select! {
        made = made => made.map_err(io::Error::other)?,
        // What is read while a node ends would keep it from ending.
        _ = stopping.changed() => Err(io::Error::other("the node is stopping")),
    };
    let (made, pieces) = made?;
    Ok((!made.is_empty()).then(|| (Bytes::from(made), Making { pieces, stopping, _streaming })))
}

/// So many pieces that going to another thread for them is worth it.
fn some(pieces: &mut Pieces) -> io::Result<Vec<u8>> {
    let mut some = Vec::new();
    while some.len() < BACKUP_PIECE_BYTES
        && let Some(piece) = pieces.next()
    {
        some.extend(piece.map_err(io::Error::other)?);
    }
    Ok(some)
}
