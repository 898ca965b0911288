//! The kind of an expression before it is evaluated.

use super::evaluate::item_name;
use super::kinds::{Kind, Stored};
use super::run::{Place, Run, Slot};
use weft::syntax::tree::{Binary, Expression, ExpressionKind, FunctionBody, Group, Item, Query};

/// Names that are not bound yet, and what they will be.
type Names = Vec<(String, Kind)>;

impl Run<'_> {
    pub fn kind_of(&self, expression: &Expression) -> Kind {
        self.kind_with(expression, &mut Vec::new())
    }

    /// Of an expression that stands under a query.
    pub fn kind_in(&self, expression: &Expression, query: &Query) -> Kind {
        let mut names = Vec::new();
        self.names_of(query, &mut names);
        self.kind_with(expression, &mut names)
    }

    pub fn group_kind(&self, query: &Query, group: &Group) -> Kind {
        let mut names = Vec::new();
        self.sources_of(query, &mut names);
        self.group_with(group, &mut names)
    }

    pub fn record_of(&self, list: Place) -> Kind {
        match list {
            Place::State(at) => match &self.program.states[at].stored {
                Stored::Keyed { record, .. } => Kind::Record(record.clone()),
                Stored::Variable { kind, .. } => kind.clone(),
            },
            Place::Own(at) => {
                let own = self.scope.iter().find_map(|binding| match &binding.slot {
                    Slot::Own { list, record } if *list == at => Some(record.clone()),
                    _ => None,
                });
                own.unwrap_or(Kind::Unknown)
            }
        }
    }

    fn sources_of(&self, query: &Query, names: &mut Names) {
        for source in &query.sources {
            let kind = match (&source.upto, self.kind_with(&source.list, names)) {
                (Some(_), _) => Kind::Int,
                (None, Kind::List(element)) => *element,
                _ => Kind::Unknown,
            };
            names.push((source.name.text.clone(), kind));
        }
    }

    fn names_of(&self, query: &Query, names: &mut Names) {
        let depth = names.len();
        self.sources_of(query, names);
        if let Some(group) = &query.group {
            let mut own = names.split_off(depth);
            let mut all = names.clone();
            all.append(&mut own.clone());
            let row = own.len();
            let kind = self.group_of(group, &mut all, &mut own, row);
            names.push((group.name.text.clone(), kind));
        }
    }

    fn group_with(&self, group: &Group, names: &mut Names) -> Kind {
        let mut own = names.clone();
        let count = own.len();
        self.group_of(group, names, &mut own, count)
    }

    fn group_of(&self, group: &Group, names: &mut Names, own: &mut Names, count: usize) -> Kind {
        let key = self.kind_with(&group.key, names);
        let row = if count == 1 { own.remove(0).1 } else { Kind::Shape(std::mem::take(own)) };
        Kind::Shape(vec![("key".into(), key), ("rows".into(), Kind::List(Box::new(row)))])
    }

    fn named_kind(&self, name: &str, names: &Names) -> Kind {
        if let Some((_, kind)) = names.iter().rev().find(|(one, _)| one == name) {
            return kind.clone();
        }
        match self.find(name) {
            Some(Slot::Value { kind, .. }) => return kind.clone(),
            Some(Slot::Row { record, .. }) => return record.clone(),
            Some(Slot::Own { record, .. }) => return Kind::List(Box::new(record.clone())),
            None => {}
        }
        if let Some(state) = self.program.states.iter().find(|state| state.name == name) {
            return match &state.stored {
                Stored::Keyed { record, .. } => Kind::List(Box::new(Kind::Record(record.clone()))),
                Stored::Variable { kind, .. } => kind.clone(),
            };
        }
        let setting = self.program.settings.iter().find(|setting| setting.name == name);
        setting.map_or(Kind::Unknown, |setting| setting.kind.clone())
    }

    fn kind_with(&self, expression: &Expression, names: &mut Names) -> Kind {
        let optional = |kind: Kind| match kind {
            Kind::Optional(_) => kind,
            kind => Kind::Optional(Box::new(kind)),
        };
        match &*expression.kind {
            ExpressionKind::Int(_) => Kind::Int,
            ExpressionKind::Real(_) => Kind::Real,
            ExpressionKind::Duration(_) => Kind::Duration,
            ExpressionKind::Now => Kind::Time,
            ExpressionKind::Text(_) => Kind::Text,
            ExpressionKind::Me => Kind::Node,
            ExpressionKind::Bool(_)
            | ExpressionKind::Not(_)
            | ExpressionKind::In { .. }
            | ExpressionKind::Is { .. } => Kind::Bool,
            ExpressionKind::Case(case) => Kind::Enum(self.program.cases[case].0.clone()),
            ExpressionKind::Name(name) => self.named_kind(name, names),
            ExpressionKind::Record { name: Some(name), .. } => Kind::Record(name.text.clone()),
            ExpressionKind::Record { name: None, items } => {
                let item = |item: &Item| match item {
                    Item::Named(name, value) => {
                        (name.text.clone(), self.kind_with(value, &mut names.clone()))
                    }
                    Item::Place(value) => {
                        (item_name(value).to_owned(), self.kind_with(value, &mut names.clone()))
                    }
                };
                Kind::Shape(items.iter().map(item).collect())
            }
            ExpressionKind::List(values) => {
                let first = values.first().map_or(Kind::Unknown, |value| self.kind_with(value, names));
                Kind::List(Box::new(first))
            }
            ExpressionKind::Comprehension(value, query) => {
                let depth = names.len();
                self.names_of(query, names);
                let kind = self.kind_with(value, names);
                names.truncate(depth);
                Kind::List(Box::new(kind))
            }
            ExpressionKind::Negate(value) => self.kind_with(value, names),
            ExpressionKind::Binary(operator, left, right) => {
                let (left, right) = (self.kind_with(left, names), self.kind_with(right, names));
                binary_kind(*operator, left, right)
            }
            ExpressionKind::Else { value, otherwise } => match self.kind_with(value, names) {
                Kind::Optional(inner) => match self.kind_with(otherwise, names) {
                    Kind::Optional(_) => Kind::Optional(inner),
                    _ => *inner,
                },
                other => other,
            },
            ExpressionKind::If { condition, then, otherwise } => {
                let depth = names.len();
                self.named_by(condition, names);
                let kind = self.kind_with(then, names);
                names.truncate(depth);
                match (kind, self.kind_with(otherwise, names)) {
                    (Kind::Unknown, other) => optional(other),
                    (kind, Kind::Optional(_) | Kind::Unknown) => optional(kind),
                    (kind, _) => kind,
                }
            }
            ExpressionKind::Field(value, field) => self.field_kind(self.kind_with(value, names), &field.text),
            ExpressionKind::Index(list, _) => match self.kind_with(list, names) {
                Kind::List(element) => optional(*element),
                other => other,
            },
            ExpressionKind::Call { callee, arguments, query, .. } => {
                let ExpressionKind::Name(name) = &*callee.kind else { return Kind::Unknown };
                self.call_kind(name, arguments, query.as_ref(), names)
            }
            ExpressionKind::None | ExpressionKind::Broken => Kind::Unknown,
        }
    }

    /// What a condition names where it holds.
    fn named_by(&self, condition: &Expression, names: &mut Names) {
        match &*condition.kind {
            ExpressionKind::Is { value, name } => {
                let kind = match self.kind_with(value, names) {
                    Kind::Optional(inner) => *inner,
                    other => other,
                };
                names.push((name.text.clone(), kind));
            }
            ExpressionKind::Binary(Binary::And, left, right) => {
                self.named_by(left, names);
                self.named_by(right, names);
            }
            _ => {}
        }
    }

    fn field_kind(&self, kind: Kind, field: &str) -> Kind {
        match kind {
            Kind::Record(name) => {
                let field = self.program.record(&name).fields.iter().find(|one| one.name == field);
                field.map_or(Kind::Unknown, |field| field.kind.clone())
            }
            Kind::Shape(fields) => {
                let field = fields.into_iter().find(|(name, _)| name == field);
                field.map_or(Kind::Unknown, |(_, kind)| kind)
            }
            _ => Kind::Unknown,
        }
    }

    fn call_kind(
        &self,
        name: &str,
        arguments: &[Expression],
        query: Option<&Query>,
        names: &mut Names,
    ) -> Kind {
        if let Some(function) = self.program.function(name) {
            if let Some(answer) = &function.answer {
                return self.program.kind(answer);
            }
            let FunctionBody::Expression(body) = &function.body else { return Kind::Unknown };
            let fields = self.program.fields(&function.fields).into_iter();
            return self.kind_with(body, &mut fields.map(|field| (field.name, field.kind)).collect());
        }
        match (name, arguments) {
            ("count" | "length" | "ceiling" | "round" | "random" | "next_id", _) => Kind::Int,
            ("floor", [_]) => Kind::Int,
            ("floor", _) => Kind::Time,
            ("lower" | "upper" | "trim" | "new_id", _) => Kind::Text,
            ("contains" | "any" | "all", _) => Kind::Bool,
            ("real", _) => Kind::Real,
            ("mean", _) => Kind::Optional(Box::new(Kind::Real)),
            ("abs", [value]) => self.kind_with(value, names),
            ("min" | "max", [first, _, ..]) => self.kind_with(first, names),
            ("sum" | "min" | "max" | "first", [argument]) => {
                let kind = match query {
                    Some(query) => {
                        let depth = names.len();
                        self.names_of(query, names);
                        let kind = self.kind_with(argument, names);
                        names.truncate(depth);
                        kind
                    }
                    None => match self.kind_with(argument, names) {
                        Kind::List(element) => *element,
                        other => other,
                    },
                };
                match (name, kind) {
                    ("sum", kind) | (_, kind @ Kind::Optional(_)) => kind,
                    (_, kind) => Kind::Optional(Box::new(kind)),
                }
            }
            _ => Kind::Unknown,
        }
    }
}

fn binary_kind(operator: Binary, left: Kind, right: Kind) -> Kind {
    use Kind::{Bool, Duration, Int, Time};
    match (operator, left, right) {
        (Binary::Subtract, Time, Time) => Duration,
        (Binary::Divide, Duration, Duration) => Int,
        (
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder,
            left,
            right,
        ) => match (left, right) {
            (Time, _) | (_, Time) => Time,
            (Duration, _) | (_, Duration) => Duration,
            (left, _) => left,
        },
        _ => Bool,
    }
}
