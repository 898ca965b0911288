//! Change of the module: the app that goes on from this one's state, and what was found on the way.
//!
//! What happens to each list, timer and setting follows from the change alone, so that the same change of the same rows
//! comes to the same at every start. Transient state begins anew: a module changes when a node starts.

use super::size::{is_variable_too_large, rows_too_large};
use super::{App, Snapshot};
use crate::arguments;
use crate::budget::{Budget, KEY_BYTES_MAX, TIMER_BYTES_MAX};
use crate::codec;
use crate::json;
use crate::keyed::{Key, Layout, Range, is_plain_word};
use crate::machine::Room;
use crate::state::{List, State, Timers, read_timer_key, timer_key};
use crate::table::{Keyed, ROWS_AT_ONCE, Slot, Source, Unchangeable};
use sealing::NodeId;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weft::change::conversion::{ColumnWay, Conversion, Misfit, Tally};
use weft::change::{Change, Findings, Misfits};
use weft::module::{ListKind, Module, Type};
use weft::{Value, change};

/// Rows without a place in the new shape, by operation: how many, and the first.
type Lost = BTreeMap<usize, Option<(u64, Key)>>;

impl App {
    /// The app of another module with this one's state, changed; whole only if the findings have no misfits. This one's
    /// module has the shape before the change, the other one that after it.
    pub fn change(&self, change: &Change, module: Arc<Module>) -> (App, Findings) {
        self.changed(change, module, &|| true)
    }

    /// As [`App::change`]; worth nothing once `is_wanted` has said no.
    fn changed(&self, change: &Change, module: Arc<Module>, is_wanted: &dyn Fn() -> bool) -> (App, Findings) {
        let conversion = change.conversion();
        let mut findings = Findings { tally: conversion.tally(), ..Findings::default() };
        let mut state = State::new(&module, Arc::clone(&self.state.me));
        for (number, rows) in change.before.lists.iter().map(|list| list.number).zip(&self.state.lists) {
            let rows = match rows {
                List::Keyed(keyed) => keyed.len() as u64,
                List::Variable(_) => 1,
            };
            findings.rows.insert(number, rows);
        }
        for (place, shape) in change.after.lists.iter().enumerate() {
            let number = shape.number;
            let Some(before) = change.before.list_place(number) else { continue };
            match (self.state.lists.get(before), state.lists.get_mut(place)) {
                (Some(List::Keyed(old)), Some(List::Keyed(new))) => {
                    let (conversion, app, module) = (&conversion, self, &*module);
                    let list =
                        ListChange { change, conversion, number, before, place, module, app, old, is_wanted };
                    *new = list.keyed(&mut findings);
                }
                (Some(List::Variable(old)), Some(List::Variable(new))) => {
                    match conversion.apply(number, old, &mut findings.tally) {
                        Ok(value) => {
                            let is_other = !conversion.keeps(number);
                            if is_other && is_variable_too_large(&value, place as u32, &module) {
                                findings.too_large.insert(number, Misfits { rows: 1, first: String::new() });
                            }
                            *new = value;
                        }
                        Err(Misfit(operation)) => {
                            findings.misfits.entry(operation).or_default().rows += 1;
                        }
                    }
                }
                // Refused by the plan.
                _ => {}
            }
        }
        state.timers = changed_timers(&self.state.timers, &module, &mut findings);
        state.settings = self.changed_settings(&module, &state);
        let ticks = vec![None; module.everies.len()];
        (App { module, state, room: Room::default(), ticks }, findings)
    }

    /// The same app on another node.
    pub fn of(mut self, me: NodeId) -> App {
        self.state.me = Arc::new(me.0);
        self
    }

    /// The bytes of a variable's row, by its place in the module; none if it is no variable or has more than so many.
    pub fn variable(&self, place: usize, limit: usize) -> Option<Vec<u8>> {
        let (Some(List::Variable(value)), ListKind::Variable { kind, .. }) =
            (self.state.lists.get(place), &self.module.lists.get(place)?.kind)
        else {
            return None;
        };
        let mut row = Vec::new();
        codec::put_value(value, kind, &self.module, limit, &mut row).ok()?;
        Some(row)
    }

    /// Settings go on by name where they have the same type.
    fn changed_settings(&self, module: &Module, state: &State) -> Arc<Vec<Value>> {
        let mut settings = state.settings.to_vec();
        for (at, setting) in module.settings.iter().enumerate() {
            let same = self.module.settings.iter().position(|old| {
                let kind = |module: &Module, kind| module.type_name(kind);
                old.name == setting.name && kind(&self.module, &old.kind) == kind(module, &setting.kind)
            });
            if let Some(value) = same.and_then(|same| self.state.settings.get(same)) {
                settings[at] = value.clone();
            }
        }
        Arc::new(settings)
    }
}

