//! The pages: the list of apps, and the messenger's own. They are files beside this one, embedded as they are; the
//! messenger's page talks to the node as any other client does.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::apps::{accepts, json};
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::Handle;

const MESSENGER: &str = "messenger";

/// `GET /`: for people a page, for programs `{"node":ID,"apps":[…]}`.
pub(super) async fn list<H: Handle>(State(shared): State<Arc<Shared<H>>>, headers: HeaderMap) -> Response {
    let (node, apps) = (shared.handle.node_id(), shared.handle.apps());
    let mut response = if accepts(&headers, "text/html") {
        let items: String = apps.iter().map(|app| item(app)).collect();
        let page = include_str!("page/list.html").replace("{node}", &escape(&node)).replace("{apps}", &items);
        file("text/html; charset=utf-8", page)
    } else {
        json(serde_json::json!({ "node": node, "apps": apps }).to_string())
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

fn item(app: &str) -> String {
    let name = escape(app);
    if app == MESSENGER {
        format!("<li><a href=\"/{name}/\">{name}</a></li>\n")
    } else {
        format!("<li>{name}</li>\n")
    }
}

/// Makes a text safe between tags and in quoted attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// `GET /messenger`
pub(super) async fn to_messenger() -> Redirect {
    Redirect::permanent("/messenger/")
}

/// `GET /messenger/`
pub(super) async fn messenger<H: Handle>(State(shared): State<Arc<Shared<H>>>) -> Result<Response, Problem> {
    if !shared.handle.apps().iter().any(|app| app == MESSENGER) {
        return Err(Problem::no_such_route("the app messenger does not run here"));
    }
    Ok(file("text/html; charset=utf-8", include_str!("page/page.html")))
}

/// `GET /messenger/page.css`
pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page/page.css"))
}

/// `GET /messenger/page.js`
pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

/// `GET /messenger/icon.svg`
pub(super) async fn icon() -> Response {
    file("image/svg+xml", include_str!("page/icon.svg"))
}

fn file(content_type: &'static str, text: impl Into<String>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], text.into()).into_response()
}
