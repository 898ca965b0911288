//! `selvedge store check` and `stat`: what lies in a node's folder.

use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use node::stored::{self, CheckpointStat, Stat};
use serde_json::{Value, json};
use store::{Checked, Damage};

use crate::control::Control;
use crate::output::Output;

/// Says all that is wrong in a folder.
///
/// # Errors
/// The folder cannot be looked at; nobody reads any more.
pub fn check(dir: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    let checked = stored::check(dir)?;
    say_damages(&checked.damages, output)?;
    output.say(|| checked_for_people(dir, &checked), || checked_for_programs(&checked))?;
    Ok(if checked.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says each range that is damaged.
///
/// # Errors
/// Nobody reads any more.
pub fn say_damages(damages: &[Damage], output: &mut Output) -> anyhow::Result<()> {
    damages
        .iter()
        .try_for_each(|damage| output.say(|| damage_for_people(damage), || damage_for_programs(damage)))
}

fn damage_for_people(Damage { file, bytes, why }: &Damage) -> String {
    match bytes {
        Some((from, to)) => format!("{file}, byte {from} to {to}: {why}"),
        None => format!("{file}: {why}"),
    }
}

fn damage_for_programs(Damage { file, bytes, why }: &Damage) -> Value {
    json!({
        "damaged": file,
        "from": bytes.map(|(from, _)| from),
        "to": bytes.map(|(_, to)| to),
        "why": why,
    })
}

fn checked_for_people(dir: &Path, checked: &Checked) -> String {
    let counts = format!(
        "{} segments with {} frames of {} changes, {} checkpoints of {} rows",
        checked.segments.len(),
        checked.frames,
        checked.changes,
        checked.checkpoints.len(),
        checked.checkpoints.iter().map(|checkpoint| checkpoint.rows).sum::<u64>(),
    );
    let wrong = checked.damages.len() as u64 + checked.more_damages;
    match &checked.opens {
        Ok(_) if wrong == 0 => {
            let torn = checked.opens.as_ref().ok().and_then(|found| found.cut.as_ref());
            let torn = torn.map_or(String::new(), |cut| {
                format!("\nThe last frame was never finished, as a crash leaves it: a start removes {cut}.")
            });
            format!("All is as it was written: {counts}.{torn}")
        }
        Ok(_) => format!(
            "Read as it was written: {counts}. {wrong} not as written, above. A node would start all the same, since nothing \
             of this is needed. Keep a copy of {} and look after its disk.",
            dir.display()
        ),
        Err(error) => format!(
            "Read as it was written: {counts}. {wrong} not as written. A node does not start: {error}"
        ),
    }
}

fn checked_for_programs(checked: &Checked) -> Value {
    json!({
        "whole": checked.is_whole(),
        "segments": checked.segments.len(),
        "frames": checked.frames,
        "changes": checked.changes,
        "checkpoints": checked.checkpoints.len(),
        "damages": checked.damages.len() as u64 + checked.more_damages,
        "torn": checked.opens.as_ref().ok().and_then(|found| found.cut.as_ref()).map(|cut| json!({
            "file": cut.file, "from": cut.offset, "to": cut.offset + cut.bytes,
        })),
        "refused": checked.opens.as_ref().err().map(ToString::to_string),
    })
}

/// Says how much a folder holds, also while a node runs on it.
///
/// # Errors
/// The folder cannot be read; the node does not answer; nobody reads any more.
pub fn stat(dir: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    let stat = match Control::of(dir)? {
        Some(node) => stored::stat_of_node(dir, BufReader::new(node.backup()?))?,
        None => stored::stat(dir)?,
    };
    output.say(|| stat_for_people(&stat), || stat_for_programs(&stat))?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes of files for each byte of rows, where there are rows.
fn bytes_per_byte(stat: &Stat) -> Option<f64> {
    (stat.row_bytes > 0).then(|| stat.file_bytes as f64 / stat.row_bytes as f64)
}

fn stat_for_people(stat: &Stat) -> String {
    let per_byte =
        bytes_per_byte(stat).map_or(String::new(), |bytes| format!(", {bytes:.1} bytes each byte of rows"));
    let frames = |before: u64| {
        let frames = format!("{} frames", stat.sequence.saturating_sub(before));
        match stat.replayed {
            Some((replayed, changed)) => {
                format!("{frames}, {replayed} bytes, for {changed} bytes of changes")
            }
            None => frames,
        }
    };
    let since = match &stat.checkpoint {
        Some(CheckpointStat { file, sequence, seconds }) => {
            format!("{file}, made {} ago; since then {}", duration(*seconds), frames(*sequence))
        }
        None => format!("no checkpoint yet; {}", frames(0)),
    };
    [
        format!("rows         {}, {} bytes", stat.rows, stat.row_bytes),
        format!("log          {} segments, {} bytes", stat.segments.0, stat.segments.1),
        format!("checkpoints  {}, {} bytes", stat.checkpoints.0, stat.checkpoints.1),
        format!("spares       {}, {} bytes", stat.spares.0, stat.spares.1),
        format!("all files    {} bytes{per_byte}", stat.file_bytes),
        format!("starts       {}", stat.run),
        format!("begins with  {since}"),
    ]
    .join("\n")
}

fn stat_for_programs(stat: &Stat) -> Value {
    let of = |(count, bytes): (u64, u64)| json!({ "count": count, "bytes": bytes });
    json!({
        "rows": of((stat.rows, stat.row_bytes)),
        "segments": of(stat.segments),
        "checkpoints": of(stat.checkpoints),
        "spares": of(stat.spares),
        "bytes": stat.file_bytes,
        "bytes_per_byte": bytes_per_byte(stat),
        "starts": stat.run,
        "frame": stat.sequence,
        "checkpoint": stat.checkpoint.as_ref().map(|checkpoint| json!({
            "file": checkpoint.file, "frame": checkpoint.sequence, "seconds": checkpoint.seconds,
        })),
        "replayed_bytes": stat.replayed.map(|(replayed, _)| replayed),
        "changed_bytes": stat.replayed.map(|(_, changed)| changed),
    })
}

/// A time in its largest unit.
fn duration(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= *unit);
    unit.map_or(format!("{seconds} s"), |(unit, name)| format!("{} {name}", seconds / unit))
}
