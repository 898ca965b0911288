//! What is saved of a damaged log is a state that it had, and as much of it as is whole without a gap.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Model, Random, SMALL, State, apply, open, rows};
use store::{Founded, Log, Memory, Progress, Salvaged, StoreError, found, read, salvage};

const PAGE: usize = 4096;

/// A log of two runs, and the state after each frame.
struct Logged {
    files: Vec<(String, Vec<u8>)>,
    states: Vec<State>,
}

fn logged(seed: u64, frames: u64, checkpoint_at: Option<u64>) -> Logged {
    let memory = Memory::new(seed);
    let mut random = Random(seed);
    let mut states = vec![State::new()];
    let mut model = Model::default();
    for _ in 0..2 {
        let (mut log, opened, _) = open(&memory, random.entropy()).unwrap();
        states.push(states.last().unwrap().clone());
        for sequence in opened.next_sequence..opened.next_sequence + frames {
            let changes = random.changes();
            let appended = log.append(sequence, &changes).unwrap();
            let synced = log.sync(appended).unwrap();
            let mut state = states.last().unwrap().clone();
            apply(&mut state, changes.clone());
            states.push(state);
            model.acknowledge(changes);
            if checkpoint_at == Some(sequence) {
                let mut checkpoints = log.checkpoints();
                checkpoints.begin(synced, rows(&model.acknowledged));
                while checkpoints.step().unwrap() == Some(Progress::More) {}
            }
        }
    }
    let mut names: Vec<String> = (1..100).map(|number| format!("log-{number:016x}")).collect();
    names.extend(checkpoint_at.map(|sequence| format!("checkpoint-{sequence:016x}")));
    let files = names.into_iter().filter_map(|name| memory.contents(&name).map(|bytes| (name, bytes)));
    Logged { files: files.collect(), states }
}

impl Logged {
    fn medium(&self) -> Memory {
        let memory = Memory::new(0);
        for (name, bytes) in &self.files {
            memory.put(name, bytes.clone());
        }
        memory
    }

    fn salvaged(&self, memory: &Memory) -> Result<Salvaged, StoreError> {
        let mut changes = Vec::new();
        let salvaged = salvage(&mut memory.clone(), &mut |change| changes.push(change))?;
        let mut state = State::new();
        apply(&mut state, changes);
        let kept = usize::try_from(salvaged.kept.sequence).unwrap();
        assert!(state == self.states[kept], "it is the state after frame {kept}");
        Ok(salvaged)
    }

    fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }
}

#[test]
fn a_log_that_is_whole_is_saved_whole() {
    for checkpoint_at in [None, Some(90)] {
        let logged = logged(3, 70, checkpoint_at);
        let salvaged = logged.salvaged(&logged.medium()).unwrap();
        assert!(salvaged.is_all() && salvaged.lost_changes.is_empty());
        assert_eq!((salvaged.kept.sequence, salvaged.kept.run), (logged.last(), 2));
        assert_eq!(salvaged.checkpoint.map(|checkpoint| checkpoint.sequence), checkpoint_at);
    }
}

#[test]
fn a_flipped_bit_in_the_middle_loses_what_comes_after_and_says_how_much() {
    let logged = logged(5, 60, None);
    let mut refused = 0;
    for (file, bytes) in &logged.files {
        for at in (0..bytes.len()).step_by(PAGE).map(|page| page + 40) {
            let memory = logged.medium();
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            memory.put(file, damaged);
            let is_refused = read(&mut memory.clone(), &mut |_| {}).is_err();
            let salvaged = match logged.salvaged(&memory) {
                Err(StoreError::NothingToSave) => {
                    assert!(at < PAGE && file.ends_with('1'), "{file} {at}: the beginning");
                    continue;
                }
                salvaged => salvaged.unwrap(),
            };
            if !is_refused {
                assert!(salvaged.is_all() || salvaged.kept.sequence + 1 == logged.last(), "{file} {at}");
                continue;
            }
            refused += 1;
            let lost = salvaged.founded.sequence - salvaged.kept.sequence;
            assert!(lost >= salvaged.lost_frames, "{file} {at}: {lost}");
            // With its first page a segment's secret is gone, and what is in it cannot be known.
            let known = (salvaged.founded.sequence, salvaged.founded.run);
            let is_known = if at < PAGE { known <= (logged.last(), 2) } else { known == (logged.last(), 2) };
            assert!(is_known, "{file} {at}: {known:?}");
            // A folder of it opens, and goes on in a run that nobody knows.
            let mut new = Memory::new(1);
            let state = &logged.states[usize::try_from(salvaged.kept.sequence).unwrap()];
            found(&mut new, [9; 32], salvaged.founded, rows(state)).unwrap();
            let (_, opened) = Log::open_sized(new, SMALL, [1; 32], &mut |_| {}).unwrap();
            assert_eq!((opened.run, opened.next_sequence), (known.1 + 1, known.0 + 2));
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn damage_before_a_checkpoint_loses_nothing_and_after_it_only_what_follows() {
    let logged = logged(7, 60, Some(80));
    for (file, bytes) in logged.files.iter().filter(|(file, _)| file.starts_with("log")) {
        for at in (PAGE..bytes.len()).step_by(PAGE) {
            let memory = logged.medium();
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            memory.put(file, damaged);
            let salvaged = logged.salvaged(&memory).unwrap();
            assert!(salvaged.kept.sequence >= 80, "{file} {at}");
        }
        let memory = logged.medium();
        memory.put(file, Vec::new());
        assert!(logged.salvaged(&memory).unwrap().kept.sequence >= 80, "without {file}");
    }
    // Without the checkpoint the log before it would be needed, and is gone.
    let memory = logged.medium();
    let (checkpoint, _) = logged.files.iter().find(|(file, _)| file.starts_with("checkpoint")).unwrap();
    memory.put(checkpoint, vec![0; 5000]);
    let kept = logged.salvaged(&memory).map(|salvaged| salvaged.kept);
    assert!(matches!(kept, Err(StoreError::NothingToSave) | Ok(Founded { run: 2, .. })), "{kept:?}");
}

#[test]
fn noise_is_nothing() {
    for bytes in [0, 1, PAGE, 20 * PAGE] {
        let mut random = Random(1);
        let memory = Memory::new(1);
        for file in ["log-0000000000000001", "checkpoint-0000000000000009"] {
            memory.put(file, (0..bytes).map(|_| random.next() as u8).collect());
        }
        assert!(matches!(salvage(&mut memory.clone(), &mut |_| {}), Err(StoreError::NothingToSave)));
    }
}
