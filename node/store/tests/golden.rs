//! A log of each format, as it was written once, is opened by every later program.
#![allow(clippy::unwrap_used)]

mod model;

use model::{SMALL, open};
use store::{Change, FORMAT_VERSION, Log, Memory};

const NAME: &str = "log-0000000000000001";
/// The beginning of the segment; what follows are zeros.
const FORMAT_1: &[u8] = include_bytes!("golden/format-1/log-0000000000000001");

fn frames() -> Vec<Vec<Change>> {
    vec![
        vec![
            Change { list: 1, key: b"ann".to_vec(), row: Some(b"the first row".to_vec()) },
            Change { list: 0x0102_0304_0506_0708, key: Vec::new(), row: Some(Vec::new()) },
        ],
        vec![Change { list: 1, key: b"ann".to_vec(), row: None }],
        vec![Change { list: 2, key: b"long".to_vec(), row: Some(vec![0x5a; 5000]) }],
    ]
}

/// What this program writes: two runs, of frames one, and two and three.
fn written() -> Vec<u8> {
    let memory = Memory::new(1);
    for (entropy, frames) in [([1; 32], &frames()[..1]), ([2; 32], &frames()[1..])] {
        let (mut log, opened) = Log::open_sized(memory.clone(), SMALL, entropy, &mut |_| {}).unwrap();
        for (sequence, changes) in (opened.next_sequence..).zip(frames) {
            let appended = log.append(sequence, changes).unwrap();
            let _ = log.sync(appended).unwrap();
        }
    }
    let mut bytes = memory.contents(NAME).unwrap();
    bytes.truncate(FORMAT_1.len().max(8 * 4096));
    bytes
}

#[test]
fn format_1_is_opened() {
    let memory = Memory::new(1);
    let mut segment = FORMAT_1.to_vec();
    segment.resize(usize::try_from(SMALL.first).unwrap(), 0);
    memory.put(NAME, segment);
    let (_, opened, replayed) = open(&memory, [3; 32]).unwrap();
    assert_eq!(replayed, frames().concat());
    assert_eq!((opened.run, opened.frames, opened.next_sequence, opened.cut), (3, 5, 7, None));
    assert_eq!(opened.log_id, [1; 16]);
}

#[test]
fn what_is_written_is_format_1_to_the_byte() {
    assert_eq!(FORMAT_VERSION, 1, "a new format needs its own golden file; the old ones stay");
    if std::env::var_os("BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format-1/log-0000000000000001");
        std::fs::write(file, written()).unwrap();
        return;
    }
    assert!(written() == FORMAT_1, "the bytes changed, so the format's version must");
}
