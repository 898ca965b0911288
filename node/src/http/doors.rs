//! What is told to whoever asks for an app, an input or a view that is not there, or at the wrong one of the two.

use axum::http::StatusCode;

use super::problem::Problem;
use crate::handle::{Description, Door, Handle};

/// There is no such app.
pub(super) fn no_such_app<H: Handle>(handle: &H, app: &str) -> Problem {
    let apps = handle.apps();
    let there: Vec<&str> = apps.iter().map(String::as_str).collect();
    Problem::no_such_route(format!("there is no app {} here; {}", shown(app), what_there_is(app, &there)))
}

/// Why a post cannot be taken, if that lies in where it goes: no such app, no such input, or a view.
pub(super) fn not_an_input<H: Handle>(handle: &H, app: &str, name: &str) -> Option<Problem> {
    let Some(Description { inputs, views, .. }) = handle.describe(app) else {
        return Some(no_such_app(handle, app));
    };
    wrong_door(app, name, ("input", &inputs), &views, "is a view: GET it")
}

/// Why nothing can be shown, if that lies in what was asked for: no such app, no such view, or an input.
pub(super) fn not_a_view<H: Handle>(handle: &H, app: &str, name: &str) -> Option<Problem> {
    let Some(Description { inputs, views, .. }) = handle.describe(app) else {
        return Some(no_such_app(handle, app));
    };
    wrong_door(app, name, ("view", &views), &inputs, "is an input: POST to it")
}

fn wrong_door(
    app: &str,
    name: &str,
    (kind, wanted): (&str, &[Door]),
    others: &[Door],
    instead: &str,
) -> Option<Problem> {
    let is = |door: &Door| door.name == name;
    if wanted.iter().any(is) {
        return None;
    }
    if others.iter().any(is) {
        return Some(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", format!("{name} {instead}")));
    }
    let there: Vec<&str> = wanted.iter().map(|door| door.name.as_str()).collect();
    let message = format!("there is no {kind} {} in {app}; {}", shown(name), what_there_is(name, &there));
    Some(Problem::no_such_route(message))
}

/// The names that are there, and the one that was likely meant.
fn what_there_is(name: &str, there: &[&str]) -> String {
    let all = match there {
        [] => "there are none".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    match weft::diagnostics::suggest(name, there.iter().copied()) {
        Some(meant) => format!("{all}; did you mean {meant}?"),
        None => all,
    }
}

/// A name that is as long as the client likes.
fn shown(name: &str) -> String {
    const CHARACTERS_MAX: usize = 64;
    match name.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
