//! `selvedge app test`: an app's own tests, in memory.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use engine::testing::{self, Failure, Outcome, TestResult};
use serde_json::{Value, json};

use crate::output::{Output, in_words};

/// How many tests ended how.
#[derive(Debug, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    not_run: usize,
    /// Files that are not apps that are right.
    wrong: usize,
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
    let Counts { passed, failed, not_run, wrong } = counts;
    output.say(
        || {
            let not_run = if not_run > 0 { format!(", {not_run} not run") } else { String::new() };
            format!("{passed} passed, {failed} failed{not_run}")
        },
        || json!({ "passed": passed, "failed": failed, "not_run": not_run }),
    )?;
    Ok(if failed + wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_file(file: &Path, filter: &str, counts: &mut Counts, output: &mut Output) -> anyhow::Result<()> {
    let module = match super::compile(file) {
        Ok((module, _)) => module,
        Err(error) => {
            counts.wrong += 1;
            output.error(&format!("{}: {}", file.display(), in_words(&error)));
            return Ok(());
        }
    };
    let name = file.display().to_string();
    for result in testing::run(&Arc::new(module), &|title| title.contains(filter)) {
        let count = match &result.outcome {
            Outcome::Passed => &mut counts.passed,
            Outcome::Failed(_) => &mut counts.failed,
            Outcome::NotRun { .. } => &mut counts.not_run,
        };
        *count += 1;
        output.say(|| for_people(&name, &result), || for_programs(&name, &result))?;
    }
    Ok(())
}

fn for_people(file: &str, result: &TestResult) -> String {
    let TestResult { name, line, outcome } = result;
    match outcome {
        Outcome::Passed => format!("passed   {file}:{line}: {name}"),
        Outcome::NotRun { why } => format!("not run  {file}:{line}: {name}\n         {why}"),
        Outcome::Failed(Failure { line: at, message, difference }) => {
            let mut text = format!("FAILED   {file}:{line}: {name}\n         line {at}: {message}");
            if let Some(sides) = difference {
                text.push_str(&format!("\n         left:  {}\n         right: {}", sides.left, sides.right));
                text.push_str(&format!("\n                {}", mark(&sides.left, &sides.right)));
            }
            text
        }
    }
}

/// Points at where two sides begin to differ.
fn mark(left: &str, right: &str) -> String {
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    format!("{}^ differs from here", " ".repeat(same))
}

fn for_programs(file: &str, result: &TestResult) -> Value {
    let mut said = json!({ "file": file, "test": result.name, "line": result.line });
    match &result.outcome {
        Outcome::Passed => said["outcome"] = "passed".into(),
        Outcome::NotRun { why } => {
            said["outcome"] = "not_run".into();
            said["why"] = why.as_str().into();
        }
        Outcome::Failed(failure) => {
            said["outcome"] = "failed".into();
            said["failure"] = json!({ "line": failure.line, "message": failure.message });
            if let Some(sides) = &failure.difference {
                said["failure"]["left"] = sides.left.as_str().into();
                said["failure"]["right"] = sides.right.as_str().into();
            }
        }
    }
    said
}
