//! Apps of a log while it is read, and their start: rows are gathered under the shape that they were written in, a change of
//! the shape is made again where it stands in the log, and what was read last is what the app that is started is given.
//!
//! No app's code runs here: a change is operations on numbers, and its row in the log has the shapes before and after it.

use crate::core::{Core, Installed};
use crate::gathered::Gathered;
use crate::image::{Kept, numbered};
use crate::recovery::{Source, StartError, missing_setting};
use crate::rows::{self, AppRow};
use engine::{App, COUNTERS, Snapshot, TIMERS};
use sealing::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use store::Change as Delta;
use weft::change::operations::Operation;
use weft::change::schema::{Holds, Schema};
use weft::change::{Change, Findings, Verdict};
use weft::{Module, Sources};

/// Bytes of initial values of variables that one start writes, a quarter of an event's: values beyond that stay what the
/// source says until an event changes them.
const INITIAL_BYTES_MAX: usize = 4 << 20;

/// The rows of apps, by the numbers of their lists.
#[derive(Debug, Default)]
pub(crate) struct Apps {
    known: BTreeMap<String, AppRow>,
    /// The rows of these as the log has them.
    known_rows: BTreeMap<Vec<u8>, Vec<u8>>,
    rows: BTreeMap<u64, Gathered>,
    /// Apps whose shape changed in the log: their state so far, in the shape that they have now.
    changed: BTreeMap<u32, (Schema, App)>,
    /// Variables that have a row.
    written: BTreeSet<u64>,
    /// What of the log cannot be read; the first of it.
    fault: Option<StartError>,
}

