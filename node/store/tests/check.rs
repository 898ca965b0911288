//! A check names all that is wrong, past the first; what a crash leaves is nothing wrong; and it changes nothing.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Random, SMALL, State, apply, fill, open, rows};
use store::{Checked, Log, Memory, Progress, check};

const PAGE: usize = 4096;

type Files = Vec<(String, Vec<u8>)>;

/// A log of some segments.
fn log(frames: u64) -> Files {
    let memory = Memory::new(5);
    let mut random = Random(5);
    let (mut log, opened, _) = open(&memory, random.entropy()).unwrap();
    fill(&mut log, &opened, &mut random, frames);
    files(&memory)
}

fn files(memory: &Memory) -> Files {
    let segments = (1..).map(|number| format!("log-{number:016x}"));
    let segments = segments.map_while(|name| memory.contents(&name).map(|bytes| (name, bytes)));
    segments.collect()
}

fn medium(files: &Files) -> Memory {
    let memory = Memory::new(0);
    for (name, bytes) in files {
        memory.put(name, bytes.clone());
    }
    memory
}

fn checked(files: &Files) -> Checked {
    let memory = medium(files);
    let checked = check(&mut memory.clone()).unwrap();
    for (name, bytes) in files {
        assert!(memory.contents(name).as_ref() == Some(bytes), "{name} was changed");
    }
    checked
}

/// Where the frames of a segment begin and end, by the pages that are not zero.
fn used_pages(bytes: &[u8]) -> usize {
    bytes.chunks(PAGE).rposition(|page| page.iter().any(|byte| *byte != 0)).unwrap() + 1
}

#[test]
fn all_that_is_wrong_is_named() {
    let files = log(40);
    assert!(files.len() >= 3, "{} segments", files.len());
    let whole = checked(&files);
    assert!(whole.is_whole() && whole.frames >= 41, "{whole:?}");
    let flip = |files: &mut Files, segment: usize, at: usize| files[segment].1[at] ^= 1;
    let last = files.len() - 1;
    let end = used_pages(&files[last].1) * PAGE;
    type Alter<'a> = &'a dyn Fn(&mut Files);
    let table: [(&str, Alter, &[&str], bool); 8] = [
        (
            "a frame of the first segment",
            &|files| flip(files, 0, PAGE + 80),
            &["log-0000000000000001"],
            false,
        ),
        (
            "frames of two segments",
            &|files| {
                flip(files, 0, PAGE + 80);
                flip(files, 1, PAGE + 80);
            },
            &["log-0000000000000001", "log-0000000000000002"],
            false,
        ),
        ("a first page", &|files| flip(files, 1, 20), &["log-0000000000000002"], false),
        ("a shorter file", &|files| files[1].1.truncate(PAGE * 2), &["log-0000000000000002"], false),
        ("a missing file", &|files| drop(files.remove(1)), &["log-0000000000000002"], false),
        ("the last frame, as a crash leaves it", &|files| flip(files, last, end - PAGE + 90), &[], true),
        (
            "the unused end of a full segment",
            &|files| {
                let at = files[0].1.len() - 8;
                flip(files, 0, at);
            },
            &["log-0000000000000001"],
            true,
        ),
        ("another log's first page", &|files| files[0].1[..PAGE].fill(0), &["log-0000000000000001"], false),
    ];
    for (what, alter, expected, opens) in table {
        let mut damaged = files.clone();
        alter(&mut damaged);
        let checked = checked(&damaged);
        let mut found: Vec<&str> = checked.damages.iter().map(|damage| damage.file.as_str()).collect();
        found.dedup();
        assert_eq!(found, expected, "{what}: {checked:?}");
        assert_eq!(checked.opens.is_ok(), opens, "{what}: {checked:?}");
        assert_eq!(checked.is_whole(), expected.is_empty(), "{what}");
        // What is behind the damage is looked at, too.
        assert!(checked.frames + 30 > whole.frames, "{what}: {checked:?}");
    }
}

#[test]
fn a_flipped_bit_of_any_page_of_frames_is_named_where_it_is() {
    let files = log(40);
    let mut random = Random(7);
    for (index, (name, bytes)) in files.iter().enumerate() {
        let pages = used_pages(bytes) - usize::from(index == files.len() - 1);
        for page in 0..pages.saturating_sub(4) {
            let bit = random.below(PAGE as u64 * 8) as usize;
            let at = page * PAGE + bit / 8;
            let mut damaged = files.clone();
            damaged[index].1[at] ^= 1 << (bit % 8);
            let checked = checked(&damaged);
            let named = checked.damages.iter().any(|damage| {
                let (from, to) = damage.bytes.unwrap_or((0, u64::MAX));
                damage.file == *name && (from..to).contains(&(at as u64))
            });
            assert!(named, "{name} byte {at}: {checked:?}");
        }
    }
}

#[test]
fn a_checkpoint_that_rots_is_named_though_a_start_passes_it_over() {
    let memory = Memory::new(1);
    let mut random = Random(3);
    let (mut log, opened) = Log::open_sized(memory.clone(), SMALL, random.entropy(), &mut |_| {}).unwrap();
    let mut state = State::default();
    let changes = vec![store::Change { list: 1, key: b"ann".to_vec(), row: Some(b"a row".to_vec()) }];
    apply(&mut state, changes.clone());
    let appended = log.append(opened.next_sequence, &changes).unwrap();
    let synced = log.sync(appended).unwrap();
    let mut checkpoints = log.checkpoints();
    checkpoints.begin(synced, rows(&state));
    while checkpoints.step().unwrap() == Some(Progress::More) {}
    drop(log);
    let whole = check(&mut memory.clone()).unwrap();
    assert!(whole.is_whole() && whole.checkpoints.len() == 1, "{whole:?}");
    let file = whole.checkpoints[0].file.clone();
    let mut bytes = memory.contents(&file).unwrap();
    bytes[PAGE + 100] ^= 4;
    memory.put(&file, bytes);
    let checked = check(&mut memory.clone()).unwrap();
    assert!(!checked.is_whole() && checked.opens.is_ok() && checked.damages[0].file == file, "{checked:?}");
}
