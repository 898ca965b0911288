//! `selvedge app plan`: what becomes of what is kept when an app becomes another version.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use engine::testing::{self, Outcome};
use serde_json::{Value, json};
use weft::Module;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};

use crate::control::Control;
use crate::output::Output;

/// Plans the change from one file to another, as far as it can be told without rows.
///
/// # Errors
/// A file is not an app, or they are two apps.
pub fn of_files(old: &Path, new: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    let ((old, _), (new, _)) = (super::checked(old)?, super::checked(new)?);
    if old.name != new.name {
        bail!("{} and {} are two apps: one does not become the other", old.name, new.name);
    }
    let mut plan = Change::between(&Schema::of(&old), &new).plan(&new.name, None);
    plan.say_answers(&old, &new);
    output.say(|| plan.to_string().trim_end().to_owned(), || plan.to_json())?;
    Ok(match plan.verdict() {
        Verdict::Keeps | Verdict::Depends => ExitCode::SUCCESS,
        Verdict::Loses | Verdict::Refused => ExitCode::FAILURE,
    })
}

/// Plans the change of what a node keeps, runs the new version's views on a copy of that, and its tests.
///
/// # Errors
/// The file is not an app, or the node, running or not, cannot be asked.
pub fn of_node(new: &Path, dir: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    of_rows(new, output, |source| match Control::of(dir)? {
        Some(control) => control.plan(source),
        None => Ok(node::offline::plan(dir, source)?),
    })
}

/// As [`of_node`], of what a backup of a node holds.
///
/// # Errors
/// The file is not an app, or the backup cannot be read.
pub fn of_backup(new: &Path, backup: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    of_rows(new, output, |source| {
        let name = backup.display().to_string();
        let file = File::open(backup).with_context(|| format!("cannot read {name}"))?;
        Ok(node::offline::plan_of_backup(BufReader::new(file), &name, source)?)
    })
}

fn of_rows(
    new: &Path,
    output: &mut Output,
    planned: impl FnOnce(&str) -> anyhow::Result<Value>,
) -> anyhow::Result<ExitCode> {
    let (module, _) = super::checked(new)?;
    let mut plan = planned(&module.sources.to_text())?;
    let text = plan.as_object_mut().and_then(|plan| plan.remove("text"));
    plan["tests"] = failed_tests(module);
    let fine = matches!(plan["verdict"].as_str(), Some("keeps"))
        && ["views", "untried", "tests"].iter().all(|kind| plan[*kind].as_array().is_some_and(Vec::is_empty));
    let people = || {
        let mut said = text.as_ref().and_then(Value::as_str).unwrap_or_default().trim_end().to_owned();
        for (kind, name) in [("views", "view"), ("tests", "test")] {
            for failed in plan[kind].as_array().into_iter().flatten() {
                let (what, why) = (&failed[name], &failed["error"]);
                let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                said.push_str(&format!("\n  FAILED    {name} {}: {}", word(what), word(why)));
            }
        }
        let untried = plan["untried"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let untried = untried.collect::<Vec<&str>>().join(", ");
        if !untried.is_empty() {
            said.push_str(&format!(
                "\n  NOT TRIED view {untried}: no time was left, or too many failed. Plan with a copy of the node's \
                 folder, or while the node is stopped"
            ));
        }
        said
    };
    output.say(people, || plan.clone())?;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tests of an app that fail.
fn failed_tests(module: Module) -> Value {
    let results = testing::run(&Arc::new(module), &|_| true);
    let failed = results.into_iter().filter_map(|result| match result.outcome {
        Outcome::Failed(failure) => Some(json!({ "test": result.name, "error": failure.message })),
        Outcome::Passed | Outcome::NotRun { .. } => None,
    });
    failed.collect()
}
