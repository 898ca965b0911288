//! Calls: the language's own functions and the file's.

use super::body::{Body, Effect, Operand, Origin};
use super::optional;
use super::queries::{Runs, Wanted};
use crate::code::{Arithmetic, Comparison, Operation, Register, Rounding, TextFunction};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::{Field, ListKind, SCRATCH, Type};
use crate::syntax::habits;
use crate::syntax::tree::{Expression, ExpressionKind, Query, Word};
use crate::value::{Real, Value};

/// The language's functions; no `fn` or `view` may take their names.
pub(super) const BUILT_IN: &[&str] = &[
    "abs", "all", "any", "ceiling", "contains", "count", "first", "floor", "length", "lower", "max", "mean",
    "min", "new_id", "next_id", "random", "real", "round", "slice", "sum", "trim", "upper",
];

impl<'c, 'a> Body<'c, 'a> {
    pub(super) fn call(
        &mut self,
        callee: &Expression,
        arguments: &[Expression],
        query: Option<&Query>,
        span: Span,
        wanted: Option<&Type>,
    ) -> Operand {
        let name = match &*callee.kind {
            ExpressionKind::Name(name) => Word { text: name.clone(), span: callee.span },
            ExpressionKind::Field(library, name) if self.is_library(library) => {
                let library = super::changes::root_name(library).unwrap_or_default();
                Word { text: format!("{library}.{}", name.text), span: callee.span }
            }
            ExpressionKind::Field(value, method) => {
                self.method(value, method, arguments);
                return self.broken();
            }
            _ => {
                self.report(Diagnostic::new(Code::UnknownFunction, callee.span, "only functions are called"));
                return self.broken();
            }
        };
        if BUILT_IN.contains(&name.text.as_str()) {
            return self.built_in(&name, arguments, query, span, wanted);
        }
        let Some(signature) = self.checker.functions.get(&name.text).cloned() else {
            self.unknown_function(&name);
            // A query's names are not known here.
            for argument in arguments.iter().filter(|_| query.is_none()) {
                self.lower(argument, Some(&Type::Broken));
            }
            return self.broken();
        };
        if let Some(query) = query {
            self.report(
                Diagnostic::new(Code::Unexpected, query.span, format!("`{}` takes no query", name.text))
                    .help("write it in brackets, as a list: `[… for …]`"),
            );
            return self.broken();
        }
        if signature.by {
            self.report(
                Diagnostic::new(
                    Code::WrongCount,
                    span,
                    format!("`{}` wants to know `by` whom it is asked", name.text),
                )
                .note("only who asks from outside has a name to give"),
            );
        }
        let (first, count) = self.arguments(&name, arguments, &signature.fields, span);
        let function = signature.function;
        self.plain(signature.answer, |out| Operation::Call { function, first, count, out })
    }

    /// Whether a name is one that the file gave a library.
    pub(super) fn is_library(&self, place: &Expression) -> bool {
        let ExpressionKind::Name(name) = &*place.kind else { return false };
        let lost = self.checker.lost.contains(name.as_str());
        let is_value = || self.find(name).is_some() || self.value_of_app(name).is_some();
        self.checker.libraries.contains_key(name) || (lost && !is_value())
    }

