//! Keys and index entries: how long they may be, and what making and finding them costs.

use super::Machine;
use crate::budget::{COMPARED_BYTES, ENTRY_OPERATIONS, Fault, KEY_BYTES_MAX, VALUE_BYTES, search_operations};
use crate::codec;
use crate::keyed::{Key, Row, is_plain_word, key_size, same_fields};
use crate::table::{Keyed, Slot};
use weft::Value;
use weft::code::Register;
use weft::module::{self, ListKind, Module};

impl Machine<'_> {
    pub(super) fn keyed(&self, list: u32) -> Result<&Keyed, Fault> {
        self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))
    }

    /// The key of a row of a list.
    pub(super) fn key_of(&mut self, list: u32, row: &[Value]) -> Result<Key, Fault> {
        let layout = self.keyed(list)?.layout();
        let size = layout.fields_size(row, &layout.keys);
        if size > KEY_BYTES_MAX {
            return Err(long_key(self.module.list(list)));
        }
        let key = layout.key_of(row);
        self.budget.bytes(size)?;
        Ok(key)
    }

    /// Whether a word in a register is a key of a list as it stands.
    #[inline]
    pub(super) fn is_key(&self, list: u32, register: Register) -> bool {
        matches!(self.get(register), Value::Word(_))
            && self.state.keyed(list).is_some_and(|keyed| keyed.layout().by_word)
    }

    /// A key from the values of its fields; none of one that is too long: no row has it.
    pub(super) fn make_key(
        &mut self,
        out: Register,
        list: u32,
        first: Register,
        count: u16,
    ) -> Result<(), Fault> {
        let layout = self.keyed(list)?.layout();
        let values = self.several(first, count);
        let kinds = layout.keys.iter().map(|field| &layout.kinds[*field as usize]);
        let parts = values.iter().zip(kinds);
        let size = parts.clone().map(|(value, kind)| key_size(value, kind)).sum();
        if size > KEY_BYTES_MAX {
            self.set(out, Value::None);
            return Ok(());
        }
        let key = match values {
            [Value::Word(word)] if layout.by_word => Value::Word(*word),
            _ => {
                let mut key = Vec::with_capacity(size);
                for (value, kind) in parts {
                    codec::put_key(value, kind, &mut key);
                }
                Value::Key(key.into())
            }
        };
        self.budget.bytes(size)?;
        self.set(out, key);
        Ok(())
    }

    /// The key in a register, if there is a row at it now.
    pub(super) fn find(&mut self, list: u32, key: Register) -> Result<Option<Key>, Fault> {
        let Some(key) = self.key(key)? else { return Ok(None) };
        self.charge_search(list, key.len(), 1)?;
        Ok(Some(key).filter(|key| self.state.keyed(list).is_some_and(|keyed| keyed.find(key).is_some())))
    }

    /// The row in a list by the key in a register.
    pub(super) fn row(&mut self, list: u32, key: Register) -> Result<Option<Row>, Fault> {
        let Some(key) = self.key(key)? else { return Ok(None) };
        self.charge_search(list, key.len(), 1)?;
        let keyed = self.keyed(list)?;
        let (slot, size) = (keyed.find(&key), keyed.layout().kinds.len() * VALUE_BYTES);
        let Some(slot) = slot else { return Ok(None) };
        self.budget.bytes(size)?;
        Ok(Some(self.keyed(list)?.row(slot)))
    }

    /// Charges putting or removing a row.
    pub(super) fn charge_fields(&mut self, list: u32) -> Result<(), Fault> {
        let fields = self.keyed(list)?.layout().kinds.len();
        self.budget.operations(fields as u64)
    }

    /// Charges finding the place of so many bytes among the rows of a list.
    pub(super) fn charge_search(&mut self, list: u32, bytes: usize, times: u64) -> Result<(), Fault> {
        if bytes < COMPARED_BYTES {
            return Ok(());
        }
        let count = self.state.keyed(list).map_or(0, Keyed::len);
        self.budget.operations(search_operations(bytes, count).saturating_mul(times))
    }

    /// Charges the index entries that change when the row at a key becomes another one, or goes.
    pub(super) fn charge_entries(
        &mut self,
        list: u32,
        key: &Key,
        before: Option<&[Value]>,
        after: Option<&[Value]>,
    ) -> Result<(), Fault> {
        let keyed = self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let layout = keyed.layout();
        for fields in &layout.indexes {
            if same_fields(before, after, fields) {
                continue;
            }
            let size = |row: &[Value]| layout.fields_size(row, fields) + key.len();
            if after.is_some_and(|after| size(after) > KEY_BYTES_MAX) {
                return Err(long_entry(self.module.list(list), fields, self.module));
            }
            for size in before.into_iter().chain(after).map(size) {
                self.budget.bytes(size)?;
                self.budget.operations(ENTRY_OPERATIONS + search_operations(size, keyed.len()))?;
            }
        }
        Ok(())
    }

    /// Charges the index entries that move when a field of a row gets another value.
    pub(super) fn charge_moved_entries(
        &mut self,
        list: u32,
        (key, slot): (&Key, Slot),
        field: u16,
        value: &Value,
    ) -> Result<(), Fault> {
        let keyed = self.state.keyed(list).ok_or_else(|| Fault::unproven("a keyed list"))?;
        let layout = keyed.layout();
        for fields in layout.indexes.iter().filter(|fields| fields.contains(&field)) {
            let size = |at: &u16| match &layout.kinds[*at as usize] {
                kind if is_plain_word(kind) => size_of::<i64>(),
                kind => key_size(&keyed.value(slot, *at), kind),
            };
            let before: usize = fields.iter().map(size).sum();
            let after = before - size(&field) + key_size(value, &layout.kinds[field as usize]);
            if after + key.len() > KEY_BYTES_MAX {
                return Err(long_entry(self.module.list(list), fields, self.module));
            }
            for size in [before + key.len(), after + key.len()] {
                self.budget.bytes(size)?;
                self.budget.operations(ENTRY_OPERATIONS + search_operations(size, keyed.len()))?;
            }
        }
        Ok(())
    }
}

pub(super) fn long_key(list: &module::List) -> Fault {
    Fault::Refused(format!("a key of `{}` is longer than {KEY_BYTES_MAX} bytes", list.name))
}

fn long_entry(list: &module::List, fields: &[u16], module: &Module) -> Fault {
    let ListKind::Keyed { record, .. } = &list.kind else { return Fault::unproven("a keyed list") };
    let record = &module.records[*record as usize];
    let names: Vec<&str> = fields.iter().map(|field| record.fields[*field as usize].name.as_str()).collect();
    let (names, list) = (names.join(", "), &list.name);
    Fault::Refused(format!(
        "an entry of the index `{names}` of `{list}`, its row's key behind it, is longer than {KEY_BYTES_MAX} bytes"
    ))
}
