//! `device_bytes_256`, `device_bytes_256_1m`: bytes written to the disk for a byte of a row. `transient_saving`: what an app writes
//! whose hot list is transient.

use super::alone;
use super::kept::{self, Keeps, OurRows};
use super::ours::Ours;
use super::parts::parts;
use super::rows::{Model, ROW_BYTES};
use super::scratch::{Scratch, Written};
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{measure, settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;
use std::path::Path;

/// Rows of a batch.
const IN_ONE: usize = 256;
/// Checkpoints that are made while ours is counted, from the end of one to the end of the last: what they cost is in it wholly.
const CHECKPOINTS: usize = 3;
/// Those before: by then the log goes on in segments that were used before.
const CHECKPOINTS_BEFORE: usize = 3;
/// Batches of a peer that are counted, and as many before: each is like the others.
const BATCHES_OF_PEERS: usize = 1_000;
const BATCHES_OF_PEERS_IN_SHORT: usize = 4;

const DECLARED: Declared = Declared {
    name: "device_bytes_256",
    unit: "bytes/byte",
    better: Better::Lower,
    counter: true,
    bars: &[
        Bar { of: "ours", against: None, limit: 2.5 },
        Bar { of: "ours_disk", against: None, limit: 2.5 },
    ],
};
pub const DEVICE_BYTES_256: Declared = DECLARED;
pub const DEVICE_BYTES_256_1M: Declared = Declared { name: "device_bytes_256_1m", ..DECLARED };

pub fn measure_device(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let medium = Scratch::new()?.medium()?;
    let short = if extent == Extent::Short { "short" } else { "whole" };
    let contenders = |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let of = |who: &'static str, names: [&str; 2]| {
            parts(&names, move |_| {
                let scratch = Scratch::new()?;
                let folder = scratch.path(who).display().to_string();
                alone::numbers(&["store-device", who, &folder, &rows.to_string(), short])
            })
        };
        let ours = of("ours", ["ours", "ours_disk"]);
        let sqlite = of("sqlite", [&format!("sqlite {}", rusqlite::version()), "sqlite_disk"]);
        Ok([ours, sqlite, of("redb", [kept::REDB, "redb_disk"])].into_iter().flatten().collect())
    };
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("medium", json!(medium)),
        ("rows_a_batch", json!(IN_ONE)),
        ("our_checkpoints", json!(CHECKPOINTS)),
        ("batches_of_peers", json!(BATCHES_OF_PEERS)),
        ("sqlite_pragmas", json!(kept::PRAGMAS)),
    ]);
    let sizes = match declared.name {
        "device_bytes_256" => sizes(extent, 1_000, 100_000, &[10_000]),
        _ => sizes(extent, 1_000, 1_000_000, &[]),
    };
    measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings)
}

/// Bytes that a contender writes for a byte of a row: as this process hands them to the system, and as the disk counts what everybody wrote
/// meanwhile.
pub fn written(who: &str, path: &Path, rows: usize, short: bool) -> Result<Vec<f64>, BenchError> {
    let folder = path.parent().unwrap_or(path);
    let mut model = Model::new(rows);
    let mut random = Random::new(2_000);
    let (count, written) = match who {
        "ours" => {
            let mut ours = OurRows::load(path, rows)?;
            let (before, checkpoints) = if short { (0, 0) } else { (CHECKPOINTS_BEFORE, CHECKPOINTS) };
            let first = ours.0.checkpoints() + before;
            write_until(&mut ours, &mut model, &mut random, first)?;
            let before = Written::now(folder)?;
            let count = write_until(&mut ours, &mut model, &mut random, first + checkpoints)?;
            let written = Written::now(folder)?.since(before);
            kept::compare(&mut ours, &model, &mut random)?;
            (count, written)
        }
        _ => {
            let mut peer = kept::load(who, path, rows)?;
            let batches = if short { BATCHES_OF_PEERS_IN_SHORT } else { BATCHES_OF_PEERS };
            write(&mut *peer, &mut model, &mut random, batches)?;
            let before = Written::now(folder)?;
            write(&mut *peer, &mut model, &mut random, batches)?;
            let written = Written::now(folder)?.since(before);
            kept::compare(&mut *peer, &model, &mut random)?;
            (batches * IN_ONE, written)
        }
    };
    let bytes = (count as u64 * ROW_BYTES) as f64;
    // A disk that does not count says what the system says.
    let disk = written.disk.unwrap_or(written.process);
    Ok(vec![written.process as f64 / bytes, disk as f64 / bytes])
}

