//! Expressions: what type each has, and the code that computes it.

use super::body::{BindingKind, Body, Effect, Operand};
use super::{Checker, listed, optional};
use crate::code::{Arithmetic, Operation, Register, Written};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::{ListKind, Type};
use crate::syntax::tree::{Binary, Expression, ExpressionKind, Item, Piece, Word};
use crate::value::Value;

impl Checker<'_> {
    /// The number of a case of an enum, or a report.
    pub(super) fn case_number(&mut self, number: u32, case: &Word) -> Option<i64> {
        let enumeration = self.enumeration(number);
        if let Some(at) = enumeration.cases.iter().position(|name| *name == case.text) {
            return Some(at as i64);
        }
        let message = format!("`{}` has no case `{}`", enumeration.name, case.text);
        let there = enumeration.cases.clone();
        self.unknown(Code::UnknownCase, case, message, there, true);
        None
    }

    pub(super) fn missing_field(&mut self, span: Span, record: u32, field: usize) {
        let found = self.record(record);
        let owner = found.name.clone().unwrap_or_else(|| "the record".into());
        let (name, kind) = (found.fields[field].name.clone(), self.name_of(&found.fields[field].kind));
        self.report.push(
            Diagnostic::new(Code::MissingField, span, format!("`{owner}` needs a value for `{name}`"))
                .label(format!("no `{name}: {kind}`"))
                .help(format!("write `{name}: …`, or give the field a default in `record {owner}`")),
        );
    }
}

