//! A backup is what was backed up, and nothing else is believed: each flipped bit, each cut, each exchange is found.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Random, fill, open};
use std::path::Path;
use store::{
    BACKUP_FORMAT_VERSION, BackedUp, Backup, BackupReader, BackupWriter, Contents, Folder, Founded, Log,
    Memory, Part, Row, State, StoreError, found, read,
};

/// As it was written once.
const GOLDEN: &[u8] = include_bytes!("golden/backup-1");

fn about() -> BackedUp {
    BackedUp { log_id: [7; 16], sequence: 258, run: 3 }
}

fn row(list: u64, key: &[u8], row: &[u8]) -> Row {
    Row { list, key: key.to_vec(), row: row.to_vec() }
}

fn rows() -> Vec<Row> {
    vec![row(1, b"ann", b"the first row"), row(1, b"ben", b""), row(0x0102_0304_0506_0708, b"", &[0x5a; 300])]
}

fn parts() -> [Part; 3] {
    let (first, second) = (rows()[..2].to_vec(), rows()[2..].to_vec());
    [
        Part::Rows(first),
        Part::Rows(second),
        Part::File { name: "identity".to_owned(), bytes: b"secret".to_vec() },
    ]
}

fn written() -> Vec<u8> {
    let (mut writer, mut bytes) = BackupWriter::begin(&about());
    for part in parts() {
        bytes.extend(writer.part(&part));
    }
    bytes.extend(writer.end());
    bytes
}

fn taken(bytes: &[u8]) -> Result<Vec<Part>, StoreError> {
    let reader = BackupReader::open(bytes, "b")?;
    assert_eq!(reader.about(), &about());
    reader.collect()
}

#[test]
fn what_is_written_is_format_1_to_the_byte_and_is_read() {
    assert_eq!(BACKUP_FORMAT_VERSION, 1, "a new format needs its own golden file; the old ones stay");
    let written = written();
    if std::env::var_os("BLESS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        return std::fs::write(folder.join("backup-1"), written).unwrap();
    }
    assert!(written == GOLDEN, "the bytes changed, so the format's version must");
    assert_eq!(taken(GOLDEN).unwrap(), parts());
}

#[test]
fn what_is_not_as_it_was_written_is_found() {
    let check = |bytes: &[u8], what: &str| {
        let error = taken(bytes).expect_err(what);
        let is_named = matches!(error, StoreError::DamagedBackup { .. } | StoreError::NoBackup { .. });
        assert!(is_named, "{what}: {error}");
    };
    for at in 0..GOLDEN.len() {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 1 << (at % 8);
        check(&bytes, &format!("byte {at} flipped"));
        check(&GOLDEN[..at], &format!("cut to {at} bytes"));
    }
    check(&[GOLDEN, &[0]].concat(), "longer");
    check(&[GOLDEN, GOLDEN].concat(), "twice");
    // The second piece in place of the first, and the first twice.
    let first = 64..64 + 24 + u32::from_le_bytes(GOLDEN[68..72].try_into().unwrap()) as usize;
    check(&[&GOLDEN[..64], &GOLDEN[first.end..]].concat(), "a piece is missing");
    check(&[&GOLDEN[..first.end], &GOLDEN[first.start..]].concat(), "a piece is there twice");
    for noise in [&b""[..], b"{}", &[0; 4096]] {
        assert!(matches!(taken(noise), Err(StoreError::NoBackup { .. })), "{noise:?}");
    }
    for disordered in [[rows()[1].clone(), rows()[0].clone()], [rows()[0].clone(), rows()[0].clone()]] {
        let (mut writer, mut bytes) = BackupWriter::begin(&about());
        bytes.extend(writer.part(&Part::Rows(disordered.to_vec())));
        bytes.extend(writer.end());
        check(&bytes, "rows in no order");
    }
}

#[test]
fn a_newer_format_is_refused() {
    let mut bytes = GOLDEN.to_vec();
    bytes[8] = 2;
    let hash = xxhash_rust::xxh3::xxh3_128(&bytes[..48]).to_le_bytes();
    bytes[48..64].copy_from_slice(&hash);
    let error = taken(&bytes).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 2, known: 1, .. }), "{error}");
}

/// The state that a folder holds.
fn state(memory: &Memory) -> (Contents, State) {
    let mut state = State::default();
    let contents = read(&mut memory.clone(), &mut |change| state.change(change)).unwrap();
    (contents, state)
}

#[test]
fn a_log_founded_on_a_backup_goes_on_after_it_under_an_id_of_its_own() {
    let memory = Memory::new(1);
    let mut random = Random(1);
    let (mut log, opened, _) = open(&memory, random.entropy()).unwrap();
    fill(&mut log, &opened, &mut random, 200);
    drop(log);
    let (contents, before) = state(&memory);
    let about = BackedUp::of(&contents).unwrap();
    let mut bytes = Vec::new();
    for piece in Backup::new(&about, before.clone().into_rows()) {
        bytes.extend(piece.unwrap());
    }

    let mut rows = Vec::new();
    let reader = BackupReader::open(&bytes[..], "b").unwrap();
    let founded = Founded { sequence: reader.about().sequence, run: reader.about().run };
    for part in reader {
        let Part::Rows(some) = part.unwrap() else { panic!("there is no file in it") };
        rows.extend(some);
    }
    let mut other = Memory::new(2);
    found(&mut other, [9; 32], founded, Box::new(rows.into_iter())).unwrap();
    let (restored, after) = state(&other);
    assert_eq!(after, before);
    assert_eq!((restored.sequence, restored.run), (contents.sequence, contents.run));
    assert_ne!(restored.log_id, contents.log_id);
    let (_, opened) = Log::open(other, [3; 32], &mut |_| {}).unwrap();
    assert_eq!((opened.run, opened.next_sequence), (contents.run + 1, contents.sequence + 2));
}

#[test]
fn a_folder_that_is_only_read_is_locked_and_not_written() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("node");
    assert!(Folder::open_to_read(&path).is_err() && !path.exists(), "it makes nothing");
    let (log, _) = Log::open(Folder::open(&path).unwrap(), [1; 32], &mut |_| {}).unwrap();
    assert!(matches!(Folder::open_to_read(&path), Err(StoreError::Locked { .. })));
    drop(log);
    let mut folder = Folder::open_to_read(&path).unwrap();
    let segment = std::fs::read(path.join("log-0000000000000001")).unwrap();
    assert_eq!(read(&mut folder, &mut |_| {}).unwrap().run, 1);
    assert!(matches!(Folder::open(&path), Err(StoreError::Locked { .. })));
    assert_eq!(std::fs::read(path.join("log-0000000000000001")).unwrap(), segment);
}
