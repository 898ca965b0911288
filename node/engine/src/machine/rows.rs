//! Operations on state: rows, variables, numbers.

use super::keys::long_key;
use super::{Machine, values};
use crate::arguments;
use crate::budget::{Fault, KEY_BYTES_MAX, TIMER_BYTES_MAX, VALUE_BYTES};
use crate::codec::{Unwritable, is_of};
use crate::keyed::{Key, Range, Row};
use crate::state::{TIMERS_MAX, TimerKey, timer_key};
use crate::table::Slot;
use std::sync::Arc;
use weft::Value;
use weft::code::{Arithmetic, Operation, Register};
use weft::module::{ListKind, SCRATCH, Type};

impl Machine<'_> {
    pub(super) fn on_rows(&mut self, operation: Operation) -> Result<(), Fault> {
        match operation {
            Operation::MakeKey { out, list, first, count } => self.make_key(out, list, first, count)?,
            Operation::KeyOf { out, list, row } => {
                let row = match self.get(row) {
                    Value::None => None,
                    Value::Record(row) => Some(Arc::clone(row)),
                    _ => return Err(Fault::unproven("a row")),
                };
                let key = row.map(|row| self.key_of(list, &row)).transpose()?;
                self.set(out, key.map_or(Value::None, Key::into_value));
            }
            Operation::Row { out, list, key } => {
                let row = self.row(list, key)?;
                self.set(out, row.map_or(Value::None, Value::Record));
            }
            Operation::RowThere { out, list, key } => {
                let row = self.row_there(list, key)?;
                self.set(out, Value::Record(row));
            }
            Operation::KeyThere { out, list, key } => {
                let key = self.find(list, key)?.ok_or_else(|| self.no_such_row(list))?;
                self.set(out, key.into_value());
            }
            Operation::HasRow { out, list, key } => {
                let there = self.find(list, key)?.is_some();
                self.set(out, Value::Word(i64::from(there)));
            }
            Operation::AddRow { list, row, out } => {
                let row = Arc::clone(self.record(row)?);
                let key = self.key_of(list, &row)?;
                self.charge_new(list, &key)?;
                self.set(out, key.clone().into_value());
                self.put(list, key, &row)?;
            }
            Operation::PutRow { list, row, out } => {
                let row = Arc::clone(self.record(row)?);
                let key = self.key_of(list, &row)?;
                self.set(out, key.clone().into_value());
                self.put(list, key, &row)?;
            }
            Operation::RemoveRow { list, key } => self.remove_row(list, key)?,
            Operation::Clear { list } => {
                if let Some(keyed) = self.state.changed().keyed_mut(list) {
                    keyed.clear();
                }
            }
            Operation::RowCount { out, list } => {
                let count = self.keyed(list)?.len() as i64;
                self.set(out, Value::Word(count));
            }
            Operation::CountRows { out, rows } => self.count_rows(out, rows)?,
            Operation::AllRows { out, list } => {
                let count = self.keyed(list)?.len();
                self.budget.operations(count as u64)?;
                let fields = self.keyed(list)?.layout().kinds.len();
                self.budget.bytes(count.saturating_mul((fields + 1) * VALUE_BYTES))?;
                let keyed = self.keyed(list)?;
                let mut rows = Vec::with_capacity(count);
                let mut walk = keyed.walk(&Range::ALL, false);
                while let Some(key) = walk.next() {
                    rows.extend(keyed.find(&key).map(|slot| Value::Record(keyed.row(slot))));
                }
                self.set(out, Value::List(Arc::new(rows)));
            }
            Operation::LoadVariable { out, list } => {
                let value = self.state.variable(list).ok_or_else(|| Fault::unproven("a variable"))?;
                let value = value.clone();
                self.set(out, value);
            }
            Operation::StoreVariable { list, value } => {
                let value = self.get(value).clone();
                match self.module.lists.get(list as usize).map(|list| &list.kind) {
                    Some(ListKind::Variable { kind, .. }) if is_of(&value, kind) => {}
                    _ => return Err(Fault::of_another_type()),
                }
                self.state.changed().store(list, value)?;
            }
            Operation::Setting { out, setting } => {
                let value = self.state.whole().settings.get(setting as usize).cloned();
                let value = value.ok_or_else(|| Fault::unproven("a setting"))?;
                let declared = &self.module.settings[setting as usize];
                if matches!(value, Value::None) && !matches!(declared.kind, Type::Optional(_)) {
                    let name = &declared.name;
                    return Err(Fault::Refused(format!("the setting `{name}` has no value on this node")));
                }
                self.set(out, value);
            }
            Operation::Start { timer, first, count, time } => {
                let due = self.word(time)?;
                let key = self.timer(timer, first, count)?;
                let timers = &self.state.whole().timers;
                if timers.len() >= TIMERS_MAX && timers.due(&key).is_none() {
                    return Err(Fault::Budget { unit: "pending timers", limit: TIMERS_MAX as u64 });
                }
                self.state.changed().set_timer(&key, Some(due))?;
            }
            Operation::Cancel { timer, first, count } => {
                let key = self.timer(timer, first, count)?;
                self.state.changed().set_timer(&key, None)?;
            }
            Operation::Random { out, low, high } => {
                let (low, high) = (self.word(low)?, self.word(high)?);
                if low > high {
                    return Err(Fault::Refused(format!("there is no number from {low} to {high}")));
                }
                let number = self.chance.between(low, high);
                self.set(out, Value::Word(number));
            }
            Operation::NewId { out } => {
                let id = self.chance.id();
                self.budget.bytes(id.len())?;
                self.set(out, Value::Text(id.into()));
            }
            _ => return Err(Fault::unproven("an operation on state")),
        }
        Ok(())
    }

    fn timer(&mut self, timer: u32, first: Register, count: u16) -> Result<TimerKey, Fault> {
        let timer = &self.module.timers[timer as usize];
        let values = self.several(first, count);
        let arguments = arguments::encode(values, &timer.fields, self.module, TIMER_BYTES_MAX);
        let arguments = arguments.map_err(|wrong| match wrong {
            Unwritable::TooLarge => {
                Fault::Budget { unit: "bytes of a timer's arguments", limit: TIMER_BYTES_MAX as u64 }
            }
            Unwritable::OfAnotherType => Fault::of_another_type(),
        })?;
        self.budget.bytes(arguments.len())?;
        Ok(timer_key(&timer.name, &arguments))
    }

    fn row_there(&mut self, list: u32, key: Register) -> Result<Row, Fault> {
        self.row(list, key)?.ok_or_else(|| self.no_such_row(list))
    }

    /// Charges looking whether a key is a new one, and refuses it if it is not.
    fn charge_new(&mut self, list: u32, key: &Key) -> Result<(), Fault> {
        self.charge_search(list, key.len(), 1)?;
        if self.keyed(list)?.find(key).is_none() {
            return Ok(());
        }
        let name = &self.module.list(list).name;
        Err(Fault::Refused(format!("`{name}` has a row of this key already")))
    }

    /// Charges a row that is put, without its entries in indexes.
    fn charge_put(&mut self, list: u32, key: &Key) -> Result<(), Fault> {
        self.budget.bytes(key.len())?;
        // What was there, what comes there, and that it was touched.
        self.charge_search(list, key.len(), 3)?;
        self.charge_fields(list)
    }

    fn put(&mut self, list: u32, key: Key, row: &Row) -> Result<(), Fault> {
        self.charge_put(list, &key)?;
        let keyed = self.keyed(list)?;
        if !keyed.layout().holds(row) {
            return Err(Fault::of_another_type());
        }
        let (pages, is_indexed) = (keyed.page_bytes(), !keyed.layout().indexes.is_empty());
        if is_indexed {
            let before = keyed.find(&key).map(|slot| keyed.row(slot));
            self.charge_entries(list, &key, before.as_deref(), Some(row))?;
        }
        self.state.changed().put(list, key, row)?;
        self.charge_pages(list, pages)
    }

    /// Charges the pages that a local list made for a row, which had so many bytes of them before.
    #[inline]
    fn charge_pages(&mut self, list: u32, before: usize) -> Result<(), Fault> {
        if list < SCRATCH {
            return Ok(());
        }
        match self.keyed(list)?.page_bytes().saturating_sub(before) {
            0 => Ok(()),
            bytes => self.budget.bytes(bytes),
        }
    }

    #[inline(always)]
    pub(super) fn has_row(&mut self, list: u32, key: Register) -> Result<bool, Fault> {
        match (self.get(key), self.state.keyed(list)) {
            (Value::Word(word), Some(keyed)) => Ok(keyed.has(&Key::Word(*word))),
            _ => self.has_row_of_bytes(list, key),
        }
    }

    /// Gives a key if there is a row at it, or none; whether there is.
    #[inline(always)]
    pub(super) fn key_now(&mut self, out: Register, list: u32, key: Register) -> Result<bool, Fault> {
        let there = self.has_row(list, key)?;
        match self.get(key) {
            _ if !there => self.set(out, Value::None),
            Value::Word(word) => self.set_word(out, *word),
            value => self.set(out, value.clone()),
        }
        Ok(there)
    }

    fn has_row_of_bytes(&mut self, list: u32, key: Register) -> Result<bool, Fault> {
        Ok(self.find(list, key)?.is_some())
    }

    pub(super) fn field_there(
        &mut self,
        out: Register,
        list: u32,
        key: Register,
        field: u16,
    ) -> Result<(), Fault> {
        if let (Value::Word(word), Some(keyed)) = (self.get(key), self.state.keyed(list))
            && let Some(slot) = keyed.find(&Key::Word(*word))
            && let Some(found) = keyed.plain_word(slot, field)
        {
            self.set_word(out, found);
            return Ok(());
        }
        let Some(key) = self.key(key)? else { return Err(self.no_such_row(list)) };
        if let Key::Bytes(bytes) = &key {
            self.charge_search(list, bytes.len(), 1)?;
        }
        let keyed = self.keyed(list)?;
        let Some(slot) = keyed.find(&key) else { return Err(self.no_such_row(list)) };
        let value = keyed.value(slot, field);
        self.set(out, value);
        Ok(())
    }

    /// A field of the row that a cursor is at: of the entry that it is at, where that has it, else of the row.
    pub(super) fn field_of(
        &mut self,
        out: Register,
        cursor: u16,
        list: u32,
        field: u16,
    ) -> Result<(), Fault> {
        let place = &self.room.cursors[self.running.first_cursor + cursor as usize];
        if let Some(word) = place.word_of(field) {
            debug_assert!(self.is_of_row(cursor, list, field, word), "an entry has what its row has");
            self.set_word(out, word);
            return Ok(());
        }
        let keyed = self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let key = place.key();
        let slot = place.slot().or_else(|| keyed.find(key.as_ref()?));
        let slot = slot.ok_or_else(|| Fault::unproven("a row"))?;
        let value = keyed.value(slot, field);
        if let Some(Key::Bytes(bytes)) = key {
            self.charge_search(list, bytes.len(), 1)?;
        }
        self.set(out, value);
        Ok(())
    }

    /// Whether the row that a cursor is at has this word in a field, if it is still there.
    fn is_of_row(&self, cursor: u16, list: u32, field: u16, word: i64) -> bool {
        let place = &self.room.cursors[self.running.first_cursor + cursor as usize];
        let row = self.state.keyed(list).zip(place.key());
        let row = row.and_then(|(keyed, key)| keyed.find(&key).map(|slot| keyed.value(slot, field)));
        row.is_none_or(|value| value == Value::Word(word))
    }

    /// Adds a row whose fields stand in registers; gives its key.
    pub(super) fn add_fields(
        &mut self,
        list: u32,
        first: Register,
        count: u16,
        out: Register,
    ) -> Result<(), Fault> {
        if let Some(key) = self.add_plain(list, first, count)? {
            self.set_word(out, key);
            return Ok(());
        }
        self.budget.bytes(count as usize * size_of::<Value>())?;
        let from = self.running.base + first as usize;
        let fields = from..from + count as usize;
        let layout = self.keyed(list)?.layout();
        let size = layout.fields_size(&self.room.registers[fields.clone()], &layout.keys);
        if size > KEY_BYTES_MAX {
            return Err(long_key(self.module.list(list)));
        }
        let key = layout.key_of(&self.room.registers[fields.clone()]);
        self.budget.bytes(size)?;
        self.charge_new(list, &key)?;
        self.charge_put(list, &key)?;
        let keyed = self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        if !keyed.layout().holds(&self.room.registers[fields.clone()]) {
            return Err(Fault::of_another_type());
        }
        if !keyed.layout().indexes.is_empty() {
            let row = self.room.registers[fields.clone()].to_vec();
            self.charge_entries(list, &key, None, Some(&row))?;
        }
        let pages = self.keyed(list)?.page_bytes();
        self.state.changed().add(list, key.clone(), &self.room.registers[fields])?;
        self.charge_pages(list, pages)?;
        self.set(out, key.into_value());
        Ok(())
    }

    /// Does all of `add_fields` for a new row of a list by one plain word without an index, at the same price; none, and
    /// nothing done, where it is another list, the key is there or what is left is not enough.
    fn add_plain(&mut self, list: u32, first: Register, count: u16) -> Result<Option<i64>, Fault> {
        let from = self.running.base + first as usize;
        let row = &self.room.registers[from..from + count as usize];
        let Some(keyed) = self.state.keyed(list) else { return Ok(None) };
        let layout = keyed.layout();
        let ([field], true, true) = (layout.keys.as_slice(), layout.by_word, layout.indexes.is_empty())
        else {
            return Ok(None);
        };
        let Some(Value::Word(word)) = row.get(*field as usize) else { return Ok(None) };
        let key = Key::Word(*word);
        if keyed.has(&key) || !layout.holds(row) {
            return Ok(None);
        }
        let made = size_of_val(row);
        let operations = made as u64 / 16 + layout.kinds.len() as u64;
        if self.budget.charge(operations, (made + 2 * size_of::<i64>()) as u64).is_none() {
            return Ok(None);
        }
        let (word, pages) = (*word, keyed.page_bytes());
        self.state.changed().add(list, key, row)?;
        self.charge_pages(list, pages)?;
        Ok(Some(word))
    }

    pub(super) fn set_field(
        &mut self,
        list: u32,
        key: Register,
        field: u16,
        value: Register,
    ) -> Result<(), Fault> {
        if let (Value::Word(key), Value::Word(word)) = (self.get(key), self.get(value)) {
            let (key, word) = (*key, *word);
            if self.state.changed().set_plain(list, key, field, word)? {
                return Ok(());
            }
        }
        let value = self.get(value).clone();
        self.set_any_field(list, key, field, value)
    }

    /// A field's value calculated from what it was.
    pub(super) fn update_field(
        &mut self,
        operator: Arithmetic,
        (list, key, field): (u32, Register, u16),
        right: Register,
    ) -> Result<(), Fault> {
        let right = self.word(right)?;
        if let Value::Word(key) = *self.get(key) {
            let calculate = |before| values::calculate(operator, before, right);
            if self.state.changed().update_plain(list, key, field, calculate)? {
                return Ok(());
            }
        }
        let Some(found) = self.key(key)? else { return Err(self.no_such_row(list)) };
        self.charge_search(list, found.len(), 1)?;
        let keyed = self.keyed(list)?;
        let slot = keyed.find(&found).ok_or_else(|| self.no_such_row(list))?;
        let Value::Word(before) = keyed.value(slot, field) else { return Err(Fault::unproven("a word")) };
        let value = Value::Word(values::calculate(operator, before, right)?);
        self.charge_search(list, found.len(), 3)?;
        self.set_found_field(list, (found, slot), field, value)
    }

    fn set_any_field(&mut self, list: u32, key: Register, field: u16, value: Value) -> Result<(), Fault> {
        let Some(key) = self.key(key)? else { return Err(self.no_such_row(list)) };
        // What was there, what comes there, and that it was touched.
        self.charge_search(list, key.len(), 3)?;
        let Some(slot) = self.keyed(list)?.find(&key) else { return Err(self.no_such_row(list)) };
        self.set_found_field(list, (key, slot), field, value)
    }

    fn set_found_field(
        &mut self,
        list: u32,
        (key, slot): (Key, Slot),
        field: u16,
        value: Value,
    ) -> Result<(), Fault> {
        // Whether larger values are the same is seen at the end, once.
        if let Value::Word(word) = value
            && self.keyed(list)?.value(slot, field) == Value::Word(word)
        {
            return Ok(());
        }
        if !self.keyed(list)?.layout().kinds.get(field as usize).is_some_and(|kind| is_of(&value, kind)) {
            return Err(Fault::of_another_type());
        }
        self.charge_moved_entries(list, (&key, slot), field, &value)?;
        self.state.changed().set(list, (key, slot), field, value)
    }

    fn no_such_row(&self, list: u32) -> Fault {
        Fault::Refused(format!("`{}` has no such row", self.module.list(list).name))
    }

    fn remove_row(&mut self, list: u32, key: Register) -> Result<(), Fault> {
        let Some(key) = self.key(key)? else { return Ok(()) };
        self.charge_search(list, key.len(), 3)?;
        self.charge_fields(list)?;
        let keyed = self.keyed(list)?;
        let (layout, int_key) = (keyed.layout(), keyed.layout().int_key());
        if !layout.indexes.is_empty() {
            let before = keyed.find(&key).map(|slot| keyed.row(slot));
            self.charge_entries(list, &key, before.as_deref(), None)?;
        }
        // A number that a removed row had is not given out again.
        let number = match (int_key, &key) {
            (Some(_), Key::Word(number)) => Some(*number),
            _ => None,
        };
        match (self.state.changed().remove(list, key)?, number) {
            (true, Some(number)) if list < SCRATCH => self.state.changed().count_up(list, number),
            _ => Ok(()),
        }
    }

    pub(super) fn next_id(&mut self, list: u32) -> Result<i64, Fault> {
        let greatest = self.keyed(list)?.greatest();
        let next =
            greatest.checked_add(1).ok_or_else(|| Fault::Refused("the list has no numbers left".into()))?;
        self.state.changed().count_up(list, next)?;
        Ok(next)
    }
}
