//! A node's rows as lines of JSON, which people and other programs read, and a folder made of such lines.
//!
//! The first line says what it is, the last how many rows there are, and each other is a row, in order of list and key:
//! `{"app":…,"list":…,"row":…}` one that an app keeps, where `row` comes last and is what a view would show; all others are bytes
//! (`number`, `key`, `bytes`, in hexadecimal digits), with words beside them for people that are not read again.

use crate::backup::{self, Amount, BackupError};
use crate::folder;
use crate::foundation::{Foundation, FoundationError, Restored};
use crate::process::NodeError;
use crate::stored::{self, StoredError};
use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use node_core::{Recovery, Shapes};
use sealing::NodeId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use store::{BackedUp, Founded, Row};

/// The version of the lines.
const EXPORT_VERSION: u64 = 1;

/// A line with the largest row, its bytes in hexadecimal digits, and some words.
const LINE_BYTES_MAX: u64 = 2 * store::FRAME_BYTES_MAX as u64 + (1 << 20);

/// What stands before a row that is shown.
const ROW: &str = ",\"row\":";

/// Why no folder was made of lines. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is not right.
    #[error("{name}, line {line}: {why}. Nothing was imported")]
    Line {
        /// What was read.
        name: String,
        /// Which line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The lines cannot be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// What was to be read.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder cannot be made.
    #[error(transparent)]
    Foundation(#[from] FoundationError),
}

/// Lines that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The state that they are of.
    pub about: BackedUp,
    /// Whose it is.
    pub node: Option<NodeId>,
    /// How much it is.
    pub amount: Amount,
    /// How many rows of each app people can read.
    pub apps: BTreeMap<String, u64>,
}

