//! From a shape and the module that comes after it to the next shape: what was there keeps its number, by its name or the
//! one that its `was` says.

use super::schema::{
    Constant, EnumShape, FORMER_MAX, FieldShape, Fields, Holds, Kind, ListShape, Message, MessageKind,
    RecordShape, Schema,
};
use crate::module::{Enumeration, Field, Former, List, ListKind, Module, Record, Type};
use std::collections::{BTreeMap, BTreeSet};

/// What is found under a name and the one before it.
enum Found<T> {
    /// Nothing: it is new.
    Nothing,
    /// This.
    One(T),
    /// This under its name, and something else under the name before.
    Both(T),
}

/// A `was` that names what is there beside what has the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ambiguous {
    pub(super) name: String,
    pub(super) was: String,
}

struct Following<'s> {
    before: &'s Schema,
    next: u32,
    ambiguous: Vec<Ambiguous>,
    /// Numbers of the module's enums and of its records, those without a name among them.
    enums: Vec<u32>,
    records: Vec<u32>,
}

impl Schema {
    /// The shape of the module that comes after this one, and each `was` that cannot be followed.
    pub(super) fn followed_by(&self, module: &Module) -> (Schema, Vec<Ambiguous>) {
        let mut following = Following {
            before: self,
            next: self.next,
            ambiguous: Vec::new(),
            enums: Vec::new(),
            records: Vec::new(),
        };
        let after = following.schema(module);
        (after, following.ambiguous)
    }
}