impl Snapshot {
    /// What [`App::change`] would make of this state; none once `is_wanted`, which is asked every few thousand rows, says
    /// no.
    pub fn change(
        &self,
        change: &Change,
        module: Arc<Module>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<(Snapshot, Findings)> {
        let ticks = Vec::new();
        let before = Arc::clone(&self.module);
        let app = App { module: before, state: self.state.clone(), room: Room::default(), ticks };
        // What was given up stays so.
        let is_given_up = Cell::new(false);
        let goes_on = || {
            is_given_up.set(is_given_up.get() || !is_wanted());
            !is_given_up.get()
        };
        let (app, findings) = app.changed(change, module, &goes_on);
        goes_on().then(|| (app.snapshot(), findings))
    }
}

/// What happens to one list by key.
struct ListChange<'c> {
    change: &'c Change,
    conversion: &'c Conversion,
    number: u32,
    /// Its place in the module before.
    before: usize,
    /// Its place in the module after.
    place: usize,
    module: &'c Module,
    app: &'c App,
    old: &'c Keyed,
    is_wanted: &'c dyn Fn() -> bool,
}

impl ListChange<'_> {
    fn keyed(&self, findings: &mut Findings) -> Keyed {
        let layout = Arc::new(Layout::of(&self.module.lists[self.place], self.module));
        let ways = self.conversion.columns(self.number);
        let ways = ways.unwrap_or_else(|| (0..layout.kinds.len()).map(ColumnWay::Kept).collect());
        let mut lost = self.lost(&ways, &mut findings.tally);
        let mut changed = Err(Unchangeable::SameKey);
        if lost.is_empty() {
            changed = self.changed(&layout, &ways);
            if let Err(unchangeable) = &changed {
                lost = self.clashing(&layout, unchangeable);
            }
        }
        for (operation, rows) in lost {
            if let Some((rows, first)) = rows {
                let found = findings.misfits.entry(operation).or_default();
                if found.rows == 0 {
                    found.first = shown(&first, self.old, self.before, &self.app.module);
                }
                found.rows += rows;
            }
        }
        let changed = changed.unwrap_or_else(|_| Keyed::new(layout));
        // Rows of which fields only go or move are no longer than they were.
        if ways.iter().any(|way| !matches!(way, ColumnWay::Kept(_)))
            && let Some((rows, first)) = rows_too_large(&changed, self.module, self.is_wanted)
        {
            let first = shown(&first, &changed, self.place, self.module);
            findings.too_large.insert(self.number, Misfits { rows, first });
        }
        changed
    }

    fn changed(&self, layout: &Arc<Layout>, ways: &[ColumnWay]) -> Result<Keyed, Unchangeable> {
        let makers: Vec<_> = (0..ways.len())
            .map(|field| {
                move |value: Value| {
                    let mut tally = self.conversion.tally();
                    self.conversion.field(self.number, field, &value, &mut tally).unwrap_or_default()
                }
            })
            .collect();
        let as_it_is = |value: Value| value;
        let kinds = &self.old.layout().kinds;
        let sources = ways.iter().zip(&makers).zip(&layout.kinds).map(|((way, make), kind)| match way {
            // A value of a `T` is one of a `T?` too, but lies elsewhere.
            ColumnWay::Kept(at) if kinds.get(*at).is_some_and(|old| plain(old) == plain(kind)) => {
                Source::Field(*at as u16)
            }
            ColumnWay::Kept(at) if *at < kinds.len() => Source::Mapped(*at as u16, &as_it_is),
            ColumnWay::Made(at) => Source::Mapped(*at as u16, make),
            ColumnWay::Filled | ColumnWay::Kept(_) => Source::Constant(make(Value::None)),
        });
        self.old.changed(Arc::clone(layout), &sources.collect::<Vec<_>>(), self.is_wanted)
    }

    /// The rows in the order of their keys, for as long as it is wanted.
    fn rows(&self) -> impl Iterator<Item = (Key, Slot)> {
        let mut walk = self.old.walk(&Range::ALL, false);
        let mut at = 0_usize;
        std::iter::from_fn(move || {
            if at.is_multiple_of(ROWS_AT_ONCE) && !(self.is_wanted)() {
                return None;
            }
            at += 1;
            let key = walk.next()?;
            // Every key of a walk is a row's.
            self.old.find(&key).map(|slot| (key, slot))
        })
    }

    /// Rows with values that have no place in the new shape, by operation; what is lost or filled is counted.
    fn lost(&self, ways: &[ColumnWay], tally: &mut Tally) -> Lost {
        let mut lost = Lost::new();
        let looked_at =
            |(_, way): &(usize, &ColumnWay)| matches!(way, ColumnWay::Made(_) | ColumnWay::Filled);
        let ways: Vec<(usize, &ColumnWay)> = ways.iter().enumerate().filter(looked_at).collect();
        let dropped = self.conversion.dropped(self.number);
        let fills = |(field, way): &(usize, &ColumnWay)| {
            **way == ColumnWay::Filled
                && self
                    .conversion
                    .field(self.number, *field, &Value::None, &mut self.conversion.tally())
                    .is_ok()
        };
        if dropped.is_empty() && ways.iter().all(fills) {
            return lost;
        }
        for (key, slot) in self.rows() {
            for (at, operation) in dropped {
                tally[*operation] += u64::from(self.old.value(slot, *at as u16) != Value::None);
            }
            for (field, way) in &ways {
                let value = match way {
                    ColumnWay::Made(at) => self.old.value(slot, *at as u16),
                    _ => Value::None,
                };
                if let Err(Misfit(operation)) = self.conversion.field(self.number, *field, &value, tally) {
                    count(&mut lost, operation, &key);
                }
            }
        }
        lost
    }

    /// Rows whose keys or entries keep the list from its new shape, by operation.
    fn clashing(&self, layout: &Layout, why: &Unchangeable) -> Lost {
        let mut lost = Lost::new();
        let mut keys = BTreeSet::new();
        for (key, slot) in self.rows() {
            let row = Value::Record(self.old.row(slot));
            let row = self.conversion.apply(self.number, &row, &mut self.conversion.tally());
            let Ok(Value::Record(row)) = row else { continue };
            let fits = match why {
                Unchangeable::SameKey => keys.insert(layout.key_of(&row)),
                Unchangeable::GivenUp => true,
                Unchangeable::LongKey => layout.fields_size(&row, &layout.keys) <= KEY_BYTES_MAX,
                Unchangeable::LongEntry(index) => {
                    let own = layout.indexes.get(*index).map_or(&[][..], Vec::as_slice);
                    layout.fields_size(&row, own) + layout.fields_size(&row, &layout.keys) <= KEY_BYTES_MAX
                }
            };
            let operation = match why {
                Unchangeable::LongEntry(_) => self.change.reindex(self.number),
                Unchangeable::SameKey | Unchangeable::LongKey | Unchangeable::GivenUp => {
                    self.change.rekey(self.number)
                }
            };
            if !fits {
                count(&mut lost, operation, &key);
            }
        }
        lost
    }
}

