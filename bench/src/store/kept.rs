//! The rows in each contender: ours behind events, SQLite's and redb's behind transactions.

use super::ours::Ours;
use super::rows::{FIELDS, Model, Update, fields};
use crate::BenchError;
use crate::data::Random;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use rusqlite::{Connection, OpenFlags};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Our app: rows are updated one an event.
pub const APP: &str = "app rows

record Row { id: int, a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int }

state rows: list of Row by id

on load(loaded: list of Row) { for row in loaded { rows add row } }
on set(id: int, a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int) {
  rows put Row { id, a, b, c, d, e, f, g, h }
}

view row(id: int) = rows[id]
view size = count(rows)
";
/// As its documentation has it for a log that is durable with each commit (<https://sqlite.org/wal.html>,
/// <https://sqlite.org/pragma.html>): one connection, which needs no shared memory then.
pub const PRAGMAS: &str = "
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -1048576;
";
const TABLE: TableDefinition<'static, u64, [u8; FIELDS * 8]> = TableDefinition::new("rows");
/// Rows of one event, or of one transaction, while all are loaded.
const LOADED_AT_ONCE: usize = 1_000;
/// Rows compared after each trial.
pub const COMPARED: usize = 100;

/// Whoever keeps rows.
pub trait Keeps {
    /// Its name, and its version behind a space.
    fn name(&self) -> String;
    /// Writes batches of rows, each durable when it is over. What is made of them before the clock starts is `prepared`.
    fn write(&mut self, prepared: Prepared) -> Result<(), BenchError>;
    /// What is handed to `write`.
    fn prepare(&self, updates: &[Update], in_one: usize) -> Prepared;
    /// The ints of a row.
    fn read(&mut self, key: usize) -> Result<[i64; FIELDS], BenchError>;
}

/// Batches as a contender takes them.
pub enum Prepared {
    /// JSON texts of inputs.
    Inputs(Vec<Vec<Vec<u8>>>),
    /// Keys and ints.
    Rows(Vec<Vec<(usize, [i64; FIELDS])>>),
}

/// Compares rows at random with the model.
pub fn compare(kept: &mut dyn Keeps, model: &Model, random: &mut Random) -> Result<(), BenchError> {
    let who = kept.name();
    for key in model.sample(random, COMPARED.min(model.rows())) {
        let (expected, found) = (model.fields(key), kept.read(key)?);
        BenchError::unless(&who, format!("{key}: {expected:?}"), format!("{key}: {found:?}"))?;
    }
    Ok(())
}

fn as_rows(updates: &[Update], in_one: usize) -> Prepared {
    let row = |update: &Update| (update.key, fields(update.key, update.version));
    Prepared::Rows(updates.chunks(in_one).map(|batch| batch.iter().map(row).collect()).collect())
}

/// A row as JSON.
fn row_text(key: usize, fields: &[i64; FIELDS]) -> String {
    let mut text = format!("{{\"id\":{key}");
    for (name, value) in ('a'..='h').zip(fields) {
        let _ = write!(text, ",\"{name}\":{value}");
    }
    text + "}"
}

/// Ours on a folder.
pub struct OurRows(pub Ours);

impl OurRows {
    /// A new folder with so many rows.
    pub fn load(folder: &Path, rows: usize) -> Result<OurRows, BenchError> {
        let mut ours = Ours::open(folder, APP)?;
        for first in (0..rows).step_by(LOADED_AT_ONCE) {
            let texts: Vec<String> =
                (first..rows.min(first + LOADED_AT_ONCE)).map(|key| row_text(key, &fields(key, 0))).collect();
            let body = format!("{{\"loaded\":[{}]}}", texts.join(","));
            ours.batch("load", vec![body.into_bytes()])?;
        }
        ours.settle()?;
        ours.finish_checkpoint()?;
        BenchError::unless("our node", rows, ours.view("size", &[])?)?;
        Ok(OurRows(ours))
    }

    /// Inputs as JSON.
    pub fn inputs(updates: &[Update]) -> Vec<Vec<u8>> {
        let text = |update: &Update| row_text(update.key, &fields(update.key, update.version)).into_bytes();
        updates.iter().map(text).collect()
    }
}

/// The ints of our view of a row.
pub fn fields_of(view: &str) -> Option<[i64; FIELDS]> {
    let row: serde_json::Value = serde_json::from_str(view).ok()?;
    let mut fields = [0; FIELDS];
    for (name, field) in ('a'..='h').zip(&mut fields) {
        *field = row[name.to_string()].as_i64()?;
    }
    Some(fields)
}

impl Keeps for OurRows {
    fn name(&self) -> String {
        "ours".into()
    }

    fn prepare(&self, updates: &[Update], in_one: usize) -> Prepared {
        Prepared::Inputs(updates.chunks(in_one).map(OurRows::inputs).collect())
    }

    fn write(&mut self, prepared: Prepared) -> Result<(), BenchError> {
        let Prepared::Inputs(batches) = prepared else { return Ok(()) };
        for batch in batches {
            self.0.batch("set", batch)?;
        }
        self.0.settle()
    }

    fn read(&mut self, key: usize) -> Result<[i64; FIELDS], BenchError> {
        let view = self.0.view("row", &[("id".to_owned(), key.to_string())])?;
        fields_of(&view).ok_or_else(|| BenchError::Wrong {
            who: "our view".into(),
            expected: "a row".into(),
            found: view,
        })
    }
}

/// SQLite in a file.
pub struct Sqlite(Connection);

