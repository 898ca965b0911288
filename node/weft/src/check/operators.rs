//! Operators: logic, comparisons, arithmetic, `in`, `is`, `else` and `if then else`.

use super::body::{Body, GivenBy, Held, Operand, Origin};
use super::optional;
use crate::code::{Arithmetic, Operation, Register};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::Type;
use crate::syntax::tree::{Binary, Expression, ExpressionKind, Word};

impl Body<'_, '_> {
    pub(super) fn and_or(&mut self, operator: Binary, left: &Expression, right: &Expression) -> Operand {
        let out = self.register();
        let is_and = operator == Binary::And;
        let value = if is_and { self.condition(left) } else { self.need(left, &Type::Bool) };
        self.copy(value, out);
        let jump = if is_and { self.jump_unless(out) } else { self.jump_if(out) };
        let value = if is_and { self.condition(right) } else { self.need(right, &Type::Bool) };
        self.copy(value, out);
        self.aim(jump);
        Operand { register: out, kind: Type::Bool, origin: None }
    }

    pub(super) fn compare(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
        span: Span,
    ) -> Operand {
        self.compare_sides(operator, left, right, span).0
    }

    /// A comparison, and its two sides and their type where there is nothing wrong with them.
    pub(super) fn compare_sides(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
        span: Span,
    ) -> (Operand, Option<(Register, Register, Type)>) {
        // The side that tells its type helps the other one to its own.
        let swap = matches!(&*left.kind, ExpressionKind::Case(_) | ExpressionKind::None);
        let (first, second) = if swap { (right, left) } else { (left, right) };
        let first = self.lower(first, None);
        let hint = first.kind.clone();
        let second = self.lower(second, Some(&hint));
        let (left_value, right_value) = if swap { (second, first) } else { (first, second) };
        let Some(joined) = self.checker.join(&left_value.kind, &right_value.kind) else {
            let help = self
                .help_to_fit(&right_value.kind, &left_value.kind, right.span)
                .or_else(|| self.help_to_fit(&left_value.kind, &right_value.kind, left.span));
            self.cannot_compare(operator, &left_value.kind, &right_value.kind, span, help);
            return (self.broken(), None);
        };
        if joined == Type::Broken {
            return (self.plain(Type::Bool, |out| Operation::IsNone { out, from: out }), None);
        }
        let joined = if joined == Type::Nothing { self.told(joined, span) } else { joined };
        let comparison = Self::comparison(&joined);
        let (left, right) = (left_value.register, right_value.register);
        let sides = Some((left, right, joined.clone()));
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
            return (self.broken(), None);
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
            return (self.plain(Type::Bool, |out| Operation::Not { out, from }), sides);
        }
        (found, sides)
    }

    pub(super) fn cannot_compare(
        &mut self,
        operator: Binary,
        left: &Type,
        right: &Type,
        span: Span,
        help: Option<String>,
    ) {
        let (left, right) = (self.checker.name_of(left), self.checker.name_of(right));
        let message = format!("`{}` between {left} and {right}", operator.sign());
        let diagnostic =
            Diagnostic::new(Code::Operator, span, message).label("both sides must be of one type");
        self.report(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic.note("nothing widens but `T` to `T?`"),
        });
    }

    pub(super) fn negate(&mut self, value: &Expression, wanted: Option<&Type>) -> Operand {
        let found = self.lower(value, wanted);
        let from = found.register;
        if found.kind == Type::Real {
            return self.plain(Type::Real, |out| Operation::RealNegate { out, from });
        }
        if !matches!(found.kind, Type::Int | Type::Duration | Type::Broken) {
            let name = self.checker.name_of(&found.kind);
            self.report(Diagnostic::new(Code::Operator, value.span, format!("`-` before {name}")));
            return self.broken();
        }
        self.plain(found.kind, |out| Operation::Negate { out, from })
    }

    pub(super) fn arithmetic(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
        span: Span,
    ) -> Operand {
        let left_value = self.lower(left, None);
        let right_value = self.lower(right, None);
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
        use Type::{Broken, Duration, Int, Real, Text, Time};
        if let (Real, Int) | (Int, Real) = (&left.kind, &right.kind) {
            let text = self.short(if left.kind == Int { spans.0 } else { spans.1 });
            self.report(
                Diagnostic::new(Code::IntAndReal, span, "int and real do not mix")
                    .help(format!("write `real({text})`")),
            );
            return self.broken();
        }
        if let (Real, Real, Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide) =
            (&left.kind, &right.kind, operator)
        {
            let operator = match operator {
                Binary::Add => Arithmetic::Add,
                Binary::Subtract => Arithmetic::Subtract,
                Binary::Multiply => Arithmetic::Multiply,
                _ => Arithmetic::Divide,
            };
            let (left, right) = (left.register, right.register);
            return self.plain(Real, |out| Operation::RealArithmetic { operator, out, left, right });
        }
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

    pub(super) fn cannot_calculate(&mut self, operator: Binary, left: &Operand, right: &Operand, span: Span) {
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

    pub(super) fn text_plus(&mut self, (left, right): (Span, Span), span: Span) {
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

    pub(super) fn is_in(
        &mut self,
        value: &Expression,
        list: &Expression,
        upto: Option<&Expression>,
    ) -> Operand {
        if let Some(upto) = upto {
            return self.in_range(value, list, upto);
        }
        if let Some(number) = self.state_list(list) {
            let Some(key) = self.key(number, std::slice::from_ref(value), value.span) else {
                return self.broken();
            };
            return self.plain(Type::Bool, |out| Operation::HasRow { out, list: number, key });
        }
        if let Some((node, number)) = self.list_of_node(list) {
            let Some(key) = self.key(number, std::slice::from_ref(value), value.span) else {
                return self.broken();
            };
            return self.visiting(Some(node), |body| {
                body.plain(Type::Bool, |out| Operation::HasRow { out, list: number, key })
            });
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

    pub(super) fn in_range(&mut self, value: &Expression, from: &Expression, upto: &Expression) -> Operand {
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

    pub(super) fn is(&mut self, value: &Expression, name: &Word) -> Operand {
        self.named_by_is.insert(name.text.clone(), value.span.to(name.span));
        let found = self.lower_row(value, None);
        let found = self.settled(found);
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
        if let Some(binding) = self.scope.last_mut() {
            binding.given_by = GivenBy::Is;
        }
        there
    }

    pub(super) fn nothing_to_else(&mut self, kind: &Type, span: Span) {
        let name = self.checker.name_of(kind);
        self.report(
            Diagnostic::new(Code::NothingToElse, span, format!("this is {name}, and always there"))
                .help("leave the `else` out"),
        );
    }

    pub(super) fn otherwise(
        &mut self,
        value: &Expression,
        otherwise: &Expression,
        wanted: Option<&Type>,
    ) -> Operand {
        let hint = wanted.map(optional);
        let found = self.lower_row(value, hint.as_ref());
        let found = self.settled(found);
        let inner = match &found.kind {
            Type::Optional(inner) => (**inner).clone(),
            Type::Broken | Type::Nothing => Type::Broken,
            other => {
                self.nothing_to_else(&other.clone(), value.span);
                Type::Broken
            }
        };
        let out = self.register();
        let begins = self.code.len();
        self.copy(found.register, out);
        let none = self.jump_if_none(out);
        let done = self.jump();
        self.aim(none);
        let other = self.lower_row(otherwise, Some(&inner));
        let other = self.settled(other);
        // Both are keys of one list, or both are values.
        let same = found.origin.is_some() && found.origin == other.origin;
        let other = if same { other } else { self.whole(other) };
        self.copy(other.register, out);
        self.aim(done);
        if !same && let Some(Origin { list, held: Held::Key }) = found.origin {
            self.read_instead(begins, out, list, found.register);
        }
        let kind = match self.checker.join(&inner, &other.kind) {
            Some(kind) => kind,
            None => {
                self.must_fit(&other.kind, &inner, otherwise.span);
                Type::Broken
            }
        };
        Operand { register: out, kind, origin: found.origin.filter(|_| same) }
    }

    /// Reads a row where an operation copies its key.
    pub(super) fn read_instead(&mut self, copied: usize, out: Register, list: u32, key: Register) {
        if let Some(operation @ Operation::Copy { .. }) = self.code.get_mut(copied) {
            *operation = Operation::Row { out, list, key };
        }
    }

    pub(super) fn choose(
        &mut self,
        condition: &Expression,
        then: &Expression,
        otherwise: &Expression,
        wanted: Option<&Type>,
    ) -> Operand {
        let depth = self.scope.len();
        let out = self.register();
        let begins = self.here();
        let condition = self.condition(condition);
        let skip = self.jump_when(condition, false, begins);
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
}
