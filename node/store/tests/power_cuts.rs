//! Power cuts and kills at any operation, also during recovery, beside a model of what was acknowledged.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod model;

use model::{Model, Random, open};
use store::{Fault, Memory, StoreError};

const SEEDS: u64 = 700;
const LIVES: u64 = 8;

/// Names the seed of a run that panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

#[derive(Default, Debug)]
struct Reached {
    power_cuts: u64,
    kills: u64,
    failed_operations: u64,
    while_opening: u64,
    tails_cut: u64,
    unknown_kept: u64,
    unknown_lost: u64,
    acknowledged: u64,
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_else_appears() {
    let mut reached = Reached::default();
    for seed in 0..SEEDS {
        let seed = Seed(seed);
        live_and_die(seed.0, &mut reached);
    }
    eprintln!("{reached:?}");
    let Reached {
        power_cuts,
        kills,
        failed_operations,
        while_opening,
        tails_cut,
        unknown_kept,
        unknown_lost,
        acknowledged,
    } = reached;
    assert!(power_cuts > 2000, "{power_cuts} power cuts");
    for (count, what) in [
        (kills, "kills"),
        (failed_operations, "failed operations"),
        (while_opening, "faults while opening"),
        (tails_cut, "torn tails"),
        (unknown_kept, "unknown frames kept"),
        (unknown_lost, "unknown frames lost"),
        (acknowledged, "frames acknowledged"),
    ] {
        assert!(count > 50, "only {count} {what}: the test does not test");
    }
}

fn live_and_die(seed: u64, reached: &mut Reached) {
    let mut random = Random(seed);
    let memory = Memory::new(random.next());
    let mut model = Model::default();
    for _ in 0..LIVES {
        let fault = match random.below(8) {
            0..=4 => Fault::PowerCut,
            5 | 6 => Fault::Kill,
            _ => Fault::InputOutput,
        };
        // Opening takes some ten operations; half the faults fall into it, so that recovery is cut too.
        let ahead = if random.below(2) == 0 { random.below(14) } else { random.below(80) };
        memory.fail_at(memory.operations() + ahead, fault);
        live(&memory, &mut model, &mut random, reached);
        match fault {
            Fault::PowerCut => reached.power_cuts += 1,
            Fault::Kill => reached.kills += 1,
            Fault::InputOutput | Fault::Full => {
                reached.failed_operations += 1;
                // A disk that fails is often a disk that is then cut off.
                if random.below(2) == 0 {
                    memory.power_cut();
                }
            }
        }
        memory.restart();
    }
    let (_, opened, replayed) = open(&memory, random.entropy()).unwrap();
    model.opened(&opened, replayed);
}

/// One process on the medium, until the fault ends it.
fn live(memory: &Memory, model: &mut Model, random: &mut Random, reached: &mut Reached) {
    let had_unknown = model.unknown.is_some();
    let (mut log, opened, replayed) = match open(memory, random.entropy()) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(matches!(error, StoreError::Io { .. } | StoreError::Failed { .. }), "{error}");
            reached.while_opening += 1;
            return;
        }
    };
    reached.tails_cut += u64::from(opened.cut.is_some());
    let kept = model.opened(&opened, replayed);
    reached.unknown_kept += u64::from(kept);
    reached.unknown_lost += u64::from(had_unknown && !kept);
    let mut sequence = opened.next_sequence;
    loop {
        let changes = random.changes();
        let result = log.append(sequence, &changes).and_then(|appended| log.sync(appended));
        match result {
            Ok(synced) => {
                assert_eq!(synced.sequence(), sequence);
                model.acknowledged.extend(changes);
                reached.acknowledged += 1;
                sequence += 1;
            }
            Err(error) => {
                assert!(error.outcome_unknown(), "{error}");
                model.unknown = Some(changes);
                let again = log.append(sequence, &[]);
                assert!(matches!(again, Err(StoreError::Poisoned)), "a failed log takes nothing more");
                return;
            }
        }
    }
}
