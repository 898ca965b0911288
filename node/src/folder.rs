//! The small files of a node's folder: its keys, and how a running node is reached.

use crate::process::{NodeError, entropy};
use sealing::Identity;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use store::{Change, Folder, Log, Opened, Storage, write_whole};
use zeroize::Zeroizing;

/// The node's keys: losing this file is losing the node.
const IDENTITY: &str = "identity";

/// First bytes of the identity's file: what it is, and the version of its layout.
const IDENTITY_MAGIC: &[u8; 16] = b"selvedge id v1\r\n";

const SEED_BYTES: usize = 64;
const CHECK_BYTES: usize = 8;
const IDENTITY_BYTES: usize = IDENTITY_MAGIC.len() + SEED_BYTES + CHECK_BYTES;

/// How the last start of the node is reached, for the commands on this machine.
const CONTROL: &str = "control.json";

/// What `control.json` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ControlFile {
    /// Where HTTP listens.
    pub http: SocketAddr,
    /// Where datagrams come; the next start takes the same port if it is free.
    pub fabric: SocketAddr,
    /// Whoever can read this file may give the node orders.
    pub token: String,
    /// The process.
    pub pid: u32,
    /// Which log the folder has, in hex: a log that is gone, or another node's, is found out at the next start.
    pub log: String,
}

impl ControlFile {
    /// The file of this start, with a fresh token.
    ///
    /// # Errors
    /// No random bytes.
    pub fn new(http: SocketAddr, fabric: SocketAddr, log_id: [u8; 16]) -> Result<ControlFile, NodeError> {
        let (token, log) = (hex(&entropy()?), hex(&log_id));
        Ok(ControlFile { http, fabric, token, pid: std::process::id(), log })
    }

    /// The file in a folder as the last start wrote it.
    pub fn read(folder: &Path) -> Option<ControlFile> {
        serde_json::from_slice(&std::fs::read(folder.join(CONTROL)).ok()?).ok()
    }

    /// Writes it whole.
    ///
    /// # Errors
    /// The folder takes no more.
    pub fn write(&self, folder: &mut Folder) -> Result<(), NodeError> {
        let text = serde_json::to_vec_pretty(self).expect("addresses, text and a number are JSON");
        Ok(write_whole(folder, CONTROL, &text)?)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder is a node's: it has an identity.
pub fn is_nodes(folder: &Path) -> bool {
    folder.join(IDENTITY).exists()
}

/// Opens the folder's log, which is the one that its last start had.
///
/// # Errors
/// The log is gone, or another node's; all that [`Log::open`] can say.
pub fn open_log(
    mut folder: Folder,
    restore: &mut dyn FnMut(Change),
) -> Result<(Log<Folder>, Opened), NodeError> {
    let path = folder.path().to_owned();
    let before = ControlFile::read(&path).map(|control| control.log);
    if before.is_some() && !has_log(&mut folder)? {
        return Err(NodeError::NoLog { path });
    }
    let (log, opened) = Log::open(folder, entropy()?, restore)?;
    match before {
        Some(before) if before != hex(&opened.log_id) => Err(NodeError::OtherLog { path }),
        _ => Ok((log, opened)),
    }
}

fn has_log(folder: &mut Folder) -> Result<bool, NodeError> {
    let path = folder.path().to_owned();
    let names = folder.list().map_err(|error| NodeError::Identity { path, what: error.to_string() })?;
    Ok(names.iter().any(|name| store::is_segment(name)))
}

/// The folder's identity; a folder that never was a node's gets a new one.
///
/// # Errors
/// The file is damaged or of another version, or there is a log and no identity; it cannot be read or written.
pub fn identity(folder: &mut Folder) -> Result<Identity, NodeError> {
    let damaged = |folder: &Folder, what: &str| NodeError::Identity {
        path: folder.path().join(IDENTITY),
        what: what.to_owned(),
    };
    let bytes = match std::fs::read(folder.path().join(IDENTITY)) {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => return new_identity(folder),
        Err(error) => return Err(damaged(folder, &error.to_string())),
    };
    if bytes.is_empty() {
        return Err(damaged(folder, "it is empty"));
    }
    if bytes.is_empty() {
        return Err(damaged(folder, "it is empty"));
    }
    if bytes.len() != IDENTITY_BYTES || !bytes.starts_with(IDENTITY_MAGIC) {
        return Err(damaged(folder, "it is not an identity of version 1"));
    }
    let (covered, check) = bytes.split_at(IDENTITY_BYTES - CHECK_BYTES);
    if Sha256::digest(covered)[..CHECK_BYTES] != *check {
        return Err(damaged(folder, "its checksum does not match: a bit of it changed"));
    }
    let seed = covered[IDENTITY_MAGIC.len()..].try_into().expect("the length was compared above");
    Ok(Identity::from_seed(seed))
}

fn new_identity(folder: &mut Folder) -> Result<Identity, NodeError> {
    if has_log(folder)? {
        return Err(NodeError::Identity {
            path: folder.path().join(IDENTITY),
            what: "it is missing, though the folder has a log".to_owned(),
        });
    }
    let seed = Zeroizing::new([entropy()?, entropy()?].concat());
    let mut bytes = Zeroizing::new([&IDENTITY_MAGIC[..], &seed].concat());
    let check = Sha256::digest(&bytes);
    bytes.extend_from_slice(&check[..CHECK_BYTES]);
    write_whole(folder, IDENTITY, &bytes)?;
    Ok(Identity::from_seed(seed[..].try_into().expect("two times 32 bytes")))
}

/// The socket for datagrams. Port 0 is the port of last time, so that peers find the node where it was; if that is
/// taken, or there was none, another.
///
/// # Errors
/// The address asked for cannot be had.
pub fn bind_fabric(folder: &Path, address: SocketAddr) -> Result<UdpSocket, NodeError> {
    let before = ControlFile::read(folder).filter(|_| address.port() == 0);
    let same_port = before.map(|control| SocketAddr::new(address.ip(), control.fabric.port()));
    if let Some(socket) = same_port.and_then(|same_port| fabric::bind(same_port).ok()) {
        return Ok(socket);
    }
    fabric::bind(address).map_err(NodeError::FabricAddress)
}
