//! `cp -r` of the folder of a log that is written meanwhile: the copy is a state that the log had, or it is refused; never another
//! state, never a panic.
#![allow(clippy::unwrap_used)]

mod model;

use model::{Model, Random, State, apply, open, rows};
use std::collections::BTreeMap;
use store::{Checkpoints, Log, Memory, Progress, Storage, Synced};

const SEEDS: u64 = 400;
/// What a copier reads at once.
const READ_BYTES: usize = 32 << 10;

/// A log with its checkpoints, and all states that it had.
struct Written {
    memory: Memory,
    log: Log<Memory>,
    checkpoints: Checkpoints<Memory>,
    sequence: u64,
    synced: Synced,
    model: Model,
    history: Vec<State>,
    random: Random,
}

impl Written {
    fn new(seed: u64) -> Written {
        let (memory, mut random) = (Memory::new(seed), Random(seed));
        let (log, opened, _) = open(&memory, random.entropy()).unwrap();
        let (checkpoints, sequence, synced) = (log.checkpoints(), opened.next_sequence, opened.synced);
        let (model, history) = (Model::default(), vec![State::new()]);
        let mut written = Written { memory, log, checkpoints, sequence, synced, model, history, random };
        let frames = 50 + written.random.below(400);
        (0..frames).for_each(|_| written.go_on());
        written
    }

    /// A frame, and a step of a checkpoint.
    fn go_on(&mut self) {
        let changes = self.random.changes();
        let appended = self.log.append(self.sequence, &changes).unwrap();
        self.synced = self.log.sync(appended).unwrap();
        self.sequence += 1;
        self.model.acknowledge(changes);
        self.history.push(self.model.acknowledged.clone());
        if self.log.checkpoint_is_due() && !self.checkpoints.is_busy() {
            self.checkpoints.begin(self.synced, rows(&self.model.acknowledged));
        }
        if let Some(Progress::Done(installed)) = self.checkpoints.step().unwrap() {
            self.log.checkpointed(installed);
        }
    }

    /// The files as somebody reads them one after the other while the log goes on. What got another name meanwhile is missed.
    fn copied(&mut self) -> Memory {
        let mut names = self.memory.list().unwrap();
        names.sort();
        if self.random.below(2) == 0 {
            names.reverse();
        }
        let copy = Memory::new(1);
        for name in names {
            let mut bytes = Vec::new();
            while let Some(now) = self.memory.contents(&name) {
                let from = bytes.len();
                bytes.extend(now.into_iter().skip(from).take(READ_BYTES));
                if bytes.len() == from {
                    break;
                }
                (0..self.random.below(3)).for_each(|_| self.go_on());
            }
            copy.put(&name, bytes);
        }
        copy
    }
}

#[test]
fn a_copy_of_a_folder_that_is_written_is_a_state_that_it_had_or_is_refused() {
    let mut came_to: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut written = Written::new(seed);
        let copy = written.copied();
        let what = match open(&copy, [9; 32]) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                "refused"
            }
            Ok((_, _, replayed)) => {
                let mut state = State::new();
                apply(&mut state, replayed);
                assert!(written.history.contains(&state), "seed {seed}: a state that never was");
                "a state that it had"
            }
        };
        *came_to.entry(what).or_default() += 1;
    }
    for what in ["refused", "a state that it had"] {
        assert!(came_to.get(what).is_some_and(|times| *times > SEEDS / 20), "{came_to:?}");
    }
}
