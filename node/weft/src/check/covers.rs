//! Which fields the entries of an index have beside, so that loops over the index read them without looking for the row.
//!
//! A field is covered where a loop over the index reads it, it is of a plain word, and no code assigns it: rows that are
//! only added, put and removed write the entry anyway.

use super::Checker;
use super::expressions::is_plain_word;
use crate::code::{Operation, Order, Over, Rows};
use crate::module::SCRATCH;
use std::collections::{HashMap, HashSet};

impl Checker<'_> {
    /// Notes what indexes cover, when all code is there.
    pub(super) fn cover(&mut self) {
        let mut assigned: HashSet<(u32, u16)> = HashSet::new();
        let mut read: Vec<(u32, u16, u16)> = Vec::new();
        for function in &self.module.functions {
            let mut opened: HashMap<u16, Rows> = HashMap::new();
            for operation in &function.code {
                assigned.extend(operation.assigns());
                match operation {
                    Operation::Open { cursor, over: Over::Rows(rows) } => drop(opened.insert(*cursor, *rows)),
                    Operation::FieldOf { cursor, list, field, .. }
                    | Operation::NextWhere { cursor, list, field, .. }
                    | Operation::Fold { cursor, list, field, .. } => {
                        let rows = opened.get(cursor).filter(|rows| rows.order != Order::ByKey);
                        if let Some(index) = rows.and_then(|rows| rows.index) {
                            read.push((*list, index, *field));
                        }
                    }
                    // What is read in another way is read of the row.
                    _ => {}
                }
            }
        }
        read.sort_unstable();
        read.dedup();
        for (list, index, field) in read {
            let Some((record, keys, indexes)) = self.keyed(list) else { continue };
            let is_there = keys.contains(&field) || indexes[index as usize].contains(&field);
            let is_word = is_plain_word(&self.record(record).fields[field as usize].kind);
            if is_there || !is_word || assigned.contains(&(list, field)) {
                continue;
            }
            let lists = match list.checked_sub(SCRATCH) {
                Some(local) => self.module.scratch.get_mut(local as usize),
                None => self.module.lists.get_mut(list as usize),
            };
            if let Some(covers) = lists.and_then(|list| list.covers.get_mut(index as usize)) {
                covers.push(field);
            }
        }
    }
}
