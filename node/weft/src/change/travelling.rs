//! What of a message in one shape is not read in another. It is read by names, through its records, lists and enums, as a
//! node reads what arrives; what does not fit waits there, and all that was sent after it.

use super::schema::{FieldShape, Fields, Kind, Schema};
use std::collections::BTreeMap;

/// What is told of one record or message: it waits after the first of it already.
const UNREAD_MAX: usize = 8;

/// Who has the newer shape: its names are those that a person sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newer {
    Reader,
    Writer,
}

/// Something that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unread {
    /// The field, from the message on: `a.tip`.
    pub(super) path: String,
    pub(super) why: Misfit,
}

/// Why it is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It is not written, and the reader has no default for it. In a record it has a name there: `Amount.tip`.
    Needed { named: String },
    /// The reader never had it, or has it under another name.
    Unknown { other: Option<String> },
    /// The reader has no such case, or has it under another name.
    Case { named: String, case: String, other: Option<String> },
    /// It may be none, and the reader's is never.
    None { kind: String },
    /// It is of another type.
    Type { from: String, to: String },
}

pub(super) struct Reading<'s> {
    from: &'s Schema,
    to: &'s Schema,
    newer: Newer,
    /// What is known of records, by the writer's number and the reader's: they hold each other many times over.
    known: BTreeMap<(u32, u32), Vec<Unread>>,
}

impl<'s> Reading<'s> {
    pub(super) fn new(from: &'s Schema, to: &'s Schema, newer: Newer) -> Reading<'s> {
        Reading { from, to, newer, known: BTreeMap::new() }
    }

    /// What is not read of the fields of a message, or of the record that is the owner.
    pub(super) fn fields(&mut self, owner: Option<&str>, from: &Fields, to: &Fields) -> Vec<Unread> {
        let named = |field: &FieldShape| {
            owner.map_or_else(|| field.name.clone(), |owner| format!("{owner}.{}", field.name))
        };
        let by_name: BTreeMap<&str, &FieldShape> =
            to.fields.iter().map(|field| (field.name.as_str(), field)).collect();
        let former: BTreeMap<&str, u32> =
            to.former.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        let mut taken: Vec<u32> = Vec::new();
        let mut unread = Vec::new();
        for field in &from.fields {
            let number = former.get(field.name.as_str());
            let reader = by_name.get(field.name.as_str()).copied().or_else(|| to.get(*number?));
            let Some(reader) = reader else {
                if number.is_none() {
                    let other = to.get(field.number);
                    taken.extend(other.map(|other| other.number));
                    let other = other.map(|other| other.name.clone());
                    unread.push(Unread { path: field.name.clone(), why: Misfit::Unknown { other } });
                }
                continue;
            };
            taken.push(reader.number);
            let name = if self.newer == Newer::Reader { &reader.name } else { &field.name };
            for inner in self.value(&field.kind, &reader.kind) {
                let path =
                    if inner.path.is_empty() { name.clone() } else { format!("{name}.{}", inner.path) };
                unread.push(Unread { path, ..inner });
            }
        }
        taken.sort_unstable();
        let is_needed =
            |field: &&FieldShape| field.default.is_none() && taken.binary_search(&field.number).is_err();
        let needed = to.fields.iter().filter(is_needed).map(|field| {
            let why = Misfit::Needed { named: named(field) };
            Unread { path: field.name.clone(), why }
        });
        unread.extend(needed);
        unread.truncate(UNREAD_MAX);
        unread
    }

    fn value(&mut self, from: &Kind, to: &Kind) -> Vec<Unread> {
        let one = |why: Misfit| vec![Unread { path: String::new(), why }];
        match (from, to) {
            (Kind::Optional(from), Kind::Optional(to)) => self.value(from, to),
            (from, Kind::Optional(to)) => self.value(from, to),
            (Kind::Optional(inner), to) => {
                let mut unread = one(Misfit::None { kind: self.to.type_name(to) });
                unread.extend(self.value(inner, to));
                unread
            }
            (Kind::List(from), Kind::List(to)) => self.value(from, to),
            (Kind::Enum(from), Kind::Enum(to)) => self.cases(*from, *to),
            (Kind::Record(from), Kind::Record(to)) => self.record(*from, *to),
            (from, to) if from == to => Vec::new(),
            (from, to) => {
                let why = Misfit::Type { from: self.from.type_name(from), to: self.to.type_name(to) };
                one(why)
            }
        }
    }

    fn record(&mut self, from: u32, to: u32) -> Vec<Unread> {
        if let Some(known) = self.known.get(&(from, to)) {
            return known.clone();
        }
        let (Some(old), Some(new)) = (self.from.record(from), self.to.record(to)) else { return Vec::new() };
        let unread = self.fields(Some(&new.name), &old.fields, &new.fields);
        self.known.insert((from, to), unread.clone());
        unread
    }

    fn cases(&self, from: u32, to: u32) -> Vec<Unread> {
        let (Some(old), Some(new)) = (self.from.enumeration(from), self.to.enumeration(to)) else {
            return Vec::new();
        };
        let name_of = |number: u32| new.cases.iter().find(|(case, _)| *case == number).map(|(_, name)| name);
        let is_read = |name: &String| {
            let former = new.former.iter().find(|(former, _)| former == name);
            new.cases.iter().any(|(_, case)| case == name)
                || former.is_some_and(|(_, number)| name_of(*number).is_some())
        };
        let unread = old.cases.iter().filter(|(_, name)| !is_read(name)).map(|(number, case)| {
            let why = Misfit::Case {
                named: format!("{}.{case}", old.name),
                case: case.clone(),
                other: name_of(*number).cloned(),
            };
            Unread { path: String::new(), why }
        });
        unread.take(UNREAD_MAX).collect()
    }
}
