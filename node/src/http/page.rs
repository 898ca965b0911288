//! The pages: the list of apps, what each takes and shows, and the messenger's own. They are files beside this one, embedded as they are; the
//! messenger's page talks to the node as any other client does.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::apps::{accepts, json};
use super::doors;
use super::problem::Problem;
use super::routes::Shared;
use crate::handle::{Description, Door, Handle};

const MESSENGER: &str = "messenger";

/// `GET /`: for people a page, for programs `{"node":ID,"apps":[…]}`.
pub(super) async fn list<H: Handle>(State(shared): State<Arc<Shared<H>>>, headers: HeaderMap) -> Response {
    let (node, apps) = (shared.handle.node_id(), shared.handle.apps());
    varying(if accepts(&headers, "text/html") {
        let items: String = apps.iter().map(|app| item(app)).collect();
        let page = include_str!("page/list.html").replace("{node}", &escape(&node)).replace("{apps}", &items);
        file("text/html; charset=utf-8", page)
    } else {
        json(serde_json::json!({ "node": node, "apps": apps }).to_string())
    })
}

fn item(app: &str) -> String {
    let name = escape(app);
    format!("<li><a href=\"/{name}/\">{name}</a></li>\n")
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

/// `GET /messenger/`: the page; what the app takes and shows for programs that ask for JSON alone.
pub(super) async fn messenger<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let description =
        shared.handle.describe(MESSENGER).ok_or_else(|| doors::no_such_app(&shared.handle, MESSENGER))?;
    let wants_json = accepts(&headers, "application/json") && !accepts(&headers, "text/html");
    Ok(varying(match wants_json {
        true => as_json(&description),
        false => file("text/html; charset=utf-8", include_str!("page/page.html")),
    }))
}

/// `GET /{app}`
pub(super) async fn to_app<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Redirect, Problem> {
    let Path(app) = path.map_err(|error| Problem::shape(error.body_text()))?;
    match shared.handle.describe(&app) {
        Some(description) => Ok(Redirect::permanent(&format!("/{}/", description.app))),
        None => Err(doors::no_such_app(&shared.handle, &app)),
    }
}

/// `GET /{app}/`: what the app takes and shows, a page for people.
pub(super) async fn app<H: Handle>(
    State(shared): State<Arc<Shared<H>>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(app) = path.map_err(|error| Problem::shape(error.body_text()))?;
    let description = shared.handle.describe(&app).ok_or_else(|| doors::no_such_app(&shared.handle, &app))?;
    Ok(varying(match accepts(&headers, "text/html") {
        true => file("text/html; charset=utf-8", app_page(&description)),
        false => as_json(&description),
    }))
}

fn app_page(description: &Description) -> String {
    let doors = |method: &str, doors: &[Door]| -> String {
        doors.iter().map(|door| door_item(method, &description.app, door)).collect()
    };
    let types: String = description
        .types
        .iter()
        .map(|named| format!("<li><code>{}</code></li>\n", escape(&named.declaration)))
        .collect();
    // What is put in is not looked at again: no app's text can stand for another place.
    let mut page = String::new();
    for piece in include_str!("page/app.html").split_inclusive('}') {
        let (before, place) = piece.rsplit_once('{').unwrap_or((piece, ""));
        page.push_str(before);
        match place {
            "app}" => page.push_str(&escape(&description.app)),
            "inputs}" => page.push_str(&doors("POST", &description.inputs)),
            "views}" => page.push_str(&doors("GET", &description.views)),
            "types}" => page.push_str(&types),
            other => page.push_str(other),
        }
    }
    page
}

/// One input or view; a view that needs no argument can be followed.
fn door_item(method: &str, app: &str, door: &Door) -> String {
    let path = escape(&format!("/{app}/{}", door.name));
    let shown = match method == "GET" && door.fields.iter().all(|field| field.optional) {
        true => format!("<a href=\"{path}\">{path}</a>"),
        false => path,
    };
    let field = |field: &crate::handle::Field| {
        let optional = if field.optional { " (may be left out)" } else { "" };
        format!("{}: {}{optional}", field.name, field.kind)
    };
    let fields: Vec<String> = door.fields.iter().map(field).collect();
    let fields = if fields.is_empty() { "takes nothing".to_owned() } else { fields.join(", ") };
    let answer = door.answer.as_ref().map(|answer| format!(" → {answer}")).unwrap_or_default();
    format!("<li>{method} {shown}<br><code>{}</code></li>\n", escape(&(fields + &answer)))
}

fn as_json(description: &Description) -> Response {
    json(serde_json::json!(description).to_string())
}

/// The answer is another one for another `Accept`.
fn varying(mut response: Response) -> Response {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
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
