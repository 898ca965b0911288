//! `selvedge store export` and `import`.

use std::io::{self, BufWriter};
use std::process::ExitCode;

use node::lines::{self, Exported};
use serde_json::json;

use super::backup::{opened, say_restored};
use crate::arguments::{New, Of};
use crate::output::Output;

/// Writes a folder's rows as lines.
///
/// # Errors
/// The folder cannot be read; the lines cannot be written.
pub fn export(of: &Of, output: &mut Output) -> anyhow::Result<ExitCode> {
    match &of.to {
        Some(file) => {
            let exported = lines::export_into(&of.dir, file)?;
            let shown = file.display().to_string();
            let Exported { about, node, amount, apps } = &exported;
            output.say(
                || in_words(&exported, &shown),
                || {
                    json!({
                        "exported": shown,
                        "node": node.map(|node| node.to_string()),
                        "frame": about.sequence,
                        "run": about.run,
                        "rows": amount.rows,
                        "bytes": amount.bytes,
                        "apps": apps,
                    })
                },
            )?;
        }
        None => {
            let exported = lines::export(&of.dir, &mut BufWriter::new(io::stdout().lock()))?;
            output.note(&in_words(&exported, "standard output"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(exported: &Exported, file: &str) -> String {
    let Exported { amount, apps, .. } = exported;
    let apps: Vec<String> = apps.iter().map(|(app, rows)| format!("{rows} of {app}")).collect();
    let apps = if apps.is_empty() { "none of an app".to_owned() } else { apps.join(", ") };
    format!("{file}: {} rows, {apps}", amount.rows)
}

/// Makes a folder of lines.
///
/// # Errors
/// A line is not right, or the folder cannot be made.
pub fn import(new: &New, output: &mut Output) -> anyhow::Result<ExitCode> {
    let (from, name) = opened(new.from.as_deref())?;
    let imported = lines::import(from, &name, new.identity.as_deref(), &new.dir)?;
    say_restored(&imported, "imported", &new.dir, output)?;
    Ok(ExitCode::SUCCESS)
}
