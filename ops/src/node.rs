//! `selvedge node`: one node until somebody asks it to stop.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use node::source::SourceError;
use node::{Config, Node, NodeError, Ready};
use serde_json::{Value, json};
use weft::change::Plan;

use crate::arguments::{NodeArguments, STOPPED_BY_A_FAULT};
use crate::control::reachable;
use crate::nearby;
use crate::output::Output;
use crate::signals::Stop;

/// After a fault, whoever posted is told that the outcome is not known. A disk that failed may keep a thread for ever.
const FAULT_PATIENCE: Duration = Duration::from_secs(5);

/// Runs a node; returns how the process ends.
///
/// # Errors
/// The node does not start.
pub async fn run(arguments: NodeArguments, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut stop = Stop::listen()?;
    if arguments.exit_with_stdin {
        stop = stop.with_stdin()?;
    }
    let NodeArguments { dir, apps, settings, allow_loss, http, fabric, discreet, .. } = arguments;
    let config = Config { dir, apps, settings, allow_loss, http, fabric, discreet };
    let mut node = Node::start(config).await.map_err(with_advice)?;
    if !output.is_json() {
        node.ready().changes.iter().for_each(|plan| output.note(plan.to_string().trim_end()));
    }
    for notice in &node.ready().notices {
        output.note(notice);
    }
    let said = output.say(|| for_people(node.ready()), || for_programs(node.ready()));
    if let Some(note) = note_for_people(http).filter(|_| !output.is_json()) {
        output.note(note);
    }
    if said.is_ok() {
        tokio::select! {
            () = stop.asked() => {}
            result = node.wait_stopped() => if let Err(fault) = result {
                tokio::select! {
                    // What it says is the fault that is known already.
                    _ = tokio::time::timeout(FAULT_PATIENCE, node.stop()) => {}
                    () = stop.asked() => {}
                }
                output.error(&fault.to_string());
                return Ok(ExitCode::from(STOPPED_BY_A_FAULT));
            },
        }
    }
    tokio::select! {
        result = node.stop() => if let Err(fault) = result {
            output.error(&fault.to_string());
            return Ok(ExitCode::from(STOPPED_BY_A_FAULT));
        },
        () = stop.asked() => anyhow::bail!("asked to stop a second time: stopped without draining"),
    }
    said.map(|()| ExitCode::SUCCESS)
}

/// What people should know of where HTTP listens.
fn note_for_people(http: SocketAddr) -> Option<&'static str> {
    let from_elsewhere = "requests from other machines need the header Authorization: Bearer TOKEN, with the token in \
        control.json in the node's folder; they are not encrypted";
    (!http.ip().to_canonical().is_loopback()).then_some(from_elsewhere)
}

/// An error with what a person can do where the error itself does not know it.
fn with_advice(error: NodeError) -> anyhow::Error {
    let advice = match &error {
        NodeError::ReadApp { path, source } => nearby::advice(path, source),
        _ => None,
    };
    match (advice, &error) {
        (Some(advice), _) => anyhow::anyhow!("{error}; {advice}"),
        (None, NodeError::ReadApp { source: SourceError::System(system), .. })
            if system.kind() == ErrorKind::NotFound =>
        {
            let example = "--app takes the path of an app's file, such as apps/messenger/messenger.weft";
            anyhow::anyhow!("{error}; {example}")
        }
        (None, _) => error.into(),
    }
}

fn for_people(ready: &Ready) -> String {
    let http = reachable(ready.http);
    let apps: Vec<String> = ready.apps.iter().map(|app| format!("http://{http}/{app}/")).collect();
    format!("ready: {} fabric {} {}", apps.join(" "), ready.fabric, ready.node)
}

fn for_programs(ready: &Ready) -> Value {
    let mut said = json!({
        "ready": true,
        "node": ready.node.to_string(),
        "http": ready.http.to_string(),
        "fabric": ready.fabric.to_string(),
        "apps": ready.apps,
        "ticket": ready.ticket.to_string(),
    });
    if !ready.changes.is_empty() {
        said["changes"] = ready.changes.iter().map(Plan::to_json).collect();
    }
    said
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn whoever_opens_a_node_to_other_machines_hears_of_the_token() {
        for (http, told) in [
            ("127.0.0.1:1", false),
            ("[::1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("192.0.2.1:1", true),
        ] {
            let note = note_for_people(http.parse().unwrap());
            assert_eq!(note.is_some_and(|note| note.contains("Authorization: Bearer TOKEN")), told, "{http}");
        }
    }
}