impl Following<'_> {
    fn schema(&mut self, module: &Module) -> Schema {
        let durable: Vec<&List> = module.lists.iter().filter(|list| !list.transient).collect();
        // Lists first, so that those of a new app have their places.
        let lists: Vec<u32> = durable
            .iter()
            .map(|list| {
                let before = self.before.lists.iter().map(|list| (list.name.as_str(), list.number));
                self.number(&list.name, list.was.as_deref(), before)
            })
            .collect();
        let before = self.before;
        let known = before.enums.iter().map(|one| (one.name.as_str(), one.number)).collect();
        let now: Vec<_> = module.enums.iter().map(|one| (one.name.as_str(), one.was.as_deref())).collect();
        self.enums = self.types(&now, known);
        let known = before.records.iter().map(|one| (one.name.as_str(), one.number)).collect();
        let named = module.records.iter().filter_map(|one| Some((one.name.as_deref()?, one.was.as_deref())));
        let mut numbers = self.types(&named.collect::<Vec<_>>(), known).into_iter();
        let number = |one: &Record| one.name.as_ref().and_then(|_| numbers.next()).unwrap_or(u32::MAX);
        self.records = module.records.iter().map(number).collect();
        let enums =
            module.enums.iter().zip(self.enums.clone()).map(|(one, number)| self.enumeration(one, number));
        let enums = enums.collect();
        let mut records = Vec::new();
        for (one, number) in module.records.iter().zip(self.records.clone()) {
            let Some(name) = one.name.clone() else { continue };
            let before = self.before.record(number).map(|record| &record.fields);
            let fields = self.fields(&name, &one.fields, &one.former, before);
            records.push(RecordShape { number, name, fields });
        }
        let messages = self.messages(module);
        let lists =
            durable.iter().zip(lists).map(|(list, number)| self.list(list, number, &records)).collect();
        Schema { lists, records, enums, messages, next: self.next }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// The number that a name or the one before it has, or a fresh one.
    fn number<'n>(
        &mut self,
        name: &str,
        was: Option<&str>,
        before: impl Iterator<Item = (&'n str, u32)>,
    ) -> u32 {
        let (mut by_name, mut by_was) = (None, None);
        for (known, number) in before {
            if known == name {
                by_name = Some(number);
            } else if Some(known) == was {
                by_was = Some(number);
            }
        }
        let found = match (by_name, by_was) {
            (Some(one), Some(_)) => Found::Both(one),
            (Some(one), None) | (None, Some(one)) => Found::One(one),
            (None, None) => Found::Nothing,
        };
        match found {
            Found::One(number) => number,
            Found::Nothing => self.fresh(),
            Found::Both(number) => {
                let was = was.unwrap_or_default().to_owned();
                self.ambiguous.push(Ambiguous { name: name.to_owned(), was });
                number
            }
        }
    }

    /// Numbers of types by name: its own; that of its `was`, in its own file first; else that of a type of another file
    /// whose name is the same. What still has its name is nobody else's, and one type has one heir.
    fn types(&mut self, now: &[(&str, Option<&str>)], before: BTreeMap<&str, u32>) -> Vec<u32> {
        let names: BTreeSet<&str> = now.iter().map(|(name, _)| *name).collect();
        // Those that are gone, by their names in their own files.
        let mut gone: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
        for (name, number) in before.iter().filter(|(name, _)| !names.contains(*name)) {
            gone.entry(split(name).1).or_default().insert(split(name).0, *number);
        }
        let mut take = |file: &str, name: &str| {
            let files = gone.get_mut(name)?;
            files.remove(file).or_else(|| if files.len() == 1 { Some(files.pop_first()?.1) } else { None })
        };
        let mut numbers: Vec<Option<u32>> = Vec::new();
        for (name, was) in now {
            let file = split(name).0;
            let number = before.get(name).copied();
            let own = was.map(|was| format!("{file}{was}"));
            if let (Some(_), Some(was)) = (number, own.filter(|own| before.contains_key(own.as_str()))) {
                self.ambiguous.push(Ambiguous { name: (*name).to_owned(), was });
            }
            numbers.push(number.or_else(|| take(file, (*was)?)));
        }
        let known = now.iter().zip(numbers);
        let numbers: Vec<Option<u32>> =
            known.map(|((name, _), number)| number.or_else(|| take(split(name).0, split(name).1))).collect();
        numbers.into_iter().map(|number| number.unwrap_or_else(|| self.fresh())).collect()
    }

    fn enumeration(&mut self, one: &Enumeration, number: u32) -> EnumShape {
        let before = self.before.enumeration(number);
        let old: Vec<(u32, String)> = before.map(|one| one.cases.clone()).unwrap_or_default();
        let mut cases = Vec::new();
        for (at, name) in one.cases.iter().enumerate() {
            let was = former_of(&one.former, at);
            let known = old.iter().map(|(number, name)| (name.as_str(), *number));
            cases.push((self.number(name, was, known), name.clone()));
        }
        let former = before.map_or(&[][..], |one| &one.former);
        let former = next_former(former, &old, &cases, &one.former);
        EnumShape { number, name: one.name.clone(), cases, former }
    }

    fn fields(
        &mut self,
        owner: &str,
        fields: &[Field],
        former: &[Former],
        before: Option<&Fields>,
    ) -> Fields {
        let old: Vec<(u32, String)> =
            before.iter().flat_map(|one| &one.fields).map(|one| (one.number, one.name.clone())).collect();
        let mut shapes = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let known = old.iter().map(|(number, name)| (name.as_str(), *number));
            let ambiguous = self.ambiguous.len();
            let number = self.number(&field.name, former_of(former, at), known);
            for one in &mut self.ambiguous[ambiguous..] {
                one.name = format!("{owner}.{}", one.name);
            }
            let default = field.default.as_ref().and_then(Constant::of);
            shapes.push(FieldShape {
                number,
                name: field.name.clone(),
                kind: self.kind(&field.kind),
                default,
            });
        }
        let now: Vec<(u32, String)> = shapes.iter().map(|one| (one.number, one.name.clone())).collect();
        let former = next_former(before.map_or(&[][..], |one| &one.former), &old, &now, former);
        Fields { fields: shapes, former }
    }

    fn messages(&mut self, module: &Module) -> Vec<Message> {
        let inputs =
            module.from_inputs.iter().map(|one| (MessageKind::Input, &one.name, &one.fields, &one.former));
        let outputs =
            module.outputs.iter().map(|one| (MessageKind::Output, &one.name, &one.fields, &one.former));
        let timers =
            module.timers.iter().map(|one| (MessageKind::Timer, &one.name, &one.fields, &one.former));
        let mut messages = Vec::new();
        for (kind, name, fields, former) in inputs.chain(outputs).chain(timers) {
            let same = |message: &&Message| message.kind == kind && message.name == *name;
            let before = self.before.messages.iter().find(same).map(|message| &message.fields);
            let fields = self.fields(name, fields, former, before);
            messages.push(Message { kind, name: name.clone(), fields });
        }
        messages
    }

    fn list(&self, list: &List, number: u32, records: &[RecordShape]) -> ListShape {
        let holds = match &list.kind {
            ListKind::Variable { kind, .. } => Holds::Value(self.kind(kind)),
            ListKind::Keyed { record, keys, indexes } => {
                let number = self.records.get(*record as usize).copied().unwrap_or_default();
                let shape = records.iter().find(|one| one.number == number);
                let fields = shape.map_or(&[][..], |one| &one.fields.fields);
                let numbers = |places: &[u16]| -> Vec<u32> {
                    places.iter().filter_map(|at| Some(fields.get(usize::from(*at))?.number)).collect()
                };
                Holds::Rows {
                    record: number,
                    keys: numbers(keys),
                    indexes: indexes.iter().map(|index| numbers(index)).collect(),
                }
            }
        };
        ListShape { number, name: list.name.clone(), holds }
    }

    fn kind(&self, kind: &Type) -> Kind {
        match kind {
            Type::Bool => Kind::Bool,
            Type::Int => Kind::Int,
            Type::Real => Kind::Real,
            Type::Text => Kind::Text,
            Type::Bytes => Kind::Bytes,
            Type::Time => Kind::Time,
            Type::Duration => Kind::Duration,
            Type::Node => Kind::Node,
            Type::Endpoint => Kind::Endpoint,
            Type::Enum(number) => Kind::Enum(self.enums.get(*number as usize).copied().unwrap_or_default()),
            Type::Record(number) => {
                Kind::Record(self.records.get(*number as usize).copied().unwrap_or_default())
            }
            Type::List(element) => Kind::List(Box::new(self.kind(element))),
            // No module that was compiled has the other two in its fields.
            Type::Optional(inner) => Kind::Optional(Box::new(self.kind(inner))),
            Type::Nothing | Type::Broken => Kind::Optional(Box::new(Kind::Bool)),
        }
    }
}

