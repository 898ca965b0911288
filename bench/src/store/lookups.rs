//! `lookup_p999`: finding a row by its key in the newest snapshot, while somebody else writes.

use super::commits::Latencies;
use super::kept::{self, Keeps, OurRows, Redb, fields_of};
use super::ours::NOW;
use super::rows::{FIELDS, Model, fields};
use super::scratch::Scratch;
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{measure, settings, sizes};
use crate::{BenchError, Extent};
use node::board::Board;
use serde_json::json;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const LOOKUP_P999: Declared = Declared {
    name: "lookup_p999",
    unit: "µs",
    better: Better::Lower,
    counter: false,
    bars: &[Bar { of: "ours", against: Some("redb"), limit: 0.3 }],
};

/// Rows of a batch that is written meanwhile.
const IN_ONE: usize = 256;
/// Batches a second, the same for all, planned before the start: less than the slowest can.
const BATCHES_A_SECOND: usize = 40;
/// Lookups of a trial: a p99.9 is of a million.
const LOOKUPS: usize = 1_000_000;
const LOOKUPS_IN_SHORT: usize = 1_000;
/// One in so many is compared with what its row may hold, after the clock has stopped for it.
const COMPARED_ONE_IN: usize = 1_000;

pub fn measure_lookups(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let medium = Scratch::new()?.medium()?;
    let lookups = if extent == Extent::Short { LOOKUPS_IN_SHORT } else { LOOKUPS };
    let contenders = |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let scratch = Rc::new(Scratch::new()?);
        let (model, held) = (Model::new(rows), Rc::clone(&scratch));
        let kept = OurRows::load(&scratch.path("ours"), rows)?;
        let ours = OurLookups { kept, model: model.clone(), lookups, _scratch: held };
        let kept = Redb::load(&scratch.path("redb"), rows)?;
        Ok(vec![Box::new(ours), Box::new(RedbLookups { kept, model, lookups, _scratch: scratch })])
    };
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("medium", json!(medium)),
        ("lookups_a_trial", json!(lookups)),
        ("rows_a_batch", json!(IN_ONE)),
        ("batches_a_second", json!(BATCHES_A_SECOND)),
    ]);
    let sizes = sizes(extent, 1_000, 100_000, &[10_000, 1_000_000]);
    measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings)
}

struct OurLookups {
    kept: OurRows,
    model: Model,
    lookups: usize,
    _scratch: Rc<Scratch>,
}

struct RedbLookups {
    kept: Redb,
    model: Model,
    lookups: usize,
    _scratch: Rc<Scratch>,
}

impl Contender for OurLookups {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let board = self.kept.0.board();
        let keys = keys(self.model.rows(), self.lookups, round);
        let prepare = |key: usize| [("id".to_owned(), key.to_string())];
        let look_up = move |query: &[(String, String); 1]| {
            let view = our_row(&board, query)?;
            Ok(move || fields_of(&view))
        };
        beside_writes(&mut self.kept, &mut self.model, round, keys, (prepare, look_up))
    }
}

fn our_row(board: &Board, query: &[(String, String)]) -> Result<String, BenchError> {
    let none = || BenchError::Process("nothing is published".into());
    // It is looked at all the time, so it is published with each frame.
    let snapshot: Arc<engine::Snapshot> = board.snapshot("rows").ok_or_else(none)?;
    Ok(snapshot.view("row", query, "local", NOW)?)
}

impl Contender for RedbLookups {
    fn name(&self) -> String {
        self.kept.name()
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let keys = keys(self.model.rows(), self.lookups, round);
        let database = self.kept.database();
        let look_up = move |key: &usize| {
            let row = Redb::look_up(&database, *key)?;
            Ok(move || row)
        };
        beside_writes(&mut self.kept, &mut self.model, round, keys, (|key| key, look_up))
    }
}

fn keys(rows: usize, count: usize, round: usize) -> Vec<usize> {
    let mut random = Random::new(3_000 + round as u64);
    (0..count).map(|_| random.below(rows as u64) as usize).collect()
}

/// Looks up all keys in a thread of its own while this one writes batches as planned; microseconds of the p99.9. A key is made what
/// is asked before the clock starts; what a lookup gives reads the row, for those that are compared.
fn beside_writes<Q, R: FnOnce() -> Option<[i64; FIELDS]>>(
    kept: &mut dyn Keeps,
    model: &mut Model,
    round: usize,
    keys: Vec<usize>,
    (prepare, look_up): (impl Fn(usize) -> Q + Send, impl Fn(&Q) -> Result<R, BenchError> + Send),
) -> Result<f64, BenchError> {
    let done = AtomicBool::new(false);
    // Rows of batches that are written meanwhile have one of these: as they are now, or as often written more as there is time.
    let before = model.clone();
    let latencies = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let read = read(&before, &keys, (prepare, look_up));
            done.store(true, Ordering::Relaxed);
            read
        });
        let written = write_as_planned(kept, model, round, &done);
        let read = reader.join().unwrap_or_else(|_| Err(BenchError::Process("the reader ended".into())));
        written.and(read)
    })?;
    kept::compare(kept, model, &mut Random::new(4_000 + round as u64))?;
    Ok(Latencies::of(latencies).p999)
}

/// Writes of one row during one trial, at most.
const VERSIONS_MAX: u64 = 1_000;

fn read<Q, R: FnOnce() -> Option<[i64; FIELDS]>>(
    before: &Model,
    keys: &[usize],
    (prepare, look_up): (impl Fn(usize) -> Q, impl Fn(&Q) -> Result<R, BenchError>),
) -> Result<Vec<f64>, BenchError> {
    let mut microseconds = Vec::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        let asked = prepare(*key);
        let started = Instant::now();
        let row = look_up(&asked)?;
        microseconds.push(started.elapsed().as_secs_f64() * 1e6);
        if at.is_multiple_of(COMPARED_ONE_IN) {
            let (first, found) = (before.version(*key), row());
            if !(first..first + VERSIONS_MAX).any(|version| Some(fields(*key, version)) == found) {
                let expected = format!("a row {key} that was written");
                return Err(BenchError::Wrong {
                    who: "a lookup".into(),
                    expected,
                    found: format!("{found:?}"),
                });
            }
        }
    }
    Ok(microseconds)
}

fn write_as_planned(
    kept: &mut dyn Keeps,
    model: &mut Model,
    round: usize,
    done: &AtomicBool,
) -> Result<(), BenchError> {
    let mut random = Random::new(5_000 + round as u64);
    let begun = Instant::now();
    for batch in 1.. {
        let updates = model.updates(&mut random, IN_ONE);
        kept.write(kept.prepare(&updates, IN_ONE))?;
        if done.load(Ordering::Relaxed) {
            break;
        }
        let next = begun + Duration::from_secs(1) * batch / BATCHES_A_SECOND as u32;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}