impl Sqlite {
    pub fn load(path: &Path, rows: usize) -> Result<Sqlite, BenchError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.execute_batch(PRAGMAS)?;
        connection.execute_batch(
            "CREATE TABLE rows (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL, c INTEGER NOT NULL, \
             d INTEGER NOT NULL, e INTEGER NOT NULL, f INTEGER NOT NULL, g INTEGER NOT NULL, h INTEGER NOT NULL)",
        )?;
        let transaction = connection.transaction()?;
        {
            let mut insert =
                transaction.prepare("INSERT INTO rows VALUES (?9, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
            for key in 0..rows {
                insert.execute(bound(key, &fields(key, 0)))?;
            }
        }
        transaction.commit()?;
        Ok(Sqlite(connection))
    }
}

fn bound(key: usize, fields: &[i64; FIELDS]) -> [i64; FIELDS + 1] {
    std::array::from_fn(|at| fields.get(at).copied().unwrap_or(key as i64))
}

impl Keeps for Sqlite {
    fn name(&self) -> String {
        format!("sqlite {}", rusqlite::version())
    }

    fn prepare(&self, updates: &[Update], in_one: usize) -> Prepared {
        as_rows(updates, in_one)
    }

    fn write(&mut self, prepared: Prepared) -> Result<(), BenchError> {
        let Prepared::Rows(batches) = prepared else { return Ok(()) };
        let (mut begin, mut commit) = (self.0.prepare("BEGIN")?, self.0.prepare("COMMIT")?);
        let mut update = self.0.prepare(
            "UPDATE rows SET a = ?1, b = ?2, c = ?3, d = ?4, e = ?5, f = ?6, g = ?7, h = ?8 WHERE id = ?9",
        )?;
        for batch in batches {
            begin.execute([])?;
            for (key, fields) in &batch {
                BenchError::unless("SQLite", 1, update.execute(bound(*key, fields))?)?;
            }
            commit.execute([])?;
        }
        Ok(())
    }

    fn read(&mut self, key: usize) -> Result<[i64; FIELDS], BenchError> {
        let mut select = self.0.prepare("SELECT a, b, c, d, e, f, g, h FROM rows WHERE id = ?1")?;
        Ok(select.query_row([key as i64], |row| {
            let mut fields = [0; FIELDS];
            for (at, field) in fields.iter_mut().enumerate() {
                *field = row.get(at)?;
            }
            Ok(fields)
        })?)
    }
}

/// redb in a file.
pub struct Redb(Arc<Database>);

/// Its name with the version that Cargo.lock has; redb itself does not say.
pub const REDB: &str = "redb 4.6";

impl Redb {
    pub fn load(path: &Path, rows: usize) -> Result<Redb, BenchError> {
        let database = Database::create(path).map_err(redb::Error::from)?;
        let mut kept = Redb(Arc::new(database));
        let all: Vec<(usize, [i64; FIELDS])> = (0..rows).map(|key| (key, fields(key, 0))).collect();
        kept.write(Prepared::Rows(vec![all]))?;
        Ok(kept)
    }

    /// The same for another thread.
    pub fn database(&self) -> Arc<Database> {
        Arc::clone(&self.0)
    }

    /// A row in the newest snapshot.
    pub fn look_up(database: &Database, key: usize) -> Result<Option<[i64; FIELDS]>, redb::Error> {
        let table = database.begin_read()?.open_table(TABLE)?;
        Ok(table.get(key as u64)?.map(|row| from_bytes(&row.value())))
    }
}

fn to_bytes(fields: &[i64; FIELDS]) -> [u8; FIELDS * 8] {
    let mut bytes = [0; FIELDS * 8];
    for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

fn from_bytes(bytes: &[u8; FIELDS * 8]) -> [i64; FIELDS] {
    let mut fields = [0; FIELDS];
    for (field, place) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
        *field = i64::from_le_bytes(place.try_into().unwrap_or_default());
    }
    fields
}

impl Keeps for Redb {
    fn name(&self) -> String {
        REDB.into()
    }

    fn prepare(&self, updates: &[Update], in_one: usize) -> Prepared {
        as_rows(updates, in_one)
    }

    fn write(&mut self, prepared: Prepared) -> Result<(), BenchError> {
        let Prepared::Rows(batches) = prepared else { return Ok(()) };
        let batch = |batch: Vec<(usize, [i64; FIELDS])>| -> Result<(), redb::Error> {
            let mut transaction = self.0.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            {
                let mut table = transaction.open_table(TABLE)?;
                for (key, fields) in &batch {
                    table.insert(*key as u64, &to_bytes(fields))?;
                }
            }
            Ok(transaction.commit()?)
        };
        Ok(batches.into_iter().try_for_each(batch)?)
    }

    fn read(&mut self, key: usize) -> Result<[i64; FIELDS], BenchError> {
        Redb::look_up(&self.0, key)?.ok_or_else(|| BenchError::Wrong {
            who: "redb".into(),
            expected: format!("a row {key}"),
            found: "none".into(),
        })
    }
}

/// A contender by its name, its rows loaded into this folder or file.
pub fn load(who: &str, path: &Path, rows: usize) -> Result<Box<dyn Keeps>, BenchError> {
    Ok(match who {
        "sqlite" => Box::new(Sqlite::load(path, rows)?),
        "redb" => Box::new(Redb::load(path, rows)?),
        _ => Box::new(OurRows::load(path, rows)?),
    })
}
