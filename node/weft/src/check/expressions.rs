//! Expressions: what type each has, and the code that computes it.

use super::body::{BindingKind, Body, Effect, Held, Operand, Origin};
use super::{Checker, listed, optional};
use crate::code::{Operation, Register, Written};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::{ListKind, SCRATCH, Type};
use crate::syntax::tree::{Binary, Expression, ExpressionKind, Piece, Who, Word};
use crate::value::Value;

/// Whether values of a type are plain words, and a key of one such field is that word.
pub(super) fn is_plain_word(kind: &Type) -> bool {
    matches!(kind, Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_))
}

impl Checker<'_> {
    /// The number of a case of an enum, or a report.
    pub(super) fn case_number(&mut self, number: u32, case: &Word) -> Option<i64> {
        let enumeration = self.enumeration(number);
        if let Some(at) = enumeration.cases.iter().position(|name| *name == case.text) {
            return Some(at as i64);
        }
        if self.report.is_full() {
            return None;
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
    /// type; whether the result fits it is not decided here. What `is` names in it does not reach out of it.
    pub(super) fn lower(&mut self, expression: &Expression, wanted: Option<&Type>) -> Operand {
        let found = self.lower_row(expression, wanted);
        self.whole(found)
    }

    /// As [`Body::lower`], but of a row only what tells where it is.
    pub(super) fn lower_row(&mut self, expression: &Expression, wanted: Option<&Type>) -> Operand {
        let depth = self.scope.len();
        let found = self.lower_with_names(expression, wanted);
        self.leave_scope(depth);
        found
    }

    /// The row itself, where a register holds only its key.
    pub(super) fn whole(&mut self, operand: Operand) -> Operand {
        let Some(Origin { list, held: Held::Key | Held::Here(_) | Held::Place }) = operand.origin else {
            return operand;
        };
        let key = operand.register;
        let mut row = match &operand.kind {
            Type::Optional(_) => self.plain(operand.kind, |out| Operation::Row { out, list, key }),
            _ => self.plain(operand.kind, |out| Operation::RowThere { out, list, key }),
        };
        row.origin = Some(Origin { list, held: Held::Row });
        row
    }

    /// The key of a row that is there, or none; where there must be one and is none, the event is refused.
    pub(super) fn settled(&mut self, operand: Operand) -> Operand {
        if let Some(Origin { list, held: Held::Here(_) }) = operand.origin {
            return Operand { origin: Some(Origin { list, held: Held::Key }), ..operand };
        }
        let Some(Origin { list, held: Held::Place }) = operand.origin else { return operand };
        let key = operand.register;
        let mut row = match &operand.kind {
            Type::Optional(_) => self.plain(operand.kind, |out| Operation::KeyNow { out, list, key }),
            _ => self.plain(operand.kind, |out| Operation::KeyThere { out, list, key }),
        };
        row.origin = Some(Origin { list, held: Held::Key });
        row
    }

    /// Lowers a condition that what comes next only runs under. What `is` names in it stays in scope, as far as it is
    /// there whenever the condition holds: of an `is`, and of both sides of an `and`.
    pub(super) fn condition(&mut self, condition: &Expression) -> Register {
        if !matches!(&*condition.kind, ExpressionKind::Is { .. } | ExpressionKind::Binary(Binary::And, ..)) {
            return self.need(condition, &Type::Bool);
        }
        let found = self.lower_with_names(condition, Some(&Type::Bool));
        self.must_fit(&found.kind, &Type::Bool, condition.span);
        found.register
    }

    /// As [`Body::lower`], but what an `is` or an `and` names stays in scope.
    fn lower_with_names(&mut self, expression: &Expression, wanted: Option<&Type>) -> Operand {
        match &*expression.kind {
            ExpressionKind::Int(number) => self.literal(Value::Word(*number), Type::Int),
            ExpressionKind::Real(real) => self.literal(Value::Real(*real), Type::Real),
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
            ExpressionKind::Field(value, field) => {
                let found = self.field(value, field);
                self.checker.tell(field.span, &found.kind);
                found
            }
            ExpressionKind::Index(list, keys) => self.index(list, keys, expression.span),
            ExpressionKind::Call { callee, arguments, query, who } if self.effect == Effect::Tests => {
                self.test_value(callee, (arguments, query.as_ref()), who.as_ref(), expression.span, wanted)
            }
            ExpressionKind::Call { callee, arguments, query, who } => {
                self.only_in_tests(who.as_ref());
                self.call(callee, arguments, query.as_ref(), expression.span, wanted)
            }
            ExpressionKind::Broken => self.broken(),
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
        } else if let (Type::Int, Type::Real) | (Type::Real, Type::Int) = (found, wanted) {
            let text = self.short(span);
            let digits = text.strip_prefix('-').unwrap_or(&text);
            let is_literal = *found == Type::Int && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
            diagnostic = diagnostic.note("int and real do not mix").help(match found {
                Type::Int if is_literal => format!("write `{text}.0`"),
                Type::Int => format!("write `real({text})`"),
                _ => format!("write `round({text})`, `floor({text})` or `ceiling({text})`"),
            });
        } else if let Some(help) = self.help_to_fit(found, wanted, span) {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }

    pub(super) fn maybe_none(&mut self, span: Span, found: &str) {
        let text = self.operand_text(span, true);
        let help = match self.is_expression {
            true => format!("write `if {text} is x then x else …`, or `({text} else …)`"),
            false => format!("write `let x = {text} else refuse \"…\"`, or `if {text} is x {{ … }}`"),
        };
        self.report(
            Diagnostic::new(Code::MaybeNone, span, "there may be none of this")
                .label(format!("this is {found}"))
                .help(help),
        );
    }

    pub(super) fn literal(&mut self, value: Value, kind: Type) -> Operand {
        Operand { register: self.constant(value), kind, origin: None }
    }

    pub(super) fn plain(&mut self, kind: Type, operation: impl FnOnce(Register) -> Operation) -> Operand {
        let register = self.register();
        self.emit(operation(register));
        Operand { register, kind, origin: None }
    }

    // Names.

    pub(super) fn name(&mut self, name: &str, span: Span, wanted: Option<&Type>) -> Operand {
        if let Some(binding) = self.find(name) {
            return match binding.kind.clone() {
                BindingKind::Value { register, kind, origin, .. } => {
                    let origin = origin.map(|list| Origin { list, held: Held::Row });
                    Operand { register, kind, origin }
                }
                BindingKind::Row { list, key, optional } => self.row_at(list, key, optional, Held::Place),
                BindingKind::Element { list, key, optional, cursor } => {
                    self.row_at(list, key, optional, cursor.map_or(Held::Key, Held::Here))
                }
                BindingKind::Keyed { list } => self.whole_list(list, span),
                // Only its key and its rows are asked for.
                BindingKind::Group { .. } => self.broken(),
            };
        }
        if let Some(list) = self.checker.states.get(name).copied() {
            return self.whole_list(list, span);
        }
        if let Some(setting) = self.checker.settings.get(name).copied() {
            return self.setting(setting);
        }
        if self.effect == Effect::Tests
            && let Some(signature) = self.checker.functions.get(name).filter(|one| one.is_view).cloned()
        {
            let word = Word { text: name.into(), span };
            return self.test_view(None, &word, &signature, &[], None, span);
        }
        self.unknown_name(name, span, wanted);
        self.broken()
    }

    /// A variable's value, or all rows of a keyed list.
    pub(super) fn whole_list(&mut self, list: u32, span: Span) -> Operand {
        match self.checker.list(list).kind.clone() {
            ListKind::Variable { kind, .. } => self.plain(kind, |out| Operation::LoadVariable { out, list }),
            ListKind::Keyed { record, .. } => {
                let kind = self.checker.list_type(Type::Record(record), span);
                self.plain(kind, |out| Operation::AllRows { out, list })
            }
        }
    }

    pub(super) fn setting(&mut self, setting: u32) -> Operand {
        let kind = self.checker.module.settings[setting as usize].kind.clone();
        self.plain(kind, |out| Operation::Setting { out, setting })
    }

    /// The row that a key stands for now.
    pub(super) fn row_at(&mut self, list: u32, key: Register, maybe: bool, held: Held) -> Operand {
        let Some((record, ..)) = self.checker.keyed(list) else { return self.broken() };
        let kind = Type::Record(record);
        let kind = if maybe { optional(&kind) } else { kind };
        Operand { register: key, kind, origin: Some(Origin { list, held }) }
    }

    /// A field of a row, where a register holds its key.
    pub(super) fn field_at(
        &mut self,
        Origin { list, held }: Origin,
        key: Register,
        field: u16,
        kind: Type,
    ) -> Operand {
        if held != Held::Place
            && let Some((record, &[only], _)) = self.checker.keyed(list)
            && only == field
            && is_plain_word(&self.checker.record(record).fields[field as usize].kind)
        {
            // A key of one plain word is that word.
            return Operand { register: key, kind, origin: None };
        }
        match held {
            Held::Here(cursor) => match self.asked.iter().find(|asked| (asked.0, asked.1) == (cursor, field))
            {
                Some((.., register)) => Operand { register: *register, kind, origin: None },
                None => self.plain(kind, |out| Operation::FieldOf { out, cursor, list, field }),
            },
            _ => self.plain(kind, |out| Operation::FieldThere { out, list, key, field }),
        }
    }

    pub(super) fn case(&mut self, case: &str, span: Span, wanted: Option<&Type>) -> Operand {
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
                let owners =
                    self.checker.module.enums.iter().filter(|one| one.cases.iter().any(|c| c == case));
                let owners: Vec<String> = owners.map(|one| one.name.clone()).collect();
                let mut diagnostic =
                    Diagnostic::new(Code::WrongType, span, format!("expected {other}, found a case"))
                        .label("a case of an enum");
                if !owners.is_empty() {
                    diagnostic = diagnostic.note(format!("`.{case}` is a case of {}", listed(&owners)));
                }
                self.report(diagnostic);
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
            Type::Real => Written::Real,
            Type::Text | Type::Endpoint => Written::Text,
            Type::Node => Written::Node,
            Type::Time => Written::Time,
            Type::Duration => Written::Duration,
            Type::Enum(number) => Written::Enum(*number),
            _ => return None,
        })
    }

    pub(super) fn text(&mut self, pieces: &[Piece]) -> Operand {
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

    pub(super) fn write(&mut self, value: &Expression, out: Register) {
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

    pub(super) fn field(&mut self, value: &Expression, field: &Word) -> Operand {
        if let ExpressionKind::Name(name) = &*value.kind
            && let Some(BindingKind::Group { key, kind, .. }) = self.find(name).map(|binding| &binding.kind)
            && field.text == "key"
        {
            return Operand { register: *key, kind: kind.clone(), origin: None };
        }
        let found = self.lower_row(value, None);
        match &found.kind {
            Type::Node if self.effect == Effect::Tests => self.member_of_node(found.register, field),
            Type::Record(number) => match (self.checker.field_of(*number, field), found.origin) {
                (Some((at, kind)), Some(origin)) if origin.held != Held::Row => {
                    self.field_at(origin, found.register, at, kind)
                }
                (Some((at, kind)), _) => {
                    self.plain(kind, |out| Operation::Field { out, record: found.register, field: at })
                }
                (None, _) => self.broken(),
            },
            Type::Broken => self.broken(),
            Type::Optional(inner) => {
                let what =
                    if found.origin.is_some() { "there may be no row" } else { "there may be none of this" };
                let text = self.operand_text(value.span, true);
                let inner = self.checker.name_of(inner);
                let help = match self.is_expression {
                    true => format!("write `if {text} is s then s.{} else …`", field.text),
                    false => format!("write `let s = {text} else refuse \"…\"`, or `if {text} is s {{ … }}`"),
                };
                self.report(
                    Diagnostic::new(Code::MaybeNone, value.span, what)
                        .label(format!("this is {inner}?"))
                        .help(help),
                );
                self.broken()
            }
            other => {
                let name = self.checker.name_of(other);
                let help = self.help_for_member(other, value, field);
                let diagnostic = Diagnostic::new(Code::NoFields, field.span, format!("{name} has no fields"));
                self.report(match help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
                self.broken()
            }
        }
    }

    pub(super) fn short(&self, span: Span) -> String {
        let text = &self.checker.source[span.start as usize..span.end as usize];
        if text.len() <= 40 && !text.contains('\n') { text.into() } else { "…".into() }
    }

    /// As [`Body::short`], in parentheses where an operator of `help` would take only a part of it; `sums` may stay as they
    /// are beside one that binds less.
    pub(super) fn operand_text(&self, span: Span, sums: bool) -> String {
        let text = self.short(span);
        if binds_less(&text, sums) { format!("({text})") } else { text }
    }

    pub(super) fn index(&mut self, list: &Expression, keys: &[Expression], span: Span) -> Operand {
        if let Some(number) = self.state_list(list) {
            let Some(key) = self.key(number, keys, span) else { return self.broken() };
            return self.row_at(number, key, true, Held::Place);
        }
        if let Some((node, number)) = self.list_of_node(list) {
            let Some(key) = self.key(number, keys, span) else { return self.broken() };
            return self.visiting(Some(node), |body| {
                let row = body.row_at(number, key, true, Held::Place);
                body.whole(row)
            });
        }
        let found = self.lower(list, None);
        let element = match &found.kind {
            Type::List(element) => optional(element),
            Type::Broken => return self.broken(),
            other => {
                let name = self.checker.name_of(other);
                let mut diagnostic = Diagnostic::new(Code::NotAList, list.span, format!("{name} is no list"));
                if *other == Type::Text {
                    diagnostic =
                        diagnostic.note("a part of a text is `slice(text, from, count)`; there are `length` and `contains`, too");
                } else if let (Type::Optional(inner), text) = (other, self.short(list.span))
                    && matches!(**inner, Type::List(_))
                {
                    diagnostic = diagnostic.help(format!("write `({text} else [])[…]`"));
                }
                self.report(diagnostic);
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

    /// The keyed list, of the state or of this function, that an expression names.
    pub(super) fn state_list(&self, expression: &Expression) -> Option<u32> {
        let ExpressionKind::Name(name) = &*expression.kind else { return None };
        if let Some(binding) = self.find(name) {
            return match binding.kind {
                BindingKind::Keyed { list } => Some(list),
                _ => None,
            };
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
        if let ([field], [key]) = (fields.as_slice(), keys)
            && let kind = self.checker.record(record).fields[*field as usize].kind.clone()
            && is_plain_word(&kind)
        {
            // A key of one plain word is that word.
            let mark = self.mark();
            let word = self.need(key, &kind);
            if self.is_fixed(word, mark) {
                return Some(word);
            }
            let out = self.register();
            self.copy(word, out);
            return Some(out);
        }
        let first = self.row_of_registers(keys.len());
        for (at, (key, field)) in keys.iter().zip(&fields).enumerate() {
            let kind = self.checker.record(record).fields[*field as usize].kind.clone();
            let mark = self.mark();
            let register = self.need(key, &kind);
            self.put_into(register, first.saturating_add(at as Register), mark);
        }
        let out = self.register();
        self.emit(Operation::MakeKey { out, list, first, count: keys.len() as u16 });
        Some(out)
    }

    pub(super) fn only_in_tests(&mut self, who: Option<&Who>) {
        if let Some(who) = who {
            let word = if who.from { "from" } else { "by" };
            let message = format!("`{word}` says who posts or sends, and stands in a test");
            self.report(Diagnostic::new(Code::Unexpected, who.value.span, message));
        }
    }

    /// Whether a list's rows may be changed here; if not, it says so. A function's own may everywhere.
    pub(super) fn may_change_list(&mut self, list: u32, span: Span, what: &str) -> bool {
        list >= SCRATCH || self.may_change(span, what)
    }

    /// Whether this body may change state; if not, it says so.
    pub(super) fn may_change(&mut self, span: Span, what: &str) -> bool {
        if self.effect == Effect::Changes {
            return true;
        }
        if self.effect == Effect::Tests {
            self.report(
                Diagnostic::new(
                    Code::ChangeInView,
                    span,
                    format!("this changes {what}, and stands in a test"),
                )
                .note("a test changes state as everybody does: by inputs, sends and time")
                .help("call an input of the app"),
            );
            return false;
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

/// Whether what a text ends with, or begins with, binds less than an operator that is written beside it: than `==` and `is`
/// where `sums` may stay, than `*` else.
fn binds_less(text: &str, sums: bool) -> bool {
    let (mut depth, mut in_text, mut outside) = (0usize, false, String::new());
    for character in text.chars() {
        match character {
            '"' => in_text = !in_text,
            _ if in_text => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(character),
            _ => {}
        }
    }
    let words: Vec<&str> = outside.split_whitespace().collect();
    let is_length = matches!(words.as_slice(), [number, "ms" | "s" | "min" | "h" | "d"] if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_'));
    let is_sum = |word: &&str| matches!(*word, "+" | "-" | "*" | "/" | "%");
    words.len() > 1
        && !is_length
        && !(sums && words.iter().skip(1).step_by(2).all(is_sum) && words[0] != "not")
}
