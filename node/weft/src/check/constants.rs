//! Defaults and initial values: literals and what is made of them.

use super::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::module::Type;
use crate::syntax::tree::{Expression, ExpressionKind, Item, Piece, Word};
use crate::value::{Real, Value};
use std::sync::Arc;

impl Checker<'_> {
    /// A default or an initial value, or a report.
    pub(super) fn weighed_constant(&mut self, expression: &Expression, wanted: &Type) -> Option<Value> {
        let value = self.constant_value(expression, wanted)?;
        self.weigh(&value, expression.span);
        Some(value)
    }

    /// A constant of a type, or a report.
    fn constant_value(&mut self, expression: &Expression, wanted: &Type) -> Option<Value> {
        let (inner, may_be_none) = match wanted {
            Type::Optional(inner) => (&**inner, true),
            other => (other, false),
        };
        let value = match (&*expression.kind, inner) {
            (_, Type::Broken) | (ExpressionKind::Broken, _) => {
                return Some(Value::None);
            }
            (ExpressionKind::None, _) if may_be_none => Value::None,
            (ExpressionKind::Int(number), Type::Int) => Value::Word(*number),
            (ExpressionKind::Real(real), Type::Real) => Value::Real(*real),
            (ExpressionKind::Duration(length), Type::Duration) => Value::Word(*length),
            (ExpressionKind::Bool(value), Type::Bool) => Value::Word(i64::from(*value)),
            (ExpressionKind::Negate(inner_value), Type::Int | Type::Real | Type::Duration) => {
                match &*inner_value.kind {
                    ExpressionKind::Int(number) if *inner == Type::Int => Value::Word(-number),
                    ExpressionKind::Real(real) if *inner == Type::Real => {
                        Value::Real(Real::new(-real.get()).unwrap_or(*real))
                    }
                    ExpressionKind::Duration(length) if *inner == Type::Duration => Value::Word(-length),
                    _ => return self.not_constant(expression, inner),
                }
            }
            (ExpressionKind::Text(pieces), Type::Text) => match pieces.as_slice() {
                [] => Value::Text("".into()),
                [Piece::Literal(text)] => Value::Text(text.as_str().into()),
                _ => return self.not_constant(expression, inner),
            },
            (ExpressionKind::Case(case), Type::Enum(number)) => {
                let word = Word { text: case.clone(), span: expression.span };
                Value::Word(self.case_number(*number, &word)?)
            }
            (ExpressionKind::List(values), Type::List(element)) => {
                let values: Option<Vec<Value>> =
                    values.iter().map(|value| self.constant_value(value, element)).collect();
                Value::List(Arc::new(values?))
            }
            (ExpressionKind::Record { name, items }, Type::Record(record)) => {
                if let Some(name) = name
                    && self.types.get(&name.text) != Some(inner)
                {
                    return self.not_constant(expression, inner);
                }
                return self.constant_record(expression, *record, items);
            }
            _ => return self.not_constant(expression, wanted),
        };
        Some(value)
    }

    fn constant_record(&mut self, expression: &Expression, record: u32, items: &[Item]) -> Option<Value> {
        let fields = self.record(record).fields.clone();
        let mut values: Vec<Option<Value>> = fields.iter().map(|field| field.default.clone()).collect();
        for item in items {
            let Item::Named(name, value) = item else {
                return self.not_constant(expression, &Type::Record(record));
            };
            let (field, kind) = self.field_of(record, name)?;
            values[field as usize] = Some(self.constant_value(value, &kind)?);
        }
        if let Some(at) = values.iter().position(Option::is_none) {
            self.missing_field(expression.span, record, at);
            return None;
        }
        Some(Value::Record(values.into_iter().flatten().collect()))
    }

    fn not_constant(&mut self, expression: &Expression, wanted: &Type) -> Option<Value> {
        let wanted = self.name_of(wanted);
        let is_none = matches!(&*expression.kind, ExpressionKind::None);
        let mut diagnostic = Diagnostic::new(
            Code::NotConstant,
            expression.span,
            format!("expected a constant of type {wanted}"),
        )
        .note("a default or an initial value is a literal, a case, or a list or record of these");
        if let ExpressionKind::Name(name) = &*expression.kind
            && self.module.enums.iter().any(|one| one.name == wanted && one.cases.contains(name))
        {
            diagnostic = Diagnostic::new(
                Code::CaseWithoutDot,
                expression.span,
                format!("`{name}` is a case of {wanted}"),
            )
            .help(format!("write `.{name}`"));
        }
        if is_none {
            diagnostic =
                diagnostic.help(format!("`none` goes with a type that has a `?`: write `{wanted}?`"));
        }
        self.report.push(diagnostic);
        None
    }
}
