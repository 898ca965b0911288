//! `selvedge app check`: all that is wrong with apps.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use weft::Diagnostics;

use super::position::Lines;
use crate::output::{Output, in_words};

/// Checks each file. Warnings are shown, and are a failure only where they are denied.
///
/// # Errors
/// Nobody reads any more.
pub fn run(files: &[PathBuf], deny_warnings: bool, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut right = true;
    for file in files {
        right &= check(file, deny_warnings, output)?;
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(file: &Path, deny_warnings: bool, output: &mut Output) -> anyhow::Result<bool> {
    let source = match super::read(file) {
        Ok(source) => source,
        Err(error) => {
            output.error(&in_words(&error));
            return Ok(false);
        }
    };
    let name = file.display().to_string();
    let Err(wrong) = weft::check_with(&source, &name, &mut node::libraries::beside(file)) else {
        let warnings = weft::warnings(&source, &name);
        if !warnings.is_empty() {
            show(&warnings, output)?;
            return Ok(!deny_warnings);
        }
        if !output.is_json() {
            output.say(|| format!("{name}: nothing is wrong"), || Value::Null)?;
        }
        return Ok(true);
    };
    show(&wrong, output)?;
    Ok(false)
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