impl Apps {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.changed.is_empty() && self.known.is_empty()
    }

    /// Takes the next change of an app's row, or of what an app is.
    pub(crate) fn change(&mut self, change: Delta) {
        if self.fault.is_some() {
            return;
        }
        let taken = if change.list == rows::APPS { self.app(&change) } else { self.row(change) };
        if let Err(fault) = taken {
            self.fault = Some(fault);
        }
    }

    fn row(&mut self, change: Delta) -> Result<(), StartError> {
        let (number, list) = rows::split_list(change.list);
        if change.key.is_empty() {
            self.written.insert(change.list);
        }
        if let Some((schema, app)) = self.changed.get_mut(&number) {
            return restore(app, schema, list, &change.key, change.row.as_deref());
        }
        self.rows.entry(change.list).or_default().take(&change.key, change.row.as_deref());
        Ok(())
    }

    fn app(&mut self, change: &Delta) -> Result<(), StartError> {
        let unreadable = |what: &str| StartError::Row { list: rows::APPS, what: what.to_owned() };
        let name = String::from_utf8(change.key.clone()).map_err(|_| unreadable("its key"))?;
        // Apps are never forgotten.
        let Some(row) = &change.row else { return Ok(()) };
        self.known_rows.insert(change.key.clone(), row.clone());
        let row = rows::read_app(row).ok_or_else(|| unreadable("its value"))?;
        if let Some(known) = self.known.get(&name)
            && row.changes > known.changes
        {
            let before = row.before.clone().or_else(|| known.schema.clone());
            let (Some(before), Some(after)) = (before, row.schema.clone()) else {
                return Err(unreadable("a change without its shapes"));
            };
            if !before.is_whole() || !after.is_whole() {
                return Err(unreadable("a shape that is not whole"));
            }
            self.remake(&name, row.number, Change::made(before, after, row.operations.clone()))?;
        }
        self.known.insert(name, row);
        Ok(())
    }

    /// Makes a change again that was made before.
    fn remake(&mut self, name: &str, number: u32, change: Change) -> Result<(), StartError> {
        let app = match self.changed.remove(&number) {
            Some((_, app)) => app,
            None => self.gathered(name, number, &change.before)?,
        };
        let (app, findings) = app.change(&change, Arc::new(change.after.module(name)));
        let is_variables = |at: &usize| {
            // What a variable begins with stands in no row of an older log; its row follows.
            matches!(change.operations.get(*at), Some(Operation::RetypeVariable { .. }))
        };
        if findings.misfits.keys().any(|at| !is_variables(at)) {
            let what = format!("rows of {name} do not fit the change that was made of them");
            return Err(StartError::Row { list: rows::APPS, what });
        }
        self.written.retain(|list| {
            let (of, list) = rows::split_list(*list);
            of != number || change.after.list(list).is_some()
        });
        self.changed.insert(number, (change.after, app));
        Ok(())
    }

    /// An app of a shape, without code, with the rows that were gathered; they are gone from here.
    fn gathered(&mut self, name: &str, number: u32, schema: &Schema) -> Result<App, StartError> {
        let app = App::new(Arc::new(schema.module(name)), NodeId([0; 32]));
        self.filled(number, schema, app)
    }

    /// The state of an app so far, in its shape of now.
    fn state(
        &mut self,
        name: &str,
        number: u32,
        schema: &Schema,
        ran: Option<Module>,
    ) -> Result<App, StartError> {
        match (self.changed.remove(&number), ran) {
            (Some((_, app)), _) => Ok(app),
            (None, Some(ran)) => self.filled(number, schema, App::new(Arc::new(ran), NodeId([0; 32]))),
            (None, None) => self.gathered(name, number, schema),
        }
    }

    fn filled(&mut self, number: u32, schema: &Schema, mut app: App) -> Result<App, StartError> {
        let own: Vec<u64> = self.rows.range(own_lists(number)).map(|(list, _)| *list).collect();
        app.begin_restore();
        for list in own {
            let gathered = self.rows.remove(&list).unwrap_or_default();
            let list = rows::split_list(list).1;
            gathered.each(|key, row| restore(&mut app, schema, list, key, Some(row)))?;
        }
        app.end_restore()
            .map_err(|error| StartError::Row { list: rows::app_list(number, 0), what: error.to_string() })?;
        Ok(app)
    }

    /// Installs the apps that are to run.
    pub(crate) fn install(
        &mut self,
        core: &mut Core,
        sources: Vec<Source>,
        ticks: &BTreeMap<String, Vec<(i64, i64)>>,
    ) -> Result<(), StartError> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut next = self.known.values().map(|row| row.number + 1).max().unwrap_or(1);
        for source in sources {
            let name = source.module.name.clone();
            if core.apps.contains_key(&name) {
                return Err(StartError::Twice(name));
            }
            let number = match self.known.get(&name) {
                Some(row) => row.number,
                None if next >= rows::APPS_MAX => return Err(StartError::TooManyApps),
                None => next,
            };
            next = next.max(number + 1);
            let settings = source.settings.clone();
            let unmet = missing_setting(&source.module, &settings);
            let (app, row) = self.started(core, &name, number, source)?;
            let mut app = with_settings(app, &settings)?;
            if let Some(unmet) = unmet {
                return Err(unmet);
            }
            app.resume(ticks.get(&name).map_or(&[][..], Vec::as_slice), core.now);
            let lists = row.schema.iter().flat_map(|schema| &schema.lists).map(|list| list.number).collect();
            let installed = Installed { number, lists, app };
            if self.known.get(&name) != Some(&row) {
                core.batch.change(rows::APPS, name.clone().into_bytes(), Some(rows::encode_app(&row)));
            }
            self.write_variables(core, &installed, &row);
            core.apps.insert(name, installed);
        }
        Ok(())
    }

    /// An app with its rows, changed if its source is, and what is to be known of it from now on.
    fn started(
        &mut self,
        core: &mut Core,
        name: &str,
        number: u32,
        source: Source,
    ) -> Result<(App, AppRow), StartError> {
        let Source { text, mut module, allow_loss, .. } = source;
        let known = self.known.get(name).cloned();
        // Of a row of the first layout the module that it ran: its variables that have no row begin as that says.
        let (before, ran) = match &known {
            None => (Schema::of(&module), None),
            Some(row) => shape_of(row, &module)?,
        };
        let change = Change::between(&before, &module);
        change.after.teach(&mut module);
        let module = Arc::new(module);
        let mut row = AppRow { number, source: text, ..known.clone().unwrap_or_default() };
        row.schema = Some(change.after.clone());
        row.shape = None;
        if change.is_nothing() && ran.is_none() && !self.changed.contains_key(&number) {
            let app = App::new(module, core.me);
            return Ok((self.filled(number, &before, app)?, row));
        }
        let is_known = ran.is_none();
        let old = self.state(name, number, &before, ran)?;
        let (app, findings) = old.change(&change, Arc::clone(&module));
        let app = app.of(core.me);
        if !change.is_nothing() {
            judge(core, &change, name, &findings, allow_loss)?;
            row.changes += 1;
            row.operations = change.operations.clone();
            row.before = (!is_known).then_some(before);
        }
        Ok((app, row))
    }

    /// The source that an app last ran.
    pub(crate) fn source(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(|row| row.source.as_str())
    }

    /// The shape of an app and its state, if it was ever here.
    pub(crate) fn kept(
        &mut self,
        name: &str,
        module: &Module,
    ) -> Result<Option<(Schema, Snapshot)>, StartError> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let Some(row) = self.known.get(name).cloned() else { return Ok(None) };
        let (schema, ran) = shape_of(&row, module)?;
        let app = self.state(name, row.number, &schema, ran)?;
        Ok(Some((schema, app.snapshot())))
    }

    /// Variables without a row get one, so that another initial value in a later source changes nothing that is kept.
    fn write_variables(&self, core: &mut Core, installed: &Installed, row: &AppRow) {
        let mut left = INITIAL_BYTES_MAX;
        for (place, list) in row.schema.iter().flat_map(|schema| &schema.lists).enumerate() {
            let number = rows::app_list(installed.number, list.number);
            if !matches!(list.holds, Holds::Value(_)) || self.written.contains(&number) {
                continue;
            }
            if let Some(value) = installed.app.variable(place, left) {
                left -= value.len();
                core.batch.change(number, Vec::new(), Some(value));
            }
        }
    }

    /// What apps are, and the rows of those that do not run, go on as the log has them.
    pub(crate) fn keep(self, kept: &mut Kept, is_running: impl Fn(u32) -> bool) {
        for (name, row) in self.known_rows {
            kept.put(rows::APPS, name, Some(&row));
        }
        let absent: Vec<u64> =
            self.rows.keys().copied().filter(|list| !is_running(rows::split_list(*list).0)).collect();
        let changed: Vec<_> = self.changed.into_iter().filter(|(number, _)| !is_running(*number)).collect();
        let mut gathered = self.rows;
        for list in absent {
            let gathered = gathered.remove(&list).unwrap_or_default();
            let Ok(()) = gathered.each(|key, row| {
                kept.put(list, key.to_vec(), Some(row));
                Ok::<(), Infallible>(())
            });
        }
        for (number, (schema, app)) in changed {
            let lists: Vec<u32> = schema.lists.iter().map(|list| list.number).collect();
            for delta in app.snapshot().rows() {
                let (list, key) = numbered(number, &lists, delta.list, delta.key);
                kept.put(list, key, delta.row.as_deref());
            }
        }
    }

    /// What of the log cannot be read, if anything.
    pub(crate) fn fault(&mut self) -> Option<StartError> {
        self.fault.take()
    }

    /// Apps that do not run now, though rows of theirs are kept: nothing is lost, and people are told.
    pub(crate) fn name_absent(&self, core: &mut Core) {
        if core.apps.is_empty() {
            // Nothing runs here: somebody only asks or changes something.
            return;
        }
        for (name, row) in &self.known {
            let has_rows = self.changed.contains_key(&row.number)
                || self.rows.range(own_lists(row.number)).any(|(_, rows)| rows.has_rows());
            if !core.apps.contains_key(name) && has_rows {
                core.notice(format!(
                    "rows of the app {name} are kept here, and it does not run: add its file with --app"
                ));
            }
        }
    }
}

