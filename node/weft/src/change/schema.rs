//! What of an app is kept: its lists and the types of their rows, the messages that may be under way, each with a number.
//!
//! A number is given once in the life of an app and never again. What has one keeps it however it is called and wherever it
//! stands in the source, so that rows, sends and timers of before are understood.

use crate::module::{Enumeration, Field, Former, List, ListKind, Module, Record, Timer, Type};
use crate::value::{Real, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Former names that are kept of one record, enum or message: what is longer ago is under way nowhere.
pub(super) const FORMER_MAX: usize = 64;

/// Parts of a constant: shared parts can make a value far larger than its source, and one is written out.
pub(crate) const CONSTANT_PARTS_MAX: u32 = 1 << 16;

/// How deep the checker lets types hold each other, and a little more for what is around them.
const TYPE_DEPTH_MAX: u16 = 64;

/// The shape of an app. Lists, records and enums stand in the order of the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The durable lists and variables.
    pub lists: Vec<ListShape>,
    /// The records with names.
    pub records: Vec<RecordShape>,
    /// The enums.
    pub enums: Vec<EnumShape>,
    /// What is sent, and what waits for its time.
    pub messages: Vec<Message>,
    /// The next number to be given.
    pub next: u32,
}

/// A durable list or variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListShape {
    /// Its number in deltas.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: Holds,
}

/// What a durable list or variable holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    /// Rows by key.
    Rows {
        /// The number of their record.
        record: u32,
        /// The numbers of the key's fields.
        keys: Vec<u32>,
        /// The numbers of each index's fields.
        indexes: Vec<Vec<u32>>,
    },
    /// One value.
    Value(Kind),
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordShape {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Fields,
}

/// Fields in the order of the source, and what they were called before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// The fields.
    pub fields: Vec<FieldShape>,
    /// Names that fields had, and their numbers; of some the field is gone.
    pub former: Vec<(String, u32)>,
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldShape {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// What stands for it when it is left out.
    pub default: Option<Constant>,
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumShape {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Numbers and names of its cases.
    pub cases: Vec<(u32, String)>,
    /// Names that cases had, and their numbers; of some the case is gone.
    pub former: Vec<(String, u32)>,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageKind {
    /// `on … from`
    Input,
    /// What is sent, to this app or another.
    Output,
    /// `on timer`
    Timer,
}

/// What is sent, or waits for its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// What it is.
    pub kind: MessageKind,
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Fields,
}

/// A type, with enums and records by number.
#[expect(missing_docs, reason = "the language's words are the names")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    Bool,
    Int,
    Real,
    Text,
    Bytes,
    Time,
    Duration,
    Node,
    Endpoint,
    Enum(u32),
    Record(u32),
    List(Box<Kind>),
    Optional(Box<Kind>),
}

/// A constant value; an enum's is the case's place.
#[expect(missing_docs, reason = "a value's words are the names")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Constant {
    None,
    Word(i64),
    /// The bits of the float.
    Real(u64),
    Text(String),
    Bytes(Vec<u8>),
    Node([u8; 32]),
    Record(Vec<Constant>),
    List(Vec<Constant>),
}

impl Constant {
    /// The constant of a value; none if it has more parts than one may have.
    pub fn of(value: &Value) -> Option<Constant> {
        Constant::within(value, &mut { CONSTANT_PARTS_MAX })
    }

    fn within(value: &Value, left: &mut u32) -> Option<Constant> {
        *left = left.checked_sub(1)?;
        Some(match value {
            Value::None | Value::Key(_) => Constant::None,
            Value::Word(word) => Constant::Word(*word),
            Value::Real(real) => Constant::Real(real.get().to_bits()),
            Value::Text(text) => Constant::Text(text.to_string()),
            Value::Bytes(bytes) => Constant::Bytes(bytes.to_vec()),
            Value::Node(node) => Constant::Node(**node),
            Value::Record(fields) => Constant::Record(
                fields.iter().map(|value| Constant::within(value, left)).collect::<Option<_>>()?,
            ),
            Value::List(values) => Constant::List(
                values.iter().map(|value| Constant::within(value, left)).collect::<Option<_>>()?,
            ),
        })
    }
}

