//! From a tree to a module: names, types, effects, calls without circles, code.
//!
//! Must not know how a source is laid out, nor how code is run. One pass over each function both checks and lowers it:
//! what an expression's type is and which registers hold it are decided at the same place. When anything was
//! reported, the code is thrown away.
//!
//! `declarations` resolves types, settings, state and doors; `calls` orders the functions; `functions` begins and ends them; `body` keeps one function's scope
//! and registers; `expressions`, `operators`, `records`, `builtins`, `queries`, `changes` and `statements` check and lower what
//! their names say; `sizes` bounds types and constants; `tests` checks and lowers tests, which act on nodes from outside; `was` looks at former names.

mod body;
mod builtins;
mod calls;
mod changes;
mod constants;
mod covers;
mod declarations;
mod expressions;
mod functions;
mod hints;
mod operators;
mod queries;
mod records;
mod sizes;
mod statements;
mod tests;
mod tidy;
mod was;

use crate::diagnostics::{Code, Diagnostic, Report, Span, suggest};
use crate::libraries::{Loaded, Unit};
use crate::module::{Enumeration, Field, List, ListKind, Module, Record, Type, type_name};
use crate::syntax::tree::{File, Word};
use crate::value::{Real, Value};
use sizes::{CONSTANT_BYTES_MAX, Size, TYPE_DEPTH_MAX};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// How many operations a module may have: bounds memory and time of the compiler for a hostile source.
const OPERATIONS_MAX: usize = 1 << 20;

/// Names and fields whose types are remembered for editors: more than a file has that a person wrote.
const TOLD_MAX: usize = 1 << 16;

/// What is known of a `fn` or a `view`.
#[derive(Debug, Clone)]
struct Signature {
    function: u32,
    is_view: bool,
    fields: Vec<Field>,
    by: bool,
    answer: Type,
}

/// What is known of a `do`.
#[derive(Debug, Clone)]
struct ProcedureSignature {
    function: u32,
    fields: Vec<Field>,
    /// The state that it changes and the line, for diagnostics.
    changes: Option<(String, usize)>,
}

/// A keyed list's record, the fields of its key and those of each index.
type KeyedList<'l> = (u32, &'l [u16], &'l [Vec<u16>]);

struct Checker<'a> {
    /// The text of all files.
    source: &'a str,
    /// Where the text of the file in hand begins.
    start: usize,
    /// What the file in hand calls its libraries, and where.
    libraries: HashMap<String, Span>,
    /// What it calls the types of libraries.
    called: HashMap<Type, String>,
    report: Report,
    module: Module,
    types: HashMap<String, Type>,
    states: HashMap<String, u32>,
    settings: HashMap<String, u32>,
    functions: HashMap<String, Signature>,
    procedures: HashMap<String, ProcedureSignature>,
    /// Inputs from outside by name, for what is said about misuse.
    inputs: HashMap<String, Span>,
    unnamed: BTreeMap<Vec<(String, Type)>, u32>,
    record_sizes: Vec<Size>,
    /// Plain values in the types of what views give and settings take.
    outside_values: u32,
    /// Bytes that are left for defaults and initial values.
    constant_bytes: u32,
    constant_numbers: HashMap<ConstantKey, u32>,
    operations: usize,
    /// Names of what was reported and left out.
    lost: HashSet<&'a str>,
    /// What names and fields in the file in hand are, where they stand.
    told: Vec<(Span, Type)>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum ConstantKey {
    None,
    Word(i64),
    Real(Real),
    Text(String),
}

/// What a library gives to who uses it, by its own names.
struct Exports {
    types: HashMap<String, Type>,
    functions: HashMap<String, Signature>,
}

/// Checks and lowers a file and, before it, the libraries that it uses.
pub(crate) fn check(loaded: &Loaded, must_be_app: bool, report: Report) -> Result<Module, Report> {
    let mut checker = Checker::new(loaded, report);
    checker.check_all(loaded, must_be_app);
    if checker.report.is_empty() { Ok(checker.module) } else { Err(checker.report) }
}

/// What the names and fields in a file are, as far as it is right: where each stands in its text, and its type.
pub(crate) fn types(loaded: &Loaded, report: Report) -> Vec<(Span, String)> {
    let mut checker = Checker::new(loaded, report);
    checker.check_all(loaded, false);
    let told = checker.told.iter().filter(|(_, kind)| !is_broken(kind));
    let of_file = told.filter_map(|(span, kind)| {
        let start = span.start.checked_sub(checker.start as u32)?;
        Some((Span { start, end: span.end - checker.start as u32 }, checker.name_of(kind)))
    });
    of_file.collect()
}

