//! `selvedge node`: one node until somebody asks it to stop.

use std::process::ExitCode;

use node::{Config, Node, Ready};
use serde_json::{Value, json};

use crate::arguments::{NodeArguments, STOPPED_BY_A_FAULT};
use crate::output::Output;
use crate::signals::Stop;

/// Runs a node; returns how the process ends.
///
/// # Errors
/// The node does not start.
pub async fn run(arguments: NodeArguments, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut stop = Stop::listen()?;
    if arguments.exit_with_stdin {
        stop = stop.with_stdin()?;
    }
    let NodeArguments { dir, apps, settings, http, fabric, .. } = arguments;
    let mut node = Node::start(Config { dir, apps, settings, http, fabric }).await?;
    for notice in &node.ready().notices {
        output.note(notice);
    }
    let said = output.say(|| for_people(node.ready()), || for_programs(node.ready()));
    if said.is_ok() {
        tokio::select! {
            () = stop.asked() => {}
            result = node.wait_stopped() => if let Err(fault) = result {
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

fn for_people(ready: &Ready) -> String {
    let apps: Vec<String> = ready.apps.iter().map(|app| format!("http://{}/{app}/", ready.http)).collect();
    format!("ready: {} fabric {} {}", apps.join(" "), ready.fabric, ready.node)
}

fn for_programs(ready: &Ready) -> Value {
    json!({
        "ready": true,
        "node": ready.node.to_string(),
        "http": ready.http.to_string(),
        "fabric": ready.fabric.to_string(),
        "apps": ready.apps,
        "ticket": ready.ticket.to_string(),
    })
}
