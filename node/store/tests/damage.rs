//! Damage: found and named, or (in the last frame alone) cut; never accepted in silence, never a panic.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Random, fill, open};
use store::{Change, Fault, Memory, StoreError};

const PAGE: usize = 4096;

fn segment(number: u64) -> String {
    format!("log-{number:016x}")
}

type Files = Vec<(String, Vec<u8>)>;

/// A log of some segments, what it holds, and its files.
fn log(seed: u64, frames: u64) -> (Vec<Change>, Files) {
    let memory = Memory::new(seed);
    let mut random = Random(seed);
    let (mut log, opened, _) = open(&memory, random.entropy()).unwrap();
    let all = fill(&mut log, &opened, &mut random, frames);
    let files =
        (1..).map(segment).map_while(|name| memory.contents(&name).map(|bytes| (name, bytes))).collect();
    (all, files)
}

fn medium(files: &[(String, Vec<u8>)]) -> Memory {
    let memory = Memory::new(0);
    for (name, bytes) in files {
        memory.put(name, bytes.clone());
    }
    memory
}

/// The offset of the last page that is not zero.
fn last_page(bytes: &[u8]) -> usize {
    bytes.chunks(PAGE).rposition(|page| page.iter().any(|byte| *byte != 0)).unwrap() * PAGE
}

#[test]
fn a_flipped_bit_anywhere_is_named_or_cut_or_in_no_frame() {
    let (all, files) = log(5, 40);
    assert!(files.len() >= 3, "{} segments", files.len());
    let mut random = Random(5);
    let (mut named, mut cut, mut unused) = (0, 0, 0);
    // Every page is tried, at random bits and in its header's fields.
    for (index, (name, bytes)) in files.iter().enumerate() {
        for page in 0..bytes.len() / PAGE {
            for attempt in 0..6 {
                let bit = if attempt < 3 { random.below(72 * 8) } else { random.below(PAGE as u64 * 8) };
                let at = page * PAGE + bit as usize / 8;
                let mut damaged = files.clone();
                damaged[index].1[at] ^= 1 << (bit % 8);
                let memory = medium(&damaged);
                match open(&memory, [1; 32]) {
                    Err(StoreError::Corrupt { file, offset, end, .. }) => {
                        assert!(
                            file == *name && offset as usize <= at && at < end as usize,
                            "{file} {offset} {end} {at}"
                        );
                        assert!(
                            medium(&damaged).contents(name) == memory.contents(name),
                            "changed while refusing"
                        );
                        named += 1;
                    }
                    Err(error) => panic!("{name} byte {at}: {error}"),
                    Ok((_, opened, replayed)) if replayed == all => {
                        let found = opened.cut.into_iter().chain(opened.mended).next().unwrap();
                        assert!(
                            found.file == *name
                                && (found.offset..found.offset + found.bytes).contains(&(at as u64))
                        );
                        unused += 1;
                    }
                    Ok((_, opened, replayed)) => {
                        // The last frame: a torn one looks the same.
                        assert!(index == files.len() - 1 && all.starts_with(&replayed));
                        let found = opened.cut.unwrap();
                        assert!((found.offset..found.offset + found.bytes).contains(&(at as u64)));
                        assert!(last_page(bytes) as u64 + PAGE as u64 - found.offset <= 4 * PAGE as u64);
                        cut += 1;
                    }
                }
            }
        }
    }
    assert!(named > 100 && cut > 0 && unused > 20, "{named} named, {cut} cut, {unused} unused");
}

#[test]
fn a_page_lost_or_exchanged_in_the_middle_is_refused() {
    let (_, files) = log(6, 40);
    let (name, bytes) = &files[0];
    for page in 0..10 {
        for (what, other) in [
            ("zeros", vec![0; PAGE]),
            ("its neighbour", bytes[(page + 1) * PAGE..(page + 2) * PAGE].to_vec()),
        ] {
            let mut damaged = files.clone();
            let place = &mut damaged[0].1[page * PAGE..(page + 1) * PAGE];
            if place == other {
                // Two pages of one row may be alike.
                continue;
            }
            place.copy_from_slice(&other);
            let error = open(&medium(&damaged), [1; 32]).map(|_| ()).unwrap_err();
            assert!(
                matches!(&error, StoreError::Corrupt { file, .. } if file == name),
                "page {page} {what}: {error}"
            );
        }
    }
}

/// Rot in a frame, and the frame after it torn by a crash: the header of the later one alone tells that the first was
/// synced.
#[test]
fn a_damaged_frame_before_a_torn_one_is_not_cut() {
    let memory = Memory::new(3);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    for (sequence, pages) in (opened.next_sequence..).zip([1, 1, 4]) {
        let appended = log
            .append(sequence, &[Change { list: 1, key: vec![1], row: Some(vec![9; pages * 4000]) }])
            .unwrap();
        let _ = log.sync(appended).unwrap();
    }
    let mut bytes = memory.contents(&segment(1)).unwrap();
    let last = last_page(&bytes);
    bytes[last..last + PAGE].fill(0);
    let torn = medium(&[(segment(1), bytes.clone())]);
    assert_eq!(open(&torn, [1; 32]).unwrap().1.cut.unwrap().offset, 4 * PAGE as u64);
    bytes[3 * PAGE + 100] ^= 1;
    let error = open(&medium(&[(segment(1), bytes)]), [1; 32]).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { offset, .. } if offset == 3 * PAGE as u64), "{error}");
}

