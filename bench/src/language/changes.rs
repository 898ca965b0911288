//! `module_change` and `module_growth`: a field added to the rows of an app, and what many such changes leave behind.

use super::{app, input, settings, sizes};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::machine::resident_bytes;
use crate::pairs::Contender;
use crate::{BenchError, Extent};
use engine::App;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};

/// What the process of `module_growth` is asked for.
pub const ALONE: &str = "changes";

/// Changes of each half of `module_growth`.
const CHANGES: usize = 100;
/// Rows that one event adds.
const BATCH: usize = 10_000;

const NARROW: &str = "app rows

record Row { id: int, one: int, two: int, three: int }

state rows: list of Row by id

on load(first: int, last: int) {
  for key in first .. last { rows add Row { id: key, one: key, two: key + 1, three: key + 2 } }
}

view size = count(rows)
view all = sum(r.one + r.two + r.three for r in rows)
";

pub const MODULE_CHANGE: Declared = Declared {
    name: "module_change",
    unit: "s",
    better: Better::Lower,
    counter: false,
    bars: &[Bar { of: "ours", against: None, limit: 0.3 }],
};

pub const MODULE_GROWTH: Declared = Declared {
    name: "module_growth",
    unit: "bytes/change",
    better: Better::Lower,
    counter: true,
    bars: &[Bar { of: "ours", against: None, limit: 200.0 }],
};

/// The app with a field more.
fn wide() -> String {
    NARROW.replace("three: int }", "three: int, four: int = 4 }").replace("+ r.three", "+ r.three + r.four")
}

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        Ok(vec![Box::new(Added::new(rows)?)])
    };
    let sizes = sizes(extent, 2_000, 1_000_000, &[100_000]);
    super::measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings(&[]))
}

/// An app, and the shape that its lists have.
struct Changing {
    app: App,
    schema: Schema,
}

impl Changing {
    fn new(rows: usize) -> Result<Changing, BenchError> {
        let mut app = app(NARROW, "rows.weft")?;
        for first in (1..=rows).step_by(BATCH) {
            let last = rows.min(first + BATCH - 1);
            input(&mut app, "load", &json!({ "first": first, "last": last }).to_string(), 1)?;
        }
        let schema = Schema::of(app.module());
        Ok(Changing { app, schema })
    }

    /// The app of another source: planned, and applied.
    fn changed(&self, source: &str) -> Result<Changing, BenchError> {
        let module = weft::compile(source, "rows.weft");
        let module = Arc::new(module.map_err(|errors| BenchError::Compile(errors.to_string()))?);
        let change = Change::between(&self.schema, &module);
        let (app, findings) = self.app.change(&change, module);
        match change.plan("rows", Some(&findings)).verdict() {
            Verdict::Refused => Err(BenchError::Process("the change is refused".into())),
            _ => Ok(Changing { app, schema: change.after }),
        }
    }

    fn check(&self, rows: usize, added: i64) -> Result<(), BenchError> {
        let rows = rows as i64;
        let all = (1..=rows).map(|key| 3 * key + 3).sum::<i64>() + rows * added;
        let snapshot = self.app.snapshot();
        BenchError::unless("our list", rows, snapshot.view("size", &[], "local", 1)?)?;
        BenchError::unless("our list", all, snapshot.view("all", &[], "local", 1)?)
    }
}

/// Rows that get a field.
struct Added {
    rows: usize,
    narrow: Changing,
    wide: String,
}

impl Added {
    fn new(rows: usize) -> Result<Added, BenchError> {
        let narrow = Changing::new(rows)?;
        narrow.check(rows, 0)?;
        Ok(Added { rows, narrow, wide: wide() })
    }
}

impl Contender for Added {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let begun = Instant::now();
        let changed = self.narrow.changed(&self.wide)?;
        let elapsed = begun.elapsed().as_secs_f64();
        changed.check(self.rows, 4)?;
        Ok(elapsed)
    }
}

pub fn measure_growth(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders =
        |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> { Ok(vec![Box::new(Growth { rows })]) };
    let sizes = sizes(extent, 100, 1_000, &[]);
    super::measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings(&[]))
}

/// A process that changes an app over and over.
struct Growth {
    rows: usize,
}

impl Contender for Growth {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        Ok(super::rows::alone(ALONE, self.rows)? / CHANGES as f64)
    }
}

/// Bytes that a second hundred changes leave.
pub fn bytes_left(rows: usize) -> Result<u64, BenchError> {
    let wide = wide();
    let mut app = Changing::new(rows)?;
    let hundred = |mut app: Changing| -> Result<Changing, BenchError> {
        for _ in 0..CHANGES / 2 {
            app = app.changed(&wide)?.changed(NARROW)?;
        }
        app.check(rows, 0)?;
        Ok(app)
    };
    app = hundred(app)?;
    let before = resident_bytes()?;
    app = hundred(app)?;
    let after = resident_bytes()?;
    app.check(rows, 0)?;
    Ok(after.saturating_sub(before))
}
