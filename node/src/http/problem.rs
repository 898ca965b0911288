//! Every answer that is not a success: a status, a code for programs and words for people.
//!
//! The body is always `{"error":{"code":…,"message":…}}`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::handle::{ControlError, PostError, ViewError};

/// Why a request was not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) retry_after_seconds: Option<u32>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), retry_after_seconds: None }
    }

    pub(super) fn shape(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "shape", message)
    }

    pub(super) fn no_such_route(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "no_such_route", message)
    }

    pub(super) fn stopping(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message)
    }

    pub(super) fn full(message: impl Into<String>, retry_after_seconds: u32) -> Problem {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "full", message);
        Problem { retry_after_seconds: Some(retry_after_seconds), ..problem }
    }

    pub(super) fn budget(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "budget", message)
    }

    pub(super) fn unknown(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "unknown", message)
    }

    /// The body's text, also the data of a stream's `event: error`.
    pub(super) fn json(&self) -> String {
        serde_json::json!({ "error": { "code": self.code, "message": self.message } }).to_string()
    }
}

impl From<PostError> for Problem {
    fn from(error: PostError) -> Problem {
        let message = error.to_string();
        match error {
            PostError::Shape(_) => Problem::shape(message),
            PostError::NoSuchRoute { .. } => Problem::no_such_route(message),
            PostError::Refused(_) => Problem::new(StatusCode::CONFLICT, "refused", message),
            PostError::Budget(_) => Problem::budget(message),
            PostError::AnswerForgotten(_) => Problem::new(StatusCode::GONE, "answer_forgotten", message),
            PostError::Full { retry_after_seconds } => Problem::full(message, retry_after_seconds),
            PostError::Unwritable(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unwritable", message),
            PostError::Stopping => Problem::stopping(message),
            PostError::Unknown(_) => Problem::unknown(message),
        }
    }
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Problem {
        let message = error.to_string();
        match error {
            ViewError::Shape(_) => Problem::shape(message),
            ViewError::NoSuchRoute { .. } => Problem::no_such_route(message),
            ViewError::Refused(_) => Problem::new(StatusCode::CONFLICT, "refused", message),
            ViewError::Budget(_) | ViewError::Costly => Problem::budget(message),
            ViewError::Crowded { retry_after_seconds, .. } => Problem::full(message, retry_after_seconds),
            ViewError::Stopping => Problem::stopping(message),
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Problem {
        let message = error.to_string();
        match error {
            ControlError::Shape(_) => Problem::shape(message),
            ControlError::NoSuchPeer { .. } => Problem::new(StatusCode::NOT_FOUND, "no_such_peer", message),
            ControlError::Refused(_) => Problem::new(StatusCode::CONFLICT, "refused", message),
            ControlError::Full { retry_after_seconds }
            | ControlError::Planning { retry_after_seconds }
            | ControlError::BackingUp { retry_after_seconds } => Problem::full(message, retry_after_seconds),
            ControlError::Stopping => Problem::stopping(message),
            ControlError::Unknown(_) => Problem::unknown(message),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, super::apps::json(self.json())).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