impl From<&Constant> for Value {
    fn from(constant: &Constant) -> Value {
        match constant {
            Constant::None => Value::None,
            Constant::Word(word) => Value::Word(*word),
            Constant::Real(bits) => Value::Real(Real::new(f64::from_bits(*bits)).unwrap_or(Real::ZERO)),
            Constant::Text(text) => Value::Text(text.as_str().into()),
            Constant::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
            Constant::Node(node) => Value::Node(Arc::new(*node)),
            Constant::Record(fields) => Value::Record(fields.iter().map(Value::from).collect()),
            Constant::List(values) => Value::List(Arc::new(values.iter().map(Value::from).collect())),
        }
    }
}

impl Schema {
    /// The shape of a module that nothing was before: its durable lists have their places as numbers.
    pub fn of(module: &Module) -> Schema {
        Schema::default().followed_by(module).0
    }

    /// Hands a module the names that its fields and cases had before, so that it reads what is under way in the old shape.
    /// The schema is the module's.
    pub fn teach(&self, module: &mut Module) {
        let records = module.records.iter_mut().filter(|record| record.name.is_some());
        for (shape, record) in self.records.iter().zip(records) {
            record.former = shape.fields.former();
        }
        for (shape, enumeration) in self.enums.iter().zip(&mut module.enums) {
            enumeration.former = shape.former();
        }
        for message in &self.messages {
            let former = message.fields.former();
            match message.kind {
                MessageKind::Input => {
                    let mut doors = module.from_inputs.iter_mut();
                    doors.find(|door| door.name == message.name).map(|door| door.former = former)
                }
                MessageKind::Output => {
                    let mut outputs = module.outputs.iter_mut();
                    outputs.find(|output| output.name == message.name).map(|output| output.former = former)
                }
                MessageKind::Timer => {
                    let mut timers = module.timers.iter_mut();
                    timers.find(|timer| timer.name == message.name).map(|timer| timer.former = former)
                }
            };
        }
    }

    /// A module of this shape without any code: enough to hold rows and timers, and to change them.
    pub fn module(&self, name: &str) -> Module {
        let mut module = Module { name: name.to_owned(), ..Module::default() };
        for shape in &self.enums {
            module.enums.push(Enumeration {
                name: shape.name.clone(),
                was: None,
                cases: shape.cases.iter().map(|(_, name)| name.clone()).collect(),
                former: shape.former(),
            });
        }
        for shape in &self.records {
            let (fields, former) = (self.fields(&shape.fields), shape.fields.former());
            module.records.push(Record { name: Some(shape.name.clone()), was: None, fields, former });
        }
        for shape in &self.lists {
            let kind = match &shape.holds {
                Holds::Value(kind) => ListKind::Variable {
                    kind: self.to_type(kind),
                    initial: self.least(kind, &mut BTreeMap::new()),
                },
                Holds::Rows { record, keys, indexes } => {
                    let place = self.record_place(*record);
                    let fields = |numbers: &[u32]| self.field_places(place, numbers);
                    ListKind::Keyed {
                        record: place as u32,
                        keys: fields(keys),
                        indexes: indexes.iter().map(|index| fields(index)).collect(),
                    }
                }
            };
            // Without code no loop reads an index's entries.
            let covers = match &kind {
                ListKind::Keyed { indexes, .. } => vec![Vec::new(); indexes.len()],
                ListKind::Variable { .. } => Vec::new(),
            };
            module.lists.push(List { name: shape.name.clone(), was: None, transient: false, kind, covers });
        }
        for message in self.messages.iter().filter(|message| message.kind == MessageKind::Timer) {
            let (fields, former) = (self.fields(&message.fields), message.fields.former());
            module.timers.push(Timer { name: message.name.clone(), fields, former, function: 0 });
        }
        module
    }

