//! Every operation, by index, failing in every way; full disks; and the caller's own mistakes.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Model, Random, SMALL, fill, open, rows};
use store::{
    Change, FRAME_BYTES_MAX, Fault, Founded, Log, Memory, Progress, Storage, StoreError, checkpoint_files,
    found, write_whole,
};

/// Frames of the workload: enough for three checkpoints, and segments that are used again.
const FRAMES: u64 = 100;

/// Opens, appends and syncs, opens again and appends, to the first error.
fn workload(memory: &Memory, seed: u64, model: &mut Model) -> Result<(), StoreError> {
    let mut random = Random(seed);
    for _ in 0..2 {
        let (mut log, opened, replayed) = open(memory, random.entropy())?;
        let mut checkpoints = log.checkpoints();
        model.opened(&opened, replayed);
        for sequence in opened.next_sequence..opened.next_sequence + FRAMES {
            let changes = random.changes();
            model.unknown = Some(changes.clone());
            let appended = log.append(sequence, &changes)?;
            let synced = log.sync(appended)?;
            model.unknown = None;
            model.acknowledge(changes);
            if !checkpoints.is_busy() && log.checkpoint_is_due() {
                checkpoints.begin(synced, rows(&model.acknowledged));
            }
            match checkpoints.step() {
                Ok(Some(Progress::Done(installed))) => log.checkpointed(installed),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[test]
fn each_operation_failing_in_each_way_loses_nothing_acknowledged() {
    for seed in 0..2 {
        let memory = Memory::new(seed);
        workload(&memory, seed, &mut Model::default()).unwrap();
        let operations = memory.operations();
        assert!(operations > 400, "{operations}");
        for fault in [Fault::InputOutput, Fault::Full, Fault::Kill, Fault::PowerCut] {
            for operation in 0..operations {
                let memory = Memory::new(seed ^ operation);
                let mut model = Model::default();
                memory.fail_at(operation, fault);
                // Not every failure is one of the log: removing what is left of a failed attempt may fail.
                let result = workload(&memory, seed, &mut model);
                if let Err(error) = &result {
                    let clear = matches!(
                        error,
                        StoreError::Io { .. } | StoreError::Failed { .. } | StoreError::NoRoom { .. }
                    );
                    assert!(clear, "{fault:?} at {operation}: {error}");
                }
                memory.restart();
                let (_, opened, replayed) = open(&memory, [1; 32])
                    .unwrap_or_else(|error| panic!("{fault:?} at {operation}: {error}"));
                model.opened(&opened, replayed);
            }
        }
    }
}

#[test]
fn a_failed_sync_whose_page_then_reads_clean_is_not_believed() {
    let mut lost = 0;
    for seed in 0..40 {
        let memory = Memory::new(seed);
        let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
        let mut random = Random(seed);
        let acknowledged = fill(&mut log, &opened, &mut random, 3);
        let sequence = opened.next_sequence + 3;
        let changes = random.changes();
        let appended = log.append(sequence, &changes).unwrap();
        memory.fail_at(memory.operations(), Fault::InputOutput);
        assert!(matches!(log.sync(appended), Err(StoreError::Failed { operation: "sync", .. })));
        drop(log);
        // The system's memory still answers with the frame; the medium may not have it.
        let (_, _, first) = open(&memory, [2; 32]).unwrap();
        memory.power_cut();
        memory.restart();
        let (_, _, second) = open(&memory, [3; 32]).unwrap();
        assert!(first == second, "seed {seed}: what was answered for did not last");
        lost += u64::from(first == acknowledged);
    }
    assert!((1..40).contains(&lost), "{lost} of 40 lost: the medium does not fail as it should");
}

#[test]
fn a_full_disk_harms_nothing_takes_what_fits_and_opens_again() {
    let memory = Memory::new(1);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    memory.set_room(SMALL.first + 100);
    let mut random = Random(1);
    let mut acknowledged = Vec::new();
    let mut sequence = opened.next_sequence;
    let refused = loop {
        let changes = random.changes();
        match log.append(sequence, &changes) {
            Ok(appended) => assert_eq!(log.sync(appended).unwrap().sequence(), sequence),
            Err(error) => {
                let message = error.to_string();
                assert!(matches!(error, StoreError::NoRoom { .. }) && !error.outcome_unknown(), "{message}");
                assert!(message.contains("log-0000000000000002 (131072 bytes)"), "{message}");
                break changes;
            }
        }
        acknowledged.extend(changes);
        sequence += 1;
    };
    drop(log);
    let mut run = 2;
    let out_of_room = loop {
        match open(&memory, [1; 32]) {
            Ok((_, opened, replayed)) => assert!(opened.run == run && replayed == acknowledged),
            Err(error) => break error,
        }
        run += 1;
    };
    assert!(run >= 2 + 16 && matches!(out_of_room, StoreError::NoRoom { .. }), "run {run}: {out_of_room}");
    memory.set_room(u64::MAX);
    // This start is the first frame of a new segment.
    let (mut log, opened, replayed) = open(&memory, [1; 32]).unwrap();
    assert!(
        opened.run == run && replayed == acknowledged && memory.contents("log-0000000000000002").is_some()
    );
    let appended = log.append(opened.next_sequence, &refused).unwrap();
    let _ = log.sync(appended).unwrap();
    acknowledged.extend(refused);
    assert!(open(&memory, [1; 32]).unwrap().2 == acknowledged);
}

#[test]
fn an_append_refused_for_room_may_be_tried_again() {
    let memory = Memory::new(1);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    let large = [Change { list: 1, key: vec![1], row: Some(vec![7; 200 << 10]) }];
    memory.set_room(SMALL.first);
    for _ in 0..2 {
        assert!(matches!(log.append(opened.next_sequence, &large), Err(StoreError::NoRoom { .. })));
    }
    memory.set_room(u64::MAX);
    let appended = log.append(opened.next_sequence, &large).unwrap();
    let _ = log.sync(appended).unwrap();
    assert_eq!(open(&memory, [2; 32]).unwrap().2, large);
}

#[test]
fn the_callers_mistakes_are_refused_and_harm_nothing() {
    let memory = Memory::new(1);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    let next = opened.next_sequence;
    assert!(matches!(
        log.append(next + 1, &[]),
        Err(StoreError::Sequence { expected, found }) if expected == next && found == next + 1
    ));
    let huge = [Change { list: 1, key: vec![], row: Some(vec![0; FRAME_BYTES_MAX]) }];
    assert!(matches!(log.append(next, &huge), Err(StoreError::TooLarge { .. })));
    let appended = log.append(next, &[]).unwrap();
    assert!(matches!(log.append(next + 1, &[]), Err(StoreError::Unsynced { sequence }) if sequence == next));
    assert_eq!(log.sync(appended).unwrap().sequence(), next);
}

#[test]
fn the_largest_frame_fits_into_the_smallest_log() {
    let memory = Memory::new(1);
    let (mut log, opened) = Log::open(memory.clone(), [1; 32], &mut |_| {}).unwrap();
    // 4 for the count, 8 + 4 + 1 + 4 for the row's frame.
    let row = vec![3; FRAME_BYTES_MAX - 21];
    let appended =
        log.append(opened.next_sequence, &[Change { list: 1, key: vec![], row: Some(row.clone()) }]).unwrap();
    let _ = log.sync(appended).unwrap();
    let mut found = Vec::new();
    Log::open(memory, [1; 32], &mut |change| found.push(change)).unwrap();
    assert!(found.len() == 1 && found[0].row.as_ref() == Some(&row));
}

#[test]
fn a_small_file_is_written_whole_or_not_at_all() {
    for fault in [Fault::InputOutput, Fault::Full, Fault::Kill, Fault::PowerCut] {
        for operation in 0..8 {
            for seed in 0..20 {
                let mut memory = Memory::new(seed);
                write_whole(&mut memory, "identity", b"the one before").unwrap();
                memory.fail_at(memory.operations() + operation, fault);
                let result = write_whole(&mut memory, "identity", b"the new one, a little longer");
                memory.power_cut();
                memory.restart();
                let mut bytes = vec![0; usize::try_from(memory.length("identity").unwrap()).unwrap()];
                memory.read("identity", 0, &mut bytes).unwrap();
                let new = bytes == b"the new one, a little longer";
                assert!(new || (result.is_err() && bytes == b"the one before"), "{fault:?} at {operation}");
                write_whole(&mut memory, "identity", b"again").unwrap();
            }
        }
    }
}

/// A disk that is full: nothing is begun that does not fit, the older checkpoint makes room for a new one of fewer rows,
/// and what that frees is used.
#[test]
fn on_a_full_disk_fewer_rows_have_room_for_a_checkpoint() {
    let memory = Memory::new(1);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    let mut checkpoints = log.checkpoints();
    let mut model = Model::default();
    let mut sequence = opened.next_sequence;
    let mut write = |log: &mut Log<Memory>, model: &mut Model, key: u8, row: Option<Vec<u8>>| {
        let changes = vec![Change { list: 1, key: vec![key], row }];
        let appended = log.append(sequence, &changes).unwrap();
        let synced = log.sync(appended).unwrap();
        model.acknowledge(changes);
        sequence += 1;
        synced
    };
    // Two checkpoints of ten rows.
    for round in 0..2 {
        let mut last = None;
        for key in 0..10 {
            last = Some(write(&mut log, &mut model, key, Some(vec![round; 20_000])));
        }
        checkpoints.begin(last.unwrap(), rows(&model.acknowledged));
        while checkpoints.step().unwrap().is_some_and(|progress| match progress {
            Progress::Done(installed) => {
                log.checkpointed(installed);
                false
            }
            Progress::More => true,
        }) {}
    }
    assert_eq!(checkpoint_files(&mut memory.clone()).unwrap().len(), 2);
    let used = memory.used();
    memory.set_room(used + 60_000);
    checkpoints.begin_spare(128 << 10);
    assert!(matches!(checkpoints.step(), Err(StoreError::NoRoom { .. })));
    assert_eq!(memory.used(), used, "nothing was written that does not fit");
    let mut last = None;
    for key in 1..10 {
        last = Some(write(&mut log, &mut model, key, None));
    }
    // The first attempt meets the full disk and gives up the older one, the second has its room.
    let mut attempts = 0;
    let installed = loop {
        checkpoints.begin(last.unwrap(), rows(&model.acknowledged));
        let result = loop {
            match checkpoints.step() {
                Ok(Some(Progress::Done(installed))) => break Ok(installed),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        match result {
            Ok(installed) => break installed,
            Err(error) => assert!(matches!(error, StoreError::NoRoom { .. }), "{error}"),
        }
        assert_eq!(checkpoint_files(&mut memory.clone()).unwrap().len(), 1, "the newest stays");
        attempts += 1;
        assert!(attempts < 3);
    };
    assert_eq!(attempts, 1);
    log.checkpointed(installed);
    let _ = write(&mut log, &mut model, 1, Some(vec![9; 100]));
    drop((log, checkpoints));
    let (_, opened, replayed) = open(&memory, [2; 32]).unwrap();
    model.opened(&opened, replayed);
}

/// A log that begins with rows goes on like any other; whatever ends the making of it, it is whole or refused.
#[test]
fn a_log_is_founded_on_rows_or_refused() {
    let state: model::State =
        (0..40u8).map(|key| ((u64::from(key % 3), vec![key]), vec![key; 900])).collect();
    let founded = Founded { sequence: 700, run: 9 };
    let memory = Memory::new(1);
    found(&mut memory.clone(), [3; 32], founded, rows(&state)).unwrap();
    let operations = memory.operations();
    let again = found(&mut memory.clone(), [4; 32], founded, rows(&state));
    assert!(matches!(again, Err(StoreError::Occupied { .. })), "{again:?}");
    let mut model = Model { acknowledged: state.clone(), unknown: None, run: 9 };
    let (mut log, opened, replayed) = open(&memory, [5; 32]).unwrap();
    assert_eq!((opened.run, opened.next_sequence), (10, 702));
    model.opened(&opened, replayed);
    let mut random = Random(1);
    fill(&mut log, &opened, &mut random, 3).into_iter().for_each(|change| model.acknowledge(vec![change]));
    model.opened(&open(&memory, [6; 32]).unwrap().1, open(&memory, [7; 32]).unwrap().2);
    for fault in [Fault::InputOutput, Fault::Full, Fault::Kill, Fault::PowerCut] {
        for operation in 0..operations {
            let memory = Memory::new(operation);
            memory.fail_at(operation, fault);
            let result = found(&mut memory.clone(), [3; 32], founded, rows(&state));
            memory.restart();
            match open(&memory, [5; 32]) {
                Ok((_, opened, replayed)) if !replayed.is_empty() => {
                    let mut model = Model { acknowledged: state.clone(), unknown: None, run: 9 };
                    model.opened(&opened, replayed);
                }
                Ok(_) => assert!(result.is_err(), "{fault:?} at {operation}: nothing is there"),
                Err(error) => assert!(
                    result.is_err() && matches!(error, StoreError::Missing { .. }),
                    "{fault:?} at {operation}: {error}"
                ),
            }
        }
    }
}
