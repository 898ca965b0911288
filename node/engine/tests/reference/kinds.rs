//! What declarations say: a program's records, enums, states, doors and functions, found by name.

use super::value::Value;
use std::collections::BTreeMap;
use weft::syntax::tree::{
    Expression, ExpressionKind, Field as FieldTree, File, Function, Handler, HandlerKind, Item, Piece,
    Source, TypeTree, Word,
};
use weft::value::Real;

#[derive(Debug, Clone, PartialEq, Eq)]
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
    Enum(String),
    Record(String),
    List(Box<Kind>),
    Optional(Box<Kind>),
    /// A record without a name.
    Shape(Vec<(String, Kind)>),
    /// It does not matter, or cannot be told.
    Unknown,
}

#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub default: Option<Value>,
}

#[derive(Debug, Clone)]
pub struct Record {
    pub fields: Vec<Field>,
}

/// What a `state` is.
#[derive(Debug, Clone)]
pub enum Stored {
    Keyed { record: String, keys: Vec<String>, indexes: Vec<Vec<String>> },
    Variable { kind: Kind, initial: Value },
}

#[derive(Debug, Clone)]
pub struct State {
    pub name: String,
    pub transient: bool,
    pub stored: Stored,
}

/// What is sent by a name: its fields, the app that takes it; none: an endpoint; and what it answers.
#[derive(Debug, Clone)]
pub struct Output {
    pub transient: bool,
    pub fields: Vec<Field>,
    pub app: Option<String>,
    pub answer: Option<Kind>,
}

/// A file whose declarations are looked up by name.
pub struct Program {
    pub file: File,
    pub records: BTreeMap<String, Record>,
    /// Of each case its enum and its place there. The tests' programs name no case twice.
    pub cases: BTreeMap<String, (String, usize)>,
    /// Durable ones first, as the log numbers them.
    pub states: Vec<State>,
    pub settings: Vec<Field>,
    pub outputs: BTreeMap<String, Output>,
}

impl Program {
    pub fn of(file: File) -> Program {
        let mut program = Program {
            file,
            records: BTreeMap::new(),
            cases: BTreeMap::new(),
            states: Vec::new(),
            settings: Vec::new(),
            outputs: BTreeMap::new(),
        };
        let file = std::mem::take(&mut program.file);
        for one in &file.enums {
            for (place, case) in one.cases.iter().enumerate() {
                let twice = program.cases.insert(case.name.text.clone(), (one.name.text.clone(), place));
                assert!(twice.is_none(), "case `{}` is there twice", case.name.text);
            }
        }
        for one in &file.records {
            program.records.insert(one.name.text.clone(), Record { fields: Vec::new() });
        }
        // Defaults of a record may need those of the ones that it holds: as many rounds as records.
        for _ in 0..=file.records.len() {
            for one in &file.records {
                let fields = program.fields(&one.fields);
                program.records.insert(one.name.text.clone(), Record { fields });
            }
        }
        let (durable, transient): (Vec<_>, Vec<_>) = file.states.iter().partition(|state| !state.transient);
        for state in durable.into_iter().chain(transient) {
            let stored = match &state.kind {
                TypeTree::Keyed { element, keys, indexes, .. } => Stored::Keyed {
                    record: element.text.clone(),
                    keys: words(keys),
                    indexes: indexes.iter().map(|index| words(index)).collect(),
                },
                other => {
                    let kind = program.kind(other);
                    let initial = state.initial.as_ref().map(|initial| program.constant(initial, &kind));
                    let initial = initial.unwrap_or_else(|| empty(&kind));
                    Stored::Variable { kind, initial }
                }
            };
            program.states.push(State { name: state.name.text.clone(), transient: state.transient, stored });
        }
        program.settings = program.fields(&file.settings);
        program.declare_outputs(&file);
        program.file = file;
        program
    }

    fn declare_outputs(&mut self, file: &File) {
        for handler in &file.handlers {
            if let HandlerKind::On { fields, source: Source::Peer { of, .. }, answer } = &handler.kind
                && of.as_ref().is_none_or(|of| of.text == file.name)
            {
                let answer = answer.as_ref().map(|answer| self.kind(answer));
                let (fields, app) = (self.fields(fields), Some(file.name.clone()));
                let output = Output { transient: false, fields, app, answer };
                self.outputs.insert(handler.name.text.clone(), output);
            }
        }
        for output in &file.outputs {
            let transient = output.transient;
            let app = output.app.as_ref().map(|app| app.text.clone());
            let app = app.or_else(|| transient.then(|| file.name.clone()));
            let answer = output.answer.as_ref().map(|answer| self.kind(answer));
            let declared = Output { transient, fields: self.fields(&output.fields), app, answer };
            self.outputs.insert(output.name.text.clone(), declared);
        }
    }

