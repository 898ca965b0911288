//! A medium in memory that fails as real ones do: for tests and simulators.
//!
//! Every file has what is on the medium, what was written and not synced, and what the system's memory holds. A power
//! cut keeps any part of what was not synced, torn to a byte and in any order; of names it keeps a beginning of what was
//! done since the folder's sync, as journalled file systems do. Everything is decided by a seed. A [`Memory`] is a handle:
//! clones share one medium, so that a test keeps one while the log owns another.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::Storage;

/// What happens at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with an input/output error. A sync that fails so leaves any part of what it should have
    /// written on the medium, and the system forgets that the rest was ever to be written.
    InputOutput,
    /// The operation fails because the medium is full; a write may have written a beginning.
    Full,
    /// The process dies while the operation goes on; the system lives.
    Kill,
    /// The power fails while the operation goes on.
    PowerCut,
    /// From this operation on, until the next start, a sync says that it is done, and is not.
    Lie,
}

/// A folder in memory, and its faults.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Mutex<Medium>>);

#[derive(Debug)]
struct Medium {
    random: u64,
    files: Vec<Content>,
    /// Names as the system sees them.
    names: BTreeMap<String, usize>,
    /// Names on the medium.
    durable_names: BTreeMap<String, usize>,
    /// The names after each operation since the folder's sync.
    unsynced_names: Vec<BTreeMap<String, usize>>,
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    dead: bool,
    lying: bool,
    /// Bytes that all files together may have.
    room: u64,
}

#[derive(Debug, Default, Clone)]
struct Content {
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
    cached: Vec<u8>,
}

impl Memory {
    /// An empty folder; the seed decides what faults leave.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Medium {
            random: seed,
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            operations: 0,
            faults: BTreeMap::new(),
            dead: false,
            lying: false,
            room: u64::MAX,
        })))
    }

    /// How many operations were asked for so far: the index of the next one.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.medium().operations
    }

    /// Lets the operation of this index fail.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.medium().faults.insert(operation, fault);
    }

    /// Sets how many bytes all files together may have.
    pub fn set_room(&self, bytes: u64) {
        self.medium().room = bytes;
    }

    /// Cuts the power, now. Everything fails until [`restart`](Self::restart).
    pub fn power_cut(&self) {
        self.medium().power_cut();
    }

    /// Lets a process begin after a [`Fault::Kill`] or a power cut; faults that were not reached are gone.
    pub fn restart(&self) {
        let mut medium = self.medium();
        medium.dead = false;
        medium.lying = false;
        medium.faults.clear();
    }

    /// Whether a fault killed the process or the power.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.medium().dead
    }

    /// Bytes of all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.medium().used()
    }

    /// The bytes of a file as a process reads them; none if it is not there.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let medium = self.medium();
        let file = *medium.names.get(name)?;
        Some(medium.files[file].cached.clone())
    }

    /// Puts a file there with these bytes, durably, whatever was there before: damage, or a golden file.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut medium = self.medium();
        let file = medium.files.len();
        medium.files.push(Content { durable: bytes.clone(), unsynced: Vec::new(), cached: bytes });
        medium.names.insert(name.to_owned(), file);
        medium.durable_names.insert(name.to_owned(), file);
        for names in &mut medium.unsynced_names {
            names.insert(name.to_owned(), file);
        }
    }

    /// Takes a file away, durably.
    pub fn take(&self, name: &str) {
        let mut medium = self.medium();
        medium.names.remove(name);
        medium.durable_names.remove(name);
        for names in &mut medium.unsynced_names {
            names.remove(name);
        }
    }

    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What an operation does before a fault is told.
enum Step {
    /// All of it, and no fault.
    Whole,
    /// Any part of it, then this error.
    Part(io::Error, Fault),
    /// Nothing of it and no error, if it is a sync; else all of it.
    Lie,
}

fn dead() -> io::Error {
    io::Error::other("the process or the power is gone")
}

impl Medium {
    /// SplitMix64 (Steele, Lea, Flood 2014): a seed is all that a failing run needs to say.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below or equal to `most`.
    fn up_to(&mut self, most: usize) -> usize {
        // The remainder is below `most + 1`, a usize.
        (self.random() % (most as u64 + 1)) as usize
    }

    fn step(&mut self) -> io::Result<Step> {
        if self.dead {
            return Err(dead());
        }
        let fault = self.faults.remove(&self.operations);
        self.operations += 1;
        Ok(match fault {
            None if self.lying => Step::Lie,
            None => Step::Whole,
            Some(Fault::InputOutput) => {
                Step::Part(io::Error::other("input/output error"), Fault::InputOutput)
            }
            Some(Fault::Full) => Step::Part(full(), Fault::Full),
            Some(Fault::Lie) => {
                self.lying = true;
                Step::Lie
            }
            Some(fault @ (Fault::Kill | Fault::PowerCut)) => Step::Part(dead(), fault),
        })
    }

    /// Ends an operation that a fault fell on.
    fn end(&mut self, error: io::Error, fault: Fault) -> io::Error {
        match fault {
            Fault::InputOutput | Fault::Full | Fault::Lie => {}
            Fault::Kill => self.dead = true,
            Fault::PowerCut => self.power_cut(),
        }
        error
    }

    fn power_cut(&mut self) {
        self.dead = true;
        let kept = self.up_to(self.unsynced_names.len());
        if kept > 0 {
            self.durable_names = self.unsynced_names.swap_remove(kept - 1);
        }
        self.unsynced_names.clear();
        self.names = self.durable_names.clone();
        for file in 0..self.files.len() {
            if !self.files[file].unsynced.is_empty() {
                self.keep_some(file);
                let content = &mut self.files[file];
                content.cached.clone_from(&content.durable);
            }
        }
    }

