//! A compiled app: its types, its state's lists, its doors and its code. Plain data; only the compiler makes one.

use crate::code::Function;
use crate::diagnostics::Span;
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

/// A name that a field or a case had before: what was written under it is read as the one that it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// The name.
    pub name: String,
    /// The place of the field or case now; none if it is gone.
    pub now: Option<u16>,
}

/// An enum.
#[derive(Debug, Clone)]
pub struct Enumeration {
    /// Its name; of a library's, `library.Name`.
    pub name: String,
    /// The name that it had before, as its `was` says.
    pub was: Option<String>,
    /// Its cases; a value is a case's place here.
    pub cases: Vec<String>,
    /// Names that its cases had before.
    pub former: Vec<Former>,
}

/// A record, or the shape of a record expression without a name.
#[derive(Debug, Clone)]
pub struct Record {
    /// None for a record expression without a name; of a library's, `library.Name`.
    pub name: Option<String>,
    /// The name that it had before, as its `was` says.
    pub was: Option<String>,
    /// In the order of the source.
    pub fields: Vec<Field>,
    /// Names that its fields had before.
    pub former: Vec<Former>,
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
    /// The name that it had before, as its `was` says.
    pub was: Option<String>,
    /// Whether it lives only while the app runs. Durable ones come first in [`Module::lists`].
    pub transient: bool,
    /// What it holds.
    pub kind: ListKind,
    /// Of each index of a keyed list, the fields of a plain word that its entries have beside: a loop over it reads them,
    /// and no code assigns them.
    pub covers: Vec<Vec<u16>>,
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
    /// Names that its fields had before.
    pub former: Vec<Former>,
    /// Whether who asks is handed in after the fields: `by` as text, `from` as a node.
    pub takes_caller: bool,
    /// The sending app, where it is another one than this.
    pub of: Option<String>,
    /// What it answers.
    pub answer: Option<Type>,
    /// Its code: a number in [`Module::functions`].
    pub function: u32,
}

/// A `setting`: given by whoever runs the node.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Its value when none is given; without one it must be given.
    pub default: Option<Value>,
}

/// Where sends of an output go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To the same app of another node.
    Own,
    /// To another app of a node.
    App(String),
    /// To an address on the web.
    Endpoint,
}

/// What `send` can send: `on name(…) from peer` of the app itself, or an `output`.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// What it carries.
    pub fields: Vec<Field>,
    /// Names that its fields had before.
    pub former: Vec<Former>,
    /// Where it goes.
    pub to: Destination,
    /// Whether it is worth something now or never: not stored, not sent again, and nobody hears what became of it.
    pub transient: bool,
    /// What its handler there answers, as far as it is said here.
    pub answer: Option<Type>,
}

/// An `on timer`.
#[derive(Debug, Clone)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// What `start` gives it; a timer of other arguments is another one.
    pub fields: Vec<Field>,
    /// Names that its fields had before.
    pub former: Vec<Former>,
    /// Its code.
    pub function: u32,
}

/// An `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    /// Milliseconds, at least one: it fires at multiples of this since 1970 UTC.
    pub period: i64,
    /// Its code.
    pub function: u32,
}

/// A `test`.
#[derive(Debug, Clone)]
pub struct Test {
    /// Its title.
    pub title: String,
    /// Its line in the source, from 1.
    pub line: u32,
    /// Its code, for a machine whose asking is answered by a world of nodes.
    pub function: u32,
    /// The first word in it that only a simulator of links and disks can do.
    pub simulator: Option<String>,
}

/// An `on delivered` or `on refused`.
#[derive(Debug, Clone)]
pub struct Word {
    /// The number in [`Module::outputs`] of what was sent.
    pub output: u32,
    /// Its code, given the send's arguments, the peer and, for `refused`, the reason, or the answer where it is asked for.
    pub function: u32,
    /// Of a `delivered … with`: the type of the answer, which is none where there is none or one of another type.
    pub answer: Option<Type>,
}

/// How a loop of the code finds the rows that it runs over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The function, handler or view that it stands in.
    pub function: String,
    /// Its line in the source, from 1.
    pub line: u32,
    /// The name of its element.
    pub span: Span,
    /// The list.
    pub list: String,
    /// By what, in words: `key id`, `index branch, a range of balance`, `scan`.
    pub how: String,
    /// Whether it runs over a whole list of the state, in the order of its key.
    pub scan: bool,
    /// Whether it is a scan in a scan.
    pub in_scan: bool,
}

/// The number of the first keyed list that is a local; those of the state are below.
pub const SCRATCH: u32 = 1 << 31;

/// A checked and compiled app.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// The app's name, as its first line says.
    pub name: String,
    /// Whether it is a library: types, functions and tests alone.
    pub is_library: bool,
    /// What it was compiled from.
    pub sources: crate::Sources,
    /// Its enums.
    pub enums: Vec<Enumeration>,
    /// Its records, those without a name among them.
    pub records: Vec<Record>,
    /// Its state; a list's place here is its number in deltas.
    pub lists: Vec<List>,
    /// `on name(…)`
    pub inputs: Vec<Door>,
    /// `on name(…) from peer`
    pub from_inputs: Vec<Door>,
    /// What can be sent.
    pub outputs: Vec<Output>,
    /// `on timer …`
    pub timers: Vec<Timer>,
    /// `every …`
    pub everies: Vec<Every>,
    /// `setting …`
    pub settings: Vec<Setting>,
    /// `test …`
    pub tests: Vec<Test>,
    /// Types of what tests show when an `expect` fails.
    pub shown: Vec<Type>,
    /// `on delivered …`
    pub delivered: Vec<Word>,
    /// `on refused …`
    pub refused: Vec<Word>,
    /// `view name(…)`
    pub views: Vec<Door>,
    /// Keyed lists that are locals: numbers from [`SCRATCH`] on. They hold nothing between events.
    pub scratch: Vec<List>,
    /// All code.
    pub functions: Vec<Function>,
    /// How each loop over rows finds them, in the order of the code.
    pub plans: Vec<Plan>,
    /// What [`crate::code::Operation::Constant`] loads.
    pub constants: Vec<Value>,
}

impl Module {
    /// Whether the app has an `on refused` for this output.
    pub fn hears_refusals(&self, output: &str) -> bool {
        self.refused.iter().any(|word| self.outputs[word.output as usize].name == output)
    }

    /// A list of the state or, from [`SCRATCH`] on, a local one.
    pub fn list(&self, number: u32) -> &List {
        match number.checked_sub(SCRATCH) {
            Some(local) => &self.scratch[local as usize],
            None => &self.lists[number as usize],
        }
    }

    /// Canonical text of the state's lists, fields and types: with equal shapes, rows of one read as the other's.
    pub fn shape(&self) -> String {
        let mut shape = String::new();
        for list in self.lists.iter().filter(|list| !list.transient) {
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
            .filter(|list| !list.transient)
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
