//! Suite `language`: the engine in this process, beside CPython and SQLite.

mod bank;
mod changes;
mod compilation;
mod rows;
mod search;
mod sqlite;
mod transfers;
mod views;

pub use rows::alone;

use crate::BenchError;
use crate::suite::{Measured, measure, settings, sizes};
use engine::{App, Context, Event};
use sealing::NodeId;
use std::io::Write;
use std::sync::Arc;

/// Its figures, in their order.
pub const FIGURES: &[Measured] = &[
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
