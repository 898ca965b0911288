//! stub
#![allow(missing_docs, clippy::unimplemented)]
use crate::{Change, Cut, Storage, StoreError};
#[derive(Debug)]
pub struct Log<S: Storage> {
    #[allow(dead_code)]
    storage: S,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub run: u64,
    pub frames: u64,
    pub next_sequence: u64,
    pub log_id: [u8; 16],
    pub cut: Option<Cut>,
    pub mended: Vec<Cut>,
}
#[derive(Debug)]
#[must_use]
pub struct Appended {
    sequence: u64,
}
#[derive(Debug)]
#[must_use]
pub struct Synced {
    sequence: u64,
}
impl Appended {
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}
impl Synced {
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}
impl<S: Storage> Log<S> {
    pub fn open(
        _storage: S,
        _entropy: [u8; 32],
        _restore: &mut dyn FnMut(Change),
    ) -> Result<(Self, Opened), StoreError> {
        unimplemented!()
    }
    pub fn append(&mut self, _sequence: u64, _changes: &[Change]) -> Result<Appended, StoreError> {
        unimplemented!()
    }
    pub fn sync(&mut self, _appended: Appended) -> Result<Synced, StoreError> {
        unimplemented!()
    }
}
