//! What can be done with a node's folder while no node runs on it: the same core, driven by hand; and with a backup of one.

use crate::folder::{self, ControlFile, Looked};
use crate::process::{CARD_SEQUENCE, NodeError, Recovered, look, recover};
use crate::rehearsal::{self, Before, NoPlan, Wanted};
use node_core::{Control, ControlError, Core, Effect, Input, Out, Recovery, Reply, ReplyId};
use sealing::{NodeId, Ticket};
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use store::{BackupReader, Folder, Log, Part, Storage};
use weft::Module;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The folder is no node's.
    #[error("{} is no node's folder: `selvedge node` or `selvedge id` make one", .0.display())]
    NoNode(PathBuf),
    /// The folder cannot be opened.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// There is no plan: the app's source is not right.
    #[error(transparent)]
    NoPlan(#[from] NoPlan),
    /// An app that this node never ran.
    #[error("the app {0} was never on this node: there is nothing kept that could change")]
    NoApp(String),
    /// The node refuses.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The log takes no more, or a backup is damaged.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

/// Who a folder's node is and the ticket to it, with the port of its last start. Makes the identity of a new folder.
///
/// # Errors
/// The folder cannot be opened, or a node runs on it.
pub fn identity(dir: &Path) -> Result<(NodeId, Ticket), OfflineError> {
    let identity = if folder::is_nodes(dir) {
        let _locked = Folder::open_to_read(dir).map_err(NodeError::from)?;
        folder::read_identity(dir)?
    } else {
        folder::open(Folder::open(dir).map_err(NodeError::from)?)?.0
    };
    let addresses = ControlFile::read(dir)
        .map(|control| fabric::addresses::reachable(control.fabric))
        .unwrap_or_default();
    Ok((identity.id(), identity.ticket(CARD_SEQUENCE, &addresses)))
}

/// Adds a peer, or what its newer ticket says; with addresses these are taken instead of the ticket's.
///
/// # Errors
/// The folder cannot be opened; the node's own ticket.
pub fn add_peer(
    dir: &Path,
    ticket: Ticket,
    name: String,
    addresses: Vec<SocketAddr>,
) -> Result<(), OfflineError> {
    control(dir, Control::AddPeer { ticket, name, addresses }).map(drop)
}

/// Removes a peer.
///
/// # Errors
/// The folder cannot be opened; no such peer.
pub fn remove_peer(dir: &Path, node: NodeId) -> Result<(), OfflineError> {
    control(dir, Control::RemovePeer(node)).map(drop)
}

/// Gives up what waits for an address on the web.
///
/// # Errors
/// The folder cannot be opened; nothing waits for it; the app that would hear of it does not run, as none does here.
pub fn give_up(dir: &Path, endpoint: String) -> Result<(), OfflineError> {
    control(dir, Control::GiveUp(endpoint)).map(drop)
}

/// What a running node says at `/-/status`. Nothing of the folder is changed.
///
/// # Errors
/// The folder cannot be read.
pub fn status(dir: &Path) -> Result<Value, OfflineError> {
    must_be_a_nodes(dir)?;
    match asked(look(dir)?, Control::Status)? {
        Reply::Status(status) => Ok(json!(status)),
        reply => unreachable!("the core answers a status with one, not {reply:?}"),
    }
}

/// What a running node says at `/-/plan` of this source, an app's with its libraries (`weft::Sources::to_text`).
///
/// # Errors
/// The folder cannot be opened, the source is not right, or the app was never on this node.
pub fn plan(dir: &Path, source: &str) -> Result<Value, OfflineError> {
    must_be_a_nodes(dir)?;
    let module = rehearsal::read(source)?;
    let Looked { recovery, .. } = folder::look(dir)?;
    plan_over(recovery, module)
}

/// [`plan`] over what a backup holds; nothing is made of it. `name` is what people call it.
///
/// # Errors
/// The backup is damaged, the source is not right, or the app was never on the node that was backed up.
pub fn plan_of_backup(backup: impl Read, name: &str, source: &str) -> Result<Value, OfflineError> {
    let module = rehearsal::read(source)?;
    let mut recovery = Recovery::default();
    for part in BackupReader::open(backup, name)? {
        match part? {
            Part::Rows(rows) => rows.into_iter().for_each(|row| recovery.change(row.into())),
            // The identity, or a later program's: no app keeps anything there.
            Part::File { .. } => {}
        }
    }
    plan_over(recovery, module)
}

fn plan_over(recovery: Recovery, module: Module) -> Result<Value, OfflineError> {
    let sends = recovery.sends(&module.name).map_err(NodeError::from)?;
    let ran = recovery.source(&module.name).and_then(|source| rehearsal::read(source).ok());
    let kept = recovery.app(&module.name, &module).map_err(NodeError::from)?;
    let (schema, snapshot) = kept.ok_or_else(|| OfflineError::NoApp(module.name.clone()))?;
    // Nothing else is served meanwhile, and whoever waits can end it.
    let before = Before { schema: &schema, module: ran.as_ref(), snapshot: &snapshot, sends };
    Ok(rehearsal::rehearse(before, module, crate::clock::now(), &|| Wanted::Yes)?)
}

fn control(dir: &Path, control: Control) -> Result<Reply, OfflineError> {
    must_be_a_nodes(dir)?;
    let folder = Folder::open(dir).map_err(NodeError::from)?;
    asked(recover(folder, Vec::new())?, control)
}

fn must_be_a_nodes(dir: &Path) -> Result<(), OfflineError> {
    match folder::is_nodes(dir) {
        true => Ok(()),
        false => Err(OfflineError::NoNode(dir.to_owned())),
    }
}

/// What a core says to this.
fn asked<S: Storage>(recovered: Recovered<S>, control: Control) -> Result<Reply, OfflineError> {
    let Recovered { mut log, mut core, .. } = recovered;
    settle(&mut log, &mut core)?;
    core.handle(crate::clock::now(), Input::Control { reply: ReplyId(0), control });
    match settle(&mut log, &mut core)? {
        Some(Reply::NotDone(error)) => Err(error.into()),
        Some(reply) => Ok(reply),
        None => unreachable!("the core answers every control request"),
    }
}

/// Carries out effects until there are none; the reply among them.
fn settle<S: Storage>(log: &mut Log<S>, core: &mut Core) -> Result<Option<Reply>, OfflineError> {
    let mut answer = None;
    while let Some(effect) = core.poll_effect() {
        match effect {
            Effect::Append { sequence, changes } => {
                let appended = log.append(sequence, &changes)?;
                let synced = log.sync(appended)?;
                core.handle(crate::clock::now(), Input::Synced(synced));
            }
            Effect::Out(released) => {
                if let Out::Reply { reply, .. } = released.into_inner() {
                    answer = Some(reply);
                }
            }
            // Without apps nothing is ever due, and nobody says that a checkpoint is.
            Effect::WakeAt(_) | Effect::Checkpoint { .. } => {}
        }
    }
    Ok(answer)
}