impl<'a> Checker<'a> {
    fn new(loaded: &'a Loaded, report: Report) -> Checker<'a> {
        Checker {
            source: &loaded.whole,
            start: 0,
            libraries: HashMap::new(),
            called: HashMap::new(),
            report,
            module: Module::default(),
            types: HashMap::new(),
            states: HashMap::new(),
            settings: HashMap::new(),
            functions: HashMap::new(),
            procedures: HashMap::new(),
            inputs: HashMap::new(),
            unnamed: BTreeMap::new(),
            record_sizes: Vec::new(),
            outside_values: 0,
            constant_bytes: CONSTANT_BYTES_MAX,
            constant_numbers: HashMap::new(),
            operations: 0,
            lost: HashSet::new(),
            told: Vec::new(),
        }
    }

    fn check_all(&mut self, loaded: &'a Loaded, must_be_app: bool) {
        let mut exports = Vec::new();
        let (app, libraries) = loaded.units.split_last().expect("the file that is compiled is one");
        for unit in libraries {
            let before = self.report.count();
            exports.push(self.check_library(unit, &exports));
            // What uses a library that is not right would only stumble over what is missing in it.
            if unit.is_broken || self.report.count() > before {
                return;
            }
        }
        if must_be_app && app.tree.is_library {
            return self.is_a_library(&app.tree);
        }
        self.told.clear();
        self.check_app(app, &exports);
    }

    /// Remembers what a name is, for whoever asks.
    fn tell(&mut self, span: Span, kind: &Type) {
        if self.told.len() < TOLD_MAX {
            self.told.push((span, kind.clone()));
        }
    }

    fn check_app(&mut self, unit: &'a Unit, exports: &[Exports]) {
        let file = &unit.tree;
        self.enter(unit, exports);
        self.module.name = file.name.clone();
        self.module.is_library = file.is_library;
        self.declare_types(file, None);
        self.declare_settings(file);
        self.declare_state(file);
        let doors = self.declare_actions(file);
        self.check_functions(file);
        self.check_handlers(file, &doors);
        self.check_tests(file);
        self.cover();
    }

    fn check_library(&mut self, unit: &'a Unit, exports: &[Exports]) -> Exports {
        let file = &unit.tree;
        self.enter(unit, exports);
        self.declare_types(file, Some(&file.name));
        self.check_functions(file);
        let own_types =
            file.enums.iter().map(|one| &one.name).chain(file.records.iter().map(|one| &one.name));
        let types =
            own_types.filter_map(|name| Some((name.text.clone(), self.types.get(&name.text)?.clone())));
        let types = types.collect();
        let own_functions = file.functions.iter().map(|one| &one.name.text);
        let functions = own_functions
            .filter_map(|name| Some((name.clone(), self.functions.get(name)?.clone())))
            .collect();
        Exports { types, functions }
    }

    /// Turns to a file: what it sees are its own names and, behind the names that it gives them, its libraries'.
    fn enter(&mut self, unit: &'a Unit, exports: &[Exports]) {
        self.start = unit.start;
        self.lost = unit.tree.lost.iter().map(String::as_str).collect();
        self.libraries.clear();
        self.called.clear();
        self.types.clear();
        self.functions.clear();
        for (alias, number) in &unit.uses {
            self.libraries.insert(alias.text.clone(), alias.span);
            let Exports { types, functions } = &exports[*number];
            let of = |name: &String| format!("{}.{name}", alias.text);
            self.called.extend(types.iter().map(|(name, kind)| (kind.clone(), of(name))));
            self.types.extend(types.iter().map(|(name, kind)| (of(name), kind.clone())));
            self.functions.extend(functions.iter().map(|(name, one)| (of(name), one.clone())));
        }
    }

    fn is_a_library(&mut self, file: &File) {
        let name = &file.name;
        self.report.push(
            Diagnostic::new(Code::Library, file.header, "this is a library, not an app")
                .note("a node runs apps; what a library holds is taken by those that use it")
                .help(format!("an app takes it with `use \"{name}.weft\" as {name}`")),
        );
    }
}

impl Checker<'_> {
    /// A type as the file in hand writes it.
    fn name_of(&self, kind: &Type) -> String {
        match kind {
            Type::List(element) => format!("list of {}", self.name_of(element)),
            Type::Optional(inner) => format!("{}?", self.name_of(inner)),
            _ => match self.called.get(kind) {
                Some(name) => name.clone(),
                None => type_name(kind, &self.module.enums, &self.module.records),
            },
        }
    }

    /// The records that the file in hand can name.
    fn records_here(&self) -> Vec<String> {
        let numbers = 0..self.module.records.len() as u32;
        let names = numbers.map(|number| self.name_of(&Type::Record(number)));
        names.filter(|name| self.types.contains_key(name)).collect()
    }

    fn record(&self, number: u32) -> &Record {
        &self.module.records[number as usize]
    }

    fn list(&self, number: u32) -> &List {
        self.module.list(number)
    }