impl Body<'_, '_> {
    /// Checks and lowers an expression. `wanted` helps `.cases`, `none`, `[]` and records without a name to their
    /// type; whether the result fits it is not decided here.
    pub(super) fn lower(&mut self, expression: &Expression, wanted: Option<&Type>) -> Operand {
        match &*expression.kind {
            ExpressionKind::Int(number) => self.literal(Value::Word(*number), Type::Int),
            ExpressionKind::Duration(length) => self.literal(Value::Word(*length), Type::Duration),
            ExpressionKind::Bool(value) => self.literal(Value::Word(i64::from(*value)), Type::Bool),
            ExpressionKind::None => self.literal(Value::None, Type::Nothing),
            ExpressionKind::Text(pieces) => self.text(pieces),
            ExpressionKind::Now => self.plain(Type::Time, |out| Operation::Now { out }),
            ExpressionKind::Me => self.plain(Type::Node, |out| Operation::Me { out }),
            ExpressionKind::Name(name) => self.name(name, expression.span, wanted),
            ExpressionKind::Case(case) => self.case(case, expression.span, wanted),
            ExpressionKind::Record { name, items } => {
                self.record(name.as_ref(), items, expression.span, wanted)
            }
            ExpressionKind::List(values) => self.list(values, expression.span, wanted),
            ExpressionKind::Comprehension(body, query) => self.comprehension(body, query, wanted),
            ExpressionKind::Negate(value) => self.negate(value, wanted),
            ExpressionKind::Not(value) => {
                let from = self.need(value, &Type::Bool);
                self.plain(Type::Bool, |out| Operation::Not { out, from })
            }
            ExpressionKind::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
                self.and_or(*operator, left, right)
            }
            ExpressionKind::Binary(operator, left, right) if operator.strength() == 4 => {
                self.compare(*operator, left, right, expression.span)
            }
            ExpressionKind::Binary(operator, left, right) => {
                self.arithmetic(*operator, left, right, expression.span)
            }
            ExpressionKind::In { value, list, upto } => self.is_in(value, list, upto.as_ref()),
            ExpressionKind::Is { value, name } => self.is(value, name),
            ExpressionKind::Else { value, otherwise } => self.otherwise(value, otherwise, wanted),
            ExpressionKind::If { condition, then, otherwise } => {
                self.choose(condition, then, otherwise, wanted)
            }
            ExpressionKind::Field(value, field) => self.field(value, field),
            ExpressionKind::Index(list, keys) => self.index(list, keys, expression.span),
            ExpressionKind::Call { callee, arguments, query } => {
                self.call(callee, arguments, query.as_ref(), expression.span, wanted)
            }
            ExpressionKind::Real | ExpressionKind::Broken => self.broken(),
        }
    }

    /// Lowers an expression that must be of a type.
    pub(super) fn need(&mut self, expression: &Expression, wanted: &Type) -> Register {
        let found = self.lower(expression, Some(wanted));
        self.must_fit(&found.kind, wanted, expression.span);
        found.register
    }

    pub(super) fn must_fit(&mut self, found: &Type, wanted: &Type, span: Span) {
        if self.checker.fits(found, wanted) {
            return;
        }
        let (found_name, wanted_name) = (self.checker.name_of(found), self.checker.name_of(wanted));
        if matches!(found, Type::Optional(inner) if **inner == *wanted) {
            self.maybe_none(span, &found_name);
            return;
        }
        let mut diagnostic =
            Diagnostic::new(Code::WrongType, span, format!("expected {wanted_name}, found {found_name}"))
                .label(format!("this is {found_name}"));
        if *found == Type::Nothing {
            diagnostic = diagnostic.note(format!("only a `{wanted_name}?` can be none"));
        } else if *wanted == Type::Text && Self::written(found).is_some() {
            diagnostic = diagnostic.help("to write it into a text: `\"{…}\"`");
        }
        self.report(diagnostic);
    }

    fn maybe_none(&mut self, span: Span, found: &str) {
        let text = &self.checker.source[span.start as usize..span.end as usize];
        let text = if text.len() <= 40 && !text.contains('\n') { text } else { "…" }.to_owned();
        self.report(
            Diagnostic::new(Code::MaybeNone, span, "there may be none of this")
                .label(format!("this is {found}"))
                .help(format!("write `let x = {text} else refuse \"…\"`, or `if {text} is x {{ … }}`")),
        );
    }

    fn literal(&mut self, value: Value, kind: Type) -> Operand {
        Operand { register: self.constant(value), kind, origin: None }
    }

    pub(super) fn plain(&mut self, kind: Type, operation: impl FnOnce(Register) -> Operation) -> Operand {
        let register = self.register();
        self.emit(operation(register));
        Operand { register, kind, origin: None }
    }

    // Names.

    fn name(&mut self, name: &str, span: Span, wanted: Option<&Type>) -> Operand {
        if let Some(binding) = self.find(name) {
            return match binding.kind.clone() {
                BindingKind::Value { register, kind, origin, .. } => Operand { register, kind, origin },
                BindingKind::Row { list, key, optional: maybe } => self.read_row(list, key, maybe),
            };
        }
        if let Some(list) = self.checker.states.get(name).copied() {
            return match self.checker.list(list).kind.clone() {
                ListKind::Variable { kind, .. } => {
                    self.plain(kind, |out| Operation::LoadVariable { out, list })
                }
                ListKind::Keyed { record, .. } => {
                    let kind = self.checker.list_type(Type::Record(record), span);
                    self.plain(kind, |out| Operation::AllRows { out, list })
                }
            };
        }
        self.unknown_name(name, span, wanted);
        self.broken()
    }

    fn unknown_name(&mut self, name: &str, span: Span, wanted: Option<&Type>) {
        if self.checker.report.is_full() {
            return;
        }
        let wanted = match wanted {
            Some(Type::Optional(inner)) => Some(&**inner),
            other => other,
        };
        let enums = &self.checker.module.enums;
        let of_wanted = matches!(wanted, Some(Type::Enum(number)) if enums[*number as usize].cases.iter().any(|c| c == name));
        let owner = match wanted {
            Some(Type::Enum(number)) if of_wanted => Some(enums[*number as usize].name.clone()),
            _ => None,
        };
        let word = Word { text: name.into(), span };
        if let Some(owner) = owner {
            self.report(
                Diagnostic::new(Code::CaseWithoutDot, span, format!("`{name}` is a case of {owner}"))
                    .help(format!("write `.{name}`")),
            );
        } else if self.checker.functions.contains_key(name) {
            self.report(
                Diagnostic::new(Code::UnknownValue, span, format!("`{name}` is a function, not a value"))
                    .help(format!("call it: `{name}()`")),
            );
        } else {
            let mut there: Vec<String> = self.scope.iter().map(|binding| binding.name.clone()).collect();
            let mut states: Vec<String> = self.checker.states.keys().cloned().collect();
            states.sort();
            there.extend(states);
            self.checker.unknown(
                Code::UnknownValue,
                &word,
                format!("there is no value `{name}`"),
                there,
                false,
            );
        }
    }

    /// The row that a key stands for now.
    pub(super) fn read_row(&mut self, list: u32, key: Register, maybe: bool) -> Operand {
        let Some((record, ..)) = self.checker.keyed(list) else { return self.broken() };
        let kind = Type::Record(record);
        let mut operand = if maybe {
            self.plain(optional(&kind), |out| Operation::Row { out, list, key })
        } else {
            self.plain(kind, |out| Operation::RowThere { out, list, key })
        };
        operand.origin = Some(list);
        operand
    }

    fn case(&mut self, case: &str, span: Span, wanted: Option<&Type>) -> Operand {
        let inner = match wanted {
            Some(Type::Optional(inner)) => Some(&**inner),
            other => other,
        };
        let word = Word { text: case.into(), span };
        match inner {
            Some(Type::Enum(number)) => {
                let value = self.checker.case_number(*number, &word).unwrap_or_default();
                self.literal(Value::Word(value), Type::Enum(*number))
            }
            Some(Type::Broken) => self.broken(),
            Some(other) => {
                let other = self.checker.name_of(other);
                self.report(
                    Diagnostic::new(Code::WrongType, span, format!("expected {other}, found a case"))
                        .label("a case of an enum"),
                );
                self.broken()
            }
            None => {
                self.report(
                    Diagnostic::new(Code::CannotTell, span, format!("of which enum is `.{case}`?"))
                        .note("a case's enum is told by what is expected where it stands"),
                );
                self.broken()
            }
        }
    }

    // Texts.

    /// How values of a type are written into a text.
    pub(super) fn written(kind: &Type) -> Option<Written> {
        Some(match kind {
            Type::Int => Written::Int,
            Type::Bool => Written::Bool,
            Type::Text => Written::Text,
            Type::Node => Written::Node,
            Type::Time => Written::Time,
            Type::Duration => Written::Duration,
            Type::Enum(number) => Written::Enum(*number),
            _ => return None,
        })
    }

    fn text(&mut self, pieces: &[Piece]) -> Operand {
        if pieces.is_empty() {
            return self.literal(Value::Text("".into()), Type::Text);
        }
        if let [Piece::Literal(text)] = pieces {
            return self.literal(Value::Text(text.as_str().into()), Type::Text);
        }
        let first = self.row_of_registers(pieces.len());
        for (at, piece) in pieces.iter().enumerate() {
            let out = first.saturating_add(at as Register);
            match piece {
                Piece::Literal(text) => self.constant_into(Value::Text(text.as_str().into()), out),
                Piece::Value(value) => self.write(value, out),
            }
        }
        let count = pieces.len() as u16;
        self.plain(Type::Text, |out| Operation::Join { out, first, count })
    }

    fn write(&mut self, value: &Expression, out: Register) {
        let found = self.lower(value, None);
        match Self::written(&found.kind) {
            Some(written) => {
                self.emit(Operation::Write { written, out, from: found.register });
            }
            None if found.kind == Type::Broken => {}
            None => {
                let name = self.checker.name_of(&found.kind);
                if matches!(found.kind, Type::Optional(_)) {
                    self.maybe_none(value.span, &name);
                } else {
                    self.report(
                        Diagnostic::new(Code::WrongType, value.span, format!("{name} has no form as a text"))
                            .help("write one of its parts"),
                    );
                }
            }
        }
    }

    // Records and lists.

    fn record(&mut self, name: Option<&Word>, items: &[Item], span: Span, wanted: Option<&Type>) -> Operand {
        let inner = match wanted {
            Some(Type::Optional(inner)) => Some(&**inner),
            other => other,
        };
        let number = match (name, inner) {
            (Some(name), _) => match self.checker.types.get(&name.text).cloned() {
                Some(Type::Record(number)) => number,
                found => {
                    let message = match found {
                        Some(_) => format!("`{}` is no record", name.text),
                        None => format!("there is no record `{}`", name.text),
                    };
                    let records = &self.checker.module.records;
                    let there = records.iter().filter_map(|record| record.name.clone()).collect();
                    self.checker.unknown(Code::UnknownType, name, message, there, true);
                    self.check_items(items);
                    return self.broken();
                }
            },
            (None, Some(Type::Record(number))) if self.checker.record(*number).name.is_some() => *number,
            _ => return self.unnamed(items, span),
        };
        self.named_record(number, items, span)
    }

    /// Looks into items whose record is unknown.
    fn check_items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Named(_, value) | Item::Place(value) => {
                    let expects = matches!(&*value.kind, ExpressionKind::Case(_) | ExpressionKind::None);
                    if !expects {
                        self.lower(value, Some(&Type::Broken));
                    }
                }
            }
        }
    }

    fn named_record(&mut self, number: u32, items: &[Item], span: Span) -> Operand {
        let fields = self.checker.record(number).fields.clone();
        let first = self.row_of_registers(fields.len());
        let mut given: Vec<bool> = vec![false; fields.len()];
        for item in items {
            let (name, value) = match item {
                Item::Named(name, value) => (name.clone(), value),
                Item::Place(value) => match item_name(value) {
                    Some(name) => (name, value),
                    None => {
                        self.item_without_name(value.span);
                        continue;
                    }
                },
            };
            let Some((field, kind)) = self.checker.field_of(number, &name) else {
                self.check_items(std::slice::from_ref(item));
                continue;
            };
            if std::mem::replace(&mut given[field as usize], true) {
                self.report(Diagnostic::new(
                    Code::Twice,
                    name.span,
                    format!("`{}` is given twice", name.text),
                ));
            }
            let register = self.need(value, &kind);
            self.copy(register, first.saturating_add(field));
        }
        for (at, field) in fields.iter().enumerate().filter(|(at, _)| !given[*at]) {
            match &field.default {
                Some(default) => self.constant_into(default.clone(), first.saturating_add(at as Register)),
                None if field.kind == Type::Broken => {}
                None => self.checker.missing_field(span, number, at),
            }
        }
        let count = fields.len() as u16;
        self.plain(Type::Record(number), |out| Operation::MakeRecord { out, first, count })
    }

    fn item_without_name(&mut self, span: Span) {
        self.report(
            Diagnostic::new(Code::Unexpected, span, "this needs a name")
                .help("write `name: …` before the value"),
        );
    }

    fn unnamed(&mut self, items: &[Item], span: Span) -> Operand {
        let first = self.row_of_registers(items.len());
        let mut fields: Vec<(String, Type)> = Vec::new();
        let mut is_broken = false;
        for (at, item) in items.iter().enumerate() {
            let (name, value) = match item {
                Item::Named(name, value) => (name.clone(), value),
                Item::Place(value) => match item_name(value) {
                    Some(name) => (name, value),
                    None => {
                        self.item_without_name(value.span);
                        is_broken = true;
                        continue;
                    }
                },
            };
            if fields.iter().any(|(field, _)| *field == name.text) {
                self.report(Diagnostic::new(
                    Code::Twice,
                    name.span,
                    format!("`{}` is given twice", name.text),
                ));
                is_broken = true;
            }
            let found = self.lower(value, None);
            self.copy(found.register, first.saturating_add(at as Register));
            let kind = self.told(found.kind, value.span);
            is_broken |= kind == Type::Broken;
            fields.push((name.text, kind));
        }
        if is_broken {
            return self.broken();
        }
        let count = items.len() as u16;
        let kind = self.checker.unnamed_record(fields, span);
        self.plain(kind, |out| Operation::MakeRecord { out, first, count })
    }

    /// A type that is known, or a report.
    pub(super) fn told(&mut self, kind: Type, span: Span) -> Type {
        if kind != Type::Nothing {
            return kind;
        }
        self.report(
            Diagnostic::new(Code::CannotTell, span, "the type of this `none` cannot be told")
                .note("it is told by what is expected where it stands"),
        );
        Type::Broken
    }

    fn list(&mut self, values: &[Expression], span: Span, wanted: Option<&Type>) -> Operand {
        let mut element = match wanted {
            Some(Type::List(element)) => Some((**element).clone()),
            Some(Type::Optional(inner)) => match &**inner {
                Type::List(element) => Some((**element).clone()),
                _ => None,
            },
            Some(Type::Broken) => Some(Type::Broken),
            _ => None,
        };
        let list = self.register();
        self.emit(Operation::MakeList { out: list });
        for value in values {
            let found = self.lower(value, element.as_ref());
            let kind = match &element {
                None => found.kind.clone(),
                Some(element) => match self.checker.join(element, &found.kind) {
                    Some(_) if self.checker.fits(&found.kind, element) => element.clone(),
                    Some(wider) if wanted.is_none() => wider,
                    _ => {
                        self.must_fit(&found.kind, &element.clone(), value.span);
                        element.clone()
                    }
                },
            };
            element = Some(kind);
            self.emit(Operation::Push { list, value: found.register });
        }
        let Some(element) = element else {
            self.report(
                Diagnostic::new(Code::CannotTell, span, "a list of what?")
                    .help("give the name a type: `var l: list of int = []`"),
            );
            return self.broken();
        };
        let element = self.told(element, span);
        let kind = self.checker.list_type(element, span);
        Operand { register: list, kind, origin: None }
    }

    pub(super) fn field(&mut self, value: &Expression, field: &Word) -> Operand {
        let found = self.lower(value, None);
        match &found.kind {
            Type::Record(number) => match self.checker.field_of(*number, field) {
                Some((at, kind)) => {
                    self.plain(kind, |out| Operation::Field { out, record: found.register, field: at })
                }
                None => self.broken(),
            },
            Type::Broken => self.broken(),
            Type::Optional(inner) => {
                let what =
                    if found.origin.is_some() { "there may be no row" } else { "there may be none of this" };
                let text = self.short(value.span);
                let inner = self.checker.name_of(inner);
                self.report(
                    Diagnostic::new(Code::MaybeNone, value.span, what)
                        .label(format!("this is {inner}?"))
                        .help(format!(
                            "write `let s = {text} else refuse \"…\"`, or `if {text} is s {{ … }}`"
                        )),
                );
                self.broken()
            }
            other => {
                let name = self.checker.name_of(other);
                let mut diagnostic =
                    Diagnostic::new(Code::NoFields, field.span, format!("{name} has no fields"));
                if matches!(other, Type::List(_)) {
                    diagnostic = diagnostic.help("take one element first: `[0]`, `first(…)` or a loop");
                }
                self.report(diagnostic);
                self.broken()
            }
        }
    }

    pub(super) fn short(&self, span: Span) -> String {
        let text = &self.checker.source[span.start as usize..span.end as usize];
        if text.len() <= 40 && !text.contains('\n') { text.into() } else { "…".into() }
    }

    fn index(&mut self, list: &Expression, keys: &[Expression], span: Span) -> Operand {
        if let Some(number) = self.state_list(list) {
            let Some(key) = self.key(number, keys, span) else { return self.broken() };
            return self.read_row(number, key, true);
        }
        let found = self.lower(list, None);
        let element = match &found.kind {
            Type::List(element) => optional(element),
            Type::Broken => return self.broken(),
            other => {
                let name = self.checker.name_of(other);
                self.report(Diagnostic::new(Code::NotAList, list.span, format!("{name} is no list")));
                return self.broken();
            }
        };
        let [key] = keys else {
            self.report(Diagnostic::new(Code::WrongCount, span, "a list has one index, counted from 0"));
            return self.broken();
        };
        let index = self.need(key, &Type::Int);
        self.plain(element, |out| Operation::ListAt { out, list: found.register, index })
    }

    /// The keyed state list that an expression names.
    pub(super) fn state_list(&self, expression: &Expression) -> Option<u32> {
        let ExpressionKind::Name(name) = &*expression.kind else { return None };
        if self.find(name).is_some() {
            return None;
        }
        let list = self.checker.states.get(name).copied()?;
        self.checker.keyed(list).map(|_| list)
    }

    /// A register with the encoded key of expressions.
    pub(super) fn key(&mut self, list: u32, keys: &[Expression], span: Span) -> Option<Register> {
        let (record, fields, _) = self.checker.keyed(list)?;
        let fields = fields.to_vec();
        if keys.len() != fields.len() {
            let names: Vec<String> = fields
                .iter()
                .map(|at| self.checker.record(record).fields[*at as usize].name.clone())
                .collect();
            let name = &self.checker.list(list).name;
            let message = format!("`{name}` is by {}, and here stand {} keys", listed(&names), keys.len());
            self.report(Diagnostic::new(Code::WrongCount, span, message));
            return None;
        }
        let first = self.row_of_registers(keys.len());
        for (at, (key, field)) in keys.iter().zip(&fields).enumerate() {
            let kind = self.checker.record(record).fields[*field as usize].kind.clone();
            let register = self.need(key, &kind);
            self.copy(register, first.saturating_add(at as Register));
        }
        let out = self.register();
        self.emit(Operation::MakeKey { out, list, index: None, first, count: keys.len() as u16 });
        Some(out)
    }

    // Operators.

    fn and_or(&mut self, operator: Binary, left: &Expression, right: &Expression) -> Operand {
        let depth = self.scope.len();
        let out = self.register();
        let value = self.need(left, &Type::Bool);
        self.copy(value, out);
        let jump = if operator == Binary::And {
            self.jump_unless(out)
        } else {
            // What `is` names on the left of an `or` is not there on its right.
            self.leave_scope(depth);
            self.jump_if(out)
        };
        let value = self.need(right, &Type::Bool);
        self.copy(value, out);
        self.aim(jump);
        if operator == Binary::Or {
            self.leave_scope(depth);
        }
        Operand { register: out, kind: Type::Bool, origin: None }
    }

    fn compare(&mut self, operator: Binary, left: &Expression, right: &Expression, span: Span) -> Operand {
        // The side that tells its type helps the other one to its own.
        let swap = matches!(&*left.kind, ExpressionKind::Case(_) | ExpressionKind::None);
        let (first, second) = if swap { (right, left) } else { (left, right) };
        let first = self.lower(first, None);
        let hint = first.kind.clone();
        let second = self.lower(second, Some(&hint));
        let (left_value, right_value) = if swap { (second, first) } else { (first, second) };
        let Some(joined) = self.checker.join(&left_value.kind, &right_value.kind) else {
            self.cannot_compare(operator, &left_value.kind, &right_value.kind, span);
            return self.broken();
        };
        if joined == Type::Broken {
            return self.plain(Type::Bool, |out| Operation::IsNone { out, from: out });
        }
        let joined = if joined == Type::Nothing { self.told(joined, span) } else { joined };
        let comparison = Self::comparison(&joined);
        let (left, right) = (left_value.register, right_value.register);
        let equals = matches!(operator, Binary::Equal | Binary::NotEqual);
        if !equals && !Self::is_ordered(&joined) {
            let name = self.checker.name_of(&joined);
            if matches!(joined, Type::Optional(_)) {
                let at = if matches!(left_value.kind, Type::Optional(_)) { left_value } else { right_value };
                let name = self.checker.name_of(&at.kind);
                self.maybe_none(span, &name);
            } else {
                self.report(
                    Diagnostic::new(Code::Operator, span, format!("{name} has no order"))
                        .help("compare its parts with `<`, or the whole with `==`"),
                );
            }
            return self.broken();
        }
        let (left, right) = match operator {
            Binary::Greater | Binary::LessEqual => (right, left),
            _ => (left, right),
        };
        let found = if equals {
            self.plain(Type::Bool, |out| Operation::Equal { comparison, out, left, right })
        } else {
            self.plain(Type::Bool, |out| Operation::Less { comparison, out, left, right })
        };
        if matches!(operator, Binary::NotEqual | Binary::LessEqual | Binary::GreaterEqual) {
            let from = found.register;
            return self.plain(Type::Bool, |out| Operation::Not { out, from });
        }
        found
    }

    fn cannot_compare(&mut self, operator: Binary, left: &Type, right: &Type, span: Span) {
        let (left, right) = (self.checker.name_of(left), self.checker.name_of(right));
        let message = format!("`{}` between {left} and {right}", operator.sign());
        self.report(
            Diagnostic::new(Code::Operator, span, message)
                .label("both sides must be of one type")
                .note("nothing widens but `T` to `T?`"),
        );
    }

    fn negate(&mut self, value: &Expression, wanted: Option<&Type>) -> Operand {
        let found = self.lower(value, wanted);
        if !matches!(found.kind, Type::Int | Type::Duration | Type::Broken) {
            let name = self.checker.name_of(&found.kind);
            self.report(Diagnostic::new(Code::Operator, value.span, format!("`-` before {name}")));
            return self.broken();
        }
        let from = found.register;
        self.plain(found.kind, |out| Operation::Negate { out, from })
    }

    fn arithmetic(&mut self, operator: Binary, left: &Expression, right: &Expression, span: Span) -> Operand {
        let real = [left, right].into_iter().find(|side| matches!(&*side.kind, ExpressionKind::Real));
        let left_value = self.lower(left, None);
        let right_value = self.lower(right, None);
        if real.is_some() {
            let other = if matches!(&*left.kind, ExpressionKind::Real) { right } else { left };
            if !matches!(&*other.kind, ExpressionKind::Real) {
                let text = self.short(other.span);
                self.report(
                    Diagnostic::new(Code::IntAndReal, span, "int and real do not mix")
                        .help(format!("write `real({text})`, once `real` is in the language")),
                );
            }
            return self.broken();
        }
        self.arithmetic_of(operator, &left_value, &right_value, (left.span, right.span), span)
    }

    pub(super) fn arithmetic_of(
        &mut self,
        operator: Binary,
        left: &Operand,
        right: &Operand,
        spans: (Span, Span),
        span: Span,
    ) -> Operand {
        use Type::{Broken, Duration, Int, Text, Time};
        let (arithmetic, kind) = match (operator, &left.kind, &right.kind) {
            (_, Broken, _) | (_, _, Broken) => return self.broken(),
            (Binary::Add, Int, Int) => (Arithmetic::Add, Int),
            (Binary::Add, Duration, Duration) => (Arithmetic::Add, Duration),
            (Binary::Add, Time, Duration) | (Binary::Add, Duration, Time) => (Arithmetic::Add, Time),
            (Binary::Subtract, Int, Int) => (Arithmetic::Subtract, Int),
            (Binary::Subtract, Duration, Duration) | (Binary::Subtract, Time, Time) => {
                (Arithmetic::Subtract, Duration)
            }
            (Binary::Subtract, Time, Duration) => (Arithmetic::Subtract, Time),
            (Binary::Multiply, Int, Int) => (Arithmetic::Multiply, Int),
            (Binary::Multiply, Int, Duration) | (Binary::Multiply, Duration, Int) => {
                (Arithmetic::Multiply, Duration)
            }
            (Binary::Divide, Int, Int) | (Binary::Divide, Duration, Duration) => (Arithmetic::Divide, Int),
            (Binary::Divide, Duration, Int) => (Arithmetic::Divide, Duration),
            (Binary::Remainder, Int, Int) => (Arithmetic::Remainder, Int),
            (Binary::Remainder, Duration, Duration) => (Arithmetic::Remainder, Duration),
            (Binary::Add, Text, _) | (Binary::Add, _, Text) => {
                self.text_plus(spans, span);
                return self.broken();
            }
            (_, found @ Type::Optional(_), _) | (_, _, found @ Type::Optional(_)) => {
                let at = if matches!(left.kind, Type::Optional(_)) { spans.0 } else { spans.1 };
                let name = self.checker.name_of(found);
                self.maybe_none(at, &name);
                return self.broken();
            }
            _ => {
                self.cannot_calculate(operator, left, right, span);
                return self.broken();
            }
        };
        let (left, right) = (left.register, right.register);
        self.plain(kind, |out| Operation::Arithmetic { operator: arithmetic, out, left, right })
    }

    fn cannot_calculate(&mut self, operator: Binary, left: &Operand, right: &Operand, span: Span) {
        let (left, right) = (self.checker.name_of(&left.kind), self.checker.name_of(&right.kind));
        self.report(
            Diagnostic::new(
                Code::Operator,
                span,
                format!("`{}` between {left} and {right}", operator.sign()),
            )
            .note("numbers go with numbers; time - time is a duration, time + duration a time"),
        );
    }

    fn text_plus(&mut self, (left, right): (Span, Span), span: Span) {
        let piece = |span: Span| {
            let text = self.short(span);
            match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                Some(inner) => inner.to_owned(),
                None => format!("{{{text}}}"),
            }
        };
        let help = format!("write `\"{}{}\"`", piece(left), piece(right));
        self.report(Diagnostic::new(Code::TextPlus, span, "there is no `+` on text").help(help));
    }

    fn is_in(&mut self, value: &Expression, list: &Expression, upto: Option<&Expression>) -> Operand {
        if let Some(upto) = upto {
            return self.in_range(value, list, upto);
        }
        if let Some(number) = self.state_list(list) {
            let Some(key) = self.key(number, std::slice::from_ref(value), value.span) else {
                return self.broken();
            };
            return self.plain(Type::Bool, |out| Operation::HasRow { out, list: number, key });
        }
        let found = self.lower(list, None);
        match &found.kind {
            Type::List(element) => {
                let value = self.need(value, &element.clone());
                self.plain(Type::Bool, |out| Operation::ListContains { out, list: found.register, value })
            }
            Type::Broken => self.broken(),
            other => {
                let name = self.checker.name_of(other);
                self.report(
                    Diagnostic::new(Code::NotAList, list.span, format!("{name} is no list"))
                        .help("`in` looks into a list, or between two ends: `n in 1 .. 10`"),
                );
                self.broken()
            }
        }
    }

    fn in_range(&mut self, value: &Expression, from: &Expression, upto: &Expression) -> Operand {
        let value_span = value.span;
        let value = self.lower(value, None);
        let from = self.need(from, &value.kind.clone());
        let upto = self.need(upto, &value.kind.clone());
        if !Self::is_ordered(&value.kind) {
            let name = self.checker.name_of(&value.kind);
            self.report(Diagnostic::new(Code::Operator, value_span, format!("{name} has no order")));
            return self.broken();
        }
        let comparison = Self::comparison(&value.kind);
        let out = self.register();
        self.emit(Operation::Less { comparison, out, left: value.register, right: from });
        let below = self.jump_if(out);
        self.emit(Operation::Less { comparison, out, left: upto, right: value.register });
        self.aim(below);
        self.emit(Operation::Not { out, from: out });
        Operand { register: out, kind: Type::Bool, origin: None }
    }

    fn is(&mut self, value: &Expression, name: &Word) -> Operand {
        let found = self.lower(value, None);
        let inner = match &found.kind {
            Type::Optional(inner) => (**inner).clone(),
            Type::Broken => Type::Broken,
            other => {
                let kind = self.checker.name_of(other);
                self.report(
                    Diagnostic::new(
                        Code::NothingToElse,
                        value.span,
                        format!("this is {kind}, and always there"),
                    )
                    .note("`is` names what a `T?` holds"),
                );
                Type::Broken
            }
        };
        let there = self.plain(Type::Bool, |out| Operation::IsNone { out, from: found.register });
        self.emit(Operation::Not { out: there.register, from: there.register });
        let row = Operand { register: found.register, kind: inner, origin: found.origin };
        let slot = self.register();
        self.bind_operand(name, &row, true, slot);
        there
    }

    pub(super) fn nothing_to_else(&mut self, kind: &Type, span: Span) {
        let name = self.checker.name_of(kind);
        self.report(
            Diagnostic::new(Code::NothingToElse, span, format!("this is {name}, and always there"))
                .help("leave the `else` out"),
        );
    }

    fn otherwise(&mut self, value: &Expression, otherwise: &Expression, wanted: Option<&Type>) -> Operand {
        let hint = wanted.map(optional);
        let found = self.lower(value, hint.as_ref());
        let inner = match &found.kind {
            Type::Optional(inner) => (**inner).clone(),
            Type::Broken | Type::Nothing => Type::Broken,
            other => {
                self.nothing_to_else(&other.clone(), value.span);
                Type::Broken
            }
        };
        let out = self.register();
        self.copy(found.register, out);
        let none = self.jump_if_none(out);
        let done = self.jump();
        self.aim(none);
        let other = self.lower(otherwise, Some(&inner));
        self.copy(other.register, out);
        self.aim(done);
        let kind = match self.checker.join(&inner, &other.kind) {
            Some(kind) => kind,
            None => {
                self.must_fit(&other.kind, &inner, otherwise.span);
                Type::Broken
            }
        };
        let origin = found.origin.filter(|origin| other.origin == Some(*origin));
        Operand { register: out, kind, origin }
    }

    fn choose(
        &mut self,
        condition: &Expression,
        then: &Expression,
        otherwise: &Expression,
        wanted: Option<&Type>,
    ) -> Operand {
        let depth = self.scope.len();
        let out = self.register();
        let condition = self.need(condition, &Type::Bool);
        let skip = self.jump_unless(condition);
        let first = self.lower(then, wanted);
        self.copy(first.register, out);
        self.leave_scope(depth);
        let done = self.jump();
        self.aim(skip);
        let hint = wanted.cloned().unwrap_or_else(|| first.kind.clone());
        let hint = if hint == Type::Nothing { None } else { Some(hint) };
        let second = self.lower(otherwise, hint.as_ref());
        self.copy(second.register, out);
        self.aim(done);
        let kind = match self.checker.join(&first.kind, &second.kind) {
            Some(kind) => kind,
            None => {
                let (left, right) = (self.checker.name_of(&first.kind), self.checker.name_of(&second.kind));
                self.report(
                    Diagnostic::new(
                        Code::WrongType,
                        otherwise.span,
                        format!("expected {left}, found {right}"),
                    )
                    .label("both branches must be of one type"),
                );
                Type::Broken
            }
        };
        Operand { register: out, kind, origin: None }
    }

    /// Whether this body may change state; if not, it says so.
    pub(super) fn may_change(&mut self, span: Span, what: &str) -> bool {
        if self.effect == Effect::Changes {
            return true;
        }
        let name = self.name.clone();
        self.report(
            Diagnostic::new(
                Code::ChangeInView,
                span,
                format!("`{name}` only reads, and this changes {what}"),
            )
            .note("`fn` and `view` read; `on` and `do` change")
            .help("do it in an `on`"),
        );
        false
    }
}

/// The name that `{ a.b }` gives its value.
fn item_name(value: &Expression) -> Option<Word> {
    match &*value.kind {
        ExpressionKind::Name(name) => Some(Word { text: name.clone(), span: value.span }),
        ExpressionKind::Field(_, field) => Some(field.clone()),
        _ => None,
    }
}
