//! Record and list expressions.

use super::body::{Body, Operand};
use crate::code::{Operation, Register};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::Type;
use crate::syntax::tree::{Expression, ExpressionKind, Item, Word};

impl Body<'_, '_> {
    pub(super) fn record(
        &mut self,
        name: Option<&Word>,
        items: &[Item],
        span: Span,
        wanted: Option<&Type>,
    ) -> Operand {
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
                    let there = self.checker.records_here();
                    self.checker.unknown(Code::UnknownType, name, message, there, true);
                    self.check_items(items);
                    return self.broken();
                }
            },
            (None, Some(Type::Record(number))) if self.is_wanted(*number, items) => *number,
            _ => return self.unnamed(items, span),
        };
        self.named_record(number, items, span)
    }

    /// Whether an expression without a name is a record that is wanted: a named one, or one of the same fields.
    fn is_wanted(&self, number: u32, items: &[Item]) -> bool {
        let record = self.checker.record(number);
        if record.name.is_some() {
            return true;
        }
        let name = |item: &Item| match item {
            Item::Named(name, _) => Some(name.text.clone()),
            Item::Place(value) => item_name(value).map(|name| name.text),
        };
        items.len() == record.fields.len()
            && items.iter().all(|item| {
                name(item).is_some_and(|name| record.fields.iter().any(|field| field.name == name))
            })
    }

    /// Looks into items whose record is unknown.
    pub(super) fn check_items(&mut self, items: &[Item]) {
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

    pub(super) fn named_record(&mut self, number: u32, items: &[Item], span: Span) -> Operand {
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
            let mark = self.mark();
            let register = self.need(value, &kind);
            self.put_into(register, first.saturating_add(field), mark);
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

    pub(super) fn item_without_name(&mut self, span: Span) {
        self.report(
            Diagnostic::new(Code::Unexpected, span, "this needs a name")
                .help("write `name: …` before the value"),
        );
    }

    pub(super) fn unnamed(&mut self, items: &[Item], span: Span) -> Operand {
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
            let mark = self.mark();
            let found = self.lower(value, None);
            self.put_into(found.register, first.saturating_add(at as Register), mark);
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

    pub(super) fn list(&mut self, values: &[Expression], span: Span, wanted: Option<&Type>) -> Operand {
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
            let mark = self.mark();
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
            self.push_made(list, found.register, mark);
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
}

/// The name that `{ a.b }` gives its value.
fn item_name(value: &Expression) -> Option<Word> {
    match &*value.kind {
        ExpressionKind::Name(name) => Some(Word { text: name.clone(), span: value.span }),
        ExpressionKind::Field(_, field) => Some(field.clone()),
        _ => None,
    }
}