#[test]
fn stale_frames_of_a_cut_tail_never_come_back() {
    for seed in 0..60 {
        let memory = Memory::new(seed);
        let mut random = Random(seed);
        let (mut log, opened, _) = open(&memory, random.entropy()).unwrap();
        let mut all = fill(&mut log, &opened, &mut random, 1);
        // A frame of several pages, torn.
        let large = [Change { list: 1, key: vec![1], row: Some(vec![5; 6 * PAGE]) }];
        memory.fail_at(memory.operations() + 1, Fault::PowerCut);
        let appended = log.append(opened.next_sequence + 1, &large).unwrap();
        assert!(log.sync(appended).is_err());
        memory.restart();
        let (mut log, opened, replayed) = open(&memory, random.entropy()).unwrap();
        if opened.cut.is_none() {
            continue;
        }
        assert!(replayed == all);
        let bytes = memory.contents(&segment(1)).unwrap();
        let start = usize::try_from(opened.cut.as_ref().unwrap().offset).unwrap();
        assert!(
            bytes[start + PAGE..].iter().all(|byte| *byte == 0),
            "the start frame stands before zeros alone"
        );
        all.extend(fill(&mut log, &opened, &mut random, 1));
        assert!(open(&memory, random.entropy()).unwrap().2 == all);
    }
}

/// A segment file used again: its old frames have right hashes, by another secret.
#[test]
fn frames_of_an_older_use_of_a_segment_are_nothing() {
    let (_, old) = log(7, 4);
    let memory = Memory::new(1);
    let (mut log, opened, _) = open(&memory, [9; 32]).unwrap();
    let all = fill(&mut log, &opened, &mut Random(1), 1);
    let mut bytes = memory.contents(&segment(1)).unwrap();
    let end = last_page(&bytes) + PAGE;
    let (_, stale) = &old[0];
    bytes[end..].copy_from_slice(&stale[end..]);
    let memory = medium(&[(segment(1), bytes)]);
    let (_, opened, replayed) = open(&memory, [1; 32]).unwrap();
    assert!(replayed == all && opened.cut.is_some());
}

/// An app stores a copy of the log, aligned so that its pages fall on boundaries, and the frame that holds it is torn.
#[test]
fn frames_faked_inside_an_apps_bytes_are_nothing() {
    let memory = Memory::new(1);
    let (mut log, opened, _) = open(&memory, [9; 32]).unwrap();
    let all = vec![Change { list: 1, key: vec![1], row: Some(vec![1; 100]) }];
    let appended = log.append(opened.next_sequence, &all).unwrap();
    let _ = log.sync(appended).unwrap();
    let copy = memory.contents(&segment(1)).unwrap();
    let end = last_page(&copy) + PAGE;
    // Header 72, head 1, list 1, key 0, row length 2.
    let mut row = vec![0; PAGE - 76];
    row.extend_from_slice(&copy[PAGE..end]);
    let appended =
        log.append(opened.next_sequence + 1, &[Change { list: 1, key: vec![], row: Some(row) }]).unwrap();
    let _ = log.sync(appended).unwrap();
    let mut bytes = memory.contents(&segment(1)).unwrap();
    assert!(bytes[end + PAGE..end + 2 * PAGE] == copy[PAGE..2 * PAGE], "the copy stands on a boundary");
    bytes[end..end + PAGE].fill(0);
    let (_, opened, replayed) = open(&medium(&[(segment(1), bytes)]), [1; 32]).unwrap();
    assert!(replayed == all);
    assert_eq!(opened.cut.unwrap().offset, end as u64);
}

#[test]
fn missing_foreign_short_and_newer_segments_are_refused_by_name() {
    let (_, files) = log(8, 40);
    let (_, other) = log(9, 40);
    let check = |change: &dyn Fn(&mut Files), expected: &str| {
        let mut files = files.clone();
        change(&mut files);
        let memory = medium(&files);
        let error = open(&memory, [1; 32]).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        for (name, bytes) in files {
            assert!(memory.contents(&name).unwrap() == bytes, "{name} was changed");
        }
    };
    check(
        &|files| drop(files.remove(0)),
        "what comes before log-0000000000000002, log or checkpoint, is missing",
    );
    check(&|files| drop(files.remove(1)), "log-0000000000000002 is missing");
    check(&|files| files[1].1.clone_from(&other[1].1), "log-0000000000000002 belongs to another log");
    check(&|files| files[1].1.truncate(70_000), "log-0000000000000002 is damaged from byte 0 to byte 131072");
    check(&|files| files[1].1.clear(), "log-0000000000000002 is damaged from byte 0 to byte 0");
    check(
        &|files| files[1].1 = files[0].1.clone(),
        "log-0000000000000002 is damaged from byte 0 to byte 4096",
    );
    check(
        &|files| {
            let page = &mut files[0].1[..PAGE];
            page[8] = 3;
            let hash = xxhash_rust::xxh3::xxh3_128(&page[..PAGE - 16]).to_le_bytes();
            page[PAGE - 16..].copy_from_slice(&hash);
        },
        "log-0000000000000001 has format 3; this program knows formats up to 2",
    );
}

/// The last segment's file is gone: nothing in the folder can tell. It stands here so that the document stays true.
#[test]
fn a_lost_last_segment_cannot_be_told() {
    let (all, mut files) = log(8, 40);
    files.pop();
    let (_, opened, replayed) = open(&medium(&files), [1; 32]).unwrap();
    assert!(all.starts_with(&replayed) && replayed.len() < all.len() && opened.cut.is_none());
}

#[test]
fn noise_for_a_segment_is_refused_without_a_panic() {
    let mut random = Random(4);
    for length in [0, 1, 4095, 4096, 4097, 131_072] {
        let noise = (0..length).map(|_| random.next().to_le_bytes()[0]).collect();
        let error = open(&medium(&[(segment(1), noise)]), [1; 32]).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}
