//! `selvedge app test`: an app's own tests, in memory.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::testing::{self, Failure, Outcome, TestResult};
use serde_json::{Value, json};

use super::difference;
use crate::output::{Output, in_words};

/// Where what is told about a test begins, under its title.
const INDENT: &str = "         ";

/// How many tests ended how.
#[derive(Debug, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    not_run: usize,
    /// Files that are not apps that are right.
    wrong: usize,
    /// How long the tests took together.
    took: Duration,
}

/// A file of tests as it is read.
struct Source<'s> {
    name: &'s str,
    text: &'s str,
}

/// Runs the tests of each file whose titles have the filter in them.
///
/// # Errors
/// Nobody reads any more.
pub fn run(files: &[PathBuf], filter: Option<&str>, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut counts = Counts::default();
    for file in files {
        run_file(file, filter.unwrap_or_default(), &mut counts, output)?;
    }
    let Counts { passed, failed, not_run, wrong, took } = counts;
    output.say(
        || {
            let not_run = if not_run > 0 { format!(", {not_run} not run") } else { String::new() };
            format!("{passed} passed, {failed} failed{not_run} in {}", time(took))
        },
        || json!({ "passed": passed, "failed": failed, "not_run": not_run }),
    )?;
    // A filter that lets nothing through is a mistyped one more often than not.
    let missed = filter.filter(|_| passed + failed + not_run + wrong == 0);
    if let Some(filter) = missed {
        output.error(&format!("no test has {filter:?} in its title"));
    }
    Ok(if failed + wrong == 0 && missed.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_file(file: &Path, filter: &str, counts: &mut Counts, output: &mut Output) -> anyhow::Result<()> {
    let (module, source) = match super::checked(file) {
        Ok((module, source)) => (Arc::new(module), source),
        Err(error) => {
            counts.wrong += 1;
            output.error(&format!("{}: {}", file.display(), in_words(&error)));
            return Ok(());
        }
    };
    let name = file.display().to_string();
    let source = Source { name: &name, text: &source };
    if module.tests.is_empty() && !output.is_json() {
        output.say(|| format!("{name}: there are no tests in it"), || Value::Null)?;
    }
    for test in module.tests.iter().filter(|test| test.title.contains(filter)) {
        let began = Instant::now();
        let result = testing::run_one(&module, test);
        let took = began.elapsed();
        counts.took += took;
        *match &result.outcome {
            Outcome::Passed => &mut counts.passed,
            Outcome::Failed(_) => &mut counts.failed,
            Outcome::NotRun { .. } => &mut counts.not_run,
        } += 1;
        output.say(|| for_people(&source, &result, took), || for_programs(&source, &result))?;
    }
    Ok(())
}

/// How long something took, as people read it.
fn time(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{:.1} ms", took.as_secs_f64() * 1_000.0),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}

fn for_people(source: &Source<'_>, result: &TestResult, took: Duration) -> String {
    let TestResult { name, line, outcome } = result;
    let (file, took) = (source.name, time(took));
    let (word, told) = match outcome {
        Outcome::Passed => ("passed ", Vec::new()),
        Outcome::NotRun { why } => return format!("not run  {file}:{line}: {name}\n{INDENT}{why}"),
        Outcome::Failed(failure) => ("FAILED ", told(source, failure)),
    };
    let mut text = format!("{word}  {file}:{line}: {name} ({took})");
    for line in told {
        let _ = write!(text, "\n{INDENT}{line}");
    }
    text
}

/// What did not hold: where, what, the source line, and what differs.
fn told(source: &Source<'_>, failure: &Failure) -> Vec<String> {
    let mut told = vec![format!("{}:{}: {}", source.name, failure.line, failure.message)];
    told.extend(source_line(source, failure.line).map(|line| format!("  {line}")));
    if let Some(sides) = &failure.difference {
        told.extend(difference::of_sides(&sides.left, &sides.right));
    }
    told
}

fn source_line<'s>(source: &Source<'s>, line: u32) -> Option<&'s str> {
    let line = source.text.lines().nth((line as usize).checked_sub(1)?)?;
    Some(line.trim())
}

fn for_programs(source: &Source<'_>, result: &TestResult) -> Value {
    let mut said = json!({ "file": source.name, "test": result.name, "line": result.line });
    match &result.outcome {
        Outcome::Passed => said["outcome"] = "passed".into(),
        Outcome::NotRun { why } => {
            said["outcome"] = "not_run".into();
            said["why"] = why.as_str().into();
        }
        Outcome::Failed(failure) => {
            said["outcome"] = "failed".into();
            said["failure"] = json!({ "line": failure.line, "message": failure.message });
            if let Some(line) = source_line(source, failure.line) {
                said["failure"]["source"] = line.into();
            }
            if let Some(sides) = &failure.difference {
                said["failure"]["left"] = sides.left.as_str().into();
                said["failure"]["right"] = sides.right.as_str().into();
            }
        }
    }
    said
}
