//! What can be saved of a node's folder that is damaged, and a folder made of it. The damaged one is left as it is.

use crate::folder::{self, IDENTITY};
use crate::foundation::{Foundation, FoundationError, Restored};
use crate::stored::{self, StoredError};
use node_core::{Recovery, StartError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Damage, Row, Salvaged};

/// Why nothing is saved. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// The folder cannot be looked at.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// There is nothing to be saved.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// What can be read is no node's log.
    #[error(transparent)]
    Rows(#[from] StartError),
    /// A node starts on the folder.
    #[error("{} needs no saving: a node starts on it, and what was acknowledged is there", .0.display())]
    Whole(PathBuf),
    /// The new folder cannot be made.
    #[error(transparent)]
    Foundation(#[from] FoundationError),
}

/// What can be saved, and what cannot.
#[derive(Debug)]
pub struct SalvagePlan {
    dir: PathBuf,
    /// All that is wrong.
    pub damages: Vec<Damage>,
    /// How much more is wrong.
    pub more_damages: u64,
    /// What can be saved.
    pub salvaged: Salvaged,
    /// The rows that can be saved.
    pub rows: Vec<Row>,
    /// Changes that are lost as far as they can be read, by the names of their apps; what the node itself keeps under no name.
    pub lost_by_app: BTreeMap<String, u64>,
    /// Whether the identity can be read.
    pub has_identity: bool,
}

/// Says what can be saved of a folder, and changes nothing.
///
/// # Errors
/// A node starts on the folder; nothing can be saved.
pub fn plan(dir: &Path) -> Result<SalvagePlan, SalvageError> {
    let checked = stored::check(dir)?;
    if checked.opens.is_ok() {
        return Err(SalvageError::Whole(dir.to_owned()));
    }
    let mut recovery = Recovery::default();
    let salvaged = store::salvage(&mut stored::open(dir)?, &mut |change| recovery.change(change))?;
    let rows: Vec<Row> = recovery.into_rows()?.collect();
    let names: BTreeMap<u32, &str> =
        rows.iter().filter_map(node_core::app).map(|(name, number)| (number, name)).collect();
    let mut lost_by_app = BTreeMap::new();
    for (list, changes) in &salvaged.lost_changes {
        let name = match node_core::app_of(*list) {
            0 => String::new(),
            // It was installed in what is lost.
            number => names.get(&number).map_or_else(|| format!("app {number}"), |name| (*name).to_owned()),
        };
        *lost_by_app.entry(name).or_default() += changes;
    }
    let has_identity = folder::read_identity(dir).is_ok();
    let (damages, more_damages) = (checked.damages, checked.more_damages);
    Ok(SalvagePlan { dir: dir.to_owned(), damages, more_damages, salvaged, rows, lost_by_app, has_identity })
}

impl SalvagePlan {
    /// Makes a folder of what can be saved, with the identity.
    ///
    /// # Errors
    /// The folder is not empty, or cannot be written; the rows are another node's than the identity.
    pub fn carry_out(self, to: &Path) -> Result<Restored, SalvageError> {
        let file = self.dir.join(IDENTITY);
        let identity = folder::read_identity_file(&file).ok().map(|(_, bytes)| (file, bytes));
        let foundation = Foundation {
            name: self.dir.display().to_string(),
            founded: self.salvaged.founded,
            rows: self.rows,
            identity,
        };
        Ok(foundation.lay(to)?)
    }
}
