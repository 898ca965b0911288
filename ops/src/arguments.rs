//! What was asked for: parsed purely, so that it is tested without a machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use node::Set;
use sealing::{NodeId, NodeIdError, Ticket};

use crate::app::arguments::AppCommand;

/// A node that was stopped by a fault of its own ends with this code, as `EX_SOFTWARE` of sysexits.
pub const STOPPED_BY_A_FAULT: u8 = 70;

macro_rules! exit_codes {
    () => {
        "Exit codes: 0 done; 1 refused or failed, with why; 2 the command line is wrong; \
70 a running node was stopped by a fault, with why."
    };
}
/// Of commands that print one thing, in one form.
pub(crate) const PLAIN_EXIT_CODES: &str = exit_codes!();
/// Of commands that have `--json`.
pub(crate) const EXIT_CODES: &str = concat!(
    exit_codes!(),
    "\nWith --json, what is printed is one JSON object a line; a failure is {\"error\":WHY}."
);

/// Devices that run apps and send each other sealed messages, applied exactly once.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node until SIGTERM or Ctrl-C
    #[command(after_help = EXIT_CODES)]
    Node(NodeArguments),
    /// Say who a folder's node is, and the ticket to give to others; a new folder becomes a node's
    #[command(after_help = EXIT_CODES)]
    Id {
        /// The folder.
        #[command(flatten)]
        at: At,
        /// Draw the ticket as a QR code, for the camera of whoever is to add this node
        #[arg(long, conflicts_with = "json")]
        qr: bool,
    },
    /// Say and change whom a node talks to
    #[command(subcommand, after_help = EXIT_CODES)]
    Peer(PeerCommand),
    /// Say how a node is, and what waits for whom and why
    #[command(after_help = EXIT_CODES)]
    Status(At),
    /// Look at what a folder holds, back it up, restore it
    #[command(subcommand, after_help = EXIT_CODES)]
    Store(StoreCommand),
    /// Run two nodes, ann and ben, that write to each other; kill one and see that no line is lost
    #[command(after_help = DEMO_HELP)]
    Demo(DemoArguments),
    /// Write apps: begin, check, lay out, try, document them
    #[command(subcommand, after_help = EXIT_CODES)]
    App(AppCommand),
    /// Print what a shell reads to complete commands
    #[command(after_help = PLAIN_EXIT_CODES)]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Write a manual page for each command
    #[command(after_help = PLAIN_EXIT_CODES)]
    Man {
        /// The folder to write them into
        dir: PathBuf,
    },
}

const DEMO_HELP: &str = "\
Commands at its prompt, or one a line through a pipe, whose end means quit:
  kill ben    kill his process at once (SIGKILL)
  start ben   start it again, its page at the same address
  status      how both are
  help        this list
  quit        stop both; the folder and the recording in it are removed unless --dir gave it
The same goes for ann. Both nodes send to a forwarder that records each datagram in the file DIR/recording: 8 bytes \
SELVREC1, then for each datagram the time (u64, microseconds since 1970), the direction (u8: 0 from ann to ben, 1 from ben \
to ann), the length (u32) and the bytes; integers are little-endian. An older recording in DIR is replaced.