    pub fn record(&self, name: &str) -> &Record {
        &self.records[name]
    }

    pub fn function(&self, name: &str) -> Option<&Function> {
        self.file.functions.iter().find(|function| function.name.text == name)
    }

    pub fn handler(&self, name: &str, is: impl Fn(&HandlerKind) -> bool) -> Option<&Handler> {
        self.file.handlers.iter().find(|handler| handler.name.text == name && is(&handler.kind))
    }

    pub fn fields(&self, trees: &[FieldTree]) -> Vec<Field> {
        trees
            .iter()
            .map(|tree| {
                let kind = self.kind(&tree.kind);
                let default = match (&tree.default, &kind) {
                    (Some(default), _) => Some(self.constant(default, &kind)),
                    (None, Kind::Optional(_)) => Some(Value::None),
                    _ => None,
                };
                Field { name: tree.name.text.clone(), kind, default }
            })
            .collect()
    }

    pub fn kind(&self, tree: &TypeTree) -> Kind {
        match tree {
            TypeTree::Named { name, optional } => {
                let kind = match name.text.as_str() {
                    "bool" => Kind::Bool,
                    "int" => Kind::Int,
                    "real" => Kind::Real,
                    "text" => Kind::Text,
                    "bytes" => Kind::Bytes,
                    "time" => Kind::Time,
                    "duration" => Kind::Duration,
                    "node" => Kind::Node,
                    "endpoint" => Kind::Endpoint,
                    other if self.records.contains_key(other) => Kind::Record(other.into()),
                    other => Kind::Enum(other.into()),
                };
                if *optional { Kind::Optional(Box::new(kind)) } else { kind }
            }
            TypeTree::List { element, .. } => Kind::List(Box::new(self.kind(element))),
            TypeTree::Keyed { element, .. } => Kind::List(Box::new(Kind::Record(element.text.clone()))),
        }
    }

    pub fn case(&self, name: &str) -> Value {
        Value::Case(self.cases[name].1, name.into())
    }

    /// A default or an initial value.
    pub fn constant(&self, expression: &Expression, kind: &Kind) -> Value {
        let value = match &*expression.kind {
            ExpressionKind::None => Value::None,
            ExpressionKind::Int(number) => Value::Int(*number),
            ExpressionKind::Real(real) => Value::Real(*real),
            ExpressionKind::Duration(length) => Value::Duration(*length),
            ExpressionKind::Bool(value) => Value::Bool(*value),
            ExpressionKind::Case(case) => self.case(case),
            ExpressionKind::Text(pieces) => match pieces.as_slice() {
                [] => Value::text(""),
                [Piece::Literal(text)] => Value::text(text),
                _ => panic!("no constant"),
            },
            ExpressionKind::Negate(inner) => match self.constant(inner, kind) {
                Value::Int(number) => Value::Int(-number),
                Value::Duration(number) => Value::Duration(-number),
                Value::Real(real) => Value::Real(Real::new(-real.get()).expect("a real below zero is one")),
                other => panic!("-{other:?}"),
            },
            ExpressionKind::List(values) => {
                Value::List(values.iter().map(|value| self.constant(value, &Kind::Unknown)).collect())
            }
            ExpressionKind::Record { items, .. } => Value::Record(
                items
                    .iter()
                    .map(|item| match item {
                        Item::Named(name, value) => (name.text.clone(), self.constant(value, &Kind::Unknown)),
                        Item::Place(_) => panic!("no constant"),
                    })
                    .collect(),
            ),
            _ => panic!("no constant"),
        };
        self.fitted(value, kind)
    }

    /// A value where one of a kind is wanted: records without a name become the wanted one, with its defaults.
    pub fn fitted(&self, value: Value, kind: &Kind) -> Value {
        match (value, kind) {
            (Value::None, _) => Value::None,
            (value, Kind::Optional(inner)) => self.fitted(value, inner),
            (Value::List(values), Kind::List(element)) => {
                Value::List(values.into_iter().map(|value| self.fitted(value, element)).collect())
            }
            (Value::Record(given), Kind::Record(name)) => self.made(name, given),
            (value, _) => value,
        }
    }

    /// A record from what is given for its fields.
    pub fn made(&self, name: &str, given: Vec<(String, Value)>) -> Value {
        let fields = self.record(name).fields.iter().map(|field| {
            let value = given.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value.clone());
            let value = value.map(|value| self.fitted(value, &field.kind)).or_else(|| field.default.clone());
            (field.name.clone(), value.unwrap_or(Value::None))
        });
        Value::Record(fields.collect())
    }
}

fn words(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.text.clone()).collect()
}

/// What a name without a value begins with.
pub fn empty(kind: &Kind) -> Value {
    match kind {
        Kind::List(_) => Value::List(Vec::new()),
        _ => Value::None,
    }
}
