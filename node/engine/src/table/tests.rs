//! A table is what a sorted map of its rows is, whatever happened to it, and a copy stays what it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::{Keyed, Slot, Source, Unchangeable};
use crate::codec;
use crate::keyed::{Key, Layout, Range};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use weft::Value;
use weft::module::Type;
use weft::value::Real;

/// SplitMix64: as good as any here, and the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The rows by the bytes of their keys.
type Model = BTreeMap<Vec<u8>, Vec<Value>>;

struct Pair {
    table: Keyed,
    model: Model,
}

fn optional(kind: Type) -> Type {
    Type::Optional(Arc::new(kind))
}

/// A value among few, so that things meet.
fn value(kind: &Type, random: &mut Random, many: u64) -> Value {
    match kind {
        Type::Optional(_) if random.below(4) == 0 => Value::None,
        Type::Optional(inner) => value(inner, random, many),
        Type::Real => {
            Value::Real(Real::new(random.below(many) as f64 - many as f64 / 2.0).unwrap_or(Real::ZERO))
        }
        Type::Node => {
            let mut node = [0; 32];
            node[random.below(32) as usize] = random.below(many) as u8;
            Value::Node(Arc::new(node))
        }
        Type::Text => {
            let texts = ["", "a", "a\0", "a\0b", "b", "a long text that is longer than eight", "\u{ffff}"];
            let text = texts[random.below(texts.len() as u64) as usize];
            Value::Text(format!("{text}{}", random.below(many / 4 + 1)).into())
        }
        Type::Bytes => Value::Bytes(vec![255; random.below(3) as usize].into()),
        _ => Value::Word(random.below(many) as i64 - many as i64 / 2),
    }
}

pub(super) fn layout(kinds: &[Type], keys: &[u16], indexes: &[&[u16]], covers: &[&[u16]]) -> Arc<Layout> {
    let by_word = keys.len() == 1 && crate::keyed::is_plain_word(&kinds[keys[0] as usize]);
    let owned = |lists: &[&[u16]]| lists.iter().map(|list| list.to_vec()).collect();
    let (indexes, covers) = (owned(indexes), owned(covers));
    Arc::new(Layout { kinds: kinds.to_vec(), keys: keys.to_vec(), indexes, covers, by_word })
}

impl Pair {
    fn new(layout: &Arc<Layout>) -> Pair {
        Pair { table: Keyed::new(Arc::clone(layout)), model: Model::new() }
    }

    fn key(&self, row: &[Value]) -> (Key, Vec<u8>) {
        let key = self.table.layout().key_of(row);
        let bytes = key.to_bytes();
        (key, bytes)
    }

    fn put(&mut self, row: Vec<Value>) {
        let (key, bytes) = self.key(&row);
        let before = self.table.put(&key, &row).unwrap();
        assert_eq!(before.as_deref(), self.model.insert(bytes, row).as_deref());
    }

    fn remove(&mut self, row: &[Value]) {
        let (key, bytes) = self.key(row);
        let before = self.table.remove(&key);
        assert_eq!(before.as_deref(), self.model.remove(&bytes).as_deref());
        let last = self.model.keys().next_back().and_then(|bytes| self.table.layout().read_key(bytes));
        assert_eq!(self.table.last(), last);
    }

    fn set(&mut self, row: &[Value], field: u16, value: Value) {
        let (key, bytes) = self.key(row);
        let slot = self.table.find(&key);
        assert_eq!(slot.is_some(), self.model.contains_key(&bytes));
        assert_eq!(slot.is_some(), self.table.has(&key));
        if let (Some(slot), Some(row)) = (slot, self.model.get_mut(&bytes)) {
            let before = self.table.set((&key, slot), field, value.clone());
            assert_eq!(before, std::mem::replace(&mut row[field as usize], value));
        }
    }

    /// A row that is there or could be.
    fn some(&self, random: &mut Random, many: u64) -> Vec<Value> {
        let kinds = &self.table.layout().kinds;
        match self.table.len() as u64 {
            0 => kinds.iter().map(|kind| value(kind, random, many)).collect(),
            count if random.below(4) > 0 => self.table.row(Slot(random.below(count) as u32)).to_vec(),
            _ => kinds.iter().map(|kind| value(kind, random, many)).collect(),
        }
    }