With --json: first {\"ready\":true,\"ann\":{\"http\":…,\"node\":…,\"fabric\":…,\"ticket\":…,\"page\":…},\"ben\":{…},\"recording\":PATH}, then one \
object for each command when it has taken effect: {\"killed\":\"ben\"}, {\"started\":\"ben\",\"http\":…}, {\"status\":{…}}, \
{\"help\":…}, {\"quit\":true}, {\"error\":WHY}; {\"stopped\":\"ben\",\"why\":…} if a node ended by itself.

Exit codes: 0 quit; 1 failed, with why; 2 the command line is wrong.";

/// How to run a node.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct NodeArguments {
    /// The node's folder; made if it is not there
    #[arg(long)]
    pub dir: PathBuf,
    /// Files of apps to run
    #[arg(long = "app", value_name = "PATH", num_args = 1.., required = true)]
    pub apps: Vec<PathBuf>,
    /// A value for a setting of an app, as JSON: --set 'shop.stock="sv1…"'; a duration: --set 'jobs.lease=5 min'
    #[arg(long = "set", value_name = "APP.NAME=JSON", value_parser = set)]
    pub settings: Vec<Set>,
    /// Change an app though some of what it keeps is lost; `selvedge app plan` says what
    #[arg(long, value_name = "APP")]
    pub allow_loss: Vec<String>,
    /// Where HTTP listens; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub http: SocketAddr,
    /// Where other nodes' datagrams come; port 0 takes the one of last time if it is free, else another
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:0", value_parser = address)]
    pub fabric: SocketAddr,
    /// Let bystanders see less: datagrams of few lengths, other link ids after a move; costs bytes and key exchanges
    #[arg(long)]
    pub discreet: bool,
    /// Print one JSON object when ready
    #[arg(long)]
    pub json: bool,
    /// Stop when standard input ends: whoever started the node is gone
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

/// Reads `app.name=JSON`.
fn set(text: &str) -> Result<Set, String> {
    let expected = "expected APP.NAME=JSON, jobs.most=3 or 'jobs.lease=5 min' for example";
    let (place, value) = text.split_once('=').ok_or(expected)?;
    let (app, name) = place.split_once('.').ok_or(expected)?;
    if app.is_empty() || name.is_empty() || value.is_empty() {
        return Err(expected.to_owned());
    }
    if engine::read_duration(value).is_none() {
        serde_json::from_str::<serde_json::Value>(value).map_err(|error| {
            format!("the value is no JSON ({error}); a text stands in quotes: '{place}=\"…\"'")
        })?;
    }
    Ok(Set { app: app.to_owned(), name: name.to_owned(), value: value.to_owned() })
}

/// A node's folder.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct At {
    /// The node's folder, whether the node runs or not
    #[arg(long)]
    pub dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What can be done with what a node's folder holds.
#[derive(Debug, PartialEq, Eq, Subcommand)]
pub enum StoreCommand {
    /// Look at every frame of the log and every row of the checkpoints, and say what is wrong and where
    #[command(after_help = STORE_CHECK_HELP)]
    Check(AtRest),
    /// Say how much there is: rows, files, and what a start has to read
    #[command(after_help = STORE_STAT_HELP)]
    Stat(AtRest),
    /// Write all that a node keeps into one file, or to standard output, while the node runs or not
    #[command(after_help = STORE_BACKUP_HELP)]
    Backup {
        /// The folder.
        #[command(flatten)]
        of: Of,
        /// Put the node's identity into it, too: whoever reads the backup then can be the node
        #[arg(long)]
        with_identity: bool,
    },
    /// Say what can be saved of a folder whose log is damaged in the middle, and make a new folder of it
    #[command(after_help = STORE_SALVAGE_HELP)]
    Salvage {
        /// The folder.
        #[command(flatten)]
        at: AtRest,
        /// The folder to make, which must not be there, or be empty; without it only the plan is said
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
    /// Write all rows of a stopped node as lines of JSON, those of apps as people read them
    #[command(after_help = STORE_EXPORT_HELP)]
    Export {
        /// The folder.
        #[command(flatten)]
        of: Of,
    },
    /// Make a node's folder of lines that `store export` wrote
    #[command(after_help = STORE_IMPORT_HELP)]
    Import {
        /// The folder and where its rows come from.
        #[command(flatten)]
        new: New,
    },
    /// Make a node's folder of a backup
    #[command(after_help = STORE_RESTORE_HELP)]
    Restore {
        /// The folder and where its rows come from.
        #[command(flatten)]
        new: New,
    },
}

/// A folder of which one file is made.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct Of {
    /// The node's folder
    #[arg(long)]
    pub dir: PathBuf,
    /// The file to write, which must not be there; standard output if not given
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Print JSON
    #[arg(long, requires = "to")]
    pub json: bool,
}

/// A folder that is made of one file.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct New {
    /// The folder to make; it must not be there, or be empty
    #[arg(long)]
    pub dir: PathBuf,
    /// The file to read; standard input if not given
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// The node's identity, where the file that is read does not hold it: the file `identity` of the node's folder
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The folder of a node that does not run.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct AtRest {
    /// The node's folder; the node must be stopped
    #[arg(long)]
    pub dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const STORE_CHECK_HELP: &str = "\
Nothing is changed. Stop the node first. What a crash left of the last frame is nothing wrong: a start removes it. What the rows mean is not \
asked.
With --json one object a line for each range that is wrong: {\"damaged\":FILE,\"from\":…,\"to\":…,\"why\":…}, in bytes, the end \
excluded, null where it is the whole file; then {\"whole\":…,\"segments\":…,\"frames\":…,\"changes\":…,\"checkpoints\":…,\"damages\":…,\
\"torn\":…,\"refused\":…}, the last being why a node does not start, or null. A folder that cannot be looked at is {\"error\":WHY}.

Exit codes: 0 all is as it was written; 1 something is not, or cannot be looked at; 2 the command line is wrong.";

const STORE_STAT_HELP: &str = "\
Nothing is changed. A node that runs counts its rows as for a backup. A damaged log is refused: `selvedge store check` says all that is wrong.
With --json one object: {\"rows\":{\"count\":…,\"bytes\":…},\"segments\":{…},\"checkpoints\":{…},\"spares\":{…},\"bytes\":…,\
\"bytes_per_byte\":…,\"starts\":…,\"frame\":…,\"checkpoint\":{\"file\":…,\"frame\":…,\"seconds\":…},\"replayed_bytes\":…,\"changed_bytes\":…}; a failure is {\"error\":WHY}. A start reads the checkpoint and \
replayed_bytes of frames, in which changed_bytes of rows are; while a node runs both are null.

Exit codes: 0 done; 1 the folder cannot be read, with why; 2 the command line is wrong.";

const STORE_BACKUP_HELP: &str = "\
The backup holds all rows of the node as they were at one moment: everything that was acknowledged before, whole events only. Posts go on \
meanwhile. It is verified as it is written, and a file is read back from the disk before it has its name; it is there whole or not at all, \
and only its owner may read it. Without --with-identity a folder that is made of it needs the file `identity` from elsewhere: keep a copy \
of that one apart.
With --json, which needs --to, lines {\"progress\":{\"rows\":…,\"bytes\":…}} about once a second, then {\"backup\":FILE,\"node\":…,\
\"frame\":…,\"run\":…,\"rows\":…,\"bytes\":…,\"identity\":…}; a failure is {\"error\":WHY}.

Exit codes: 0 done; 1 failed, with why, and there is no backup (what went to standard output is none without its end); 2 the command \
line is wrong.";

const STORE_SALVAGE_HELP: &str = "\
For a node that does not start because its log is damaged, when there is no backup: a backup that is newer than what is kept here is \
better. The log is cut at the damage: everything before it is kept, whole events only, and what came after is lost, for it may have been \
made of what is missing. The damaged folder is never changed. The new one has the identity and a log of its own that goes on \
after all that is known to have been, so that peers find out what is missing, as after a restore.
With --json one object a line for each range that is damaged, as of `store check`, then {\"kept\":{\"frame\":…,\"run\":…,\"rows\":…},\
\"lost\":{\"frames\":…,\"readable\":…,\"changes\":{APP:…}},\"identity\":…}, and with --to as of `store restore`, with \"salvaged\":DIR. A \
failure is {\"error\":WHY}.

Exit codes: 0 done; 1 nothing is to be saved, or can be, with why; 2 the command line is wrong.";

const STORE_EXPORT_HELP: &str = "\
Nothing is changed. Stop the node first. One JSON object a line: first {\"selvedge_export\":1,\"node\":…,\"frame\":…,\"run\":…}; then a row \
each, what an app keeps as {\"app\":…,\"list\":…,\"row\":…}, by the names and types of the shape that it has, whether its source still \
compiles or not; all others (peers, messages, timers, what no shape fits) as {\"what\":…,\"number\":…,\"key\":…,\"bytes\":…}; last \
{\"rows\":COUNT}. The node's identity is not in it.
With --json, which needs --to, one object: {\"exported\":FILE,\"node\":…,\"frame\":…,\"run\":…,\"rows\":…,\"bytes\":…,\"apps\":{APP:ROWS}}; a \
failure is {\"error\":WHY}.

Exit codes: 0 done; 1 failed, with why, and there is no such file; 2 the command line is wrong.";

const STORE_IMPORT_HELP: &str = "\
All lines are read and verified before anything is made. Lines of apps' rows may be changed, added and taken away, if the count in the \
last line is, too; what is to be kept of the node's own is better left as it is. The folder is one that was set back to what the \
lines say, as after a restore, and needs the node's identity like that.
With --json one object, as of `store restore`, with \"imported\":DIR; a failure is {\"error\":WHY}.

Exit codes: 0 done; 1 failed, with why and which line, and there is no such folder, or it is empty as before; 2 the command line is wrong.";

const STORE_RESTORE_HELP: &str = "\
The backup is verified whole before anything is made. The folder gets a log of its own and goes on after the frame and the run of the \
backup, so that peers find out what is missing, take nothing for something that they know, and apply nothing twice. It needs the node's \
identity: that of the backup if it holds one, or that of --identity, or put there before the node is started. Never run it beside another \
copy of the node.
With --json one object: {\"restored\":DIR,\"node\":…,\"frame\":…,\"run\":…,\"rows\":…,\"apps\":[…],\"identity\":…}; a failure is \
{\"error\":WHY}.

Exit codes: 0 done; 1 failed, with why, and there is no such folder, or it is empty as before; 2 the command line is wrong.";

/// What can be done with peers.
#[derive(Debug, PartialEq, Eq, Subcommand)]
pub enum PeerCommand {
    /// Add a peer by its ticket, or learn its newer addresses; it must add this node, too
    #[command(after_help = EXIT_CODES)]
    Add {
        /// The folder.
        #[command(flatten)]
        at: At,
        /// What `selvedge id` says on the other side, svt2…
        ticket: Ticket,
        /// What to call it here
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
        /// Where to reach it, if not where its ticket says: as its router is seen from here, for example; once for each
        #[arg(long = "address", value_name = "ADDR", value_parser = address)]
        addresses: Vec<SocketAddr>,
    },
    /// Say the digits that are the same on both sides if each node holds the other's true id; compare them in person or
    /// by a voice that you know
    #[command(after_help = EXIT_CODES)]
    SafetyNumber {
        /// The folder.
        #[command(flatten)]
        at: At,
        /// The node, sv1…, or what it is called here
        #[arg(value_name = "NODE")]
        peer: NodeOrName,
    },
    /// Say who the peers are
    #[command(after_help = EXIT_CODES)]
    List(At),
    /// Two copies of this node ran, and the peer took the other: let this one go on, which runs
    #[command(after_help = EXIT_CODES)]
    Resume {
        /// The folder.
        #[command(flatten)]
        at: At,
        /// The node, sv1…, or what it is called here
        #[arg(value_name = "NODE")]
        peer: NodeOrName,
    },
    /// Talk to a node no more, or give up what waits for an address on the web
    #[command(after_help = EXIT_CODES)]
    Remove {
        /// The folder.
        #[command(flatten)]
        at: At,
        /// The node, sv1…, or what it is called here; or the address, https://…
        #[arg(value_name = "NODE")]
        peer: NodeOrName,
    },
}

/// A peer as a person says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeOrName {
    /// By its id.
    Node(NodeId),
    /// By what it is called here.
    Name(String),
    /// No peer, but an address on the web that sends wait for.
    Endpoint(String),
}

impl FromStr for NodeOrName {
    type Err = NodeIdError;

    fn from_str(text: &str) -> Result<Self, NodeIdError> {
        match text.parse() {
            Ok(node) => Ok(Self::Node(node)),
            Err(_) if ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) => {
                Ok(Self::Endpoint(text.to_owned()))
            }
            // What begins as ids do is one that was copied badly.
            Err(NodeIdError::Prefix(_)) => Ok(Self::Name(text.to_owned())),
            Err(error) => Err(error),
        }
    }
}

/// An address to listen at; `localhost` is this machine's.
fn address(text: &str) -> Result<SocketAddr, String> {
    let on_this_machine =
        text.strip_prefix("localhost:").map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
    if let Ok(address) = on_this_machine.as_deref().unwrap_or(text).parse() {
        return Ok(address);
    }
    let port = text.rsplit_once(':').map_or(text, |(_, port)| port);
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    Err(match (is_number, port.parse::<u16>()) {
        (true, Err(_)) => "a port is a number from 0 to 65535, as in 127.0.0.1:8095".to_owned(),
        (true, Ok(port)) => {
            format!(
                "an address is numbers and a port, such as 127.0.0.1:{port} or 0.0.0.0:{port} or [::1]:{port}"
            )
        }
        (false, _) => "an address is numbers and a port, such as 127.0.0.1:8095 or [::1]:8095".to_owned(),
    })
}

/// How to run the demo.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct DemoArguments {
    /// Keep both nodes and the recording in this folder, and go on with what is there
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Another app than the messenger; if it has an input `befriend(node, name)`, each node's is told of the other
    #[arg(long, value_name = "PATH")]
    pub app: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

impl StoreCommand {
    fn json(&self) -> bool {
        match self {
            Self::Check(at) | Self::Stat(at) => at.json,
            Self::Backup { of, .. } | Self::Export { of } => of.json,
            Self::Salvage { at, .. } => at.json,
            Self::Restore { new } | Self::Import { new } => new.json,
        }
    }
}

impl Arguments {
    /// Whether programs read what is printed.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Node(NodeArguments { json, .. })
            | Command::Demo(DemoArguments { json, .. })
            | Command::Id { at: At { json, .. }, .. }
            | Command::Status(At { json, .. })
            | Command::Peer(
                PeerCommand::List(At { json, .. })
                | PeerCommand::SafetyNumber { at: At { json, .. }, .. }
                | PeerCommand::Add { at: At { json, .. }, .. }
                | PeerCommand::Resume { at: At { json, .. }, .. }
                | PeerCommand::Remove { at: At { json, .. }, .. },
            ) => *json,
            Command::Store(command) => command.json(),
            Command::App(command) => command.json(),
            Command::Completions { .. } | Command::Man { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::CommandFactory;

    use super::*;

    fn ticket() -> Ticket {
        sealing::Identity::from_seed(&[7; 64]).ticket(1, &[])
    }

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("selvedge").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let check = |line: &str, expected: &str| {
            let Arguments { command } = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(format!("{command:?}"), expected, "{line}");
        };
        check(
            "node --dir d --app a.weft b.weft --http 127.0.0.1:80 --app c.weft --json",
            r#"Node(NodeArguments { dir: "d", apps: ["a.weft", "b.weft", "c.weft"], settings: [], allow_loss: [], http: 127.0.0.1:80, fabric: 0.0.0.0:0, discreet: false, json: true, exit_with_stdin: false })"#,
        );
        check(
            "node --dir d --app a.weft --http [::1]:0 --fabric [::1]:9 --discreet --exit-with-stdin",
            r#"Node(NodeArguments { dir: "d", apps: ["a.weft"], settings: [], allow_loss: [], http: [::1]:0, fabric: [::1]:9, discreet: true, json: false, exit_with_stdin: true })"#,
        );
        check(
            "node --dir d --app a.weft --set jobs.lease=300000 --set shop.name=\"nuts=good\"",
            r#"Node(NodeArguments { dir: "d", apps: ["a.weft"], settings: [Set { app: "jobs", name: "lease", value: "300000" }, Set { app: "shop", name: "name", value: "\"nuts=good\"" }], allow_loss: [], http: 127.0.0.1:0, fabric: 0.0.0.0:0, discreet: false, json: false, exit_with_stdin: false })"#,
        );
        check("id --dir d", r#"Id { at: At { dir: "d", json: false }, qr: false }"#);
        check("id --dir d --qr", r#"Id { at: At { dir: "d", json: false }, qr: true }"#);
        check(
            "peer safety-number --dir d ben",
            r#"Peer(SafetyNumber { at: At { dir: "d", json: false }, peer: Name("ben") })"#,
        );
        check(
            &format!("peer add --dir d {} --address 192.0.2.1:7 --address [::1]:8", ticket()),
            &format!(
                r#"Peer(Add {{ at: At {{ dir: "d", json: false }}, ticket: {:?}, name: "", addresses: [192.0.2.1:7, [::1]:8] }})"#,
                ticket()
            ),
        );
        check("status --dir d --json", r#"Status(At { dir: "d", json: true })"#);
        check("store check --dir d --json", r#"Store(Check(AtRest { dir: "d", json: true }))"#);
        check("store stat --dir d", r#"Store(Stat(AtRest { dir: "d", json: false }))"#);
        check(
            "store backup --dir d --to f --with-identity --json",
            r#"Store(Backup { of: Of { dir: "d", to: Some("f"), json: true }, with_identity: true })"#,
        );
        check(
            "store salvage --dir d --to e",
            r#"Store(Salvage { at: AtRest { dir: "d", json: false }, to: Some("e") })"#,
        );
        check("store export --dir d", r#"Store(Export { of: Of { dir: "d", to: None, json: false } })"#);
        check(
            "store import --dir d --from f --json",
            r#"Store(Import { new: New { dir: "d", from: Some("f"), identity: None, json: true } })"#,
        );
        check(
            "store restore --dir d --identity i",
            r#"Store(Restore { new: New { dir: "d", from: None, identity: Some("i"), json: false } })"#,
        );
        check("peer list --dir d", r#"Peer(List(At { dir: "d", json: false }))"#);
        check(
            &format!("peer add --dir d {} --name ben --json", ticket()),
            &format!(
                r#"Peer(Add {{ at: At {{ dir: "d", json: true }}, ticket: {:?}, name: "ben", addresses: [] }})"#,
                ticket()
            ),
        );
        check(
            &format!("peer remove --dir d {}", ticket().node()),
            &format!(
                r#"Peer(Remove {{ at: At {{ dir: "d", json: false }}, peer: Node({:?}) }})"#,
                ticket().node()
            ),
        );
        check(
            "app check a.weft b.weft --deny-warnings",
            r#"App(Check { files: Files { files: ["a.weft", "b.weft"], json: false }, deny_warnings: true, queries: false })"#,
        );
        check(
            "app fmt --check --json a.weft",
            r#"App(Fmt { files: Files { files: ["a.weft"], json: true }, check: true })"#,
        );
        check("app explain w23", r#"App(Explain { code: Some("w23"), json: false })"#);
        check("app new notes", r#"App(New { name: "notes", dir: ".", json: false })"#);
        check("app run a.weft --json", r#"App(Run(OneFile { file: "a.weft", json: true }))"#);
        check(
            "app doc a.weft --openapi",
            r#"App(Doc { file: "a.weft", openapi: true, json_schema: false })"#,
        );
        check("app lsp", "App(Lsp)");
        check("completions bash", "Completions { shell: Bash }");
        check("man d", r#"Man { dir: "d" }"#);
        check(
            "peer resume --dir d ben",
            r#"Peer(Resume { at: At { dir: "d", json: false }, peer: Name("ben") })"#,
        );
        check(
            "peer remove --dir d ben",
            r#"Peer(Remove { at: At { dir: "d", json: false }, peer: Name("ben") })"#,
        );
        check(
            "peer remove --dir d https://mail.example/",
            r#"Peer(Remove { at: At { dir: "d", json: false }, peer: Endpoint("https://mail.example/") })"#,
        );
        check(
            "node --dir d --app a.weft --http localhost:8095",
            r#"Node(NodeArguments { dir: "d", apps: ["a.weft"], settings: [], allow_loss: [], http: 127.0.0.1:8095, fabric: 0.0.0.0:0, discreet: false, json: false, exit_with_stdin: false })"#,
        );
        check("demo", "Demo(DemoArguments { dir: None, app: None, json: false })");
        check(
            "demo --json --dir d --app a.weft",
            r#"Demo(DemoArguments { dir: Some("d"), app: Some("a.weft"), json: true })"#,
        );
    }

    #[test]
    fn a_wrong_line_is_refused_with_what_is_wrong() {
        let check = |line: &str, expected: &str| {
            let error = parse(line).map(|_| ()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected) && error.exit_code() == 2, "{line}: {text}");
        };
        check("node --dir d", "--app <PATH>...");
        check("node --app a.weft", "--dir <DIR>");
        check("node --dir d --app a.weft --set lease=3", "expected APP.NAME=JSON");
        check("node --dir d --app a.weft --set jobs.lease", "expected APP.NAME=JSON");
        check("node --dir d --app a.weft --set jobs.name=ann", "a text stands in quotes");
        check("node --dir d --app a.weft --http localhost", "'localhost' for '--http <ADDR>'");
        check("node --dir d --app a.weft --http 8095", "such as 127.0.0.1:8095");
        check("node --dir d --app a.weft --http here:8095", "such as 127.0.0.1:8095");
        check("node --dir d --app a.weft --http localhost", "such as 127.0.0.1:8095");
        check("node --dir d --app a.weft --http 127.0.0.1:80000", "from 0 to 65535, as in 127.0.0.1:8095");
        check("node --dir d --app a.weft --fabric localhost:80000", "from 0 to 65535");
        check("peer add --dir d nonsense", "a ticket begins with \"svt2\"");
        let mut changed = ticket().to_string();
        let last = if changed.ends_with('a') { "b" } else { "a" };
        changed.replace_range(changed.len() - 1.., last);
        check(&format!("peer add --dir d {changed}"), "for '<TICKET>'");
        check("peer remove --dir d sv1nonsense", "for '<NODE>'");
        check("peer add --dir d", "<TICKET>");
        check("demo --dir", "a value is required for '--dir <DIR>'");
        check("app check", "<FILE>...");
        check("app doc a.weft --openapi --json-schema", "cannot be used with");
        check("app plan a.weft", "--node <DIR>");
        check("app plan a.weft b.weft --node d", "cannot be used with");
        check("completions tclsh", "invalid value 'tclsh'");
        check("weave", "unrecognized subcommand 'weave'");
    }

    #[test]
    fn json_is_known_before_anything_is_done() {
        for (line, json) in [
            ("demo --json", true),
            ("demo", false),
            ("peer list --dir d --json", true),
            ("app fmt a --json", true),
        ] {
            assert_eq!(parse(line).unwrap().json(), json, "{line}");
        }
    }
}