    fn fields(&self, fields: &Fields) -> Vec<Field> {
        let field = |shape: &FieldShape| Field {
            name: shape.name.clone(),
            kind: self.to_type(&shape.kind),
            default: shape.default.as_ref().map(Value::from),
        };
        fields.fields.iter().map(field).collect()
    }

    fn to_type(&self, kind: &Kind) -> Type {
        match kind {
            Kind::Bool => Type::Bool,
            Kind::Int => Type::Int,
            Kind::Real => Type::Real,
            Kind::Text => Type::Text,
            Kind::Bytes => Type::Bytes,
            Kind::Time => Type::Time,
            Kind::Duration => Type::Duration,
            Kind::Node => Type::Node,
            Kind::Endpoint => Type::Endpoint,
            Kind::Enum(number) => Type::Enum(self.enum_place(*number) as u32),
            Kind::Record(number) => Type::Record(self.record_place(*number) as u32),
            Kind::List(element) => Type::List(Arc::new(self.to_type(element))),
            Kind::Optional(inner) => Type::Optional(Arc::new(self.to_type(inner))),
        }
    }

    /// A value of a type, where none is known. Those of records are shared: types hold each other many times over.
    fn least(&self, kind: &Kind, records: &mut BTreeMap<u32, Value>) -> Value {
        match kind {
            Kind::Optional(_) => Value::None,
            Kind::Bool | Kind::Int | Kind::Time | Kind::Duration | Kind::Enum(_) => Value::Word(0),
            Kind::Real => Value::Real(Real::ZERO),
            Kind::Text | Kind::Endpoint => Value::Text("".into()),
            Kind::Bytes => Value::Bytes([].into()),
            Kind::Node => Value::Node(Arc::new([0; 32])),
            Kind::List(_) => Value::List(Arc::default()),
            Kind::Record(number) => {
                if let Some(value) = records.get(number) {
                    return value.clone();
                }
                let fields = self.record(*number).map_or(&[][..], |record| &record.fields.fields);
                let value =
                    Value::Record(fields.iter().map(|field| self.least(&field.kind, records)).collect());
                records.insert(*number, value.clone());
                value
            }
        }
    }

    /// A list by its number.
    pub fn list(&self, number: u32) -> Option<&ListShape> {
        self.lists.iter().find(|list| list.number == number)
    }

    /// The place of a list in the module.
    pub fn list_place(&self, number: u32) -> Option<usize> {
        self.lists.iter().position(|list| list.number == number)
    }

    /// A record by its number.
    pub fn record(&self, number: u32) -> Option<&RecordShape> {
        self.records.iter().find(|record| record.number == number)
    }

    /// An enum by its number.
    pub fn enumeration(&self, number: u32) -> Option<&EnumShape> {
        self.enums.iter().find(|one| one.number == number)
    }

    /// The place of a record; beyond the last if a damaged row names one that is not there.
    fn record_place(&self, number: u32) -> usize {
        self.records.iter().position(|record| record.number == number).unwrap_or(self.records.len())
    }

    fn enum_place(&self, number: u32) -> usize {
        self.enums.iter().position(|one| one.number == number).unwrap_or(self.enums.len())
    }

    fn field_places(&self, record: usize, numbers: &[u32]) -> Vec<u16> {
        let fields = self.records.get(record).map_or(&[][..], |record| &record.fields.fields);
        let place = |number: &u32| fields.iter().position(|field| field.number == *number);
        numbers.iter().filter_map(|number| Some(place(number)? as u16)).collect()
    }

    /// Whether every number in it stands for something, and no type holds itself: what a log hands out is not believed.
    pub fn is_whole(&self) -> bool {
        let mut depths = BTreeMap::new();
        let mut is_known = |kind: &Kind| self.depth(kind, &mut depths).is_some();
        let known = self.records.iter().map(|record| &record.fields);
        let mut known = known.chain(self.messages.iter().map(|message| &message.fields));
        known.all(|fields| fields.fields.iter().all(|field| is_known(&field.kind)))
            && self.lists.iter().all(|list| match &list.holds {
                Holds::Value(kind) => is_known(kind),
                Holds::Rows { record, keys, indexes } => {
                    let place = self.record_place(*record);
                    let there = |numbers: &Vec<u32>| self.field_places(place, numbers).len() == numbers.len();
                    is_known(&Kind::Record(*record))
                        && !keys.is_empty()
                        && indexes.iter().chain([keys]).all(there)
                }
            })
    }

