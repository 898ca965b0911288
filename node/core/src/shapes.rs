//! The rows of a log as people read them: what each app keeps, by the names and types of its shape.
//!
//! It needs no source that still compiles: the shape is a row of the log.

use crate::rows::{self, AppRow};
use std::collections::BTreeMap;
use store::Row;
use weft::Module;
use weft::change::schema::Schema;

/// The shapes of the apps of a log, learned from its rows.
#[derive(Debug, Default)]
pub struct Shapes(BTreeMap<u32, Shape>);

#[derive(Debug)]
struct Shape {
    name: String,
    source: String,
    /// The shape, and a module of it without code; none in a row of the first layout.
    kept: Option<(Schema, Module)>,
}

/// A row of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown<'s> {
    /// The app.
    pub app: &'s str,
    /// The list, or the variable.
    pub list: &'s str,
    /// The record, or the value, as JSON.
    pub json: String,
}

impl Shapes {
    /// Takes what a row says of an app; these come before all rows of apps.
    pub fn learn(&mut self, row: &Row) {
        let Some((name, _)) = rows::app(row) else { return };
        let Some(AppRow { number, source, schema, .. }) = rows::read_app(&row.row) else { return };
        let kept = schema.filter(Schema::is_whole).map(|schema| {
            let module = schema.module(name);
            (schema, module)
        });
        self.0.insert(number, Shape { name: name.to_owned(), source, kept });
    }

    /// An app's row as people read it; none if it is not exactly that row when it is read again, or no app's.
    #[must_use]
    pub fn show(&self, row: &Row) -> Option<Shown<'_>> {
        let (app, list) = rows::split_list(row.list);
        let shape = self.0.get(&app)?;
        let (schema, module) = shape.kept.as_ref()?;
        let place = schema.list_place(list)?;
        let json = engine::row_as_json(module, place, &row.row)?;
        let again = engine::row_of_json(module, place, &json).ok()?;
        let is_it = again.0 == row.key && again.1 == row.row;
        is_it.then_some(Shown { app: &shape.name, list: &module.lists[place].name, json })
    }

    /// The row that people read so.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn row(&self, app: &str, list: &str, json: &str) -> Result<Row, String> {
        let found = self.0.iter().find(|(_, shape)| shape.name == app);
        let Some((number, Shape { kept: Some((schema, module)), .. })) = found else {
            return Err(format!("no line before it says what the app {app} is"));
        };
        let place = module.lists.iter().position(|one| one.name == list);
        let place = place.ok_or_else(|| format!("the app {app} keeps nothing of the name {list}"))?;
        let (key, row) = engine::row_of_json(module, place, json)?;
        Ok(Row { list: rows::app_list(*number, schema.lists[place].number), key, row })
    }

    /// What a row is that is no app's, or is not shown as one: in a word, and with an app's name and its source.
    #[must_use]
    pub fn what(&self, row: &Row) -> (&'static str, Option<(&str, &str)>) {
        let (app, list) = rows::split_list(row.list);
        let number =
            if row.list == rows::APPS { rows::read_app(&row.row).map(|app| app.number) } else { Some(app) };
        let shape = number
            .and_then(|number| self.0.get(&number))
            .map(|shape| (shape.name.as_str(), shape.source.as_str()));
        let word = match (row.list, list) {
            (rows::APPS, _) => "app",
            (rows::PEERS, _) => "peer",
            (rows::STREAMS, _) => "stream",
            (rows::OUTBOX, _) => "send",
            (rows::HEARD, _) => "heard",
            (rows::REFUSALS, _) => "refusal",
            (rows::ANSWERS, _) => "answer",
            (rows::POSTS, _) => "post",
            (rows::CLOCK, _) => "clock",
            (rows::RUN, _) => "run",
            (rows::TICKED, _) => "every",
            (rows::NODE, _) => "node",
            (rows::WEB, _) => "web",
            (_, engine::TIMERS) if app > 0 => "timer",
            (_, engine::COUNTERS) if app > 0 => "next_id",
            _ => "row",
        };
        (word, shape.filter(|_| app > 0 || row.list == rows::APPS))
    }
}
