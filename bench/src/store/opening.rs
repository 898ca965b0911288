//! `open_1m`: from a folder whose process was killed to a node that has published its state.

use super::alone;
use super::kept::{APP, COMPARED, Keeps, OurRows, fields_of};
use super::ours::Ours;
use super::parts::parts;
use super::rows::{Model, fields};
use super::scratch::{Scratch, forget};
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure, Series};
use crate::pairs::{self, Contender, Length};
use crate::suite::{settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

pub const OPEN_1M: Declared = Declared {
    name: "open_1m",
    unit: "s",
    better: Better::Lower,
    counter: false,
    bars: &[Bar { of: "ours", against: None, limit: 1.0 }],
};

/// Rows of a batch of the log.
const IN_ONE: usize = 256;
/// Updates that the log holds when the next checkpoint is due, for each row: as many bytes as the rows have.
const FULL: f64 = 1.0;
/// Sizes beside the judged one: rows, and the share of a full log.
const GROWTH: &[(usize, f64)] =
    &[(1_000_000, 0.0), (1_000_000, 0.5), (500_000, 0.0), (500_000, FULL), (100_000, 0.0), (100_000, FULL)];
/// Writes of one row that a killed process may have made, at most.
const VERSIONS_MAX: u64 = 40;

pub fn measure_open(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let medium = Scratch::new()?.medium()?;
    let series = |rows: usize, share: f64, length: Length| -> Result<Series, BenchError> {
        let scratch = Scratch::new()?;
        let folder = scratch.path("ours").display().to_string();
        alone::killed(&["store-fill", &folder, &rows.to_string(), &share.to_string()])?;
        let bytes = log_bytes(folder.as_ref())?;
        let names = ["ours", "ours_log_read", "ours_core_made"];
        let mut contenders: Vec<Box<dyn Contender>> = parts(&names, move |_| {
            let _held = &scratch;
            alone::numbers(&["store-open", &folder, &rows.to_string()])
        });
        let size = format!("{rows} rows, {:.1} MB in segments after the checkpoint", bytes as f64 / 1e6);
        pairs::run(&declared, size, &mut contenders, length)
    };
    let sizes = sizes(extent, 1_000, 1_000_000, &[]);
    let (rows, length) = sizes.first().map_or((0, Length::Short), |size| (size.units, size.length));
    let judged = series(rows, FULL, length)?;
    let growth = if extent == Extent::Whole { GROWTH } else { &[] };
    let growth = growth.iter().map(|(rows, share)| series(*rows, *share, Length::Growth));
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("medium", json!(medium)),
        ("caches", json!("posix_fadvise DONTNEED on every file of the folder, after its sync")),
        ("rows_a_batch", json!(IN_ONE)),
    ]);
    let short = extent == Extent::Short;
    Ok(Figure { declared, judged, growth: growth.collect::<Result<_, _>>()?, settings, short })
}

/// Bytes of a folder's segments.
fn log_bytes(folder: &Path) -> Result<u64, BenchError> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(BenchError::Disk)? {
        let entry = entry.map_err(BenchError::Disk)?;
        if entry.file_name().to_str().is_some_and(store::is_segment) {
            bytes += entry.metadata().map_err(BenchError::Disk)?.len();
        }
    }
    Ok(bytes)
}

/// Fills a folder: the rows, a checkpoint of them, and a share of the log that makes the next one due. Then it says so, and writes
/// on until it is killed.
pub fn fill(folder: &Path, rows: usize, share: f64, output: &mut impl Write) -> Result<(), BenchError> {
    let mut kept = OurRows::load(folder, rows)?;
    kept.0.begin_checkpoint()?;
    kept.0.finish_checkpoint()?;
    kept.0.make_checkpoints(false);
    let mut model = Model::new(rows);
    let mut random = Random::new(5);
    let mut left = (rows as f64 * share) as usize;
    while left > 0 {
        let updates = model.updates(&mut random, left.min(IN_ONE * 100));
        left -= updates.len();
        let prepared = kept.prepare(&updates, IN_ONE);
        kept.write(prepared)?;
    }
    writeln!(output, "full")?;
    output.flush()?;
    loop {
        let updates = model.updates(&mut random, 1);
        let prepared = kept.prepare(&updates, 1);
        kept.write(prepared)?;
    }
}

/// Opens a folder that the system remembers nothing of; seconds: all, until the log was read, and until the core was made.
pub fn open(folder: &Path, rows: usize) -> Result<Vec<f64>, BenchError> {
    forget(folder)?;
    let started = Instant::now();
    let (mut ours, steps) = Ours::open_in_steps(folder, APP, || started.elapsed().as_secs_f64())?;
    let whole = started.elapsed().as_secs_f64();
    check(&mut ours, rows)?;
    Ok([&[whole][..], &steps].concat())
}

/// All rows are there, and those looked at hold what one of their writes wrote.
fn check(ours: &mut Ours, rows: usize) -> Result<(), BenchError> {
    BenchError::unless("our opened node", rows, ours.view("size", &[])?)?;
    let mut random = Random::new(6);
    for key in Model::new(rows).sample(&mut random, COMPARED) {
        let view = ours.view("row", &[("id".to_owned(), key.to_string())])?;
        let found = fields_of(&view);
        if !(0..VERSIONS_MAX).any(|version| Some(fields(key, version)) == found) {
            let who = "our opened node".to_owned();
            return Err(BenchError::Wrong {
                who,
                expected: format!("a row {key} that was written"),
                found: view,
            });
        }
    }
    Ok(())
}