    /// Arguments in a row of registers, defaults where they are left out.
    pub(super) fn arguments(
        &mut self,
        name: &Word,
        arguments: &[Expression],
        fields: &[Field],
        span: Span,
    ) -> (Register, u16) {
        let first = self.row_of_registers(fields.len());
        if arguments.len() > fields.len() {
            let taken: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name, self.checker.name_of(&field.kind)))
                .collect();
            let message = format!(
                "`{}` takes {}, and here stand {}",
                name.text,
                counted(fields.len(), "argument"),
                arguments.len()
            );
            self.report(Diagnostic::new(Code::WrongCount, span, message).note(format!(
                "it is `{}({})`",
                name.text,
                taken.join(", ")
            )));
        }
        for (at, field) in fields.iter().enumerate() {
            let out = first.saturating_add(at as Register);
            match (arguments.get(at), &field.default) {
                (Some(argument), _) => {
                    let register = self.need(argument, &field.kind);
                    self.copy(register, out);
                }
                (None, Some(default)) => self.constant_into(default.clone(), out),
                (None, None) => {
                    let kind = self.checker.name_of(&field.kind);
                    let message = format!("`{}` needs a value for `{}`", name.text, field.name);
                    self.report(
                        Diagnostic::new(Code::WrongCount, span, message)
                            .label(format!("no `{}: {kind}`", field.name)),
                    );
                }
            }
        }
        (first, fields.len() as u16)
    }

    pub(super) fn method(&mut self, value: &Expression, method: &Word, arguments: &[Expression]) {
        let unknown = match &*value.kind {
            ExpressionKind::Name(name) => self.find(name).is_none() && self.value_of_app(name).is_none(),
            _ => false,
        };
        let list = self.short(value.span);
        let argument = arguments.first().map_or("…".into(), |argument| self.short(argument.span));
        let diagnostic = Diagnostic::new(Code::Method, method.span, "lists have no methods");
        let diagnostic = match method.text.as_str() {
            "add" | "push" | "append" | "insert" => diagnostic.help(format!("write `{list} add {argument}`")),
            "put" | "set" | "update" => diagnostic.help(format!("write `{list} put {argument}`")),
            "remove" | "delete" => diagnostic.help(format!("write `remove {list}[{argument}]`")),
            "len" | "length" | "size" | "count" => diagnostic.help(format!("write `count({list})`")),
            "get" | "at" => diagnostic.help(format!("write `{list}[{argument}]`")),
            "contains" | "has" | "includes" => diagnostic
                .help(format!("write `{argument} in {list}`, or `contains({list}, {argument})` of texts")),
            "map" | "select" => diagnostic.help(format!("write `[x.field for x in {list}]`")),
            "filter" | "where" => diagnostic.help(format!("write `[x for x in {list} where …]`")),
            "find" | "first" => diagnostic.help(format!("write `first(x for x in {list} where …)`")),
            "sort" | "order_by" | "sorted" => {
                diagnostic.help(format!("write `[x for x in {list} order by x.field]`"))
            }
            "sum" | "min" | "max" | "mean" | "any" | "all" => {
                diagnostic.help(format!("write `{}(x.field for x in {list})`", method.text))
            }
            "clear" | "remove_all" => diagnostic.help(format!("write `remove x for x in {list}`")),
            "is_empty" => diagnostic.help(format!("write `count({list}) == 0`")),
            "to_string" | "str" => diagnostic.help(format!("write it into a text: `\"{{{list}}}\"`")),
            other if habits::function(other).is_some() => {
                diagnostic.help(habits::function(other).unwrap_or_default())
            }
            _ if unknown => return self.unknown_name(&list, value.span, None),
            name => diagnostic.help(format!("functions stand before what they work on: `{name}({list})`")),
        };
        self.report(Diagnostic { message: "values and lists have no methods".into(), ..diagnostic });
    }

    fn unknown_function(&mut self, name: &Word) {
        if self.checker.report.is_full() {
            return;
        }
        let text = name.text.as_str();
        if self.checker.procedures.contains_key(text) {
            if self.effect != Effect::Changes {
                self.calls_procedure(name);
            } else {
                self.report(
                    Diagnostic::new(
                        Code::UnknownFunction,
                        name.span,
                        format!("`{text}` is a `do` and gives nothing"),
                    )
                    .help("call it as a statement of its own"),
                );
            }
        } else if self.checker.inputs.contains_key(text) {
            self.report(
                Diagnostic::new(
                    Code::UnknownFunction,
                    name.span,
                    format!("`{text}` is an input, posted from outside"),
                )
                .help(format!("put what both need into a `do`, and call that from `{text}` too")),
            );
        } else if let (Some(instead), false) = (habits::function(text), self.checker.lost.contains(text)) {
            let message = format!("there is no function `{text}` in Weft");
            self.report(Diagnostic::new(Code::Foreign, name.span, message).help(instead));
        } else {
            let mut there: Vec<String> = self.checker.functions.keys().cloned().collect();
            let of_library = text.split_once('.').map(|(library, _)| format!("{library}."));
            match &of_library {
                Some(library) => there.retain(|one| one.starts_with(library)),
                None => there.extend(BUILT_IN.iter().map(|name| (*name).to_owned())),
            }
            there.sort();
            let message = format!("there is no function `{text}`");
            self.checker.unknown(Code::UnknownFunction, name, message, there, of_library.is_some());
        }
    }

    /// Reports a call of a `do` where nothing may change.
    pub(super) fn calls_procedure(&mut self, name: &Word) {
        let what = match self.checker.procedures.get(&name.text).and_then(|one| one.changes.clone()) {
            Some((state, line)) => format!("`{}` changes {state} (line {line})", name.text),
            None => format!("`{}` may change state", name.text),
        };
        self.report(
            Diagnostic::new(Code::ChangeInView, name.span, what)
                .note("`fn` and `view` read; `on` and `do` change")
                .help("call it from an `on`"),
        );
    }

    fn built_in(
        &mut self,
        name: &Word,
        arguments: &[Expression],
        query: Option<&Query>,
        span: Span,
        wanted: Option<&Type>,
    ) -> Operand {
        let text = name.text.as_str();
        match (text, arguments, query) {
            ("min" | "max", [_, _, ..], None) => self.extreme_of(text, arguments),
            ("count" | "sum" | "mean" | "min" | "max" | "first" | "any" | "all", [argument], _) => {
                self.aggregate(text, argument, query)
            }
            ("length", [value], None) => self.length(value),
            ("next_id", [list], None) => self.next_id(list, span),
            ("contains", [value, part], None) => {
                let (value, part) = (self.need(value, &Type::Text), self.need(part, &Type::Text));
                self.plain(Type::Bool, |out| Operation::TextContains { out, text: value, part })
            }
            ("slice", [value, from, count], None) => {
                let text = self.need(value, &Type::Text);
                let (from, count) = (self.need(from, &Type::Int), self.need(count, &Type::Int));
                self.plain(Type::Text, |out| Operation::TextSlice { out, text, from, count })
            }
            ("lower" | "upper" | "trim", [value], None) => {
                let function = match text {
                    "lower" => TextFunction::Lower,
                    "upper" => TextFunction::Upper,
                    _ => TextFunction::Trim,
                };
                let from = self.need(value, &Type::Text);
                self.plain(Type::Text, |out| Operation::TextFunction { function, out, from })
            }
            ("abs", [value], None) => self.absolute(value, wanted),
            ("real", [value], None) => {
                let from = self.need(value, &Type::Int);
                self.plain(Type::Real, |out| Operation::IntToReal { out, from })
            }
            ("floor" | "ceiling" | "round", [value], None) => {
                let rounding = match text {
                    "floor" => Rounding::Floor,
                    "ceiling" => Rounding::Ceiling,
                    _ => Rounding::Round,
                };
                let from = self.need(value, &Type::Real);
                self.plain(Type::Int, |out| Operation::RealToInt { rounding, out, from })
            }
            ("random", [low, high], None) => {
                self.may_change(span, "what chance gave");
                let (low, high) = (self.need(low, &Type::Int), self.need(high, &Type::Int));
                self.plain(Type::Int, |out| Operation::Random { out, low, high })
            }
            ("new_id", [], None) => {
                self.may_change(span, "which ids were given out");
                self.plain(Type::Text, |out| Operation::NewId { out })
            }
            ("floor", [time, unit], None) => {
                let (time, unit) = (self.need(time, &Type::Time), self.need(unit, &Type::Duration));
                let operator = Arithmetic::Remainder;
                let rest = self.plain(Type::Int, |out| Operation::Arithmetic {
                    operator,
                    out,
                    left: time,
                    right: unit,
                });
                let (operator, right) = (Arithmetic::Subtract, rest.register);
                self.plain(Type::Time, |out| Operation::Arithmetic { operator, out, left: time, right })
            }
            _ => {
                let form = match text {
                    "min" | "max" => "`{}(a, b)` or `{}(x for x in list)`",
                    "count" | "sum" | "mean" | "first" | "any" | "all" => {
                        "`{}(x for x in list where …)` or `{}(list)`"
                    }
                    "contains" => "`{}(text, part)`",
                    "slice" => "`{}(text, from, count)`",
                    "floor" => "`{}(time, duration)` or `{}(real)`",
                    "random" => "`{}(least, most)`",
                    "new_id" => "`{}()`",
                    "next_id" => "`{}(list)`",
                    _ => "`{}(value)`",
                };
                let message = format!("`{text}` does not take {}", counted(arguments.len(), "argument"));
                self.report(Diagnostic::new(Code::WrongCount, span, message).help(form.replace("{}", text)));
                self.broken()
            }
        }
    }

    fn length(&mut self, value: &Expression) -> Operand {
        let found = self.lower(value, None);
        let from = found.register;
        match &found.kind {
            Type::Text => self.plain(Type::Int, |out| Operation::TextLength { out, from }),
            Type::Bytes => self.plain(Type::Int, |out| Operation::BytesLength { out, from }),
            Type::List(_) => self.plain(Type::Int, |out| Operation::ListLength { out, list: from }),
            Type::Broken => self.broken(),
            other => {
                let other = self.checker.name_of(other);
                self.report(Diagnostic::new(Code::WrongType, value.span, format!("{other} has no length")));
                self.broken()
            }
        }
    }

    fn next_id(&mut self, list: &Expression, span: Span) -> Operand {
        let number = self.state_list(list).filter(|list| *list < SCRATCH);
        let keyed_by_int = number.is_some_and(|number| match &self.checker.list(number).kind {
            ListKind::Keyed { record, keys, .. } => {
                keys.len() == 1 && self.checker.record(*record).fields[keys[0] as usize].kind == Type::Int
            }
            ListKind::Variable { .. } => false,
        });
        let Some(list) = number.filter(|_| keyed_by_int) else {
            // A list of what was reported is none.
            if let ExpressionKind::Name(name) = &*list.kind
                && let Some(number) = self.checker.states.get(name).copied()
                && let ListKind::Variable { kind: Type::Broken, .. } = &self.checker.list(number).kind
            {
                return self.broken();
            }
            self.report(Diagnostic::new(
                Code::KeyType,
                list.span,
                "`next_id` is for a `state` list by one int",
            ));
            return self.broken();
        };
        self.may_change(span, "which numbers were given out");
        self.plain(Type::Int, |out| Operation::NextId { out, list })
    }

    fn absolute(&mut self, value: &Expression, wanted: Option<&Type>) -> Operand {
        let found = self.lower(value, wanted);
        if !matches!(found.kind, Type::Int | Type::Real | Type::Duration | Type::Broken) {
            self.must_fit(&found.kind, &Type::Int, value.span);
            return self.broken();
        }
        let out = self.register();
        self.copy(found.register, out);
        let is_real = found.kind == Type::Real;
        let zero = self.constant(if is_real { Value::Real(Real::ZERO) } else { Value::Word(0) });
        let below = self.register();
        let comparison = Self::comparison(&found.kind);
        self.emit(Operation::Less { comparison, out: below, left: out, right: zero });
        let done = self.jump_unless(below);
        self.emit(if is_real {
            Operation::RealNegate { out, from: out }
        } else {
            Operation::Negate { out, from: out }
        });
        self.aim(done);
        Operand { register: out, kind: found.kind, origin: None }
    }

    /// `min(a, b, …)`
    fn extreme_of(&mut self, name: &str, arguments: &[Expression]) -> Operand {
        let out = self.register();
        let mut kind: Option<Type> = None;
        for argument in arguments {
            let found = self.lower(argument, kind.as_ref());
            match &kind {
                None => {
                    self.must_be_ordered(&found.kind, argument.span);
                    self.copy(found.register, out);
                    kind = Some(found.kind);
                }
                Some(kind) => {
                    self.must_fit(&found.kind, &kind.clone(), argument.span);
                    self.keep_extreme(name, out, found.register, &kind.clone());
                }
            }
        }
        Operand { register: out, kind: kind.unwrap_or(Type::Broken), origin: None }
    }

    fn must_be_ordered(&mut self, kind: &Type, span: Span) {
        if !Self::is_ordered(kind) {
            let name = self.checker.name_of(kind);
            self.report(
                Diagnostic::new(Code::KeyType, span, format!("{name} has no order"))
                    .help("take one of its parts, or `first(… order by …)`"),
            );
        }
    }

    fn keep_extreme(&mut self, name: &str, best: Register, candidate: Register, kind: &Type) {
        let comparison = Self::comparison(kind);
        let (left, right) = if name == "min" { (candidate, best) } else { (best, candidate) };
        let better = self.register();
        self.emit(Operation::Less { comparison, out: better, left, right });
        let skip = self.jump_unless(better);
        self.copy(candidate, best);
        self.aim(skip);
    }

    fn aggregate(&mut self, name: &str, argument: &Expression, query: Option<&Query>) -> Operand {
        if name == "count"
            && query.is_none()
            && let Some(list) = self.state_list(argument)
        {
            return self.plain(Type::Int, |out| Operation::RowCount { out, list });
        }
        if name == "count"
            && query.is_none()
            && let Some((grouping, key)) = self.rows_of_group(argument)
            && let Some(rows) = grouping.rows(key, Wanted::Any)
        {
            return self.plain(Type::Int, |out| Operation::CountRows { out, rows });
        }
        if let ("count", Some(query)) = (name, query)
            && is_named(argument, query)
            && let Some(out) = self.count_of(query)
        {
            return Operand { register: out, kind: Type::Int, origin: None };
        }
        let out = self.register();
        let initial = match name {
            "count" | "sum" | "mean" | "any" => Value::Word(0),
            "all" => Value::Word(1),
            _ => Value::None,
        };
        let begins = self.here() as usize;
        self.constant_into(initial, out);
        let one = self.constant(Value::Word(1));
        let counted = self.constant(Value::Word(0));
        // A sum of ints is kept in 128 bits: only what it comes to must be an int.
        let wide = self.row_of_registers(2);
        if let "sum" | "mean" = name {
            self.constant_into(Value::Word(0), wide);
            self.constant_into(Value::Word(0), wide.saturating_add(1));
        }
        let mut result = (Type::Broken, None);
        let runs = if query.is_some_and(|query| self.order_is_nothing(name, argument, query)) {
            Runs::Folded(Some(argument))
        } else {
            Runs::Value(Some(argument))
        };
        if let ("min" | "max", Runs::Folded(_), Some(query)) = (name, runs, query) {
            let done = self.extreme_first(query, argument, name == "max", &mut |body, _, leave| {
                let found = body.lower(argument, None);
                body.must_be_ordered(&found.kind, argument.span);
                body.copy(found.register, out);
                leave.push(body.jump());
                result = (optional(&found.kind), None);
            });
            if done {
                return Operand { register: out, kind: result.0, origin: None };
            }
        }
        if let Some(query) = query
            && let Some(kind) = self.folded(name, argument, query, if name == "sum" { wide } else { out })
        {
            if name == "sum" {
                self.emit(Operation::Sum { out, sum: wide });
                return Operand { register: out, kind, origin: None };
            }
            return Operand { register: out, kind: optional(&kind), origin: None };
        }
        self.over_values(argument, query, runs, &mut |body, found, leave| {
            if name == "mean" {
                let operator = Arithmetic::Add;
                body.emit(Operation::Arithmetic { operator, out: counted, left: counted, right: one });
            }
            result = body.take_in(name, (out, wide, one), &found, argument.span, leave);
        });
        if result.0 == Type::Real && matches!(name, "sum" | "mean") {
            // Only now it is known that what is summed are reals.
            let constant = self.checker.constant(Value::Real(Real::ZERO));
            if let Some(Operation::Constant { constant: initial, .. }) = self.code.get_mut(begins) {
                *initial = constant;
            }
        }
        if !matches!(result.0, Type::Real | Type::Broken) && matches!(name, "sum" | "mean") {
            self.emit(Operation::Sum { out, sum: wide });
        }
        if name == "mean" {
            return self.mean_of(&result.0, out, counted);
        }
        Operand { register: out, kind: result.0, origin: result.1 }
    }

    /// The mean of a sum and how many were summed; none of nothing.
    fn mean_of(&mut self, kind: &Type, sum: Register, counted: Register) -> Operand {
        if *kind == Type::Int {
            self.emit(Operation::IntToReal { out: sum, from: sum });
        }
        let out = self.constant(Value::None);
        let divisor = self.constant(Value::Word(0));
        self.emit(Operation::Equal {
            comparison: Comparison::Word,
            out: divisor,
            left: divisor,
            right: counted,
        });
        let nothing = self.jump_if(divisor);
        self.emit(Operation::IntToReal { out: divisor, from: counted });
        let operator = Arithmetic::Divide;
        self.emit(Operation::RealArithmetic { operator, out, left: sum, right: divisor });
        self.aim(nothing);
        let kind = if *kind == Type::Broken { Type::Broken } else { optional(&Type::Real) };
        Operand { register: out, kind, origin: None }
    }

    /// Whether an aggregate comes to the same in whatever order its elements come: none of what it does can refuse, and
    /// it is no sum of reals, whose last digits tell the order.
    fn order_is_nothing(&self, name: &str, argument: &Expression, query: &Query) -> bool {
        let is_free = !self.can_refuse(argument) && query.order.is_empty();
        is_free && matches!(name, "count" | "any" | "all" | "min" | "max")
    }

    /// One value of an aggregate; returns what the aggregate gives.
    fn take_in(
        &mut self,
        name: &str,
        (out, wide, one): (Register, Register, Register),
        found: &Operand,
        span: Span,
        leave: &mut Vec<usize>,
    ) -> (Type, Option<Origin>) {
        let operator = Arithmetic::Add;
        let found = match name {
            "count" | "first" => found.clone(),
            _ => self.whole(found.clone()),
        };
        match name {
            "count" => {
                self.emit(Operation::Arithmetic { operator, out, left: out, right: one });
                (Type::Int, None)
            }
            "sum" | "mean" => {
                let summed = match found.kind {
                    Type::Int | Type::Real | Type::Broken => true,
                    Type::Duration => name == "sum",
                    _ => false,
                };
                if !summed {
                    let kind = self.checker.name_of(&found.kind);
                    let message = format!("there is no {name} of {kind}");
                    self.report(Diagnostic::new(Code::Operator, span, message));
                    return (Type::Broken, None);
                }
                if found.kind == Type::Real {
                    self.emit(Operation::RealArithmetic { operator, out, left: out, right: found.register });
                    return (Type::Real, None);
                }
                self.emit(Operation::SumInto { sum: wide, value: found.register });
                (found.kind.clone(), None)
            }
            "min" | "max" => {
                self.must_be_ordered(&found.kind, span);
                let first = self.jump_if_none(out);
                self.keep_extreme(name, out, found.register, &found.kind.clone());
                let done = self.jump();
                self.aim(first);
                self.copy(found.register, out);
                self.aim(done);
                (optional(&found.kind), None)
            }
            "first" => {
                let found = self.settled(found.clone());
                self.copy(found.register, out);
                leave.push(self.jump());
                let kind = self.told(found.kind.clone(), span);
                (optional(&kind), found.origin)
            }
            _ => {
                self.must_fit(&found.kind, &Type::Bool, span);
                self.copy(found.register, out);
                let jump = if name == "any" { self.jump_if(out) } else { self.jump_unless(out) };
                leave.push(jump);
                (Type::Bool, None)
            }
        }
    }
}

/// Whether what is taken of each element is the element itself.
fn is_named(argument: &Expression, query: &Query) -> bool {
    match (&*argument.kind, query.sources.as_slice()) {
        (ExpressionKind::Name(name), [source]) => *name == source.name.text,
        _ => false,
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
