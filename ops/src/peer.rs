//! `selvedge id`, `peer` and `status`: asked of the node if one runs on the folder, else of the folder.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail};
use node::offline;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use sealing::{NodeId, SafetyNumber, Ticket};
use serde_json::{Value, json};

use crate::arguments::NodeOrName;
use crate::control::Control;
use crate::nearby;
use crate::output::Output;

/// Says who a folder's node is, and its ticket.
///
/// # Errors
/// The folder cannot be opened; the node does not answer.
pub fn id(dir: &Path, qr: bool, output: &mut Output) -> anyhow::Result<()> {
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
    let drawn = if qr { format!("\n{}", qr_code(&ticket)?) } else { String::new() };
    output.say(
        || format!("node    {node}\nticket  {ticket}{drawn}"),
        || json!({ "node": node, "ticket": ticket }),
    )
}

/// A text as a QR code of half blocks, light on dark as most terminals are. Nothing wears a screen out, so the lowest
/// level of correction is enough, and the code is smaller.
fn qr_code(text: &str) -> anyhow::Result<String> {
    let code =
        QrCode::with_error_correction_level(text, EcLevel::L).context("cannot draw it as a QR code")?;
    let light_on_dark = code.render().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    Ok(light_on_dark)
}

/// Says the safety number of this node and a peer, or any other node.
///
/// # Errors
/// As [`id`]; no single peer has that name; an address on the web has no number.
pub fn safety_number(dir: &Path, peer: NodeOrName, output: &mut Output) -> anyhow::Result<()> {
    must_be_a_nodes(dir)?;
    let status = status_of(dir)?.1;
    let me: NodeId = text(&status, "node").parse().context("the node does not say its id")?;
    let node = match peer {
        NodeOrName::Node(node) => node,
        NodeOrName::Name(name) => named(&name, &status["peers"])?,
        NodeOrName::Endpoint(endpoint) => {
            bail!("{endpoint} is an address on the web: only nodes have safety numbers")
        }
    };
    if node == me {
        bail!("{node} is this node itself: a safety number is of two nodes");
    }
    let number = SafetyNumber::of(&me, &node).to_string();
    let half = number.len() / 2;
    output.say(
        || format!("{}\n{}", &number[..half], number[half..].trim_start()),
        || json!({ "node": me.to_string(), "peer": node.to_string(), "safety_number": number }),
    )
}

/// Adds a peer.
///
/// # Errors
/// As [`id`]; the node's own ticket.
pub fn add(
    dir: &Path,
    ticket: &Ticket,
    name: &str,
    addresses: &[SocketAddr],
    output: &mut Output,
) -> anyhow::Result<()> {
    must_be_a_nodes(dir)?;
    let (_, before) = status_of(dir)?;
    match Control::of(dir)? {
        Some(control) => control.add_peer(ticket, name, addresses)?,
        None => offline::add_peer(dir, ticket.clone(), name.to_owned(), addresses.to_vec())?,
    }
    let node = ticket.node().to_string();
    output.say(|| added(&node, name, &before, dir), || json!({ "added": node, "name": name }))
}

/// What is said of a node that was added, by what was known of it before.
fn added(node: &str, name: &str, before: &Value, dir: &Path) -> String {
    let known = items(before, "peers").iter().find(|peer| text(peer, "node") == node);
    let was = known.map_or("", |peer| text(peer, "name"));
    let shown = [name, was, node].into_iter().find(|name| !name.is_empty()).unwrap_or(node);
    let mut said = match known {
        Some(_) if !name.is_empty() && !was.is_empty() && name != was => {
            format!("{was} is called {name} now")
        }
        Some(_) if !name.is_empty() && was.is_empty() => format!("{node} is called {name} now"),
        Some(_) => format!("{shown} is a peer already"),
        None => format!("{shown} is a peer"),
    };
    let would_talk = items(before, "strangers").iter().any(|stranger| stranger == node);
    if would_talk {
        said.push_str("; it has added this node, too");
    } else if known.is_none_or(|peer| text(peer, "link") != LINK_UP) {
        let ticket = format!("selvedge id --dir {}", dir.display());
        said.push_str(&format!("; it must add this node, too, if it has not (its ticket: {ticket})"));
    }
    said
}

