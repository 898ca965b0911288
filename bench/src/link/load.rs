//! What all contenders carry: records of one size, a few payloads in turn, so that each can be checked.

use crate::BenchError;
use crate::data::Random;
use std::sync::Arc;

/// Payloads in turn.
const PAYLOADS: usize = 16;

/// Records without end. The numbers count from 1.
#[derive(Clone)]
pub struct Load {
    payloads: Vec<Arc<[u8]>>,
    /// Of a record.
    pub bytes: usize,
}

impl Load {
    pub fn new(bytes: usize) -> Load {
        let mut random = Random::new(21);
        let payloads = (0..PAYLOADS).map(|_| (0..bytes).map(|_| random.next() as u8).collect()).collect();
        Load { payloads, bytes }
    }

    pub fn payload(&self, number: u64) -> &Arc<[u8]> {
        &self.payloads[number as usize % PAYLOADS]
    }

    /// Whether these are bytes of a record from `offset` on.
    pub fn check(&self, who: &str, number: u64, offset: usize, found: &[u8]) -> Result<(), BenchError> {
        let expected = self.payload(number).get(offset..offset + found.len());
        if expected == Some(found) {
            return Ok(());
        }
        Err(BenchError::Wrong {
            who: who.into(),
            expected: format!("record {number} as it was sent"),
            found: format!("{} other bytes at {offset}", found.len()),
        })
    }
}
