//! A node's folder that begins with rows: of a backup, of a damaged folder, of a file of rows.
//!
//! The folder is made whole or not at all: what fails leaves an empty one, or none where none was; a crash leaves one that no
//! node starts on. Its log has an id of its own, and its starts go on counting after those that were before, so that peers
//! find out what is missing and take nothing of it for something that they know.

use crate::folder::{self, IDENTITY};
use crate::process::{NodeError, entropy};
use sealing::NodeId;
use std::path::{Path, PathBuf};
use store::{Folder, Founded, Row, Storage, StoreError, write_whole};
use zeroize::Zeroizing;

/// Why a folder was not made. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum FoundationError {
    /// The folder, or what was to be in it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The identity, or the system's random bytes.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The identity is another node's.
    #[error(
        "{} is the identity of {found}, and these are the rows of {expected}: give the identity of that node", file.display()
    )]
    OtherNode {
        /// The identity's file.
        file: PathBuf,
        /// Whose it is.
        found: NodeId,
        /// Whose rows they are.
        expected: NodeId,
    },
    /// The rows say of no node whose they are.
    #[error("{0} holds no row that says whose it is: no node was ever started on what it was made of")]
    Nobodys(String),
}

/// A node's rows, and what a folder of them needs.
#[derive(Debug)]
pub struct Foundation {
    /// What they come from, for people.
    pub name: String,
    /// The last frame and run before.
    pub founded: Founded,
    /// In ascending order of list and key.
    pub rows: Vec<Row>,
    /// The identity, and where it comes from.
    pub identity: Option<(PathBuf, Zeroizing<Vec<u8>>)>,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Who it is.
    pub node: NodeId,
    /// After which frame and run it goes on.
    pub founded: Founded,
    /// How many rows there are.
    pub rows: u64,
    /// The apps that they are of.
    pub apps: Vec<String>,
    /// Whether the folder has the identity.
    pub has_identity: bool,
}

impl Foundation {
    /// Makes the folder.
    ///
    /// # Errors
    /// The identity is another node's; the folder is not empty, or cannot be written.
    pub fn lay(self, dir: &Path) -> Result<Restored, FoundationError> {
        let node = self.rows.iter().find_map(node_core::owner);
        let node = node.ok_or_else(|| FoundationError::Nobodys(self.name.clone()))?;
        if let Some((file, bytes)) = &self.identity {
            let found = folder::identity_of(bytes, file)?.id();
            if found != node {
                return Err(FoundationError::OtherNode { file: file.clone(), found, expected: node });
            }
        }
        let restored = Restored {
            node,
            founded: self.founded,
            rows: self.rows.len() as u64,
            apps: self.rows.iter().filter_map(node_core::app).map(|(name, _)| name.to_owned()).collect(),
            has_identity: self.identity.is_some(),
        };
        self.fill(dir)?;
        Ok(restored)
    }

    fn fill(self, dir: &Path) -> Result<(), FoundationError> {
        let was_there = dir.exists();
        let mut folder = Folder::open(dir)?;
        let listed = folder.list();
        let names = listed.map_err(|source| StoreError::Io {
            operation: "list",
            file: dir.display().to_string(),
            source,
        })?;
        if !names.is_empty() {
            return Err(StoreError::Occupied { folder: dir.to_owned() }.into());
        }
        let filled = self.write(&mut folder);
        if filled.is_err() {
            // What cannot be removed either is no folder that a node starts on.
            for name in folder.list().unwrap_or_default() {
                let _ = folder.remove(&name);
            }
            if !was_there {
                let _ = std::fs::remove_dir_all(dir);
            }
        }
        filled
    }

    fn write(self, folder: &mut Folder) -> Result<(), FoundationError> {
        // A folder with an identity and without a log is one that lost it, so the log comes first.
        store::found(folder, entropy()?, self.founded, Box::new(self.rows.into_iter()))?;
        if let Some((_, bytes)) = self.identity {
            write_whole(folder, IDENTITY, &bytes)?;
        }
        Ok(())
    }
}