/// Removes a peer, or gives up what waits for an address on the web.
///
/// # Errors
/// As [`id`]; the node is no peer, or no single one has that name; nothing waits for the address.
pub fn remove(dir: &Path, peer: NodeOrName, output: &mut Output) -> anyhow::Result<()> {
    must_be_a_nodes(dir)?;
    let node = match peer {
        NodeOrName::Node(node) => node,
        NodeOrName::Name(name) => named(&name, &peers(dir)?)?,
        NodeOrName::Endpoint(endpoint) => return give_up(dir, endpoint, output),
    };
    match Control::of(dir)? {
        Some(control) => control.remove_peer(&node.to_string())?,
        None => offline::remove_peer(dir, node)?,
    }
    output.say(|| format!("{node} is no peer any more"), || json!({ "removed": node.to_string() }))
}

/// Has this copy of the node go on with a peer that took another one.
///
/// # Errors
/// As [`id`]; the node does not run, is no peer, or took no other copy.
pub fn resume(dir: &Path, peer: NodeOrName, output: &mut Output) -> anyhow::Result<()> {
    must_be_a_nodes(dir)?;
    let node = match peer {
        NodeOrName::Node(node) => node,
        NodeOrName::Name(name) => named(&name, &peers(dir)?)?,
        NodeOrName::Endpoint(endpoint) => anyhow::bail!("{endpoint} is an address on the web, not a peer"),
    };
    let Some(control) = Control::of(dir)? else {
        anyhow::bail!("the node does not run: start the copy that is to go on, and ask again")
    };
    control.resume(&node.to_string())?;
    output.say(
        || format!("this copy of the node goes on with {node}; of another one that still runs, {node} takes nothing more"),
        || json!({ "resumed": node.to_string() }),
    )
}

fn give_up(dir: &Path, endpoint: String, output: &mut Output) -> anyhow::Result<()> {
    match Control::of(dir)? {
        Some(control) => control.remove_peer(&endpoint)?,
        None => offline::give_up(dir, endpoint.clone())?,
    }
    output.say(|| format!("what waited for {endpoint} is given up"), || json!({ "removed": endpoint }))
}

/// Says who the peers are.
///
/// # Errors
/// As [`id`].
pub fn list(dir: &Path, output: &mut Output) -> anyhow::Result<()> {
    must_be_a_nodes(dir)?;
    let peers = peers(dir)?;
    output.say(|| peers_for_people(&peers), || json!({ "peers": peers }))
}

/// Says how a node is.
///
/// # Errors
/// As [`id`].
pub fn status(dir: &Path, output: &mut Output) -> anyhow::Result<()> {
    must_be_a_nodes(dir)?;
    let (running, status) = status_of(dir)?;
    output.say(|| status_for_people(running, &status), || json!({ "running": running, "status": status }))
}

/// Whether a node runs on a folder, and how it is.
fn status_of(dir: &Path) -> anyhow::Result<(bool, Value)> {
    match Control::of(dir)? {
        Some(control) => Ok((true, control.status()?)),
        None => Ok((false, offline::status(dir)?)),
    }
}

/// Asking about a folder makes none: a mistyped path is told.
fn must_be_a_nodes(dir: &Path) -> anyhow::Result<()> {
    // A folder that may not be looked into is told of where it is opened.
    let is_a_nodes = |dir: &Path| dir.join("identity").try_exists().unwrap_or(true);
    if is_a_nodes(dir) {
        return Ok(());
    }
    let shown = dir.display();
    match nearby::meant(dir, is_a_nodes) {
        Some(near) => bail!("{shown} is no node's folder; did you mean {}?", near.display()),
        None => bail!("{shown} is no node's folder; selvedge id --dir DIR and selvedge node make one"),
    }
}

fn peers(dir: &Path) -> anyhow::Result<Value> {
    match Control::of(dir)? {
        Some(control) => control.peers(),
        None => Ok(offline::status(dir)?["peers"].take()),
    }
}

/// The one peer of a name.
fn named(name: &str, peers: &Value) -> anyhow::Result<NodeId> {
    let peers = peers.as_array().map_or(&[][..], Vec::as_slice);
    let ids: Vec<&str> =
        peers.iter().filter(|peer| text(peer, "name") == name).map(|peer| text(peer, "node")).collect();
    match ids[..] {
        [id] => id.parse().with_context(|| format!("the node says a peer that is none: {id}")),
        [] => {
            let names: Vec<&str> =
                peers.iter().map(|peer| text(peer, "name")).filter(|name| !name.is_empty()).collect();
            let there = match names[..] {
                [] => "none has a name; say which by its id, sv1…, which selvedge peer list shows".to_owned(),
                _ => format!("there are: {}", names.join(", ")),
            };
            match node::suggest(name, names) {
                Some(near) => bail!("no peer is called {name}; {there}; did you mean {near}?"),
                None => bail!("no peer is called {name}; {there}"),
            }
        }
        _ => bail!("{} peers are called {name}; say which by its id: {}", ids.len(), ids.join(" or ")),
    }
}

