//! A request's body: a JSON object, whole, small enough and soon enough.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::limits::{BODY_TIMEOUT, DISCARD_BYTES_MAX};
use super::problem::Problem;

/// Reads the text of a JSON object of at most `bytes_max` bytes. That it opens like an object is all that is looked at:
/// whoever knows the shape parses it, once.
pub(super) async fn read_object(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<Vec<u8>, Problem> {
    check_type(headers)?;
    let bytes = timeout(BODY_TIMEOUT, read(headers, body, bytes_max)).await.unwrap_or_else(|_| {
        let message = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", message))
    })?;
    match bytes.trim_ascii_start().first() {
        Some(b'{') => Ok(bytes),
        _ => Err(Problem::shape("the body is a JSON object with the input's fields, {} if it has none")),
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let wrong = |message: &str| Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", message);
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(wrong("inputs need Content-Type: application/json"));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(wrong("bodies are taken as they are, without a Content-Encoding"));
    }
    Ok(())
}

async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        let message = format!("the body has more than {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    };
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max as u64) && headers.contains_key(header::EXPECT) {
        return Err(too_large()); // The client waits for our word and has sent nothing yet.
    }
    let mut bytes = Vec::new();
    let mut discarded = 0;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::shape("the body ended before it was whole"))?;
        if discarded == 0 && bytes.len() + piece.len() <= bytes_max {
            bytes.extend_from_slice(&piece);
            continue;
        }
        bytes = Vec::new();
        discarded += piece.len();
        if discarded > DISCARD_BYTES_MAX {
            break;
        }
    }
    if discarded > 0 { Err(too_large()) } else { Ok(bytes) }
}