/// Writes the rows of a folder on which no node runs as lines.
///
/// # Errors
/// The folder cannot be read; the lines cannot be written.
pub fn export(dir: &Path, out: &mut dyn Write) -> Result<Exported, BackupError> {
    let mut folder = stored::open(dir)?;
    let mut recovery = Recovery::default();
    let contents = store::read(&mut folder, &mut |change| recovery.change(change))?;
    let about = BackedUp::of(&contents).ok_or_else(|| StoredError::NoLog(dir.to_owned()))?;
    let rows: Vec<Row> = recovery.into_rows().map_err(NodeError::from)?.collect();
    let node = rows.iter().find_map(node_core::owner);
    let (mut shapes, mut amount, mut apps) = (Shapes::default(), Amount::default(), BTreeMap::new());
    let mut put = |line: &str| {
        let written = out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n"));
        amount.bytes += line.len() as u64 + 1;
        written.map_err(|source| BackupError::Write { file: "the lines".to_owned(), source })
    };
    let first = json!({
        "selvedge_export": EXPORT_VERSION,
        "node": node.map(|node| node.to_string()),
        "frame": about.sequence,
        "run": about.run,
    });
    put(&first.to_string())?;
    for row in &rows {
        shapes.learn(row);
        match shapes.show(row) {
            Some(shown) => {
                *apps.entry(shown.app.to_owned()).or_default() += 1;
                // Names are the language's: nothing in them is ever escaped.
                put(&format!(r#"{{"app":"{}","list":"{}"{ROW}{}}}"#, shown.app, shown.list, shown.json))?;
            }
            None => put(&in_bytes(&shapes, row).to_string())?,
        }
    }
    put(&json!({ "rows": rows.len() }).to_string())?;
    out.flush().map_err(|source| BackupError::Write { file: "the lines".to_owned(), source })?;
    amount.rows = rows.len() as u64;
    Ok(Exported { about, node, amount, apps })
}

/// As [`export`], into a new file that only its owner may read, whole or not at all.
///
/// # Errors
/// As [`export`]; there is a file of this name.
pub fn export_into(dir: &Path, path: &Path) -> Result<Exported, BackupError> {
    backup::whole_file(path, |file| {
        let mut out = BufWriter::new(&mut *file);
        let exported = export(dir, &mut out)?;
        drop(out);
        let written = |source| BackupError::Write { file: path.display().to_string(), source };
        file.sync_all().map_err(written)?;
        Ok(exported)
    })
}

fn in_bytes(shapes: &Shapes, row: &Row) -> Value {
    let (what, app) = shapes.what(row);
    let mut line = json!({ "what": what });
    if let Some((name, source)) = app {
        line["app"] = json!(name);
        if what == "app" {
            line["source"] = json!(source);
        }
    }
    line["number"] = json!(row.list);
    line["key"] = json!(HEX.encode(&row.key));
    line["bytes"] = json!(HEX.encode(&row.row));
    line
}

/// A first line.
#[derive(Deserialize)]
struct First {
    selvedge_export: u64,
    #[serde(default)]
    frame: u64,
    #[serde(default)]
    run: u64,
}

/// A row in bytes.
#[derive(Deserialize)]
struct InBytes {
    number: u64,
    key: String,
    bytes: String,
}

/// What stands before a row that is shown.
#[derive(Deserialize)]
struct Place {
    app: String,
    list: String,
}

/// The last line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    rows: u64,
}

/// Makes a node's folder of lines.
///
/// # Errors
/// A line is not right, or the last one is missing; the folder cannot be made.
pub fn import(
    from: impl Read,
    name: &str,
    identity: Option<&Path>,
    dir: &Path,
) -> Result<Restored, ImportError> {
    let (founded, rows) = read(from, name)?;
    let identity = match identity {
        Some(file) => {
            let (_, bytes) = folder::read_identity_file(file).map_err(FoundationError::from)?;
            Some((PathBuf::from(file), bytes))
        }
        None => None,
    };
    Ok(Foundation { name: name.to_owned(), founded, rows, identity }.lay(dir)?)
}

/// The rows that lines are of, in order, whatever the lines' order is.
fn read(from: impl Read, name: &str) -> Result<(Founded, Vec<Row>), ImportError> {
    let mut lines = Lines { input: io::BufReader::new(from), name, number: 0 };
    let first = lines.next()?.unwrap_or_default();
    let Ok(First { selvedge_export, frame, run }) = serde_json::from_str(&first) else {
        return Err(lines.wrong("`selvedge store export` begins with what it is, and this is something else"));
    };
    if selvedge_export != EXPORT_VERSION {
        return Err(lines.wrong(&format!(
            "it is an export of version {selvedge_export}, and this program knows version {EXPORT_VERSION}: use the newer \
             program that wrote it"
        )));
    }
    let mut shapes = Shapes::default();
    let mut rows: BTreeMap<(u64, Vec<u8>), Vec<u8>> = BTreeMap::new();
    while let Some(line) = lines.next()? {
        if let Ok(Last { rows: count }) = serde_json::from_str(&line) {
            if count != rows.len() as u64 {
                return Err(
                    lines.wrong(&format!("it says that {count} rows come before it, and {} do", rows.len()))
                );
            }
            if lines.next()?.is_some() {
                return Err(lines.wrong("something follows the last line"));
            }
            let rows = rows.into_iter().map(|((list, key), row)| Row { list, key, row });
            return Ok((Founded { sequence: frame, run }, rows.collect()));
        }
        let row = row(&shapes, &line).map_err(|why| lines.wrong(&why))?;
        shapes.learn(&row);
        if rows.insert((row.list, row.key), row.row).is_some() {
            return Err(lines.wrong("a row with this key was there before"));
        }
    }
    Err(lines.wrong(
        "the last line, with the count of rows, is missing: it was not written, or not copied, to its end",
    ))
}

fn row(shapes: &Shapes, line: &str) -> Result<Row, String> {
    if let Some((place, row)) = line.split_once(ROW)
        && let Ok(Place { app, list }) = serde_json::from_str(&format!("{place}}}"))
    {
        let row = row.trim_end().strip_suffix('}').ok_or("it is no line of an export: it is not closed")?;
        return shapes.row(&app, &list, row);
    }
    let in_bytes: InBytes = serde_json::from_str(line).map_err(|error| {
        format!("it is no line of an export, {{\"app\":…,\"list\":…,\"row\":…}} or {{…,\"number\":…,\"key\":…,\"bytes\":…}}: {error}")
    })?;
    let bytes = |text: &str| {
        HEX.decode(text.as_bytes()).map_err(|error| format!("it has bytes that are none: {error}"))
    };
    Ok(Row { list: in_bytes.number, key: bytes(&in_bytes.key)?, row: bytes(&in_bytes.bytes)? })
}

struct Lines<'n, R> {
    input: R,
    name: &'n str,
    number: u64,
}

impl<R: BufRead> Lines<'_, R> {
    fn next(&mut self) -> Result<Option<String>, ImportError> {
        let unread = |source| ImportError::Read { name: self.name.to_owned(), source };
        let mut line = String::new();
        let bytes = (&mut self.input).take(LINE_BYTES_MAX).read_line(&mut line).map_err(unread)?;
        self.number += 1;
        if bytes as u64 == LINE_BYTES_MAX {
            return Err(self.wrong("it is longer than any row"));
        }
        Ok((bytes > 0).then_some(line))
    }

    fn wrong(&self, why: &str) -> ImportError {
        ImportError::Line { name: self.name.to_owned(), line: self.number, why: why.to_owned() }
    }
}
