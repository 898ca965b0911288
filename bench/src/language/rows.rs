//! `row_bytes`: memory of a row of five ints with its key. Each kind of key is loaded by a process of its own, which is
//! this binary again.

use super::{app, input, settings, sizes};
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::machine::resident_bytes;
use crate::pairs::Contender;
use crate::{BenchError, Extent};
use engine::App;
use serde_json::json;
use std::process::Command;

const SOURCE: &str = "app rows

record Row { id: int, one: int, two: int, three: int, four: int }

state rows: list of Row by id

on load(keys: list of int) {
  for key in keys { rows add Row { id: key, one: key, two: key + 1, three: key + 2, four: key + 3 } }
}
on drop(keys: list of int) {
  for key in keys { remove rows[key] }
}

view size = count(rows)
view there(keys: list of int) = all(rows[key] is row and row.four == key + 3 for key in keys)
";
/// Rows of one event.
const BATCH: usize = 1_000;

const fn bar(of: &'static str, limit: f64) -> Bar {
    Bar { of, against: None, limit }
}

pub const ROW_BYTES: Declared = Declared {
    name: "row_bytes",
    unit: "bytes/row",
    better: Better::Lower,
    counter: true,
    bars: &[
        bar("ours_dense", 56.0),
        bar("ours_dense_refilled", 56.0),
        bar("ours_random", 72.0),
        bar("ours_random_refilled", 72.0),
    ],
};

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let names = ["dense", "dense_refilled", "random", "random_refilled"];
        Ok(names.into_iter().map(|keys| Box::new(Rows { keys, rows }) as Box<dyn Contender>).collect())
    };
    let settings = settings(&[("seed", json!(SEED)), ("rows_an_event", json!(BATCH))]);
    let sizes = sizes(extent, 2_000, 1_000_000, &[100_000]);
    super::measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings)
}

/// A process that loads rows and says what they take.
struct Rows {
    keys: &'static str,
    rows: usize,
}

impl Contender for Rows {
    fn name(&self) -> String {
        format!("ours_{}", self.keys)
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        Ok(alone(self.keys, self.rows)? / self.rows as f64)
    }
}

/// What a process that does this and nothing else counts.
pub fn alone(what: &str, size: usize) -> Result<f64, BenchError> {
    let failed = |why: String| BenchError::Process(format!("the process of `{what}` {why}"));
    let own = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(own).args(["alone", what, &size.to_string()]).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("failed: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map_err(|_| failed(format!("said `{said}`")))
}

/// Bytes that rows with such keys take.
pub fn bytes_of_rows(keys: &str, rows: usize) -> Result<u64, BenchError> {
    let (kind, refilled) = match keys.strip_suffix("_refilled") {
        Some(kind) => (kind, true),
        None => (keys, false),
    };
    let mut keys = Keys { dense: kind == "dense", given: 0, random: Random::new(4) };
    // What code, buffers and the allocator take by themselves is there before the first counted row.
    let mut first = app(SOURCE, "rows.weft")?;
    ask(&mut first, "load", &keys.next(BATCH))?;
    drop(first);
    keys.given = 0;
    let before = resident_bytes()?;
    let mut app = app(SOURCE, "rows.weft")?;
    let mut there = load(&mut app, &mut keys, rows)?;
    if refilled {
        Random::new(5).shuffle(&mut there);
        let removed = there.split_off(there.len() / 10);
        for batch in removed.chunks(BATCH) {
            ask(&mut app, "drop", batch)?;
        }
        there.extend(load(&mut app, &mut keys, removed.len())?);
    }
    // The keys kept here are not the rows'.
    let own = there.capacity() * size_of::<i64>();
    let after = resident_bytes()?;
    check(&app, &there)?;
    Ok(after.saturating_sub(before).saturating_sub(own as u64))
}

/// Keys that were not given before.
struct Keys {
    dense: bool,
    given: i64,
    random: Random,
}

impl Keys {
    fn next(&mut self, count: usize) -> Vec<i64> {
        let mut key = || {
            self.given += 1;
            // One in 2^64 twice: of millions none, by this seed.
            if self.dense { self.given } else { (self.random.next() >> 1) as i64 }
        };
        (0..count).map(|_| key()).collect()
    }
}

fn load(app: &mut App, keys: &mut Keys, rows: usize) -> Result<Vec<i64>, BenchError> {
    let mut there = Vec::with_capacity(rows);
    while there.len() < rows {
        let batch = keys.next(BATCH.min(rows - there.len()));
        ask(app, "load", &batch)?;
        there.extend(batch);
    }
    Ok(there)
}

fn ask(app: &mut App, name: &str, keys: &[i64]) -> Result<(), BenchError> {
    input(app, name, &json!({ "keys": keys }).to_string(), 1).map(drop)
}

fn check(app: &App, there: &[i64]) -> Result<(), BenchError> {
    let snapshot = app.snapshot();
    BenchError::unless("our list", there.len(), snapshot.view("size", &[], "local", 1)?)?;
    for batch in there.chunks(BATCH) {
        let query = [("keys".to_owned(), json!(batch).to_string())];
        BenchError::unless("our list", true, snapshot.view("there", &query, "local", 1)?)?;
    }
    Ok(())
}