    /// The rows in the order of some fields and then of the key.
    fn sorted(&self, fields: &[u16]) -> Vec<&Vec<Value>> {
        let layout = self.table.layout();
        let mut rows: Vec<(Vec<u8>, &Vec<Value>)> = Vec::new();
        for (key, row) in &self.model {
            let mut entry = Vec::new();
            for field in fields {
                codec::put_key(&row[*field as usize], &layout.kinds[*field as usize], &mut entry);
            }
            entry.extend_from_slice(key);
            rows.push((entry, row));
        }
        rows.sort_by(|left, right| left.0.cmp(&right.0));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.model.len());
        for (bytes, row) in &self.model {
            let key = self.table.layout().read_key(bytes).unwrap();
            assert!(self.table.has(&key));
            let slot = self.table.find(&key).unwrap();
            assert_eq!(&*self.table.row(slot), row.as_slice());
            assert_eq!(self.table.key(slot), key);
        }
        let last = self.model.keys().next_back().map(|bytes| self.table.layout().read_key(bytes).unwrap());
        assert_eq!(self.table.last(), last);
    }

    /// Walks and counts a range of the key or of an index, both ways, and leaves out what is alike.
    fn check_range(&self, index: Option<u16>, random: &mut Random, many: u64) {
        let layout = Arc::clone(self.table.layout());
        let fields = index.map_or(&layout.keys, |index| &layout.indexes[index as usize]);
        let equal = random.below(fields.len() as u64 + 1) as usize;
        let sample = self.some(random, many);
        let values: Vec<Value> =
            fields[..equal].iter().map(|field| sample[*field as usize].clone()).collect();
        let next = fields.get(equal).map(|field| layout.kinds[*field as usize].clone());
        let ends = next.map(|kind| (value(&kind, random, many), value(&kind, random, many)));
        let bound = |value: Option<&'_ Value>, which: u64| match (value.cloned(), which) {
            (Some(value), 1) => Bound::Included(value),
            (Some(value), 2) => Bound::Excluded(value),
            _ => Bound::Unbounded,
        };
        let from = bound(ends.as_ref().map(|ends| &ends.0), random.below(3));
        let upto = bound(ends.as_ref().map(|ends| &ends.1), random.below(3));
        let range = Range { equal: &values, from: from.as_ref(), upto: upto.as_ref() };
        let is_in = |row: &&Vec<Value>| {
            let at = |place: usize| &row[fields[place] as usize];
            let is_above =
                |value: &Value, than: &Value| value.compare(than, &mut 1000) == Some(Ordering::Greater);
            (0..equal).all(|place| *at(place) == values[place])
                && match &from {
                    Bound::Unbounded => true,
                    Bound::Included(value) => !is_above(value, at(equal)),
                    Bound::Excluded(value) => is_above(at(equal), value),
                }
                && match &upto {
                    Bound::Unbounded => true,
                    Bound::Included(value) => !is_above(at(equal), value),
                    Bound::Excluded(value) => is_above(value, at(equal)),
                }
        };
        let sorted = self.sorted(index.map_or(&[], |index| &layout.indexes[index as usize]));
        let expected: Vec<Key> = sorted.into_iter().filter(is_in).map(|row| layout.key_of(row)).collect();
        let count = match index {
            Some(index) => self.table.count_index(index, &range),
            None => self.table.count(&range),
        };
        assert_eq!(count, expected.len(), "{range:?}");
        for backward in [false, true] {
            let mut walk = match index {
                Some(index) => self.table.walk_index(index, &range, backward),
                None => self.table.walk(&range, backward),
            };
            let copy = walk.clone();
            let mut found = Vec::new();
            while walk.advance() {
                let key = walk.key().unwrap();
                let slot = self.table.find(&key).unwrap();
                assert!(index.is_some() || walk.slot() == Some(slot));
                for field in 0..layout.kinds.len() as u16 {
                    if let Some(word) = walk.word_of(field) {
                        assert_eq!(word, self.table.word(slot, field));
                    }
                }
                found.push(key);
            }
            assert!(!walk.advance());
            if backward {
                found.reverse();
            }
            assert_eq!(found, expected, "{range:?}");
            if let Some(index) = index {
                self.check_distinct(copy, index, &found);
            }
        }
    }

    /// Each value of an index's fields once.
    fn check_distinct(&self, mut walk: super::Walk, index: u16, found: &[Key]) {
        let fields = &self.table.layout().indexes[index as usize];
        let of = |key: &Key| {
            let slot = self.table.find(key).unwrap();
            fields.iter().map(|field| self.table.value(slot, *field)).collect::<Vec<Value>>()
        };
        let mut expected: Vec<Vec<Value>> = found.iter().map(of).collect();
        expected.dedup();
        let mut distinct = Vec::new();
        while walk.advance() {
            distinct.push(of(&walk.key().unwrap()));
            walk.skip(fields.len());
        }
        assert_eq!(distinct.len(), expected.len());
        assert!(distinct.iter().all(|value| expected.contains(value)));
    }
}

