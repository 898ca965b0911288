//! `selvedge app check`: all that is wrong with apps.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use weft::module::Plan;
use weft::{Diagnostics, Module};

use super::position::Lines;
use crate::output::{Output, in_words};

/// What is wanted beside the errors.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Warnings are a failure.
    pub deny_warnings: bool,
    /// How each query finds its rows is shown.
    pub queries: bool,
}

/// Checks each file. Warnings are shown, and are a failure only where they are denied.
///
/// # Errors
/// Nobody reads any more.
pub fn run(files: &[PathBuf], wanted: &Wanted, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut right = true;
    for file in files {
        right &= check(file, wanted, output)?;
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(file: &Path, wanted: &Wanted, output: &mut Output) -> anyhow::Result<bool> {
    let source = match super::read(file) {
        Ok(source) => source,
        Err(error) => {
            output.error(&in_words(&error));
            return Ok(false);
        }
    };
    let name = file.display().to_string();
    let module = match weft::check_with(&source, &name, &mut node::libraries::beside(file)) {
        Ok(module) => module,
        Err(wrong) => {
            show(&wrong, output)?;
            return Ok(false);
        }
    };
    let warnings = weft::warnings(&module, &source, &name);
    if !warnings.is_empty() {
        show(&warnings, output)?;
    } else if !output.is_json() {
        output.say(|| format!("{name}: nothing is wrong"), || Value::Null)?;
    }
    if wanted.queries {
        show_queries(&module, &name, output)?;
    }
    Ok(warnings.is_empty() || !wanted.deny_warnings)
}

/// Shows how each loop over rows of the state finds them, in the order of the source.
fn show_queries(module: &Module, file: &str, output: &mut Output) -> anyhow::Result<()> {
    // Not those over a function's own lists, which may stand in a library.
    let is_state = |plan: &&Plan| module.lists.iter().any(|list| list.name == plan.list);
    let mut plans: Vec<&Plan> = module.plans.iter().filter(is_state).collect();
    plans.sort_by_key(|plan| (plan.line, plan.span));
    for plan in plans {
        output.say(
            || format!("{file}:{}: {} in `{}`: {}", plan.line, plan.list, plan.function, plan.how),
            || {
                json!({
                    "query": plan.list, "file": file, "line": plan.line, "in": plan.function, "by": plan.how,
                    "scan": plan.scan,
                })
            },
        )?;
    }
    Ok(())
}

/// Shows diagnostics: to people as a text, to programs one object each.
pub fn show(wrong: &Diagnostics, output: &mut Output) -> anyhow::Result<()> {
    if !output.is_json() {
        return output.say(|| wrong.to_string().trim_end().to_owned(), || Value::Null);
    }
    let files: Vec<Lines<'_>> = wrong.files().iter().map(|file| Lines::new(&file.text)).collect();
    for one in wrong.iter() {
        let (lines, file) = (&files[one.file], &wrong.files()[one.file].name);
        let (start, end) = (lines.place(one.span.start), lines.place(one.span.end.max(one.span.start)));
        // What is said under the span is a reason, too.
        let label = Some(&one.label).filter(|label| !label.is_empty());
        let why: Vec<&String> = label.into_iter().chain(&one.notes).collect();
        output.say(String::new, || {
            json!({
                "code": one.code.text(),
                "severity": one.code.severity().text(),
                "file": file,
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
                "message": one.message,
                "why": why,
                "help": one.help,
            })
        })?;
    }
    Ok(())
}
