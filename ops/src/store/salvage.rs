//! `selvedge store salvage`.

use std::path::Path;
use std::process::ExitCode;

use node::salvage::{self, SalvagePlan};
use serde_json::{Value, json};

use super::backup::say_restored;
use super::look::say_damages;
use crate::output::Output;

/// Says what can be saved of a folder, and saves it if there is where to.
///
/// # Errors
/// A node starts on the folder; nothing can be saved; the new folder cannot be made.
pub fn salvage(dir: &Path, to: Option<&Path>, output: &mut Output) -> anyhow::Result<ExitCode> {
    let plan = salvage::plan(dir)?;
    say_damages(&plan.damages, output)?;
    output.say(|| for_people(&plan, to), || for_programs(&plan))?;
    if let Some(to) = to {
        say_restored(&plan.carry_out(to)?, "salvaged", to, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn for_people(plan: &SalvagePlan, to: Option<&Path>) -> String {
    let salvaged = &plan.salvaged;
    let (kept, last) = (salvaged.kept.sequence, salvaged.founded.sequence);
    let mut lines =
        vec![format!("kept    {} rows, everything up to frame {kept}, in whole events", plan.rows.len())];
    match salvaged.is_all() {
        true => lines.push("lost    nothing, as far as can be known".to_owned()),
        false => {
            let readable = salvaged.lost_frames;
            lines.push(format!(
                "lost    frames {} to {last}, of which {readable} can still be read, and whatever came after that",
                kept + 1
            ));
        }
    }
    for (app, changes) in &plan.lost_by_app {
        let of = if app.is_empty() { "peers, messages and what else the node keeps" } else { app };
        lines.push(format!("        {changes} changes of {of} among those that can be read"));
    }
    if !plan.has_identity {
        lines.push("lost    the identity: put a copy of the file into the new folder".to_owned());
    }
    if to.is_none() {
        lines.push(
            "Nothing was done. A backup that holds more is better. Else make a folder of what is kept with --to NEW".to_owned(),
        );
    }
    lines.join("\n")
}

fn for_programs(plan: &SalvagePlan) -> Value {
    let salvaged = &plan.salvaged;
    json!({
        "kept": {
            "frame": salvaged.kept.sequence,
            "run": salvaged.kept.run,
            "rows": plan.rows.len(),
        },
        "lost": {
            "frames": salvaged.founded.sequence - salvaged.kept.sequence,
            "readable": salvaged.lost_frames,
            "changes": plan.lost_by_app,
        },
        "identity": plan.has_identity,
    })
}