/// The key of a row of a list, by its place in the module, as people read it.
fn shown(key: &Key, rows: &Keyed, list: usize, module: &Module) -> String {
    let Some(slot) = rows.find(key) else { return String::new() };
    let ListKind::Keyed { record, keys, .. } = &module.lists[list].kind else {
        return String::new();
    };
    let fields = &module.records[*record as usize].fields;
    let shown = keys.iter().filter_map(|field| {
        let kind = &fields[*field as usize].kind;
        json::write_value(&rows.value(slot, *field), kind, module, &mut Budget::new()).ok()
    });
    shown.collect::<Vec<String>>().join(", ")
}

/// Counts a row; rows come in the order of keys.
fn count(lost: &mut Lost, operation: usize, key: &Key) {
    let rows = lost.entry(operation).or_default();
    *rows = Some(rows.take().map_or_else(|| (1, key.clone()), |(rows, first)| (rows + 1, first)));
}

/// Pending timers with the arguments that their handlers take now. Of two that become one the earlier is due.
fn changed_timers(old: &Timers, module: &Module, findings: &mut Findings) -> Timers {
    let mut timers = Timers::default();
    for (key, due) in old.iter() {
        let (name, arguments) = read_timer_key(key).unwrap_or_default();
        let Some(timer) = module.timers.iter().find(|timer| timer.name == name) else {
            findings.timers.entry(name.to_owned()).or_default().gone += 1;
            continue;
        };
        let decoded =
            arguments::decode(arguments, (&timer.fields, &timer.former), module, &mut Budget::new());
        let encoded = decoded.map_err(|unread| super::event_error(unread).to_string()).and_then(|values| {
            arguments::encode(&values, &timer.fields, module, TIMER_BYTES_MAX)
                .map_err(|_| format!("its fields would have more than {TIMER_BYTES_MAX} bytes"))
        });
        match encoded {
            Ok(arguments) => {
                let key = timer_key(name, &arguments);
                let due = timers.due(&key).map_or(*due, |other| other.min(*due));
                timers.set(&key, Some(due));
            }
            Err(why) => {
                let found: &mut change::Timers = findings.timers.entry(name.to_owned()).or_default();
                if found.misfits == 0 {
                    found.why = why;
                }
                found.misfits += 1;
            }
        }
    }
    timers
}

/// A type as far as it says how its values lie in a column and in a key: what is one plain word is an int.
fn plain(kind: &Type) -> Type {
    match kind {
        kind if is_plain_word(kind) => Type::Int,
        Type::Optional(inner) => Type::Optional(Arc::new(plain(inner))),
        // Of what is kept whole it does not matter what is in it.
        Type::Record(_) | Type::List(_) => Type::Bytes,
        kind => kind.clone(),
    }
}
