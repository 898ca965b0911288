//! A compiled app: its types, its state's lists, its doors and its code. Plain data; only the compiler makes one.

use crate::code::Function;
use crate::value::Value;
use std::fmt::Write;
use std::sync::Arc;

/// A type of the language.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// `bool`
    Bool,
    /// `int`: an i64
    Int,
    /// `real`: a finite f64
    Real,
    /// `text`
    Text,
    /// `bytes`
    Bytes,
    /// `time`: milliseconds since 1970 UTC
    Time,
    /// `duration`: milliseconds
    Duration,
    /// `node`: an identity
    Node,
    /// `endpoint`: an address on the web
    Endpoint,
    /// An enum, by its number in [`Module::enums`].
    Enum(u32),
    /// A record, by its number in [`Module::records`].
    Record(u32),
    /// `list of T`
    List(Arc<Type>),
    /// `T?`
    Optional(Arc<Type>),
    /// The type of a bare `none`: the compiler's own, in no module's fields.
    Nothing,
    /// What is wrong and reported: the compiler's own, in no module.
    Broken,
}

/// An enum.
#[derive(Debug, Clone)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// Its cases; a value is a case's place here.
    pub cases: Vec<String>,
}

/// A record, or the shape of a record expression without a name.
#[derive(Debug, Clone)]
pub struct Record {
    /// None for a record expression without a name.
    pub name: Option<String>,
    /// In the order of the source.
    pub fields: Vec<Field>,
}

/// A field of a record or of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// What stands for it when it is left out. A `T?` without a default has `none`.
    pub default: Option<Value>,
}

/// A piece of durable state.
#[derive(Debug, Clone)]
pub struct List {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: ListKind,
}

/// What a piece of state holds.
#[derive(Debug, Clone)]
pub enum ListKind {
    /// Rows by key.
    Keyed {
        /// The record of a row.
        record: u32,
        /// Numbers of the key's fields.
        keys: Vec<u16>,
        /// Numbers of the fields of each index.
        indexes: Vec<Vec<u16>>,
    },
    /// One value.
    Variable {
        /// Its type.
        kind: Type,
        /// Its value before anything changed it.
        initial: Value,
    },
}

/// An `on` for posts or sends, or a view.
#[derive(Debug, Clone)]
pub struct Door {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub fields: Vec<Field>,
    /// Whether who asks is handed in after the fields: `by` as text, `from` as a node.
    pub takes_caller: bool,
    /// What it answers.
    pub answer: Option<Type>,
    /// Its code: a number in [`Module::functions`].
    pub function: u32,
}

/// An `on delivered` or `on refused`.
#[derive(Debug, Clone)]
pub struct Word {
    /// The number in [`Module::from_inputs`] of what was sent.
    pub output: u32,
    /// Its code, given the send's arguments, the peer and, for `refused`, the reason.
    pub function: u32,
}

/// A checked and compiled app.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// The app's name, as its first line says.
    pub name: String,
    /// Its enums.
    pub enums: Vec<Enumeration>,
    /// Its records, those without a name among them.
    pub records: Vec<Record>,
    /// Its state; a list's place here is its number in deltas.
    pub lists: Vec<List>,
    /// `on name(…)`
    pub inputs: Vec<Door>,
    /// `on name(…) from peer`; these are the outputs too, since a send reaches the same app there.
    pub from_inputs: Vec<Door>,
    /// `on delivered …`
    pub delivered: Vec<Word>,
    /// `on refused …`
    pub refused: Vec<Word>,
    /// `view name(…)`
    pub views: Vec<Door>,
    /// All code.
    pub functions: Vec<Function>,
    /// What [`crate::code::Operation::Constant`] loads.
    pub constants: Vec<Value>,
}

impl Module {
    /// Canonical text of the state's lists, fields and types: with equal shapes, rows of one read as the other's.
    pub fn shape(&self) -> String {
        let mut shape = String::new();
        for list in &self.lists {
            let _ = write!(shape, "state {}: ", list.name);
            match &list.kind {
                ListKind::Keyed { record, keys, .. } => {
                    let names: Vec<&str> = keys
                        .iter()
                        .map(|key| self.records[*record as usize].fields[*key as usize].name.as_str())
                        .collect();
                    let _ = write!(
                        shape,
                        "list of {} by {}",
                        self.type_name(&Type::Record(*record)),
                        names.join(", ")
                    );
                }
                ListKind::Variable { kind, .. } => shape.push_str(&self.type_name(kind)),
            }
            shape.push('\n');
        }
        for (number, record) in self.records.iter().enumerate() {
            let Some(name) = &record.name else { continue };
            if self.is_stored(&Type::Record(number as u32)) {
                let fields: Vec<String> = record
                    .fields
                    .iter()
                    .map(|f| format!("{}: {}", f.name, self.type_name(&f.kind)))
                    .collect();
                let _ = writeln!(shape, "record {name} {{ {} }}", fields.join(", "));
            }
        }
        for (number, enumeration) in self.enums.iter().enumerate() {
            if self.is_stored(&Type::Enum(number as u32)) {
                let _ = writeln!(shape, "enum {} {{ {} }}", enumeration.name, enumeration.cases.join(", "));
            }
        }
        shape
    }

    /// Whether the state holds values of a type.
    fn is_stored(&self, wanted: &Type) -> bool {
        let mut seen = vec![false; self.records.len()];
        let mut waiting: Vec<Type> = self
            .lists
            .iter()
            .map(|list| match &list.kind {
                ListKind::Keyed { record, .. } => Type::Record(*record),
                ListKind::Variable { kind, .. } => kind.clone(),
            })
            .collect();
        while let Some(kind) = waiting.pop() {
            if kind == *wanted {
                return true;
            }
            match kind {
                Type::List(inner) | Type::Optional(inner) => waiting.push((*inner).clone()),
                Type::Record(number) if !std::mem::replace(&mut seen[number as usize], true) => {
                    waiting
                        .extend(self.records[number as usize].fields.iter().map(|field| field.kind.clone()));
                }
                _ => {}
            }
        }
        false
    }

    /// A type as the source writes it.
    pub fn type_name(&self, kind: &Type) -> String {
        type_name(kind, &self.enums, &self.records)
    }
}

/// A type as the source writes it; a record without a name is told by its fields' names.
pub(crate) fn type_name(kind: &Type, enums: &[Enumeration], records: &[Record]) -> String {
    match kind {
        Type::Bool => "bool".into(),
        Type::Int => "int".into(),
        Type::Real => "real".into(),
        Type::Text => "text".into(),
        Type::Bytes => "bytes".into(),
        Type::Time => "time".into(),
        Type::Duration => "duration".into(),
        Type::Node => "node".into(),
        Type::Endpoint => "endpoint".into(),
        Type::Enum(number) => enums[*number as usize].name.clone(),
        Type::Record(number) => match &records[*number as usize] {
            Record { name: Some(name), .. } => name.clone(),
            Record { fields, .. } => {
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                format!("{{ {} }}", names.join(", "))
            }
        },
        Type::List(element) => format!("list of {}", type_name(element, enums, records)),
        Type::Optional(inner) => format!("{}?", type_name(inner, enums, records)),
        Type::Nothing => "none".into(),
        Type::Broken => "?".into(),
    }
}