    /// Puts any part of a file's unsynced writes on the medium, in any order, and forgets the rest.
    fn keep_some(&mut self, file: usize) {
        let mut writes = std::mem::take(&mut self.files[file].unsynced);
        while !writes.is_empty() {
            let next = self.up_to(writes.len() - 1);
            let (offset, bytes) = writes.swap_remove(next);
            // Mediums write sectors in any order, and the one that is being written may be torn at any byte.
            for (index, sector) in bytes.chunks(512).enumerate() {
                let keep = match self.random() % 8 {
                    0..=3 => sector.len(),
                    4 => self.up_to(sector.len()),
                    _ => 0,
                };
                put(&mut self.files[file].durable, offset + index * 512, &sector[..keep]);
            }
        }
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].cached.len() as u64).sum()
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Carries out a change of names, all or nothing, and any fault on it.
    fn rename_with(&mut self, change: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let step = self.step()?;
        let happens = match &step {
            Step::Whole | Step::Lie => true,
            Step::Part(_, Fault::Kill | Fault::PowerCut) => self.random().is_multiple_of(2),
            Step::Part(..) => false,
        };
        if happens {
            change(self)?;
            let names = self.names.clone();
            self.unsynced_names.push(names);
        }
        match step {
            Step::Whole | Step::Lie => Ok(()),
            Step::Part(error, fault) => Err(self.end(error, fault)),
        }
    }
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn put(bytes: &mut Vec<u8>, offset: usize, part: &[u8]) {
    if part.is_empty() {
        return;
    }
    let end = offset + part.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(part);
}

impl Storage for Memory {
    fn list(&mut self) -> io::Result<Vec<String>> {
        let mut medium = self.medium();
        match medium.step()? {
            Step::Whole | Step::Lie => Ok(medium.names.keys().cloned().collect()),
            Step::Part(error, fault) => Err(medium.end(error, fault)),
        }
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        self.medium().rename_with(|medium| {
            if medium.names.contains_key(name) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            medium.files.push(Content::default());
            medium.names.insert(name.to_owned(), medium.files.len() - 1);
            Ok(())
        })
    }

    fn length(&mut self, name: &str) -> io::Result<u64> {
        let mut medium = self.medium();
        match medium.step()? {
            Step::Whole | Step::Lie => medium.find(name).map(|file| medium.files[file].cached.len() as u64),
            Step::Part(error, fault) => Err(medium.end(error, fault)),
        }
    }

    fn read(&mut self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut medium = self.medium();
        if let Step::Part(error, fault) = medium.step()? {
            return Err(medium.end(error, fault));
        }
        let file = medium.find(name)?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = medium.files[file].cached.get(offset..offset + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut medium = self.medium();
        let step = medium.step()?;
        let file = medium.find(name)?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let grown = (offset + bytes.len()).saturating_sub(medium.files[file].cached.len()) as u64;
        let step = match step {
            Step::Whole | Step::Lie if grown > 0 && medium.used() + grown > medium.room => {
                Step::Part(full(), Fault::Full)
            }
            step => step,
        };
        let written = match &step {
            Step::Whole | Step::Lie => bytes.len(),
            Step::Part(..) => medium.up_to(bytes.len()),
        };
        let content = &mut medium.files[file];
        put(&mut content.cached, offset, &bytes[..written]);
        content.unsynced.push((offset, bytes[..written].to_vec()));
        match step {
            Step::Whole | Step::Lie => Ok(()),
            Step::Part(error, fault) => Err(medium.end(error, fault)),
        }
    }

    fn sync_data(&mut self, name: &str) -> io::Result<()> {
        let mut medium = self.medium();
        let step = medium.step()?;
        let file = medium.find(name)?;
        match step {
            Step::Whole => {
                let content = &mut medium.files[file];
                for (offset, bytes) in std::mem::take(&mut content.unsynced) {
                    put(&mut content.durable, offset, &bytes);
                }
                Ok(())
            }
            Step::Lie => Ok(()),
            Step::Part(error, fault) => {
                if matches!(fault, Fault::InputOutput | Fault::Full) {
                    medium.keep_some(file);
                }
                Err(medium.end(error, fault))
            }
        }
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        let mut medium = self.medium();
        match medium.step()? {
            Step::Whole => {
                medium.unsynced_names.clear();
                medium.durable_names = medium.names.clone();
                Ok(())
            }
            Step::Lie => Ok(()),
            Step::Part(error, fault) => Err(medium.end(error, fault)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.medium().rename_with(|medium| {
            let file = medium.find(from)?;
            medium.names.remove(from);
            medium.names.insert(to.to_owned(), file);
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.medium().rename_with(|medium| {
            medium.find(name)?;
            medium.names.remove(name);
            Ok(())
        })
    }

    fn free_bytes(&mut self) -> io::Result<u64> {
        let medium = self.medium();
        Ok(medium.room.saturating_sub(medium.used()))
    }

    fn close(&mut self, _: &str) {}

    fn drop_cache(&mut self, name: &str) -> io::Result<()> {
        let mut medium = self.medium();
        if let Step::Part(error, fault) = medium.step()? {
            return Err(medium.end(error, fault));
        }
        let file = medium.find(name)?;
        let content = &mut medium.files[file];
        content.cached.clone_from(&content.durable);
        for (offset, bytes) in &content.unsynced {
            put(&mut content.cached, *offset, bytes);
        }
        Ok(())
    }
}
