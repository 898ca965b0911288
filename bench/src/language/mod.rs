//! Suite `language`: the engine in this process, beside CPython and SQLite.

mod bank;
mod changes;
mod compilation;
mod rows;
mod search;
mod sqlite;
mod transfers;
mod views;

use crate::figure::{Declared, Figure, Series};
use crate::pairs::{self, Contender, Length};
use crate::{BenchError, Extent};
use engine::{App, Context, Event};
use sealing::NodeId;
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::Arc;

/// Of this size, in short runs of another one.
#[derive(Debug, Clone, Copy)]
struct Size {
    units: usize,
    length: Length,
}

/// Measures a figure at all sizes. `named` says what a size is; `contenders` loads them for one.
fn measure(
    declared: Declared,
    sizes: &[Size],
    named: impl Fn(usize) -> String,
    contenders: impl Fn(usize) -> Result<Vec<Box<dyn Contender>>, BenchError>,
    settings: Map<String, Value>,
) -> Result<Figure, BenchError> {
    let mut judged = None;
    let mut growth = Vec::new();
    for size in sizes {
        let mut contenders = contenders(size.units)?;
        let series = pairs::run(&declared, named(size.units), &mut contenders, size.length)?;
        match size.length {
            Length::Growth => growth.push(series),
            Length::Judged | Length::Short => judged = Some(series),
        }
    }
    let none = || Series { size: named(0), names: Vec::new(), counter: declared.counter, pairs: Vec::new() };
    let short = sizes.iter().any(|size| size.length == Length::Short);
    Ok(Figure { declared, judged: judged.unwrap_or_else(none), growth, settings, short })
}

/// The judged size and others around it, or a tiny one.
fn sizes(extent: Extent, tiny: usize, judged: usize, growth: &[usize]) -> Vec<Size> {
    if extent == Extent::Short {
        return vec![Size { units: tiny, length: Length::Short }];
    }
    let growth = if extent == Extent::Once { &[] } else { growth };
    let growth = growth.iter().map(|units| Size { units: *units, length: Length::Growth });
    [Size { units: judged, length: Length::Judged }].into_iter().chain(growth).collect()
}

/// Takes what came of a figure.
type Show<'s> = &'s mut dyn FnMut(&Declared, Result<Figure, BenchError>) -> Result<(), BenchError>;

type Measure = fn(Declared, Extent) -> Result<Figure, BenchError>;

const FIGURES: &[(Declared, Measure)] = &[
    (search::BFS_EVENT, search::measure),
    (search::BFS_VIEW, search::measure),
    (transfers::TRANSFER_256, transfers::measure),
    (transfers::TRANSFER_INDEXED, transfers::measure),
    (views::BY_BRANCH, views::measure),
    (views::IN_CREDIT, views::measure),
    (views::RANK, views::measure),
    (views::RICHEST_10, views::measure),
    (compilation::COMPILE_1000, compilation::measure),
    (rows::ROW_BYTES, rows::measure),
    (changes::MODULE_CHANGE, changes::measure),
    (changes::MODULE_GROWTH, changes::measure_growth),
];

/// Measures the named figures, or all, in the order of the table. One that fails is shown as failed, and the rest go on.
pub fn run(names: &[String], extent: Extent, show: Show<'_>) -> Result<(), BenchError> {
    if let Some(name) = names.iter().find(|name| FIGURES.iter().all(|(declared, _)| declared.name != **name))
    {
        let there: Vec<&str> = FIGURES.iter().map(|(declared, _)| declared.name).collect();
        return Err(BenchError::NoSuch { name: name.clone(), there: there.join(", ") });
    }
    for (declared, measure) in FIGURES {
        if names.is_empty() || names.iter().any(|name| name == declared.name) {
            show(declared, measure(*declared, extent))?;
        }
    }
    Ok(())
}

/// What a process does that this one starts to count bytes: what, and of which size. It writes the bytes.
pub fn count_alone(arguments: &[String], output: &mut impl Write) -> Result<(), BenchError> {
    let wrong = || BenchError::Process(format!("{arguments:?} is not what to count and a size"));
    let [what, size] = arguments else { return Err(wrong()) };
    let size: usize = size.parse().map_err(|_| wrong())?;
    let bytes = match what.as_str() {
        changes::ALONE => changes::bytes_left(size)?,
        keys => rows::bytes_of_rows(keys, size)?,
    };
    Ok(writeln!(output, "{bytes}")?)
}

/// An app of a source, with nothing in its lists.
fn app(source: &str, file: &str) -> Result<App, BenchError> {
    let module = weft::compile(source, file).map_err(|errors| BenchError::Compile(errors.to_string()))?;
    Ok(App::new(Arc::new(module), NodeId([7; 32])))
}

/// Applies an input from outside; gives the answer.
fn input(app: &mut App, name: &str, arguments: &str, now: i64) -> Result<Option<String>, BenchError> {
    let context = Context { now, entropy: [0; 32], room: 0 };
    let event = Event::Input { name, arguments: arguments.as_bytes(), by: "local" };
    Ok(app.event(event, &context)?.answer)
}

fn settings(of: &[(&str, Value)]) -> Map<String, Value> {
    of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