/// What nodes are called in a status, for lines that people read.
struct Names<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Names<'a> {
    fn of(status: &'a Value) -> Self {
        Self(items(status, "peers").iter().map(|peer| (text(peer, "node"), text(peer, "name"))).collect())
    }

    /// A node's name beside its id, which is shortened: whoever needs all of it finds it at the peer.
    fn show(&self, node: &str) -> String {
        const CHARACTERS_SHOWN: usize = 11;
        let short = match node.char_indices().nth(CHARACTERS_SHOWN) {
            Some((end, _)) => format!("{}…", &node[..end]),
            None => node.to_owned(),
        };
        match self.0.iter().find(|(id, name)| *id == node && !name.is_empty()) {
            Some((_, name)) => format!("{name} ({short})"),
            None => short,
        }
    }

    /// A text in which peers are shown by their names.
    fn within(&self, text: &str) -> String {
        self.0
            .iter()
            .filter(|(node, _)| !node.is_empty())
            .fold(text.to_owned(), |text, (node, _)| text.replace(node, &self.show(node)))
    }
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

/// What a status says of a link on which the other side answers.
const LINK_UP: &str = "up";

/// How a node is, in lines; what has nothing to tell is left out.
pub fn status_for_people(running: bool, status: &Value) -> String {
    let mut lines =
        vec![format!("{}  {}", if running { "running" } else { "not running" }, text(status, "node"))];
    let names = Names::of(status);
    for peer in items(status, "peers") {
        lines.push(format!("peer     {}", peer_for_people(peer)));
    }
    for stream in items(status, "sending") {
        let peer = text(stream, "peer");
        let is_up = |other: &&Value| text(other, "node") == peer && text(other, "link") == LINK_UP;
        let why = match text(stream, "why") {
            "" if items(status, "peers").iter().any(|other| is_up(&other)) => {
                ": on its way, not answered yet".to_owned()
            }
            "" => String::new(),
            why => format!(": {}", names.within(why)),
        };
        lines.push(format!(
            "waiting  {} from {} for {}{why}",
            stream["unsettled"],
            text(stream, "from_app"),
            names.show(peer)
        ));
    }
    for queue in items(status, "endpoints") {
        let why = match text(queue, "why") {
            "" => "on its way, not answered yet",
            why => why,
        };
        lines.push(format!(
            "waiting  {} from {} for {}: {why}",
            queue["unsettled"],
            text(queue, "app"),
            text(queue, "endpoint")
        ));
    }
    for stream in items(status, "receiving") {
        let about = format!("{} of {}", text(stream, "from_app"), names.show(text(stream, "peer")));
        for refusal in items(stream, "refusals") {
            lines.push(format!(
                "refused  number {} from {about}: {}",
                refusal[0],
                refusal[1].as_str().unwrap_or_default()
            ));
        }
        if !text(stream, "waiting").is_empty() {
            let next = stream["heard"].as_u64().unwrap_or_default() + 1;
            let why = names.within(text(stream, "waiting"));
            lines.push(format!("held     number {next} and what follows from {about}: {why}"));
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
        lines.push(format!("stranger {} would talk, and is not a peer", names.show(stranger)));
    }
    for notice in items(status, "notices").iter().filter_map(Value::as_str) {
        lines.push(format!("notice   {}", names.within(notice)));
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
            "endpoints": [{"endpoint": "https://a.example/", "app": "shop", "unsettled": 2, "why": "503 (tried once)"},
                {"endpoint": "https://b.example/", "app": "shop", "unsettled": 1, "why": null}],
            "receiving": [{"peer": "sv1ben", "from_app": "messenger", "to_app": "messenger", "heard": 4,
                "refusals": [[2, "no such contact"]], "waiting": "messenger does not run here", "gaps": [[3, 4]], "forked": true}],
            "strangers": ["sv1eve"], "notices": ["the log was cut"],
        });
        let expected = "\
running  sv1ann
peer     (no name)  sv1ben  no answer  127.0.0.1:9
waiting  3 from messenger for sv1ben: no answer
waiting  2 from shop for https://a.example/: 503 (tried once)
waiting  1 from shop for https://b.example/: on its way, not answered yet
refused  number 2 from messenger of sv1ben: no such contact
held     number 5 and what follows from messenger of sv1ben: messenger does not run here
lost     numbers 3 to 4 from messenger of sv1ben: this node was set back in time
forked   messenger of sv1ben: that node was set back in time
stranger sv1eve would talk, and is not a peer
notice   the log was cut";
        assert_eq!(status_for_people(true, &status), expected);
        assert_eq!(status_for_people(false, &json!({"node": "sv1ann"})), "not running  sv1ann");
    }

    #[test]
    fn peers_are_shown_by_their_names_and_what_is_on_its_way_as_such() {
        let ben = NodeId([2; 32]).to_string();
        let status = json!({
            "node": "sv1ann",
            "peers": [{"node": ben, "name": "Ben", "link": "up", "addresses": []}],
            "sending": [{"peer": ben, "from_app": "messenger", "unsettled": 1, "why": null}],
            "receiving": [{"peer": ben, "from_app": "messenger", "gaps": [[3, 4]], "forked": true}],
            "strangers": [NodeId([3; 32]).to_string()],
            "notices": [format!("{ben} was set back")],
        });
        let (short, stranger) = (&ben[..11], &NodeId([3; 32]).to_string()[..11]);
        let expected = format!(
            "\
running  sv1ann
peer     Ben  {ben}  up  \n\
waiting  1 from messenger for Ben ({short}…): on its way, not answered yet
lost     numbers 3 to 4 from messenger of Ben ({short}…): this node was set back in time
forked   messenger of Ben ({short}…): that node was set back in time
stranger {stranger}… would talk, and is not a peer
notice   Ben ({short}…) was set back"
        );
        assert_eq!(status_for_people(true, &status), expected);
    }

    #[test]
    fn whoever_adds_a_peer_is_told_what_is_still_to_do() {
        let status = json!({
            "peers": [{"node": "sv1ben", "name": "Ben", "link": "up"}, {"node": "sv1cat", "name": "", "link": "down"}],
            "strangers": ["sv1eve"],
        });
        let too = "it must add this node, too, if it has not (its ticket: selvedge id --dir ann)";
        for (node, name, expected) in [
            ("sv1dan", "Dan", format!("Dan is a peer; {too}")),
            ("sv1dan", "", format!("sv1dan is a peer; {too}")),
            ("sv1eve", "Eve", "Eve is a peer; it has added this node, too".to_owned()),
            ("sv1ben", "Ben", "Ben is a peer already".to_owned()),
            ("sv1ben", "", "Ben is a peer already".to_owned()),
            ("sv1ben", "Bob", "Ben is called Bob now".to_owned()),
            ("sv1cat", "Cat", format!("sv1cat is called Cat now; {too}")),
            ("sv1cat", "", format!("sv1cat is a peer already; {too}")),
        ] {
            assert_eq!(added(node, name, &status, Path::new("ann")), expected);
        }
    }

    #[test]
    fn a_name_is_one_peers_alone() {
        let [ben, eve, bob] = [2, 3, 4].map(|byte| NodeId([byte; 32]));
        let peer = |node: NodeId, name: &str| json!({ "node": node.to_string(), "name": name });
        let peers = json!([peer(ben, "Ben"), peer(eve, "Bob"), peer(bob, "Bob")]);
        let check = |name: &str, peers: &Value, expected: Result<NodeId, &str>| {
            let found = named(name, peers).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{name}");
        };
        check("Ben", &peers, Ok(ben));
        let both = format!("2 peers are called Bob; say which by its id: {eve} or {bob}");
        check("Bob", &peers, Err(&both));
        check("Bem", &peers, Err("no peer is called Bem; there are: Ben, Bob, Bob; did you mean Ben?"));
        let unnamed =
            "no peer is called x; none has a name; say which by its id, sv1…, which selvedge peer list shows";
        check("x", &json!([peer(ben, "")]), Err(unnamed));
    }

    /// Three finder patterns and a quiet zone of four modules; half as many lines as modules.
    #[test]
    fn a_ticket_is_drawn_whole() {
        let ticket = sealing::Identity::from_seed(&[7; 64]).ticket(1, &["192.0.2.1:7".parse().unwrap()]);
        let drawn = qr_code(&ticket.to_string()).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        let widths: std::collections::BTreeSet<usize> =
            lines.iter().map(|line| line.chars().count()).collect();
        let width = *widths.first().unwrap();
        assert_eq!((widths.len(), lines.len()), (1, width.div_ceil(2)), "{drawn}");
        assert!(width <= 80, "{width} columns do not fit a terminal");
        assert!(lines[0].chars().all(|block| block == '█'), "{drawn}");
        assert!(lines[2].starts_with("████ ▄▄▄▄▄ █") && lines[2].ends_with("█ ▄▄▄▄▄ ████"), "{drawn}");
    }

    #[test]
    fn an_empty_list_says_what_to_do() {
        assert!(peers_for_people(&json!([])).starts_with("no peers yet: selvedge peer add"));
    }
}
