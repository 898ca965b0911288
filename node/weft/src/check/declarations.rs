//! Types, state and doors: everything that stands outside of bodies.

use super::sizes::{Size, TYPE_DEPTH_MAX};
use super::{Checker, ProcedureSignature, Signature, optional};
use crate::code::Function;
use crate::diagnostics::{Code, Diagnostic, Span, line_of};
use crate::module::{
    Destination, Door, Enumeration, Every, Field, List, ListKind, Output, Record, Setting, Timer, Type,
};
use crate::syntax::habits;
use crate::syntax::tree::{self, File, HandlerKind, Source, StatementKind, TypeTree, Word};
use crate::syntax::walk;
use crate::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

const BUILT_IN: &[(&str, Type)] = &[
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("real", Type::Real),
    ("text", Type::Text),
    ("bytes", Type::Bytes),
    ("endpoint", Type::Endpoint),
    ("time", Type::Time),
    ("duration", Type::Duration),
    ("node", Type::Node),
];
impl Checker<'_> {
    /// Declares a file's types; those of a library are called after it.
    pub(super) fn declare_types(&mut self, file: &File, library: Option<&str>) {
        let called =
            |name: &Word| library.map_or(name.text.clone(), |library| format!("{library}.{}", name.text));
        for (name, kind) in BUILT_IN {
            self.types.insert((*name).into(), kind.clone());
        }
        let mut was = self.former_types(file);
        let mut spans: HashMap<&str, Span> = HashMap::new();
        for one in &file.enums {
            if let Some(before) = spans.insert(&one.name.text, one.name.span) {
                self.twice(&one.name, "the type", before);
                continue;
            }
            let names: Vec<Word> = one.cases.iter().map(|case| case.name.clone()).collect();
            self.distinct(&names, "the case");
            let former = self.former_cases(&one.cases);
            if one.cases.is_empty() {
                self.empty(&one.name, "no case", "write its cases between the braces: `{ waiting, done }`");
            }
            let number = self.module.enums.len() as u32;
            self.types.insert(one.name.text.clone(), Type::Enum(number));
            self.called.insert(Type::Enum(number), one.name.text.clone());
            self.module.enums.push(Enumeration {
                name: called(&one.name),
                was: was.remove(&one.name.span.start),
                cases: names.into_iter().map(|name| name.text).collect(),
                former,
            });
        }
        let mut records = Vec::new();
        for one in &file.records {
            if let Some(before) = spans.insert(&one.name.text, one.name.span) {
                self.twice(&one.name, "the type", before);
                continue;
            }
            // Every value of a row takes a byte, so that what a row makes is bounded by its length.
            if one.fields.is_empty() {
                self.empty(&one.name, "no field", "write its fields between the braces: `{ name: text }`");
            }
            let number = self.module.records.len() as u32;
            self.types.insert(one.name.text.clone(), Type::Record(number));
            self.called.insert(Type::Record(number), one.name.text.clone());
            let was = was.remove(&one.name.span.start);
            let former = self.former_fields(&one.fields);
            let name = Some(called(&one.name));
            self.module.records.push(Record { name, was, fields: Vec::new(), former });
            self.record_sizes.push(Size::default());
            records.push((number, one));
        }
        for (number, one) in &records {
            let fields = self.field_types(&one.fields);
            self.module.records[*number as usize].fields = fields;
        }
        self.order_records(&records);
    }

    fn empty(&mut self, name: &Word, what: &str, help: &str) {
        let message = format!("`{}` has {what}", name.text);
        self.report.push(Diagnostic::new(Code::Unexpected, name.span, message).help(help));
    }

    /// Depths and defaults of records, those first that others hold; a record that holds itself is reported.
    fn order_records(&mut self, records: &[(u32, &tree::Record)]) {
        let mut waiting: Vec<(u32, &tree::Record)> = records.to_vec();
        // Those of libraries are: their files were checked before.
        let mut known = vec![true; self.module.records.len()];
        records.iter().for_each(|(number, _)| known[*number as usize] = false);
        // Each round takes all whose inner ones are known: what is left after so many is too deep, or a circle.
        for round in 0.. {
            let mut later = Vec::new();
            let before = waiting.len();
            for (number, one) in waiting {
                let fields = self.module.records[number as usize].fields.clone();
                if fields.iter().all(|field| held(&field.kind).is_none_or(|inner| known[inner as usize])) {
                    known[number as usize] = true;
                    let size = self.size(fields.iter().map(|field| &field.kind), one.name.span);
                    self.record_sizes[number as usize] = size.unwrap_or_else(|no_larger| no_larger);
                    self.give_defaults(number, one);
                } else {
                    later.push((number, one));
                }
            }
            if later.is_empty() {
                return;
            }
            if later.len() == before || round > TYPE_DEPTH_MAX {
                self.report_circle(&later, &known);
                return;
            }
            waiting = later;
        }
    }

    fn report_circle(&mut self, left: &[(u32, &tree::Record)], known: &[bool]) {
        for (number, one) in left {
            let record = &self.module.records[*number as usize];
            let Some(at) = record
                .fields
                .iter()
                .position(|field| held(&field.kind).is_some_and(|inner| !known[inner as usize]))
            else {
                continue;
            };
            let span = one.fields.get(at).map_or(one.name.span, |field| field.kind.span());
            self.report.push(
                Diagnostic::new(
                    Code::HoldsItself,
                    span,
                    format!("`{}` holds itself, or what does", one.name.text),
                )
                .label("by this field")
                .help("keep the inner ones in a list of their own and hold their key"),
            );
        }
        // So that what follows does not stumble over them.
        for (number, _) in left {
            self.module.records[*number as usize].fields.iter_mut().for_each(|field| {
                if held(&field.kind).is_some_and(|inner| !known[inner as usize]) {
                    field.kind = Type::Broken;
                }
            });
        }
        for (number, one) in left {
            self.give_defaults(*number, one);
        }
    }

    /// Gives a record's fields their defaults; the records that they hold must be known.
    fn give_defaults(&mut self, number: u32, tree: &tree::Record) {
        let fields = self.module.records[number as usize].fields.clone();
        let defaults = self.defaults(&tree.fields, &fields);
        for (field, default) in self.module.records[number as usize].fields.iter_mut().zip(defaults) {
            field.default = default;
        }
    }

    fn distinct(&mut self, words: &[Word], what: &str) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for word in words {
            if let Some(before) = seen.insert(&word.text, word.span) {
                self.twice(word, what, before);
            }
        }
    }

    /// Names and types of fields, without their defaults.
    fn field_types(&mut self, fields: &[tree::Field]) -> Vec<Field> {
        let names: Vec<Word> = fields.iter().map(|field| field.name.clone()).collect();
        self.distinct(&names, "the field");
        fields
            .iter()
            .map(|field| Field {
                name: field.name.text.clone(),
                kind: self.named_type(&field.kind),
                default: None,
            })
            .collect()
    }

    fn defaults(&mut self, trees: &[tree::Field], fields: &[Field]) -> Vec<Option<Value>> {
        trees
            .iter()
            .zip(fields)
            .map(|(tree, field)| match &tree.default {
                Some(default) => self.weighed_constant(default, &field.kind),
                None if matches!(field.kind, Type::Optional(_)) => Some(Value::None),
                None => None,
            })
            .collect()
    }

    /// Fields with their defaults; the records must be known.
    pub(super) fn fields(&mut self, trees: &[tree::Field]) -> Vec<Field> {
        let mut fields = self.field_types(trees);
        let defaults = self.defaults(trees, &fields);
        for (field, default) in fields.iter_mut().zip(defaults) {
            field.default = default;
        }
        for (field, tree) in fields.iter_mut().zip(trees) {
            if self.depth(&field.kind) >= TYPE_DEPTH_MAX {
                self.too_deep(tree.kind.span());
                field.kind = Type::Broken;
            }
        }
        fields
    }

    /// A type that is written where all records are known.
    pub(super) fn resolve(&mut self, tree: &TypeTree) -> Type {
        let kind = self.named_type(tree);
        if self.depth(&kind) > TYPE_DEPTH_MAX {
            self.too_deep(tree.span());
            return Type::Broken;
        }
        kind
    }

    /// A type as it is written; whoever calls this sees to how deep it is.
    fn named_type(&mut self, tree: &TypeTree) -> Type {
        match tree {
            TypeTree::Named { name, optional: wanted } => {
                let kind = self.resolve_name(name);
                if *wanted { optional(&kind) } else { kind }
            }
            TypeTree::List { element, .. } => Type::List(Arc::new(self.named_type(element))),
            // Only `state` and `var` have one, and see to it themselves.
            TypeTree::Keyed { .. } => Type::Broken,
        }
    }

    fn resolve_name(&mut self, name: &Word) -> Type {
        if let Some(kind) = self.types.get(&name.text) {
            return kind.clone();
        }
        let message = format!("there is no type `{}`", name.text);
        let here = habits::kind(&name.text).map(|here| format!("in Weft it is `{here}`"));
        if let Some(help) = here.or_else(|| habits::other_kind(&name.text).map(Into::into)) {
            self.report.push(Diagnostic::new(Code::UnknownType, name.span, message).help(help));
            return Type::Broken;
        }
        if self.report.is_full() {
            return Type::Broken;
        }
        let mut there: Vec<String> = self.types.keys().cloned().collect();
        there.sort();
        self.unknown(Code::UnknownType, name, message, there, false);
        Type::Broken
    }

    pub(super) fn declare_settings(&mut self, file: &File) {
        let mut spans: HashMap<&str, Span> = HashMap::new();
        for (setting, field) in file.settings.iter().zip(self.fields(&file.settings)) {
            self.not_a_library(&setting.name);
            if spans.insert(&setting.name.text, setting.name.span).is_some() {
                // Said by `fields`.
                continue;
            }
            self.settings.insert(field.name.clone(), self.module.settings.len() as u32);
            self.no_former(std::slice::from_ref(setting));
            let Field { name, kind, default } = field;
            self.seen_outside(&kind, setting.name.span);
            self.module.settings.push(Setting { name, kind, default });
        }
    }

    pub(super) fn declare_state(&mut self, file: &File) {
        let mut spans: HashMap<&str, Span> = HashMap::new();
        spans.extend(file.settings.iter().map(|setting| (setting.name.text.as_str(), setting.name.span)));
        // Numbers of durable lists do not depend on transient ones.
        let mut was = self.former_states(file);
        let (durable, transient): (Vec<_>, Vec<_>) = file.states.iter().partition(|state| !state.transient);
        for state in durable.into_iter().chain(transient) {
            self.not_a_library(&state.name);
            if let Some(before) = spans.insert(&state.name.text, state.name.span) {
                self.twice(&state.name, "the value", before);
                continue;
            }
            let kind = match &state.kind {
                TypeTree::Keyed { element, keys, indexes, .. } => {
                    self.keyed_list(state.initial.as_ref(), element, keys, indexes)
                }
                other => self.variable(state, other),
            };
            let number = self.module.lists.len() as u32;
            self.states.insert(state.name.text.clone(), number);
            let was = was.remove(&state.name.span.start);
            let name = state.name.text.clone();
            let covers = no_covers(&kind);
            self.module.lists.push(List { name, was, transient: state.transient, kind, covers });
        }
    }

    /// A library's name is one of a value.
    fn not_a_library(&mut self, name: &Word) {
        if let Some(before) = self.libraries.get(&name.text).copied() {
            self.twice(name, "the library", before);
        }
    }

    fn variable(&mut self, state: &tree::State, tree: &TypeTree) -> ListKind {
        let kind = self.resolve(tree);
        let initial = match &state.initial {
            Some(initial) => self.weighed_constant(initial, &kind),
            None => match &kind {
                Type::Optional(_) | Type::Broken => Some(Value::None),
                Type::List(_) => Some(Value::List(Arc::default())),
                _ => {
                    let name = &state.name.text;
                    let written = self.name_of(&kind);
                    self.report.push(
                        Diagnostic::new(
                            Code::NotConstant,
                            state.name.span,
                            format!("`{name}` has no initial value"),
                        )
                        .help(format!("write `state {name}: {written} = …`, or make it `{written}?`")),
                    );
                    None
                }
            },
        };
        ListKind::Variable { kind, initial: initial.unwrap_or_default() }
    }

    pub(super) fn keyed_list(
        &mut self,
        initial: Option<&tree::Expression>,
        element: &Word,
        keys: &[Word],
        indexes: &[Vec<Word>],
    ) -> ListKind {
        let kind = self.resolve_name(element);
        let Type::Record(record) = kind else {
            if kind != Type::Broken {
                let message = format!("a keyed list holds records, and `{}` is none", element.text);
                self.report.push(Diagnostic::new(Code::WrongType, element.span, message));
            }
            return ListKind::Variable { kind: Type::Broken, initial: Value::None };
        };
        if let Some(initial) = initial {
            self.report.push(Diagnostic::new(Code::NotConstant, initial.span, "a keyed list begins empty"));
        }
        let keys = self.key_fields(record, keys, false);
        let indexes = indexes.iter().map(|names| self.key_fields(record, names, true)).collect();
        if keys.is_empty() {
            return ListKind::Variable { kind: Type::Broken, initial: Value::None };
        }
        ListKind::Keyed { record, keys, indexes }
    }

    fn key_fields(&mut self, record: u32, names: &[Word], may_be_none: bool) -> Vec<u16> {
        self.distinct(names, "the key");
        let mut fields = Vec::new();
        for name in names {
            let Some((field, kind)) = self.field_of(record, name) else { continue };
            let inner = match &kind {
                Type::Optional(inner) if may_be_none => (**inner).clone(),
                other => other.clone(),
            };
            if matches!(inner, Type::List(_) | Type::Record(_) | Type::Optional(_)) {
                let written = self.name_of(&kind);
                self.report.push(
                    Diagnostic::new(
                        Code::KeyType,
                        name.span,
                        format!("`{}` cannot be a key: it is {written}", name.text),
                    )
                    .note("keys are of bool, int, real, text, bytes, time, duration, node or an enum"),
                );
                continue;
            }
            fields.push(field);
        }
        fields
    }

    /// A field of a record, or a report of what fields there are.
    pub(super) fn field_of(&mut self, record: u32, name: &Word) -> Option<(u16, Type)> {
        let found = &self.module.records[record as usize];
        if let Some(at) = found.fields.iter().position(|field| field.name == name.text) {
            return Some((at as u16, found.fields[at].kind.clone()));
        }
        if self.report.is_full() {
            return None;
        }
        let there: Vec<String> = found.fields.iter().map(|field| field.name.clone()).collect();
        let owner = found.name.clone().unwrap_or_else(|| "this record".into());
        let fields = super::listed(&there);
        let near = crate::diagnostics::suggest(&name.text, there.iter().map(String::as_str));
        let mut diagnostic =
            Diagnostic::new(Code::UnknownField, name.span, format!("`{owner}` has no field `{}`", name.text))
                .label(format!("`{owner}` has {fields}"));
        if let Some(near) = near {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.report.push(diagnostic);
        None
    }

    /// A number for code that is not there yet.
    pub(super) fn reserve_function(&mut self, name: &str) -> u32 {
        self.module.functions.push(Function { name: name.into(), ..Function::default() });
        (self.module.functions.len() - 1) as u32
    }

    /// Names of doors and procedures, and their arguments. Returns each handler's function.
    pub(super) fn declare_actions(&mut self, file: &File) -> Vec<u32> {
        let mut routes: HashMap<String, Span> = HashMap::new();
        let mut actions: HashMap<String, Span> = HashMap::new();
        let mut functions = Vec::new();
        for handler in &file.handlers {
            let function = self.reserve_function(&handler.name.text);
            functions.push(function);
            if let HandlerKind::Timer { fields } = &handler.kind {
                if let Some(before) = actions.insert(handler.name.text.clone(), handler.name.span) {
                    self.twice(&handler.name, "the action", before);
                }
                let former = self.former_fields(fields);
                let fields = self.fields(fields);
                self.module.timers.push(Timer { name: handler.name.text.clone(), fields, former, function });
                continue;
            }
            let HandlerKind::On { fields, source, answer } = &handler.kind else { continue };
            if let Some(before) = actions.insert(handler.name.text.clone(), handler.name.span) {
                self.twice(&handler.name, "the action", before);
            }
            let trees = fields;
            let fields = self.fields(trees);
            let answer = answer.as_ref().map(|answer| self.resolve(answer));
            let name = handler.name.text.clone();
            match source {
                Source::Outside { by } => {
                    routes.insert(name.clone(), handler.name.span);
                    self.inputs.insert(name.clone(), handler.name.span);
                    self.no_former(trees);
                    let (takes_caller, former) = (by.is_some(), Vec::new());
                    self.module.inputs.push(Door {
                        name,
                        fields,
                        former,
                        takes_caller,
                        of: None,
                        answer,
                        function,
                    });
                }
                Source::Peer { of, .. } => {
                    let of = of.as_ref().map(|app| app.text.clone()).filter(|app| *app != self.module.name);
                    let former = self.former_fields(trees);
                    if of.is_none() {
                        self.module.outputs.push(Output {
                            name: name.clone(),
                            fields: fields.clone(),
                            former: former.clone(),
                            to: Destination::Own,
                            transient: false,
                            answer: answer.clone(),
                        });
                    }
                    self.module.from_inputs.push(Door {
                        name,
                        fields,
                        former,
                        takes_caller: true,
                        of,
                        answer,
                        function,
                    });
                }
            }
        }
        self.declare_outputs(file, &mut actions);
        for every in &file.everies {
            let function = self.reserve_function("every");
            let (period, span) = every.period;
            if period == 0 {
                self.report.push(Diagnostic::new(Code::BadNumber, span, "`every` needs some time between"));
            }
            self.module.everies.push(Every { period: period.max(1), function });
        }
        self.declare_procedures(file, &mut actions);
        for function in file.functions.iter().filter(|function| function.is_view) {
            if let Some(before) = routes.get(&function.name.text) {
                let line = line_of(self.source, before.start);
                let name = &function.name.text;
                self.report.push(
                    Diagnostic::new(Code::Twice, function.name.span, format!("`{name}` is an input already"))
                        .label(format!("the `on` is on line {line}"))
                        .note("an `on` and a `view` of one name would be one address")
                        .help("give one of them another name"),
                );
            }
        }
        functions
    }

    fn declare_outputs(&mut self, file: &File, actions: &mut HashMap<String, Span>) {
        for output in &file.outputs {
            let answer = output.answer.as_ref().map(|answer| self.resolve(answer));
            if let Some(tree) = output.answer.as_ref().filter(|_| output.transient || output.app.is_none()) {
                let message = format!("nobody hears an answer to `{}`", output.name.text);
                let why = match output.transient {
                    true => "what is worth something now or never is sent once and forgotten",
                    false => "without `for` it goes to an endpoint, whose answer is not heard",
                };
                self.report.push(Diagnostic::new(Code::NoAnswer, tree.span(), message).note(why));
            }
            let own = output.app.as_ref().is_none_or(|app| app.text == self.module.name);
            if output.transient && own {
                self.transient_to_own(output);
                continue;
            }
            if let Some(before) = actions.insert(output.name.text.clone(), output.name.span) {
                self.twice(&output.name, "the action", before);
                continue;
            }
            let former = self.former_fields(&output.fields);
            let fields = self.fields(&output.fields);
            let to = match &output.app {
                Some(app) => Destination::App(app.text.clone()),
                None => Destination::Endpoint,
            };
            let (name, transient) = (output.name.text.clone(), output.transient);
            self.module.outputs.push(Output { name, fields, former, to, transient, answer });
        }
    }

    /// `transient output` without `for`: the app's own `on … from` of that name is sent to so.
    fn transient_to_own(&mut self, output: &tree::Output) {
        let (name, fields) = (&output.name, self.fields(&output.fields));
        let takes = |one: &Output| one.to == Destination::Own && one.name == name.text;
        let Some(door) = self.module.outputs.iter_mut().find(|one| takes(one)) else {
            if !self.lost.contains(name.text.as_str()) {
                self.report.push(
                    Diagnostic::new(Code::Transient, name.span, format!("nothing takes `{}`", name.text))
                        .label(format!("there is no `on {}(…) from peer`", name.text))
                        .note("a `transient output` goes to the same app of another node, or with `for` to another app"),
                );
            }
            // So that sends of it are not reported, too.
            let (name, former) = (name.text.clone(), Vec::new());
            let (to, transient, answer) = (Destination::Own, true, None);
            self.module.outputs.push(Output { name, fields, former, to, transient, answer });
            return;
        };
        let said: Vec<_> = fields.iter().map(|field| (&field.name, &field.kind)).collect();
        let taken: Vec<_> = door.fields.iter().map(|field| (&field.name, &field.kind)).collect();
        if said != taken {
            let message = format!("`on {} … from` has other fields", name.text);
            self.report.push(
                Diagnostic::new(Code::Transient, name.span, message)
                    .help("write the same names and types, in the same order"),
            );
        } else if std::mem::replace(&mut door.transient, true) {
            let message = format!("the output `{}` is there already", name.text);
            self.report.push(Diagnostic::new(Code::Twice, name.span, message).help("leave one of them out"));
        }
    }

    fn declare_procedures(&mut self, file: &File, actions: &mut HashMap<String, Span>) {
        for procedure in &file.procedures {
            if let Some(before) = actions.insert(procedure.name.text.clone(), procedure.name.span) {
                self.twice(&procedure.name, "the action", before);
                continue;
            }
            let function = self.reserve_function(&procedure.name.text);
            self.no_former(&procedure.fields);
            let fields = self.fields(&procedure.fields);
            let changes = self.first_change(&procedure.body);
            self.procedures
                .insert(procedure.name.text.clone(), ProcedureSignature { function, fields, changes });
        }
    }

    /// The state that a procedure changes first, as far as its text tells.
    fn first_change(&self, body: &tree::Block) -> Option<(String, usize)> {
        let mut found = None;
        walk::statements(body, &mut |statement| {
            let place = match &statement.kind {
                StatementKind::Change(change) => &change.place,
                StatementKind::Assign { place, .. } | StatementKind::Remove { place, .. } => place,
                _ => return,
            };
            let name = super::changes::root_name(place).unwrap_or_default();
            if found.is_none() {
                let name = if self.states.contains_key(name) { format!("`{name}`") } else { "state".into() };
                found = Some((name, line_of(self.source, statement.span.start)));
            }
        });
        found
    }

    /// The function's number, arguments and, as soon as it is known, answer.
    pub(super) fn declare_function(&mut self, function: &tree::Function) -> Signature {
        let number = self.reserve_function(&function.name.text);
        self.no_former(&function.fields);
        let fields = self.fields(&function.fields);
        let answer = function.answer.as_ref().map_or(Type::Broken, |answer| self.resolve(answer));
        Signature { function: number, is_view: function.is_view, fields, by: function.by.is_some(), answer }
    }
}

/// As many indexes as a list has, which cover nothing.
pub(super) fn no_covers(kind: &ListKind) -> Vec<Vec<u16>> {
    match kind {
        ListKind::Keyed { indexes, .. } => vec![Vec::new(); indexes.len()],
        ListKind::Variable { .. } => Vec::new(),
    }
}

/// The record that a type's values hold.
fn held(kind: &Type) -> Option<u32> {
    match kind {
        Type::Record(number) => Some(*number),
        Type::List(inner) | Type::Optional(inner) => held(inner),
        _ => None,
    }
}
