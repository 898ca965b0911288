//! A run: one start of a node on one store.

/// Bytes of a run as it is sent and hashed: the counter, big-endian, then the random part.
pub const RUN_BYTES: usize = 24;

/// One start of a node on one store. Packet keys come from the runs of both sides, so nothing replays over a restart and
/// no clone or restored copy uses a nonce twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// The store's count of starts, synced before the first datagram.
    pub counter: u64,
    /// Fresh entropy of this start.
    pub random: [u8; 16],
}

/// What a record carries of the run that made it: tells a sender that was set back in time from one that was not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub [u8; 8]);

impl Run {
    /// The tag of this run: the first 8 bytes of its random part.
    pub fn tag(&self) -> Tag {
        let mut tag = [0; 8];
        tag.copy_from_slice(&self.random[..8]);
        Tag(tag)
    }

    /// The counter, big-endian, then the random part.
    pub fn to_bytes(&self) -> [u8; RUN_BYTES] {
        let mut bytes = [0; RUN_BYTES];
        bytes[..8].copy_from_slice(&self.counter.to_be_bytes());
        bytes[8..].copy_from_slice(&self.random);
        bytes
    }

    /// The run of [`Run::to_bytes`].
    pub fn from_bytes(bytes: &[u8; RUN_BYTES]) -> Run {
        let (counter, random) = bytes.split_at(8);
        Run {
            counter: u64::from_be_bytes(counter.try_into().expect("split at 8")),
            random: random.try_into().expect("16 of 24 bytes are left"),
        }
    }
}
