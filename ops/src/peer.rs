//! `selvedge id`, `peer` and `status`: asked of the node if one runs on the folder, else of the folder.

use std::path::Path;

use anyhow::Context;
use node::offline;
use sealing::{NodeId, Ticket};
use serde_json::{Value, json};

use crate::control::Control;
use crate::output::Output;

/// Says who a folder's node is, and its ticket.
///
/// # Errors
/// The folder cannot be opened; the node does not answer.
pub fn id(dir: &Path, output: &mut Output) -> anyhow::Result<()> {
    let (node, ticket) = match Control::of(dir)? {
        Some(control) => {
            let status = control.status()?;
            let text = |field: &str| {
                status[field].as_str().with_context(|| format!("the node does not say its {field}"))
            };
            (text("node")?.to_owned(), text("ticket")?.to_owned())
        }
        None => {
            let (node, ticket) = offline::identity(dir)?;
            (node.to_string(), ticket.to_string())
        }
    };
    output.say(|| format!("node    {node}\nticket  {ticket}"), || json!({ "node": node, "ticket": ticket }))
}

/// Adds a peer.
///
/// # Errors
/// As [`id`]; the node's own ticket.
pub fn add(dir: &Path, ticket: &Ticket, name: &str, output: &mut Output) -> anyhow::Result<()> {
    match Control::of(dir)? {
        Some(control) => control.add_peer(ticket, name)?,
        None => offline::add_peer(dir, ticket.clone(), name.to_owned())?,
    }
    let node = ticket.node.to_string();
    let shown = if name.is_empty() { &node } else { name };
    output.say(
        || format!("{shown} is a peer; it must add this node, too (its ticket: selvedge id)"),
        || json!({ "added": node, "name": name }),
    )
}

/// Removes a peer.
///
/// # Errors
/// As [`id`]; the node is no peer.
pub fn remove(dir: &Path, node: NodeId, output: &mut Output) -> anyhow::Result<()> {
    match Control::of(dir)? {
        Some(control) => control.remove_peer(node)?,
        None => offline::remove_peer(dir, node)?,
    }
    output.say(|| format!("{node} is no peer any more"), || json!({ "removed": node.to_string() }))
}

/// Says who the peers are.
///
/// # Errors
/// As [`id`].
pub fn list(dir: &Path, output: &mut Output) -> anyhow::Result<()> {
    let peers = match Control::of(dir)? {
        Some(control) => control.peers()?,
        None => offline::status(dir)?["peers"].take(),
    };
    output.say(|| peers_for_people(&peers), || json!({ "peers": peers }))
}

/// Says how a node is.
///
/// # Errors
/// As [`id`].
pub fn status(dir: &Path, output: &mut Output) -> anyhow::Result<()> {
    let (running, status) = match Control::of(dir)? {
        Some(control) => (true, control.status()?),
        None => (false, offline::status(dir)?),
    };
    output.say(|| status_for_people(running, &status), || json!({ "running": running, "status": status }))
}

/// A field as text; empty where it is not there.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

fn peers_for_people(peers: &Value) -> String {
    match peers.as_array().map(Vec::as_slice) {
        None | Some([]) => {
            "no peers yet: selvedge peer add, with what selvedge id says on the other side".to_owned()
        }
        Some(peers) => peers.iter().map(peer_for_people).collect::<Vec<_>>().join("\n"),
    }
}

fn peer_for_people(peer: &Value) -> String {
    let addresses: Vec<&str> = items(peer, "addresses").iter().filter_map(Value::as_str).collect();
    let name = match text(peer, "name") {
        "" => "(no name)",
        name => name,
    };
    format!("{name}  {}  {}  {}", text(peer, "node"), text(peer, "link"), addresses.join(" "))
}

/// How a node is, in lines; what has nothing to tell is left out.
pub fn status_for_people(running: bool, status: &Value) -> String {
    let mut lines =
        vec![format!("{}  {}", if running { "running" } else { "not running" }, text(status, "node"))];
    for peer in items(status, "peers") {
        lines.push(format!("peer     {}", peer_for_people(peer)));
    }
    for stream in items(status, "sending") {
        let why = match text(stream, "why") {
            "" => String::new(),
            why => format!(": {why}"),
        };
        lines.push(format!(
            "waiting  {} from {} for {}{why}",
            stream["unsettled"],
            text(stream, "from_app"),
            text(stream, "peer")
        ));
    }
    for stream in items(status, "receiving") {
        let about = format!("{} of {}", text(stream, "from_app"), text(stream, "peer"));
        for refusal in items(stream, "refusals") {
            lines.push(format!(
                "refused  number {} from {about}: {}",
                refusal[0],
                refusal[1].as_str().unwrap_or_default()
            ));
        }
        if !text(stream, "waiting").is_empty() {
            lines.push(format!("held     {about}: {}", text(stream, "waiting")));
        }
        for gap in items(stream, "gaps") {
            lines.push(format!(
                "lost     numbers {} to {} from {about}: this node was set back in time",
                gap[0], gap[1]
            ));
        }
        if stream["forked"] == json!(true) {
            lines.push(format!("forked   {about}: that node was set back in time"));
        }
    }
    for stranger in items(status, "strangers").iter().filter_map(Value::as_str) {
        lines.push(format!("stranger {stranger} would talk, and is not a peer"));
    }
    for notice in items(status, "notices").iter().filter_map(Value::as_str) {
        lines.push(format!("notice   {notice}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_shows_all_that_waits_and_why() {
        let status = json!({
            "node": "sv1ann", "run": 2, "apps": ["messenger"],
            "peers": [{"node": "sv1ben", "name": "", "link": "no answer", "addresses": ["127.0.0.1:9"]}],
            "sending": [{"peer": "sv1ben", "from_app": "messenger", "to_app": "messenger", "unsettled": 3, "oldest": 1, "why": "no answer"}],
            "receiving": [{"peer": "sv1ben", "from_app": "messenger", "to_app": "messenger", "heard": 4,
                "refusals": [[2, "no such contact"]], "waiting": "messenger does not run here", "gaps": [[3, 4]], "forked": true}],
            "strangers": ["sv1eve"], "notices": ["the log was cut"],
        });
        let expected = "\
running  sv1ann
peer     (no name)  sv1ben  no answer  127.0.0.1:9
waiting  3 from messenger for sv1ben: no answer
refused  number 2 from messenger of sv1ben: no such contact
held     messenger of sv1ben: messenger does not run here
lost     numbers 3 to 4 from messenger of sv1ben: this node was set back in time
forked   messenger of sv1ben: that node was set back in time
stranger sv1eve would talk, and is not a peer
notice   the log was cut";
        assert_eq!(status_for_people(true, &status), expected);
        assert_eq!(status_for_people(false, &json!({"node": "sv1ann"})), "not running  sv1ann");
    }

    #[test]
    fn an_empty_list_says_what_to_do() {
        assert!(peers_for_people(&json!([])).starts_with("no peers yet: selvedge peer add"));
    }
}
