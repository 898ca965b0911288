//! `rows_1` to `rows_1000`: rows that are durable a second, by how many are in one batch.

use super::kept::{self, Keeps, PRAGMAS};
use super::rows::Model;
use super::scratch::Scratch;
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{measure, settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;
use std::rc::Rc;
use std::time::Instant;

/// Batches of a trial of ours and of a peer's, by the rows of a batch: long enough beside a sync, and ours at 256 and 1,000 rows
/// so many that each trial has a whole cycle of a checkpoint in it.
const TRIALS: &[(&str, usize, usize, usize)] = &[
    ("rows_1", 1, 2_000, 2_000),
    ("rows_16", 16, 2_000, 1_000),
    ("rows_256", 256, 1_200, 100),
    ("rows_1000", 1_000, 400, 40),
];
/// Batches of a trial in a short run.
const BATCHES_IN_SHORT: usize = 3;

const fn declared(name: &'static str, bars: &'static [Bar]) -> Declared {
    Declared { name, unit: "rows/s", better: Better::Higher, counter: false, bars }
}

const fn of(against: &'static str, limit: f64) -> Bar {
    Bar { of: "ours", against: Some(against), limit }
}

pub const ROWS_1: Declared = declared("rows_1", &[of("sqlite", 1.0), of("redb", 1.0)]);
pub const ROWS_16: Declared = declared("rows_16", &[of("sqlite", 2.0), of("redb", 2.0)]);
pub const ROWS_256: Declared = declared("rows_256", &[of("sqlite", 8.0), of("redb", 8.0)]);
pub const ROWS_1000: Declared = declared("rows_1000", &[of("sqlite", 8.0), of("redb", 8.0)]);

pub fn measure_rows(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let known = TRIALS.iter().find(|(name, ..)| *name == declared.name);
    let (_, in_one, ours, peers) = *known.unwrap_or(&TRIALS[0]);
    let batches = |who: &str| match (extent, who) {
        (Extent::Short, _) => BATCHES_IN_SHORT,
        (_, "ours") => ours,
        _ => peers,
    };
    let medium = Scratch::new()?.medium()?;
    let contenders = |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let scratch = Rc::new(Scratch::new()?);
        let contender = |who: &str| -> Result<Box<dyn Contender>, BenchError> {
            let kept = kept::load(who, &scratch.path(who), rows)?;
            let (model, batches) = (Model::new(rows), batches(who));
            Ok(Box::new(Writes { kept, model, in_one, batches, _scratch: Rc::clone(&scratch) }))
        };
        ["ours", "sqlite", "redb"].into_iter().map(contender).collect()
    };
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("medium", json!(medium)),
        ("rows_a_batch", json!(in_one)),
        ("batches_a_trial", json!({ "ours": batches("ours"), "peers": batches("peers") })),
        ("sqlite_pragmas", json!(PRAGMAS)),
    ]);
    let sizes = sizes(extent, 1_000, 100_000, &[10_000, 1_000_000]);
    measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings)
}

struct Writes {
    kept: Box<dyn Keeps>,
    model: Model,
    in_one: usize,
    batches: usize,
    /// Goes when the last contender does.
    _scratch: Rc<Scratch>,
}

impl Contender for Writes {
    fn name(&self) -> String {
        self.kept.name()
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let mut random = Random::new(1_000 + round as u64);
        let updates = self.model.updates(&mut random, self.in_one * self.batches);
        let prepared = self.kept.prepare(&updates, self.in_one);
        let started = Instant::now();
        self.kept.write(prepared)?;
        let elapsed = started.elapsed().as_secs_f64();
        kept::compare(&mut *self.kept, &self.model, &mut random)?;
        Ok(updates.len() as f64 / elapsed)
    }
}