fn history(layout: &Arc<Layout>, seed: u64, many: u64, steps: u64) {
    let mut random = Random(seed);
    let mut pair = Pair::new(layout);
    let mut kept: Vec<Pair> = Vec::new();
    let kinds = layout.kinds.clone();
    let mut grows = true;
    for step in 0..steps {
        if step % (steps / 4) == 0 {
            grows = !grows || step == 0;
        }
        let row = pair.some(&mut random, many);
        match random.below(10) {
            0..=5 if grows => {
                let row = kinds.iter().map(|kind| value(kind, &mut random, many)).collect();
                pair.put(row);
            }
            0..=5 => pair.remove(&row),
            6 => pair.put(row),
            _ => {
                let field = random.below(kinds.len() as u64) as u16;
                if !layout.keys.contains(&field) {
                    let value = value(&kinds[field as usize], &mut random, many);
                    pair.set(&row, field, value);
                }
            }
        }
        if random.below(steps / 16 + 1) == 0 {
            kept.push(Pair { table: pair.table.clone(), model: pair.model.clone() });
        }
        if random.below(steps / 64 + 1) == 0 {
            pair.check_range(None, &mut random, many);
            for index in 0..layout.indexes.len() as u16 {
                pair.check_range(Some(index), &mut random, many);
            }
        }
    }
    kept.push(pair);
    for pair in &kept {
        pair.check();
        for _ in 0..4 {
            pair.check_range(None, &mut random, many);
            for index in 0..layout.indexes.len() as u16 {
                pair.check_range(Some(index), &mut random, many);
            }
        }
    }
    let mut pair = kept.pop().unwrap();
    pair.table.clear();
    pair.model.clear();
    pair.check();
    pair.put(kinds.iter().map(|kind| value(kind, &mut random, many)).collect());
    pair.check();
}

#[test]
fn a_table_is_what_a_map_is() {
    let plain = [Type::Int, Type::Int, Type::Bool, optional(Type::Int), Type::Real, optional(Type::Real)];
    let mixed = [Type::Text, Type::Int, Type::Node, optional(Type::Text), Type::Bytes, optional(Type::Node)];
    for (seed, layout) in [
        layout(&plain, &[0], &[&[1], &[2, 1]], &[&[2], &[]]),
        layout(&plain, &[1], &[&[3], &[4, 0], &[5]], &[&[0], &[0, 2], &[]]),
        layout(&plain, &[0, 1], &[&[2], &[3, 4]], &[&[], &[2]]),
        layout(&plain, &[3, 4], &[&[0]], &[&[1, 2]]),
        layout(&mixed, &[1], &[&[0], &[2], &[3, 1]], &[]),
        layout(&mixed, &[0], &[&[1], &[4, 2]], &[]),
        layout(&mixed, &[2], &[&[1], &[0]], &[]),
        layout(&mixed, &[0, 1], &[&[3], &[5, 4]], &[]),
        layout(&mixed, &[5], &[&[2, 1]], &[]),
        layout(&mixed, &[4, 3, 1], &[&[3]], &[]),
    ]
    .iter()
    .enumerate()
    {
        for (many, steps) in [(12, 300), (120, 800), (2_000, 2_000)] {
            history(layout, seed as u64, many, steps);
        }
    }
}