fn own_lists(number: u32) -> std::ops::RangeInclusive<u64> {
    rows::app_list(number, 0)..=rows::app_list(number, u32::MAX)
}

/// The shape of what an app keeps. A program before changes of modules kept it as text: then it is that of the source, whose
/// lists had their places as numbers, and the module is there too.
fn shape_of(row: &AppRow, module: &Module) -> Result<(Schema, Option<Module>), StartError> {
    if let Some(schema) = &row.schema {
        return Ok((schema.clone(), None));
    }
    let kept = row.shape.clone().unwrap_or_default();
    match Sources::from_text(&row.source).compile("the source that it last ran") {
        Ok(old) if old.shape() == kept => Ok((Schema::of(&old), Some(old))),
        _ if module.shape() == kept => Ok((Schema::of(module), Some(module.clone()))),
        _ => Err(StartError::Shape { app: module.name.clone(), kept, new: module.shape() }),
    }
}

/// Whether a change may be made.
fn judge(
    core: &mut Core,
    change: &Change,
    app: &str,
    findings: &Findings,
    allow_loss: bool,
) -> Result<(), StartError> {
    let plan = change.plan(app, Some(findings));
    match plan.verdict() {
        Verdict::Refused => return Err(StartError::Refused(Box::new(plan))),
        Verdict::Loses if !allow_loss => return Err(StartError::Loses(Box::new(plan))),
        _ if plan.items.is_empty() => {}
        _ => core.plans.push(plan),
    }
    Ok(())
}

fn with_settings(mut app: App, settings: &[(String, String)]) -> Result<App, StartError> {
    for (setting, value) in settings {
        app.set(setting, value)?;
    }
    Ok(app)
}

/// Hands an app a row by its list's number.
fn restore(
    app: &mut App,
    schema: &Schema,
    list: u32,
    key: &[u8],
    row: Option<&[u8]>,
) -> Result<(), StartError> {
    let wrong = |what: String| StartError::Row { list: u64::from(list), what };
    let unknown = || wrong(format!("{} has no list of this number", app_name(app)));
    let restored = match list {
        TIMERS => app.restore(TIMERS, key, row),
        COUNTERS => {
            let number = key.try_into().map(u32::from_be_bytes).map_err(|_| wrong("its key".to_owned()))?;
            // A list that is gone counts no more.
            let Some(place) = schema.list_place(number) else { return Ok(()) };
            app.restore(COUNTERS, &(place as u32).to_be_bytes(), row)
        }
        number => {
            let place = schema.list_place(number).ok_or_else(unknown)?;
            app.restore(place as u32, key, row)
        }
    };
    restored.map_err(|error| wrong(error.to_string()))
}

fn app_name(app: &App) -> &str {
    &app.module().name
}
