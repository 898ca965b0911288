//! What changes: assignments, `add`, `put`, `remove`, `send`.

use super::body::{BindingKind, Body, Effect, GivenBy, Held, Operand, Origin};
use super::queries::Runs;
use crate::code::{Arithmetic, Operation, Register, Target};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::{Destination, ListKind, Type};
use crate::syntax::tree::{Assignment, Binary, Change, Expression, ExpressionKind, Query, Word};

/// Where a place is rooted.
enum Root {
    Row { list: u32, key: Register },
    Variable { list: u32, kind: Type },
    Local { register: Register, kind: Type },
}

/// From a place to a part of it.
enum Step<'e> {
    Field(&'e Word),
    Element(&'e [Expression], Span),
}

/// The name that a place begins with.
pub(super) fn root_name(place: &Expression) -> Option<&str> {
    match &*place.kind {
        ExpressionKind::Name(name) => Some(name),
        ExpressionKind::Field(inner, _) | ExpressionKind::Index(inner, _) => root_name(inner),
        _ => None,
    }
}

type NewValue<'n, 'c, 'a> = &'n mut dyn FnMut(&mut Body<'c, 'a>, Operand) -> Register;

impl<'c, 'a> Body<'c, 'a> {
    pub(super) fn assign(&mut self, place: &Expression, operator: Assignment, value: &Expression) {
        let span = place.span.to(value.span);
        if self.effect == Effect::Tests && operator == Assignment::Set && self.assign_setting(place, value) {
            return;
        }
        self.change_place(place, &mut |body, current| match operator {
            Assignment::Set => body.need(value, &current.kind),
            _ => {
                let right = body.lower(value, None);
                let binary = match operator {
                    Assignment::Add => Binary::Add,
                    Assignment::Subtract => Binary::Subtract,
                    _ => Binary::Multiply,
                };
                if body.no_calculation(&current.kind, &right.kind, place, value, binary) {
                    return current.register;
                }
                if right.kind == Type::Text && current.kind != Type::Text {
                    body.must_fit(&right.kind, &current.kind, value.span);
                    return current.register;
                }
                let found = body.arithmetic_of(binary, &current, &right, (place.span, value.span), span);
                body.must_fit(&found.kind, &current.kind, span);
                found.register
            }
        });
    }

    /// `n += 1.5` where `n` is an int, `t += "x"`, and what is like it; whether it was reported.
    fn no_calculation(
        &mut self,
        place_kind: &Type,
        found: &Type,
        place: &Expression,
        value: &Expression,
        operator: Binary,
    ) -> bool {
        let (name, text) = (self.short(place.span), self.short(value.span));
        let sign = operator.sign();
        let (code, message, help) = match (place_kind, found) {
            (Type::Int, Type::Real) => {
                let help = format!("write `{name} {sign}= round({text})`, or make `{name}` a `real`");
                (Code::IntAndReal, "int and real do not mix", help)
            }
            (Type::Real, Type::Int) => {
                let is_literal = text.bytes().all(|byte| byte.is_ascii_digit());
                let real = if is_literal { format!("{text}.0") } else { format!("real({text})") };
                (Code::IntAndReal, "int and real do not mix", format!("write `{name} {sign}= {real}`"))
            }
            (Type::Text, _) if operator == Binary::Add => {
                let piece = match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                    Some(inner) => inner.to_owned(),
                    None => format!("{{{text}}}"),
                };
                (Code::TextPlus, "there is no `+` on text", format!("write `{name} = \"{{{name}}}{piece}\"`"))
            }
            (Type::List(_), _) if operator == Binary::Add => {
                (Code::Operator, "there is no `+` on lists", format!("write `{name} add {text}`"))
            }
            _ => return false,
        };
        let (place_kind, found) = (self.checker.name_of(place_kind), self.checker.name_of(found));
        self.report(
            Diagnostic::new(code, value.span, message)
                .label(format!("`{name}` is {place_kind}, and this is {found}"))
                .help(help),
        );
        true
    }

    /// Puts a new value, made from the one that is there, into a place.
    fn change_place(&mut self, place: &Expression, new: NewValue<'_, 'c, 'a>) {
        let mut path: Vec<Step<'_>> = Vec::new();
        let mut root = place;
        loop {
            root = match &*root.kind {
                ExpressionKind::Field(inner, field) => {
                    path.push(Step::Field(field));
                    inner
                }
                ExpressionKind::Index(inner, keys) if self.state_list(inner).is_none() => {
                    path.push(Step::Element(keys, root.span));
                    inner
                }
                _ => break,
            };
        }
        path.reverse();
        let Some(found) = self.root(root, path.is_empty()) else { return };
        match found {
            Root::Local { register, kind } => {
                let value = self.replaced(Operand { register, kind, origin: None }, &path, new);
                self.copy(value, register);
            }
            Root::Variable { list, kind } => {
                if !self.may_change(place.span, "state") {
                    return;
                }
                let current = self.plain(kind, |out| Operation::LoadVariable { out, list });
                let value = self.replaced(current, &path, new);
                self.emit(Operation::StoreVariable { list, value });
            }
            Root::Row { list, key } => self.change_row(list, key, place, &path, new),
        }
    }

    fn change_row(
        &mut self,
        list: u32,
        key: Register,
        place: &Expression,
        path: &[Step<'_>],
        new: NewValue<'_, 'c, 'a>,
    ) {
        if !self.may_change_list(list, place.span, "a row") {
            return;
        }
        let Some((record, keys, _)) = self.checker.keyed(list) else { return };
        let keys = keys.to_vec();
        let list_name = self.checker.list(list).name.clone();
        let Some((first, rest)) = path.split_first() else {
            self.report(
                Diagnostic::new(Code::NotAPlace, place.span, "a row is not assigned as a whole")
                    .help(format!("change its fields, or write `{list_name} put …`")),
            );
            return;
        };
        let Step::Field(first) = first else {
            self.report(Diagnostic::new(Code::NotAList, place.span, "a row is no list"));
            return;
        };
        let Some((field, kind)) = self.checker.field_of(record, first) else { return };
        if keys.contains(&field) {
            self.report(
                Diagnostic::new(
                    Code::KeyAssigned,
                    first.span,
                    format!("`{}` is the key of `{list_name}`", first.text),
                )
                .note("keys are never assigned: a row is where its key says")
                .help("remove the row and add another one"),
            );
            return;
        }
        let before = self.here();
        let current = self.plain(kind, |out| Operation::FieldThere { out, list, key, field });
        let value = self.replaced(current, rest, new);
        self.set_field((list, key, field), before, value);
    }

    /// Puts a value into a field. Reading the field, which stands at `before`, calculating with it and this are one
    /// operation, where what is calculated with is in a register already, or a constant.
    fn set_field(&mut self, (list, key, field): (u32, Register, u16), before: Target, value: Register) {
        let made = self.code.get(before as usize..).unwrap_or_default();
        let calculated = match *made {
            [reading, last] => Some((reading, None, last)),
            [reading, constant @ Operation::Constant { .. }, last] => Some((reading, Some(constant), last)),
            _ => None,
        };
        if let Some((Operation::FieldThere { out, .. }, constant, last)) = calculated
            && let Operation::Arithmetic { operator, out: result, left, right } = last
            && (left, result) == (out, value)
            && right != out
        {
            self.code.truncate(before as usize);
            constant.map(|constant| self.emit(constant));
            self.emit(Operation::UpdateField { operator, list, key, field, right });
            return;
        }
        self.emit(Operation::SetField { list, key, field, value });
    }

    /// A value with the part at a path replaced.
    fn replaced(&mut self, current: Operand, path: &[Step<'_>], new: NewValue<'_, 'c, 'a>) -> Register {
        let Some((first, rest)) = path.split_first() else { return new(self, current) };
        let first = match first {
            Step::Field(first) => first,
            Step::Element(keys, span) => return self.replaced_element(current, keys, *span, rest, new),
        };
        let Type::Record(number) = current.kind else {
            if current.kind != Type::Broken {
                let name = self.checker.name_of(&current.kind);
                self.report(Diagnostic::new(
                    Code::NoFields,
                    first.span,
                    format!("{name} has no fields to change"),
                ));
            }
            return current.register;
        };
        let Some((field, kind)) = self.checker.field_of(number, first) else { return current.register };
        let record = current.register;
        let inner = self.plain(kind, |out| Operation::Field { out, record, field });
        let value = self.replaced(inner, rest, new);
        self.plain(Type::Record(number), |out| Operation::WithField { out, record, field, value }).register
    }

    /// A list with an element, or a part of it, replaced.
    fn replaced_element(
        &mut self,
        current: Operand,
        keys: &[Expression],
        span: Span,
        rest: &[Step<'_>],
        new: NewValue<'_, 'c, 'a>,
    ) -> Register {
        let list = current.register;
        let element = match &current.kind {
            Type::List(element) => (**element).clone(),
            Type::Broken => return list,
            other => {
                let name = self.checker.name_of(other);
                self.report(Diagnostic::new(Code::NotAList, span, format!("{name} is no list")));
                return list;
            }
        };
        let [key] = keys else {
            self.report(Diagnostic::new(Code::WrongCount, span, "a list has one index, counted from 0"));
            return list;
        };
        let index = self.need(key, &Type::Int);
        let there = self.plain(element, |out| Operation::ElementThere { out, list, index });
        let value = self.replaced(there, rest, new);
        self.emit(Operation::SetElement { list, index, value });
        list
    }

    fn root(&mut self, root: &Expression, whole: bool) -> Option<Root> {
        match &*root.kind {
            ExpressionKind::Name(name) => self.named_root(name, root.span, whole),
            ExpressionKind::Index(list, keys) => match self.state_list(list) {
                Some(number) => {
                    let key = self.key(number, keys, root.span)?;
                    Some(Root::Row { list: number, key })
                }
                None if self.lower(list, None).kind == Type::Broken => None,
                None => {
                    self.report(
                        Diagnostic::new(
                            Code::NotAPlace,
                            root.span,
                            "an element of a plain list is not removed",
                        )
                        .help("make the list anew, or keep its elements by a key"),
                    );
                    None
                }
            },
            ExpressionKind::Broken => None,
            _ => {
                self.report(
                    Diagnostic::new(Code::NotAPlace, root.span, "this cannot be changed")
                        .note("what changes is a `var`, a `state`, or a field of a row"),
                );
                None
            }
        }
    }

    fn named_root(&mut self, name: &str, span: Span, whole: bool) -> Option<Root> {
        if let Some(binding) = self.find(name) {
            let copy_of = binding.copy_of.clone();
            return match binding.kind.clone() {
                BindingKind::Row { optional: true, .. } => {
                    self.report(
                        Diagnostic::new(Code::MaybeNone, span, "there may be no row")
                            .help(format!("write `if {name} is row {{ … }}`")),
                    );
                    None
                }
                BindingKind::Row { list, key, .. } => Some(Root::Row { list, key }),
                BindingKind::Value { register, kind, fixed: false, .. } => {
                    Some(Root::Local { register, kind })
                }
                BindingKind::Keyed { .. } => {
                    self.no_whole_list(name, span);
                    None
                }
                BindingKind::Value { origin: None, kind, .. } => {
                    let given_by = binding.given_by;
                    self.fixed(name, span, copy_of.filter(|_| whole), given_by, &kind);
                    None
                }
                BindingKind::Group { kind, .. } => {
                    self.fixed(name, span, None, GivenBy::Other, &kind);
                    None
                }
                BindingKind::Value { origin: Some(_), .. } | BindingKind::Element { .. } => {
                    self.may_change(span, "a row");
                    None
                }
            };
        }
        if let Some(list) = self.checker.states.get(name).copied() {
            return match self.checker.list(list).kind.clone() {
                ListKind::Variable { kind, .. } => Some(Root::Variable { list, kind }),
                ListKind::Keyed { .. } => {
                    self.no_whole_list(name, span);
                    None
                }
            };
        }
        if self.checker.settings.contains_key(name) {
            self.report(
                Diagnostic::new(Code::NotAPlace, span, format!("`{name}` is a setting"))
                    .note("settings are given by whoever runs the node")
                    .help("what changes is a `state`"),
            );
            return None;
        }
        // Says that there is no such name.
        let _ = self
            .lower(&Expression { kind: Box::new(ExpressionKind::Name(name.into())), span, height: 1 }, None);
        None
    }

    fn no_whole_list(&mut self, name: &str, span: Span) {
        self.report(
            Diagnostic::new(Code::NotAPlace, span, format!("`{name}` is not assigned as a whole"))
                .help(format!("write `{name} add …`, `{name} put …` or `remove {name}[…]`")),
        );
    }

    fn fixed(&mut self, name: &str, span: Span, copy_of: Option<String>, given_by: GivenBy, kind: &Type) {
        if let Some(field) = copy_of {
            self.report(
                Diagnostic::new(Code::Fixed, span, format!("`{name}` is a copy and fixed"))
                    .help(format!("to change the row: `{field} = …` or `{field} += …`")),
            );
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::Fixed, span, format!("`{name}` is fixed"));
        diagnostic = match given_by {
            GivenBy::Let => diagnostic.help(format!("make it a variable: `var {name} = …`")),
            GivenBy::Is => diagnostic
                .note("what `is` names does not change")
                .help(format!("give a changed one a name of its own: `var other = {name}`")),
            GivenBy::Other => diagnostic
                .note("what is posted, and what a loop runs over, does not change")
                .help(format!("give a changed one a name of its own: `var other = {name}`")),
        };
        // Who wants to change a row has a copy of it: a variable would be one, too.
        if let Some(list) = self.list_of_rows(kind) {
            let row = match given_by {
                GivenBy::Is => format!("if {list}[…] is {name} {{ … }}"),
                GivenBy::Let | GivenBy::Other => format!("let {name} = {list}[…] else …"),
            };
            diagnostic = diagnostic
                .note(format!("it is a copy, not a row: changing it would change nothing in `{list}`"))
                .help(format!("to change a row of `{list}`, name it: `{row}`"));
        }
        self.report(diagnostic);
    }

    /// The name of a keyed list, of this function or of the state, whose rows are of a type.
    fn list_of_rows(&self, kind: &Type) -> Option<String> {
        let is =
            |list: &u32| self.checker.keyed(*list).is_some_and(|(record, ..)| *kind == Type::Record(record));
        let own = self.scope.iter().filter_map(|binding| match binding.kind {
            BindingKind::Keyed { list } => Some(list),
            _ => None,
        });
        let of_state = 0..self.checker.module.lists.len() as u32;
        own.chain(of_state).find(is).map(|list| self.checker.list(list).name.clone())
    }

    /// `list add value`, `list put value`; what was added stands for its row.
    pub(super) fn change(&mut self, change: &Change) -> Operand {
        if let Some(list) = self.state_list(&change.place)
            && let Some((record, ..)) = self.checker.keyed(list)
        {
            let name = self.checker.list(list).name.clone();
            self.may_change_list(list, change.span, &format!("`{name}`"));
            let row = self.need(&change.value, &Type::Record(record));
            // A row that is made to be added is no record of its own.
            let made = if change.replace { None } else { self.take_back_record(row) };
            let mut added = self.plain(Type::Record(record), |out| match (change.replace, made) {
                (true, _) => Operation::PutRow { list, row, out },
                (false, Some((first, count))) => Operation::AddFields { list, first, count, out },
                (false, None) => Operation::AddRow { list, row, out },
            });
            added.origin = Some(Origin { list, held: Held::Key });
            return added;
        }
        if change.replace {
            if self.lower(&change.place, None).kind != Type::Broken {
                self.report(
                    Diagnostic::new(Code::NotAPlace, change.place.span, "`put` is for lists by a key")
                        .help("write `add` for a plain list"),
                );
            }
            return self.broken();
        }
        let mut added = None;
        self.change_place(&change.place, &mut |body, current| body.push(current, change, &mut added));
        added.unwrap_or_else(|| self.broken())
    }

    fn push(&mut self, current: Operand, change: &Change, added: &mut Option<Operand>) -> Register {
        let element = match &current.kind {
            Type::List(element) => (**element).clone(),
            Type::Broken => Type::Broken,
            other => {
                let name = self.checker.name_of(other);
                self.report(Diagnostic::new(
                    Code::NotAList,
                    change.place.span,
                    format!("{name} is no list to add to"),
                ));
                Type::Broken
            }
        };
        let value = self.need(&change.value, &element);
        self.emit(Operation::Push { list: current.register, value });
        *added = Some(Operand { register: value, kind: element, origin: None });
        current.register
    }

    pub(super) fn remove(&mut self, place: &Expression, query: Option<&Query>) {
        let Some(query) = query else { return self.remove_place(place) };
        self.query(query, Runs::Remove, &mut |body, _, _| body.remove_place(place));
    }

    fn remove_place(&mut self, place: &Expression) {
        if self.state_list(place).is_some() {
            let name = self.short(place.span);
            self.report(
                Diagnostic::new(Code::NotAPlace, place.span, "a list is not removed as a whole")
                    .help(format!("write `remove {name}[…]`, or `remove x for x in {name}`")),
            );
            return;
        }
        if let ExpressionKind::Name(name) = &*place.kind
            && matches!(self.find(name).map(|binding| &binding.kind), Some(BindingKind::Value { .. }))
        {
            self.report(
                Diagnostic::new(Code::NotAPlace, place.span, format!("`{name}` is no row of a list"))
                    .note("only rows of a `state` list, or of a `var` list by a key, are removed")
                    .help(format!("write `remove list[{name}]`, if `{name}` is the key of a row")),
            );
            return;
        }
        match self.root(place, true) {
            Some(Root::Row { list, key }) => {
                self.may_change_list(list, place.span, "a list");
                self.emit(Operation::RemoveRow { list, key });
            }
            Some(_) => {
                self.report(
                    Diagnostic::new(Code::NotAPlace, place.span, "only rows of a `state` list are removed")
                        .help("write `remove list[key]`"),
                );
            }
            None => {}
        }
    }

    pub(super) fn send(&mut self, name: &Word, arguments: &[Expression], to: &Expression, span: Span) {
        self.may_change(span, "what other nodes are told");
        let Some(output) = self.output(name) else { return };
        let (first, count, to) = self.sent(output, name, arguments, to, span);
        self.emit(Operation::Send { output, first, count, to });
    }

    /// The number of what is sent by a name, or a report.
    pub(super) fn output(&mut self, name: &Word) -> Option<u32> {
        let outputs = &self.checker.module.outputs;
        if let Some(output) = outputs.iter().position(|output| output.name == name.text) {
            return Some(output as u32);
        }
        if !self.checker.report.is_full() {
            let there: Vec<String> = outputs.iter().map(|output| output.name.clone()).collect();
            let message = format!("no `on {}(…) from …` takes this, and no `output` is named so", name.text);
            self.checker.unknown(Code::UnknownAction, name, message, there, true);
        }
        None
    }

    /// Arguments and receiver of a send.
    pub(super) fn sent(
        &mut self,
        output: u32,
        name: &Word,
        arguments: &[Expression],
        to: &Expression,
        span: Span,
    ) -> (Register, u16, Register) {
        let output = self.checker.module.outputs[output as usize].clone();
        let (first, count) = self.arguments(name, arguments, &output.fields, span);
        let kind = if output.to == Destination::Endpoint { Type::Endpoint } else { Type::Node };
        (first, count, self.need(to, &kind))
    }

    /// `start name(…) after duration`, `at time`
    pub(super) fn start(
        &mut self,
        name: &Word,
        arguments: &[Expression],
        at: bool,
        time: &Expression,
        span: Span,
    ) {
        let Some((timer, first, count)) = self.timer(name, arguments, span) else { return };
        let time = if at {
            self.need(time, &Type::Time)
        } else {
            let right = self.need(time, &Type::Duration);
            let left = self.plain(Type::Time, |out| Operation::Now { out }).register;
            let operator = Arithmetic::Add;
            self.plain(Type::Time, |out| Operation::Arithmetic { operator, out, left, right }).register
        };
        self.emit(Operation::Start { timer, first, count, time });
    }

    pub(super) fn cancel(&mut self, name: &Word, arguments: &[Expression], span: Span) {
        if let Some((timer, first, count)) = self.timer(name, arguments, span) {
            self.emit(Operation::Cancel { timer, first, count });
        }
    }

    fn timer(&mut self, name: &Word, arguments: &[Expression], span: Span) -> Option<(u32, Register, u16)> {
        self.may_change(span, "a timer");
        let timers = &self.checker.module.timers;
        let Some(at) = timers.iter().position(|timer| timer.name == name.text) else {
            if !self.checker.report.is_full() {
                let there: Vec<String> = timers.iter().map(|timer| timer.name.clone()).collect();
                let message = format!("there is no `on timer {}`", name.text);
                self.checker.unknown(Code::UnknownAction, name, message, there, true);
            }
            return None;
        };
        let fields = timers[at].fields.clone();
        let (first, count) = self.arguments(name, arguments, &fields, span);
        Some((at as u32, first, count))
    }
}