/// The words of a history of a list by one int and with an index, whose keys are made so.
fn word_history(key: impl Fn(u64) -> i64, rows: u64) {
    let layout = layout(&[Type::Int, Type::Int], &[0], &[&[1]], &[&[]]);
    let mut pair = Pair::new(&layout);
    let mut random = Random(rows);
    let row = |at: u64| vec![Value::Word(key(at)), Value::Word(at as i64 % 7)];
    for round in 0..2 {
        for at in 0..rows {
            pair.put(row(at));
        }
        pair.check();
        // Of a tenth, so that a table of places becomes a tree, and the other way round in the next round.
        for at in (0..rows).filter(|at| at % 10 != round) {
            pair.remove(&row(at));
            if random.below(rows / 8) == 0 {
                pair.check_range(None, &mut random, rows);
                pair.check_range(Some(0), &mut random, 7);
            }
        }
        pair.check();
    }
    for at in 0..rows {
        pair.remove(&row(at));
    }
    pair.check();
}

#[test]
fn keys_at_the_ends_of_numbers_and_far_apart() {
    word_history(|at| at as i64, 3_000);
    word_history(|at| -(at as i64), 3_000);
    word_history(|at| i64::MAX - at as i64, 3_000);
    word_history(|at| i64::MIN + at as i64, 3_000);
    word_history(|at| if at % 2 == 0 { i64::MIN + at as i64 } else { i64::MAX - at as i64 }, 1_000);
    word_history(|at| (at as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64), 3_000);
    word_history(|at| at as i64 * 5, 3_000);
    word_history(|at| if at < 1_000 { at as i64 } else { at as i64 * 1_000_003 }, 1_100);
}

/// What happens to rows whose indexed value is made so of a number below `many`; which forms the index had.
fn run_history(value_of: fn(u64) -> i64, many: u64, rows: u64) -> Vec<bool> {
    let kinds = [Type::Int, Type::Int, Type::Int, Type::Bool];
    let layout = layout(&kinds, &[0], &[&[1], &[1, 2], &[3, 1]], &[&[3, 2], &[], &[2]]);
    let mut pair = Pair::new(&layout);
    let mut random = Random(many);
    let mut forms = Vec::new();
    let row = |random: &mut Random| {
        let words = [random.below(2 * rows), random.below(many), random.below(9), random.below(2)];
        // Now and then one that takes more than 32 bits.
        let wide = match random.below(300) {
            0 => i64::from(i32::MAX) + 1,
            1 => i64::MIN,
            _ => words[2] as i64,
        };
        let words = [words[0] as i64, value_of(words[1]), wide, words[3] as i64];
        words.map(Value::Word).to_vec()
    };
    let mut kept = Vec::new();
    // Grows, changes, goes down to some and to none, and all again.
    for (put, remove, steps) in
        [(9, 1, 2 * rows), (2, 2, rows), (1, 9, rows), (9, 1, rows), (1, 30, 4 * rows)]
    {
        for step in 0..steps {
            let there = pair.some(&mut random, many);
            let fresh = row(&mut random);
            match random.below(put + remove + 4) {
                at if at < put => pair.put(fresh),
                at if at < put + remove => pair.remove(&there),
                at => {
                    let field = 1 + (at - put - remove) as usize % 3;
                    pair.set(&there, field as u16, fresh[field].clone());
                }
            }
            if step % rows == rows / 2 {
                kept.push(Pair { table: pair.table.clone(), model: pair.model.clone() });
                forms.push(pair.table.indexes[0].is_runs());
                pair.check_run_ranges(&mut random, value_of, many);
            }
        }
    }
    for pair in &kept {
        pair.check();
        pair.check_run_ranges(&mut random, value_of, many);
    }
    forms.dedup();
    forms
}

