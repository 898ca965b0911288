//! `selvedge store backup` and `restore`.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use node::backup::{self, Amount, Made, Restored, Wanted};
use serde_json::json;

use crate::arguments::{New, Of};
use crate::control::Control;
use crate::output::Output;

/// Between two words on how far it is.
const PROGRESS_EACH: Duration = Duration::from_secs(1);

/// Backs a node up.
///
/// # Errors
/// There is no backup, and why.
pub fn back_up(of: &Of, with_identity: bool, output: &mut Output) -> anyhow::Result<ExitCode> {
    let wanted = Wanted { dir: &of.dir, with_identity };
    let said = Control::of(&of.dir)?.map(|node| node.backup()).transpose()?;
    let mut progress = Progress::new(output.is_json());
    let mut progress = |amount| progress.tell(amount);
    let make = |out: &mut dyn Write| match said {
        Some(said) => wanted.of_node(BufReader::new(said), out, &mut progress),
        None => wanted.of_folder(out, &mut progress),
    };
    match &of.to {
        Some(file) => {
            let made = backup::into_file(file, make)?;
            say_made(&made, &file.display().to_string(), output)?;
        }
        None if io::stdout().is_terminal() => {
            bail!("a backup is bytes, and standard output is a terminal: give --to FILE, or a pipe")
        }
        None => {
            let made = make(&mut io::stdout().lock())?;
            output.note(&in_words(&made, "standard output"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say_made(made: &Made, file: &str, output: &mut Output) -> anyhow::Result<()> {
    let Made { about, node, amount, has_identity } = made;
    output.say(
        || in_words(made, file),
        || {
            json!({
                "backup": file,
                "node": node.map(|node| node.to_string()),
                "frame": about.sequence,
                "run": about.run,
                "rows": amount.rows,
                "bytes": amount.bytes,
                "identity": has_identity,
            })
        },
    )
}

fn in_words(made: &Made, file: &str) -> String {
    let Amount { rows, bytes } = made.amount;
    let identity = match made.has_identity {
        true => "the node's identity is in it: whoever reads it can be the node",
        false => "the node's identity is not in it: keep a copy of the file identity apart",
    };
    format!("{file}: {rows} rows, {bytes} bytes, as after frame {}; {identity}", made.about.sequence)
}

/// Tells how far a backup is: programs in lines, people on a terminal.
struct Progress {
    is_json: bool,
    is_terminal: bool,
    next: Instant,
}

impl Progress {
    fn new(is_json: bool) -> Self {
        Self { is_json, is_terminal: io::stderr().is_terminal(), next: Instant::now() + PROGRESS_EACH }
    }

    fn tell(&mut self, Amount { rows, bytes }: Amount) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PROGRESS_EACH;
        // Where nobody reads, the backup is made all the same.
        let _ = match (self.is_json, self.is_terminal) {
            (true, _) => {
                writeln!(io::stdout(), "{}", json!({ "progress": { "rows": rows, "bytes": bytes } }))
            }
            (false, true) => writeln!(io::stderr(), "{rows} rows, {bytes} bytes"),
            (false, false) => Ok(()),
        };
    }
}

/// Makes a folder of a backup.
///
/// # Errors
/// The backup is damaged, or the folder cannot be made.
pub fn restore(new: &New, output: &mut Output) -> anyhow::Result<ExitCode> {
    let (from, name) = opened(new.from.as_deref())?;
    let restored = backup::restore(from, &name, new.identity.as_deref(), &new.dir)?;
    say_restored(&restored, "restored", &new.dir, output)?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be read, and what it is called.
///
/// # Errors
/// It cannot be read, or a person would have to type it.
pub fn opened(from: Option<&Path>) -> anyhow::Result<(Box<dyn Read>, String)> {
    match from {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((Box::new(BufReader::new(file)), path.display().to_string()))
        }
        None if io::stdin().is_terminal() => bail!("nothing is given to read: give --from FILE, or a pipe"),
        None => Ok((Box::new(io::stdin().lock()), "standard input".to_owned())),
    }
}

/// Says what was made of what was read.
///
/// # Errors
/// Nobody reads any more.
pub fn say_restored(restored: &Restored, what: &str, dir: &Path, output: &mut Output) -> anyhow::Result<()> {
    let Restored { node, founded, rows, apps, has_identity } = restored;
    let apps_in_words = if apps.is_empty() { "none".to_owned() } else { apps.join(", ") };
    let identity = match has_identity {
        true => String::new(),
        false => format!(
            "\nIt has no identity yet: before you start it, put the file identity of {node} into {}",
            dir.display()
        ),
    };
    output.say(
        || {
            format!(
                "{}: {node}, {rows} rows as after frame {}; its apps: {apps_in_words}\nWhat came after that is missing here. \
                 Its peers find that out once it runs, and selvedge status names it. Never run it beside another copy.{identity}",
                dir.display(),
                founded.sequence
            )
        },
        || {
            json!({
                what: dir,
                "node": node.to_string(),
                "frame": founded.sequence,
                "run": founded.run,
                "rows": rows,
                "apps": apps,
                "identity": has_identity,
            })
        },
    )
}
