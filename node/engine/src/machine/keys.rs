//! Keys and index entries: how long they may be, and what making and finding them costs.

use super::Machine;
use crate::budget::{Fault, KEY_BYTES_MAX, search_operations};
use crate::codec;
use crate::state::{Key, Row, same_fields};
use weft::Value;
use weft::code::Register;
use weft::module::{self, ListKind, Module, Type};

impl Machine<'_> {
    /// The key of a row of a list.
    pub(super) fn key_of(&mut self, list: u32, row: &[Value]) -> Result<Key, Fault> {
        let module = self.module;
        let declared = module.list(list);
        let ListKind::Keyed { record, keys, .. } = &declared.kind else {
            return Err(Fault::unproven("a keyed list"));
        };
        let size = fields_size(row, *record, keys, module);
        if size > KEY_BYTES_MAX {
            return Err(long_key(declared));
        }
        self.budget.bytes(size)?;
        Ok(codec::key_of(row, list, module))
    }

    /// A key, or the beginning of one or of an index's entries, from the values of its fields.
    pub(super) fn make_key(
        &mut self,
        out: Register,
        list: u32,
        index: Option<u16>,
        first: Register,
        count: u16,
    ) -> Result<(), Fault> {
        let module = self.module;
        let declared = module.list(list);
        let ListKind::Keyed { record, keys, indexes } = &declared.kind else {
            return Err(Fault::unproven("a keyed list"));
        };
        let fields = index.map_or(keys, |index| &indexes[index as usize]);
        let kinds = fields.iter().map(|field| &module.records[*record as usize].fields[*field as usize].kind);
        let parts = self.several(first, count).iter().zip(kinds);
        let size = parts.clone().map(|(value, kind)| key_size(value, kind)).sum();
        if size > KEY_BYTES_MAX {
            return Err(index.map_or_else(|| long_key(declared), |_| long_entry(declared, fields, module)));
        }
        let mut key = Vec::with_capacity(size);
        for (value, kind) in parts {
            codec::put_key(value, kind, &mut key);
        }
        self.budget.bytes(size)?;
        self.set(out, Value::Key(key.into()));
        Ok(())
    }

    /// The row in a list by the key in a register.
    pub(super) fn find(&mut self, list: u32, key: Register) -> Result<Option<Row>, Fault> {
        let Some(key) = self.key(key)?.cloned() else { return Ok(None) };
        self.charge_search(list, key.len(), 1)?;
        Ok(self.state.row(list, &key).cloned())
    }

    /// Charges finding the place of so many bytes among the rows of a list.
    pub(super) fn charge_search(&mut self, list: u32, bytes: usize, times: u64) -> Result<(), Fault> {
        let count = self.state.keyed(list).map_or(0, |keyed| keyed.rows.len());
        self.budget.operations(search_operations(bytes, count).saturating_mul(times))
    }

    /// Charges the index entries that change when the row at a key becomes another one, or goes.
    pub(super) fn charge_entries(
        &mut self,
        list: u32,
        key: &[u8],
        before: Option<&Row>,
        after: Option<&Row>,
    ) -> Result<(), Fault> {
        let module = self.module;
        let declared = module.list(list);
        let ListKind::Keyed { record, indexes, .. } = &declared.kind else { return Ok(()) };
        for fields in indexes {
            if same_fields(before, after, fields) {
                continue;
            }
            let size = |row: &Row| fields_size(row, *record, fields, module) + key.len();
            if after.is_some_and(|after| size(after) > KEY_BYTES_MAX) {
                return Err(long_entry(declared, fields, module));
            }
            for size in before.into_iter().chain(after).map(size) {
                self.budget.bytes(size)?;
                self.charge_search(list, size, 1)?;
            }
        }
        Ok(())
    }
}

fn long_key(list: &module::List) -> Fault {
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

/// Bytes of some fields of a row in a key, without making it.
fn fields_size(row: &[Value], record: u32, fields: &[u16], module: &Module) -> usize {
    let kinds = &module.records[record as usize].fields;
    fields.iter().map(|field| key_size(&row[*field as usize], &kinds[*field as usize].kind)).sum()
}

/// Bytes of a value in a key, as [`codec::put_key`] writes it.
fn key_size(value: &Value, kind: &Type) -> usize {
    match (kind, value) {
        (Type::Optional(_), Value::None) => 1,
        (Type::Optional(inner), value) => 1 + key_size(value, inner),
        (_, Value::Word(_) | Value::Real(_)) => 8,
        (_, Value::Node(node)) => node.len(),
        (_, Value::Text(text)) => escaped_size(text.as_bytes()),
        (_, Value::Bytes(bytes)) => escaped_size(bytes),
        _ => 0,
    }
}

/// Each 0 takes two bytes, and two end it. What is too long anyway is not read.
fn escaped_size(bytes: &[u8]) -> usize {
    let zeros = if bytes.len() > KEY_BYTES_MAX { 0 } else { bytes.iter().filter(|byte| **byte == 0).count() };
    bytes.len() + zeros + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_that_of_the_bytes() {
        let optional = Type::Optional(std::sync::Arc::new(Type::Text));
        for (value, kind) in [
            (Value::Word(-1), Type::Int),
            (Value::Real(weft::value::Real::ZERO), Type::Real),
            (Value::Node([7; 32].into()), Type::Node),
            (Value::Text("".into()), Type::Text),
            (Value::Text("a\0b\0".into()), Type::Text),
            (Value::Bytes([0, 255, 0].as_slice().into()), Type::Bytes),
            (Value::None, optional.clone()),
            (Value::Text("ann".into()), optional),
        ] {
            let mut bytes = Vec::new();
            codec::put_key(&value, &kind, &mut bytes);
            assert_eq!(key_size(&value, &kind), bytes.len(), "{value:?}");
        }
    }
}