/// A type's library with its dot, empty for the app's own, and its name there.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('.').map_or(0, |at| at + 1))
}

/// The name that the member at a place had before.
fn former_of(former: &[Former], at: usize) -> Option<&str> {
    former.iter().find(|one| one.now == Some(at as u16)).map(|one| one.name.as_str())
}

/// The names to be remembered: those of before, and those that went or changed; not one that is in use again.
fn next_former(
    before: &[(String, u32)],
    old: &[(u32, String)],
    now: &[(u32, String)],
    was: &[Former],
) -> Vec<(String, u32)> {
    let in_use = |name: &str| now.iter().any(|(_, known)| known == name);
    let gone = old.iter().filter(|(_, name)| !in_use(name)).map(|(number, name)| (name, *number));
    // A node that begins with this module hears those of before, too.
    let said = was.iter().filter_map(|one| Some((&one.name, now.get(usize::from(one.now?))?.0)));
    let mut former: Vec<(String, u32)> = before.to_vec();
    for (name, number) in gone.chain(said) {
        if !former.contains(&(name.clone(), number)) {
            former.retain(|(known, _)| known != name);
            former.push((name.clone(), number));
        }
    }
    former.retain(|(name, _)| !in_use(name));
    let surplus = former.len().saturating_sub(FORMER_MAX);
    former.drain(..surplus);
    former
}