/// Batches written between two looks at how many checkpoints there are.
const AT_ONCE: usize = 20;

/// Writes until so many checkpoints were finished; how many rows.
fn write_until(
    ours: &mut OurRows,
    model: &mut Model,
    random: &mut Random,
    checkpoints: usize,
) -> Result<usize, BenchError> {
    let mut count = 0;
    loop {
        write(ours, model, random, AT_ONCE)?;
        count += AT_ONCE * IN_ONE;
        if ours.0.checkpoints() >= checkpoints {
            return Ok(count);
        }
    }
}

fn write(
    kept: &mut dyn Keeps,
    model: &mut Model,
    random: &mut Random,
    batches: usize,
) -> Result<(), BenchError> {
    let updates = model.updates(random, IN_ONE * batches);
    let prepared = kept.prepare(&updates, IN_ONE);
    kept.write(prepared)
}

pub const TRANSIENT_SAVING: Declared = Declared {
    name: "transient_saving",
    unit: "bytes/event",
    better: Better::Lower,
    counter: true,
    bars: &[],
};

/// Sensors of the machine, each read once a second.
const SENSORS: usize = 10;
/// Seconds of a trial: an hour.
const SECONDS: usize = 3_600;
const SECONDS_IN_SHORT: usize = 60;

/// The machine's app; its hot list is what a `{}` says.
const MACHINE: &str = "app machine

record Reading { sensor: int, value: int, sum: int, count: int, at: time }
record Minute { id: int, sensor: int, mean: int, at: time }

{}state latest: list of Reading by sensor
state minutes: list of Minute by id

on read(sensor: int, value: int) {
  if not sensor in latest { latest add Reading { sensor, value, sum: 0, count: 0, at: now } }
  let reading = latest[sensor] else refuse \"never\"
  reading.value = value
  reading.at = now
  reading.sum += value
  reading.count += 1
  if reading.count == 60 {
    minutes add Minute { id: next_id(minutes), sensor, mean: reading.sum / 60, at: now }
    reading.sum = 0
    reading.count = 0
  }
}

view kept = count(minutes)
";

pub fn measure_transient(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let medium = Scratch::new()?.medium()?;
    let contenders = |seconds: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let of = |kind: &'static str, names: [&str; 2]| {
            parts(&names, move |_| {
                let scratch = Scratch::new()?;
                let folder = scratch.path(kind).display().to_string();
                alone::numbers(&["store-transient", kind, &folder, &seconds.to_string()])
            })
        };
        let transient = of("transient", ["ours", "ours_disk"]);
        Ok([transient, of("durable", ["durable", "durable_disk"])].into_iter().flatten().collect())
    };
    let settings = settings(&[
        ("medium", json!(medium)),
        ("sensors", json!(SENSORS)),
        ("events_a_batch", json!(SENSORS)),
    ]);
    let sizes = sizes(extent, SECONDS_IN_SHORT, SECONDS, &[]);
    measure(declared, &sizes, |seconds| format!("{seconds} seconds"), contenders, settings)
}

/// Bytes that the machine's app writes for an event.
pub fn written_by_machine(kind: &str, path: &Path, seconds: usize) -> Result<Vec<f64>, BenchError> {
    let word = if kind == "transient" { "transient " } else { "" };
    let mut ours = Ours::open(path, &MACHINE.replace("{}", word))?;
    let mut random = Random::new(3);
    let before = Written::now(path)?;
    for _ in 0..seconds {
        for sensor in 0..SENSORS {
            let value = random.below(1_000);
            ours.post("read", format!("{{\"sensor\":{sensor},\"value\":{value}}}").into_bytes())?;
        }
        ours.settle()?;
    }
    let written = Written::now(path)?.since(before);
    BenchError::unless("the machine", seconds / 60 * SENSORS, ours.view("kept", &[])?)?;
    let events = (seconds * SENSORS) as f64;
    Ok(vec![written.process as f64 / events, written.disk.unwrap_or(written.process) as f64 / events])
}