impl Pair {
    fn check_run_ranges(&self, random: &mut Random, value_of: fn(u64) -> i64, many: u64) {
        for index in [0, 1, 2] {
            self.check_range(Some(index), random, many);
        }
        // One value, there or not, and nothing before or behind the ends.
        for value in [value_of(random.below(many)), value_of(0) - 1, i64::MIN, i64::MAX].map(Value::Word) {
            let equal = std::slice::from_ref(&value);
            let expected: Vec<&Vec<Value>> =
                self.sorted(&[1]).into_iter().filter(|row| row[1] == value).collect();
            let range = Range { equal, ..Range::ALL };
            assert_eq!(self.table.count_index(0, &range), expected.len());
            for backward in [false, true] {
                let mut walk = self.table.walk_index(0, &range, backward);
                let found = std::iter::from_fn(|| walk.next());
                let mut found: Vec<Key> = found.collect();
                if backward {
                    found.reverse();
                }
                let keys = expected.iter().map(|row| self.table.layout().key_of(row));
                assert_eq!(found, keys.collect::<Vec<Key>>());
            }
        }
    }
}

#[test]
fn an_index_of_values_close_together() {
    let (tree, runs) = (false, true);
    for (value_of, many, rows, forms) in [
        // Some entries a value, some values of very many, at the ends of numbers.
        ((|at| at as i64 * 7 - 1) as fn(u64) -> i64, 300, 14_000, &[tree, runs, tree][..]),
        (|at| at as i64 / 100, 300, 2_500, &[runs]),
        (|at| i64::MIN + 1 + at as i64 % 70, 300, 1_000, &[tree, runs]),
        (|at| i64::MAX - at as i64, 100, 1_000, &[tree, runs]),
        // Too far apart.
        (|at| at as i64 * 1_000, 500, 1_000, &[tree]),
        (|at| if at == 0 { 1 << 40 } else { at as i64 }, 100, 1_000, &[tree]),
    ] {
        assert_eq!(run_history(value_of, many, rows), forms, "{many} {rows}");
    }
}

#[test]
fn long_strings() {
    let layout = layout(&[Type::Text, Type::Text], &[0], &[&[1]], &[]);
    let mut pair = Pair::new(&layout);
    let mut random = Random(1);
    let text = |at: u64| Value::Text(format!("{}{at}", "x".repeat(at as usize * 37 % 2_000)).into());
    for at in 0..600 {
        pair.put(vec![text(at * 7 % 600), text(at % 50)]);
    }
    pair.check();
    for at in 0..600 {
        pair.remove(&[text(at * 11 % 600), Value::None]);
        if at % 50 == 0 {
            pair.check();
            pair.check_range(Some(0), &mut random, 10);
        }
    }
    assert_eq!(pair.table.len(), 0);
}

#[test]
fn a_row_takes_few_bytes_also_after_most_were_removed() {
    let layout = layout(&vec![Type::Int; 5], &[0], &[], &[]);
    const ROWS: u64 = 100_000;
    let dense = (|at| at as i64) as fn(u64) -> i64;
    let random = (|at| Random(at).next() as i64) as fn(u64) -> i64;
    for (most, key, scale) in [(20, dense, 1), (56, dense, 1 << 40), (52, random, 1), (72, random, 1 << 40)] {
        let mut table = Keyed::new(Arc::clone(&layout));
        let mut random = Random(7);
        let row = |at: u64| [key(at), scale, 2 * scale, 3 * scale, at as i64 * scale].map(Value::Word);
        let each = |table: &Keyed| table.memory() as f64 / table.len() as f64;
        for at in 0..ROWS {
            table.put(&Key::Word(key(at)), &row(at)).unwrap();
        }
        assert!(each(&table) <= f64::from(most), "{}", each(&table));
        for at in (0..ROWS).filter(|_| random.below(10) > 0).collect::<Vec<u64>>() {
            table.remove(&Key::Word(key(at)));
        }
        assert!(each(&table) <= 100.0, "{} of {}", each(&table), table.len());
        // As many new ones, behind the last or at random.
        for at in ROWS..2 * ROWS - table.len() as u64 {
            table.put(&Key::Word(key(at)), &row(at)).unwrap();
        }
        assert_eq!(table.len() as u64, ROWS);
        assert!(each(&table) <= f64::from(most), "{}", each(&table));
    }
}