    /// How deep a type is; none if it names what is not there, or holds itself. Of a record that is being looked at there is
    /// none yet.
    fn depth(&self, kind: &Kind, records: &mut BTreeMap<u32, Option<u16>>) -> Option<u16> {
        let depth = match kind {
            Kind::Enum(number) => self.enumeration(*number).map(|_| 1)?,
            Kind::List(inner) | Kind::Optional(inner) => 1 + self.depth(inner, records)?,
            Kind::Record(number) => {
                if let Some(known) = records.get(number) {
                    return *known;
                }
                records.insert(*number, None);
                let mut deepest = 0;
                for field in &self.record(*number)?.fields.fields {
                    deepest = deepest.max(self.depth(&field.kind, records)?);
                }
                records.insert(*number, Some(deepest + 1));
                deepest + 1
            }
            _ => 1,
        };
        (depth <= TYPE_DEPTH_MAX).then_some(depth)
    }

    /// The numbers of records and enums that durable lists hold.
    pub(super) fn stored(&self) -> BTreeSet<u32> {
        let mut stored = BTreeSet::new();
        for list in &self.lists {
            match &list.holds {
                Holds::Rows { record, .. } => self.reach(&Kind::Record(*record), &mut stored),
                Holds::Value(kind) => self.reach(kind, &mut stored),
            }
        }
        stored
    }

    /// The numbers of records and enums that a type holds.
    pub(super) fn reach(&self, kind: &Kind, into: &mut BTreeSet<u32>) {
        match kind {
            Kind::Enum(number) => {
                into.insert(*number);
            }
            Kind::Record(number) => {
                if into.insert(*number)
                    && let Some(record) = self.record(*number)
                {
                    record.fields.fields.iter().for_each(|field| self.reach(&field.kind, into));
                }
            }
            Kind::List(inner) | Kind::Optional(inner) => self.reach(inner, into),
            _ => {}
        }
    }

    /// A type as the source writes it.
    pub fn type_name(&self, kind: &Kind) -> String {
        match kind {
            Kind::Bool => "bool".into(),
            Kind::Int => "int".into(),
            Kind::Real => "real".into(),
            Kind::Text => "text".into(),
            Kind::Bytes => "bytes".into(),
            Kind::Time => "time".into(),
            Kind::Duration => "duration".into(),
            Kind::Node => "node".into(),
            Kind::Endpoint => "endpoint".into(),
            Kind::Enum(number) => self.enumeration(*number).map_or_else(String::new, |one| one.name.clone()),
            Kind::Record(number) => self.record(*number).map_or_else(String::new, |one| one.name.clone()),
            Kind::List(element) => format!("list of {}", self.type_name(element)),
            Kind::Optional(inner) => format!("{}?", self.type_name(inner)),
        }
    }
}

impl Fields {
    pub(super) fn get(&self, number: u32) -> Option<&FieldShape> {
        self.fields.iter().find(|field| field.number == number)
    }

    fn former(&self) -> Vec<Former> {
        former(&self.former, |number| self.fields.iter().position(|field| field.number == number))
    }
}

impl EnumShape {
    fn former(&self) -> Vec<Former> {
        former(&self.former, |number| self.cases.iter().position(|(case, _)| *case == number))
    }
}

fn former(names: &[(String, u32)], place: impl Fn(u32) -> Option<usize>) -> Vec<Former> {
    let one = |(name, number): &(String, u32)| Former {
        name: name.clone(),
        now: place(*number).map(|place| place as u16),
    };
    names.iter().map(one).collect()
}
