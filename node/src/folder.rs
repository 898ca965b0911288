//! The small files of a node's folder: its keys, and how a running node is reached.

use crate::process::{NodeError, entropy};
use node_core::Recovery;
use sealing::Identity;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use store::{Contents, Folder, Log, Opened, Storage, StoreError, write_whole};
use zeroize::Zeroizing;

/// The node's keys: losing this file is losing the node.
pub const IDENTITY: &str = "identity";

/// First bytes of the identity's file: what it is, and the version of its layout.
const IDENTITY_MAGIC: &[u8; 16] = b"selvedge id v1\r\n";

/// What it begins with in every version.
const IDENTITY_BEGINS: &[u8] = b"selvedge id v";

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

    /// Writes it whole; on a full disk over the one of the last start, so that a node starts there too. A crash in that
    /// moment leaves a file that does not read, which is as good as none.
    ///
    /// # Errors
    /// The folder takes no more.
    pub fn write(&self, folder: &mut Folder) -> Result<(), NodeError> {
        let mut text = serde_json::to_vec_pretty(self).expect("addresses, text and a number are JSON");
        match write_whole(folder, CONTROL, &text) {
            Err(full @ StoreError::NoRoom { .. }) => {
                let length = folder.length(CONTROL).unwrap_or(0);
                if length == 0 {
                    return Err(full.into());
                }
                // Spaces after JSON are nothing.
                text.resize(text.len().max(usize::try_from(length).unwrap_or(0)), b' ');
                let written = folder.write_at(CONTROL, 0, &text).and_then(|()| folder.sync_data(CONTROL));
                written.map_err(|_| full.into())
            }
            result => Ok(result?),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a folder is a node's: it has an identity.
pub fn is_nodes(folder: &Path) -> bool {
    folder.join(IDENTITY).exists()
}

/// Opens a node's folder: its identity, its log, and what [`Recovery`] gathered of it. A new folder gets both, the log
/// first, so that an identity without a log is always a folder that lost its log.
///
/// # Errors
/// The log or the identity is gone or damaged, or the log is another one than the last start had; all that [`Log::open`]
/// can say.
pub fn open(mut folder: Folder) -> Result<(Identity, Log<Folder>, Opened, Recovery), NodeError> {
    let path = folder.path().to_owned();
    let before = ControlFile::read(&path).map(|control| control.log);
    let has_identity = is_nodes(&path);
    if has_identity && !has_log(&mut folder)? {
        return Err(NodeError::NoLog { path });
    }
    let identity = if has_identity { Some(read_identity(&path)?) } else { None };
    let mut recovery = Recovery::default();
    let (mut log, opened) = Log::open(folder, entropy()?, &mut |change| recovery.change(change))?;
    if before.is_some_and(|before| before != hex(&opened.log_id)) {
        return Err(NodeError::OtherLog { path });
    }
    let identity = match identity {
        Some(identity) => identity,
        None if recovery.is_empty() => new_identity(log.storage())?,
        None => {
            let what = "it is missing, though the folder has a log".to_owned();
            return Err(NodeError::Identity { path: path.join(IDENTITY), what });
        }
    };
    Ok((identity, log, opened, recovery))
}

/// A node's folder, as it was read.
pub struct Looked {
    /// Its keys.
    pub identity: Identity,
    /// What its log says of itself.
    pub contents: Contents,
    /// What its log says.
    pub recovery: Recovery,
}

/// Reads a node's folder as [`open`] does, and changes nothing of it.
///
/// # Errors
/// As [`open`].
pub fn look(dir: &Path) -> Result<Looked, NodeError> {
    let mut folder = Folder::open_to_read(dir)?;
    let path = folder.path().to_owned();
    let before = ControlFile::read(&path).map(|control| control.log);
    if !has_log(&mut folder)? {
        return Err(NodeError::NoLog { path });
    }
    let identity = read_identity(&path)?;
    let mut recovery = Recovery::default();
    let contents = store::read(&mut folder, &mut |change| recovery.change(change))?;
    if before.is_some_and(|before| contents.log_id.is_none_or(|log_id| before != hex(&log_id))) {
        return Err(NodeError::OtherLog { path });
    }
    Ok(Looked { identity, contents, recovery })
}

fn has_log(folder: &mut Folder) -> Result<bool, NodeError> {
    let path = folder.path().to_owned();
    let names = folder.list().map_err(|error| NodeError::Identity { path, what: error.to_string() })?;
    Ok(names.iter().any(|name| store::is_segment(name)))
}

/// The identity in a node's folder.
///
/// # Errors
/// It cannot be read, is damaged, or of another version.
pub fn read_identity(folder: &Path) -> Result<Identity, NodeError> {
    let path = folder.join(IDENTITY);
    let (identity, _) = read_identity_file(&path)?;
    Ok(identity)
}

/// The identity in a file, and the bytes of it.
///
/// # Errors
/// As [`read_identity`].
pub fn read_identity_file(path: &Path) -> Result<(Identity, Zeroizing<Vec<u8>>), NodeError> {
    let unread =
        |error: std::io::Error| NodeError::Identity { path: path.to_owned(), what: error.to_string() };
    let bytes = Zeroizing::new(std::fs::read(path).map_err(unread)?);
    Ok((identity_of(&bytes, path)?, bytes))
}

/// The identity that a file's bytes are.
///
/// # Errors
/// They are damaged, or of another version.
pub fn identity_of(bytes: &[u8], path: &Path) -> Result<Identity, NodeError> {
    let damaged = |what: &str| NodeError::Identity { path: path.to_owned(), what: what.to_owned() };
    if bytes.is_empty() {
        return Err(damaged("it is empty"));
    }
    if bytes.starts_with(IDENTITY_BEGINS) && !bytes.starts_with(IDENTITY_MAGIC) {
        return Err(damaged(
            "it is of another version than this program knows: use the newer one that wrote it",
        ));
    }
    if bytes.len() != IDENTITY_BYTES || !bytes.starts_with(IDENTITY_MAGIC) {
        return Err(damaged("it is not an identity of version 1"));
    }
    let (covered, check) = bytes.split_at(IDENTITY_BYTES - CHECK_BYTES);
    if Sha256::digest(covered)[..CHECK_BYTES] != *check {
        return Err(damaged("its checksum does not match: a bit of it changed"));
    }
    let seed = covered[IDENTITY_MAGIC.len()..].try_into().expect("the length was compared above");
    Ok(Identity::from_seed(seed))
}

fn new_identity(folder: &mut Folder) -> Result<Identity, NodeError> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// As it was written once.
    const GOLDEN: &[u8] = include_bytes!("../tests/golden/identity-1");

    #[test]
    fn an_identity_of_version_1_is_read_and_no_other() {
        let seed: [u8; SEED_BYTES] = std::array::from_fn(|at| at as u8);
        let read = |bytes: &[u8]| identity_of(bytes, Path::new("identity")).map(|identity| identity.id());
        assert_eq!(read(GOLDEN).unwrap(), Identity::from_seed(&seed).id());
        for at in 0..GOLDEN.len() {
            let mut bytes = GOLDEN.to_vec();
            bytes[at] ^= 1;
            assert!(read(&bytes).is_err() && read(&GOLDEN[..at]).is_err(), "byte {at}");
        }
        let mut newer = GOLDEN.to_vec();
        newer[13] = b'2';
        let error = read(&newer).unwrap_err().to_string();
        assert!(error.contains("use the newer one that wrote it"), "{error}");
    }
}
