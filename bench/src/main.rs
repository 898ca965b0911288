//! Measures Selvedge beside its peers, by the rules of `README.md` here.
//!
//! How the parts meet: a suite declares its figures, makes the contenders of each and hands them to `pairs`, which runs
//! them in turn while `machine` watches what else goes on; a `figure` is what came of it and what follows from that;
//! `report` shows it. `suite` is what suites have in common; `data` makes what all contenders get.
//!
//! Nothing depends on this room.

mod data;
mod figure;
mod language;
mod link;
mod machine;
mod pairs;
mod report;
mod store;
mod suite;

use clap::{Parser, ValueEnum};
use std::io::{self, Write};
use std::process::ExitCode;

/// Measures Selvedge beside its peers; README.md in this folder says what and how.
#[derive(Debug, Parser)]
#[command(name = "selvedge-bench", version)]
struct Arguments {
    /// What to measure.
    suite: Suite,
    /// Only these figures.
    names: Vec<String>,
    /// One JSON object a figure, with every trial.
    #[arg(long)]
    json: bool,
    /// Tiny sizes: answers are checked, nothing is judged.
    #[arg(long)]
    short: bool,
    /// The judged size alone, without growth.
    #[arg(long, conflicts_with = "short")]
    once: bool,
}

/// Which sizes are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Short,
    Once,
    Whole,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Suite {
    /// The language and its engine.
    Language,
    /// The log and its checkpoints, on a disk.
    Store,
    /// The link's protocol core.
    Link,
    /// What suites start for themselves: processes that do one thing, and count what they alone take.
    #[value(hide = true)]
    Alone,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    /// There is no such figure.
    #[error("there is no figure `{name}`; there are {there}")]
    NoSuch { name: String, there: String },
    /// A contender gave a wrong answer.
    #[error("{who} answered {found}, expected {expected}")]
    Wrong { who: String, expected: String, found: String },
    /// An app does not compile.
    #[error("an app of the bench does not compile:\n{0}")]
    Compile(String),
    /// An event was not applied.
    #[error("an event failed: {0}")]
    Event(#[from] engine::EventError),
    /// A view gave nothing.
    #[error("a view failed: {0}")]
    View(#[from] engine::ViewError),
    /// SQLite failed.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The log failed, or a folder of ours was not taken.
    #[error("our log: {0}")]
    Store(#[from] ::store::StoreError),
    /// A core did not start.
    #[error("our core: {0}")]
    Start(#[from] node_core::StartError),
    /// redb failed.
    #[error("redb: {0}")]
    Redb(#[from] redb::Error),
    /// The disk that is measured failed.
    #[error("the disk to be measured: {0}")]
    Disk(#[source] io::Error),
    /// A process beside us failed.
    #[error("{0}")]
    Process(String),
    /// The machine does not say what is asked.
    #[error("this machine does not say what is measured: {0}")]
    Machine(String),
    /// Output went nowhere.
    #[error("the output is closed: {0}")]
    Output(#[from] io::Error),
}

impl BenchError {
    /// An answer beside what was expected.
    fn unless(who: &str, expected: impl ToString, found: impl ToString) -> Result<(), BenchError> {
        let (expected, found) = (expected.to_string(), found.to_string());
        if expected == found { Ok(()) } else { Err(BenchError::Wrong { who: who.into(), expected, found }) }
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every figure was measured.
fn run(arguments: &Arguments) -> Result<bool, BenchError> {
    let mut output = io::stdout();
    let figures = match arguments.suite {
        Suite::Language => language::FIGURES,
        Suite::Store => store::FIGURES,
        Suite::Link => link::FIGURES,
        Suite::Alone => {
            match &arguments.names[..] {
                [what, ..] if what.starts_with(store::PREFIX) => {
                    store::run_alone(&arguments.names, &mut output)?;
                }
                [what, links] if what == link::COUNTS_ALONE => link::count_alone(links, &mut output)?,
                names => language::count_alone(names, &mut output)?,
            }
            return Ok(true);
        }
    };
    let provenance = machine::provenance()?;
    if !arguments.json {
        writeln!(output, "{}\n", report::heading(&provenance))?;
    }
    let extent = match (arguments.short, arguments.once) {
        (true, _) => Extent::Short,
        (_, true) => Extent::Once,
        _ => Extent::Whole,
    };
    let mut all = true;
    suite::run(figures, &arguments.names, extent, &mut |declared, measured| {
        all &= measured.is_ok();
        match (measured, arguments.json) {
            (Ok(figure), true) => writeln!(output, "{}", figure.json(&provenance))?,
            (Ok(figure), false) => writeln!(output, "{}", report::lines(&figure))?,
            (Err(error), true) => {
                let failed = serde_json::json!({ "name": declared.name, "failed": error.to_string() });
                writeln!(output, "{failed}")?;
            }
            (Err(error), false) => writeln!(output, "{} FAILED: {error}\n", declared.name)?,
        }
        Ok(())
    })?;
    Ok(all)
}
