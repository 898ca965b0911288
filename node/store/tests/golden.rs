//! A log and a checkpoint of each format, as they were written once, are opened by every later program.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Model, SMALL, State, apply, open, rows};
use std::path::Path;
use store::{
    CHECKPOINT_FORMAT_VERSION, Change, FORMAT_VERSION, Log, Memory, Progress, StoreError, read,
    read_checkpoint,
};

/// The beginnings of segments; what follows are zeros.
const SEGMENT: &str = "log-0000000000000001";
const FORMAT_1: &[u8] = include_bytes!("golden/format-1/log-0000000000000001");
const FORMAT_2: &[u8] = include_bytes!("golden/format-2/log-0000000000000001");
const CHECKPOINT: &str = "checkpoint-0000000000000002";
const CHECKPOINT_FORMAT_1: &[u8] = include_bytes!("golden/format-2/checkpoint-0000000000000002");

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

/// What this program writes: two runs, of frames one, and two and three; after the first frame a checkpoint.
fn written() -> (Vec<u8>, Vec<u8>) {
    let memory = Memory::new(1);
    let mut model = Model::default();
    for (entropy, frames) in [([1; 32], &frames()[..1]), ([2; 32], &frames()[1..])] {
        let (mut log, opened) = Log::open_sized(memory.clone(), SMALL, entropy, &mut |_| {}).unwrap();
        for (sequence, changes) in (opened.next_sequence..).zip(frames) {
            let appended = log.append(sequence, changes).unwrap();
            let synced = log.sync(appended).unwrap();
            model.acknowledge(changes.clone());
            if sequence == 2 {
                let mut checkpoints = log.checkpoints();
                checkpoints.begin(synced, rows(&model.acknowledged));
                while checkpoints.step().unwrap() == Some(Progress::More) {}
            }
        }
    }
    let mut segment = memory.contents(SEGMENT).unwrap();
    segment.truncate(8 * 4096);
    (segment, memory.contents(CHECKPOINT).unwrap())
}

fn medium(segment: &[u8]) -> Memory {
    let memory = Memory::new(1);
    let mut segment = segment.to_vec();
    segment.resize(usize::try_from(SMALL.first).unwrap(), 0);
    memory.put(SEGMENT, segment);
    memory
}

#[test]
fn logs_of_all_formats_are_opened() {
    for format in [FORMAT_1, FORMAT_2] {
        let memory = medium(format);
        let (_, opened, replayed) = open(&memory, [3; 32]).unwrap();
        assert_eq!(replayed, frames().concat());
        assert_eq!((opened.run, opened.frames, opened.next_sequence, opened.cut), (3, 5, 7, None));
        assert_eq!(opened.log_id, [1; 16]);
    }
}

#[test]
fn a_checkpoint_and_the_log_after_it_are_read() {
    let mut memory = medium(FORMAT_2);
    memory.put(CHECKPOINT, CHECKPOINT_FORMAT_1.to_vec());
    let (mut replayed, mut state) = (Vec::new(), State::new());
    let contents = read(&mut memory, &mut |change| replayed.push(change)).unwrap();
    let checkpoint = contents.checkpoint.unwrap();
    assert_eq!((checkpoint.sequence, checkpoint.run, checkpoint.rows), (2, 1, 2));
    assert_eq!((contents.sequence, contents.run, contents.log_id), (5, 2, Some([1; 16])));
    assert!(contents.passed_over.is_empty());
    let rows: Vec<Change> = frames().concat();
    assert_eq!(
        replayed, rows,
        "the rows of the checkpoint come first, then the changes of the frames after it"
    );
    apply(&mut state, replayed);
    assert_eq!(state.len(), 2);
}

#[test]
fn what_is_written_is_the_newest_format_to_the_byte() {
    let versions = (FORMAT_VERSION, CHECKPOINT_FORMAT_VERSION);
    assert_eq!(versions, (2, 1), "a new format needs its own golden file; the old ones stay");
    let (segment, checkpoint) = written();
    if std::env::var_os("BLESS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-2");
        std::fs::write(folder.join(SEGMENT), segment).unwrap();
        std::fs::write(folder.join(CHECKPOINT), checkpoint).unwrap();
        return;
    }
    assert!(segment == FORMAT_2, "the bytes changed, so the format's version must");
    // redb's own bytes are redb's; the first page is ours, but for the hash of what follows.
    assert!(checkpoint[..88] == CHECKPOINT_FORMAT_1[..88], "the bytes changed, so the format's version must");
}

#[test]
fn a_checkpoint_of_a_newer_format_is_refused_and_not_passed_over() {
    let mut memory = medium(FORMAT_2);
    let mut checkpoint = CHECKPOINT_FORMAT_1.to_vec();
    checkpoint[8] = 2;
    let hash = xxhash_rust::xxh3::xxh3_128(&checkpoint[..4080]).to_le_bytes();
    checkpoint[4080..4096].copy_from_slice(&hash);
    memory.put(CHECKPOINT, checkpoint);
    let error = read(&mut memory, &mut |_| {}).unwrap_err();
    assert!(
        matches!(&error, StoreError::NewerFormat { file, found: 2, known: 1 } if file == CHECKPOINT),
        "{error}"
    );
}

#[test]
fn a_flipped_bit_anywhere_in_a_checkpoint_is_named() {
    let mut memory = Memory::new(1);
    let whole = CHECKPOINT_FORMAT_1;
    for at in (0..4096).chain((4096..whole.len()).step_by(61)) {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1 << (at % 8);
        memory.put(CHECKPOINT, bytes);
        let read = read_checkpoint(&mut memory, CHECKPOINT, &mut |_| panic!("a row was believed"));
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "byte {at}: {read:?}");
    }
    for length in [0, 4095, 4096, whole.len() - 1] {
        memory.put(CHECKPOINT, whole[..length].to_vec());
        let read = read_checkpoint(&mut memory, CHECKPOINT, &mut |_| panic!("a row was believed"));
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{length} bytes: {read:?}");
    }
}