    /// A keyed list's record and key fields.
    fn keyed(&self, number: u32) -> Option<KeyedList<'_>> {
        match &self.list(number).kind {
            ListKind::Keyed { record, keys, indexes } => Some((*record, keys, indexes)),
            ListKind::Variable { .. } => None,
        }
    }

    fn enumeration(&self, number: u32) -> &Enumeration {
        &self.module.enums[number as usize]
    }

    fn constant(&mut self, value: Value) -> u32 {
        let key = match &value {
            Value::None => Some(ConstantKey::None),
            Value::Word(word) => Some(ConstantKey::Word(*word)),
            Value::Real(real) => Some(ConstantKey::Real(*real)),
            Value::Text(text) => Some(ConstantKey::Text(text.to_string())),
            _ => None,
        };
        let next = self.module.constants.len() as u32;
        if let Some(key) = key {
            if let Some(number) = self.constant_numbers.get(&key) {
                return *number;
            }
            self.constant_numbers.insert(key, next);
        }
        self.module.constants.push(value);
        next
    }

    /// The record of an expression without a name.
    fn unnamed_record(&mut self, fields: Vec<(String, Type)>, span: Span) -> Type {
        if let Some(number) = self.unnamed.get(&fields) {
            return Type::Record(*number);
        }
        let Ok(size) = self.size(fields.iter().map(|(_, kind)| kind), span) else { return Type::Broken };
        let number = self.module.records.len() as u32;
        let listed = fields
            .iter()
            .map(|(name, kind)| Field { name: name.clone(), kind: kind.clone(), default: None })
            .collect();
        self.module.records.push(Record { name: None, was: None, fields: listed, former: Vec::new() });
        self.record_sizes.push(size);
        self.unnamed.insert(fields, number);
        Type::Record(number)
    }

    fn list_type(&mut self, element: Type, span: Span) -> Type {
        if self.depth(&element) >= TYPE_DEPTH_MAX {
            self.too_deep(span);
            return Type::Broken;
        }
        Type::List(Arc::new(element))
    }

    /// Whether a value of one type may stand where another is wanted: `T` where `T?` is, nothing else.
    fn fits(&self, found: &Type, wanted: &Type) -> bool {
        match (found, wanted) {
            (Type::Broken, _) | (_, Type::Broken) => true,
            (Type::Nothing, Type::Optional(_)) => true,
            (Type::List(found), Type::List(wanted))
                if **found == Type::Broken || **wanted == Type::Broken =>
            {
                true
            }
            (found, wanted) if found == wanted => true,
            (found, Type::Optional(inner)) => found == &**inner,
            _ => false,
        }
    }

    /// The type that holds both, if one widens to the other.
    fn join(&self, left: &Type, right: &Type) -> Option<Type> {
        match (left, right) {
            (Type::Broken, other) | (other, Type::Broken) => Some(other.clone()),
            (Type::Nothing, other) | (other, Type::Nothing) => Some(optional(other)),
            _ if self.fits(left, right) => Some(right.clone()),
            _ if self.fits(right, left) => Some(left.clone()),
            _ => None,
        }
    }

    fn twice(&mut self, word: &Word, what: &str, before: Span) {
        let line = crate::diagnostics::line_of(&self.source[self.start..], before.start - self.start as u32);
        self.report.push(
            Diagnostic::new(Code::Twice, word.span, format!("{what} `{}` is there already", word.text))
                .label(format!("the first is on line {line}"))
                .help("give one of them another name"),
        );
    }

    fn unknown(&mut self, code: Code, word: &Word, message: String, there: Vec<String>, list: bool) {
        let library = word.text.split_once('.').map_or("", |(library, _)| library);
        if self.report.is_full() || self.lost.contains(word.text.as_str()) || self.lost.contains(library) {
            return;
        }
        let mut diagnostic = Diagnostic::new(code, word.span, message);
        if !library.is_empty() && !self.libraries.contains_key(library) {
            diagnostic =
                diagnostic.help(format!("name the library first: `use \"{library}.weft\" as {library}`"));
        }
        let near = suggest(&word.text, there.iter().map(String::as_str));
        if list && !there.is_empty() && there.len() <= 12 {
            diagnostic = diagnostic.note(format!("there is {}", listed(&there)));
        }
        if let Some(near) = near {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.report.push(diagnostic);
    }
}

/// `a`, `b` and `c`
fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `T?`; there is no `T??`.
fn optional(kind: &Type) -> Type {
    match kind {
        Type::Optional(_) | Type::Broken => kind.clone(),
        Type::Nothing => Type::Nothing,
        _ => Type::Optional(Arc::new(kind.clone())),
    }
}

/// Whether a type, or what it holds, was reported.
fn is_broken(kind: &Type) -> bool {
    match kind {
        Type::Broken => true,
        Type::List(inner) | Type::Optional(inner) => is_broken(inner),
        _ => false,
    }
}