#[test]
fn a_change_copies_nothing_that_no_copy_holds() {
    let layout = layout(&[Type::Int, Type::Int], &[0], &[], &[]);
    let mut table = Keyed::new(layout);
    for at in 0..10_000 {
        table.put(&Key::Word(at), &[Value::Word(at), Value::Word(0)]).unwrap();
    }
    let place = |table: &Keyed| table.columns[1].address(5_000);
    let slot = table.find(&Key::Word(5_000)).unwrap();
    let set = |table: &mut Keyed, word| table.set((&Key::Word(5_000), slot), 1, Value::Word(word));
    let before = place(&table);
    set(&mut table, 1);
    assert_eq!(place(&table), before, "the word stands where it stood");
    let copy = table.clone();
    set(&mut table, 2);
    assert_eq!((place(&copy), copy.word(slot, 1), table.word(slot, 1)), (before, 1, 2));
    assert_eq!(table.columns[1].address(0), copy.columns[1].address(0), "other pages are shared");
    let moved = place(&table);
    set(&mut table, 3);
    assert_eq!(place(&table), moved, "once is enough");
}

#[test]
fn a_list_in_another_shape_has_the_same_rows() {
    let kinds = [Type::Int, Type::Text, Type::Int, optional(Type::Int), Type::Real];
    let before = layout(&kinds, &[0], &[&[2], &[1]], &[&[], &[]]);
    let mut pair = Pair::new(&before);
    let mut random = Random(5);
    for at in 0..1_000 {
        let mut row: Vec<Value> = kinds.iter().map(|kind| value(kind, &mut random, 100)).collect();
        row[0] = Value::Word(at * 3);
        pair.put(row);
    }
    let same = |value: Value| value;
    let text = |value: Value| match value {
        Value::Word(word) => Value::Text(format!("{word}").into()),
        _ => Value::None,
    };
    let kept = [Source::Field(4), Source::Field(0), Source::Constant(Value::Word(9)), Source::Field(2)];
    let retyped = [Source::Mapped(0, &text), Source::Mapped(2, &same), Source::Constant(Value::None)];
    let to_int = [Type::Real, Type::Int, Type::Int, Type::Int];
    let to_text = [Type::Text, optional(Type::Int), optional(Type::Real)];
    for (to, sources) in [
        (layout(&to_int, &[1], &[&[3], &[2]], &[&[], &[]]), &kept[..]),
        (layout(&to_int, &[1, 2], &[&[3], &[0, 3]], &[&[2], &[]]), &kept[..]),
        (layout(&to_text, &[0], &[&[2], &[1]], &[&[], &[]]), &retyped[..]),
        (layout(&to_text, &[0, 1], &[&[0]], &[&[]]), &retyped[..]),
    ] {
        let mut changed = Pair {
            table: pair.table.changed(Arc::clone(&to), sources, &|| true).unwrap(),
            model: Model::new(),
        };
        for row in pair.model.values() {
            let value = |source: &Source<'_>| match source {
                Source::Field(field) => row[*field as usize].clone(),
                Source::Constant(value) => value.clone(),
                Source::Mapped(field, map) => map(row[*field as usize].clone()),
            };
            let row: Vec<Value> = sources.iter().map(value).collect();
            changed.model.insert(to.key_of(&row).to_bytes(), row);
        }
        let place = changed.table.columns[1].address(7);
        assert_eq!(
            place == pair.table.columns[0].address(7),
            sources.len() == kept.len(),
            "what stays is shared"
        );
        for _ in 0..200 {
            let row = changed.some(&mut random, 100);
            let field = random.below(to.kinds.len() as u64) as u16;
            match random.below(3) {
                0 => changed.remove(&row),
                1 if !to.keys.contains(&field) => {
                    changed.set(&row, field, value(&to.kinds[field as usize], &mut random, 100));
                }
                _ => changed.put(to.kinds.iter().map(|kind| value(kind, &mut random, 5_000)).collect()),
            }
        }
        changed.check();
        for index in 0..to.indexes.len() as u16 {
            changed.check_range(Some(index), &mut random, 100);
            changed.check_range(None, &mut random, 100);
        }
    }
    pair.check();
    let to = layout(&[Type::Int], &[0], &[], &[]);
    assert_eq!(pair.table.changed(to, &[Source::Field(2)], &|| true).err(), Some(Unchangeable::SameKey));
}
