//! How the rows of a list are found: by an index or by the key, in which order, and between which ends.
//!
//! Whatever is found is tested against the whole condition all the same: what is chosen here only makes it fewer.

use super::{Elements, Loops, Mode, Source};
use crate::check::body::{BindingKind, Body};
use crate::code::{End, Register, Rows};
use crate::module::{Field, Type};
use crate::syntax::tree::{Binary, Block, Expression, ExpressionKind, StatementKind};
use crate::syntax::walk;

/// By what rows are found, and the values that it is to have.
enum Choice<'q> {
    Index(u16, Vec<&'q Expression>),
    Key(Vec<&'q Expression>),
}

impl Body<'_, '_> {
    /// How the rows that a condition fixes are found: by a whole index, or by the key or a prefix of it.
    fn way_to_rows<'q>(&self, list: u32, source: &Source<'q>, mode: Mode<'_>) -> Option<Choice<'q>> {
        let (record, keys, indexes) = self.checker.keyed(list)?;
        let equal = match source.condition {
            Some(condition) => self.equalities(condition, &source.name.text, record, mode.live),
            None => Vec::new(),
        };
        let fields = &self.checker.record(record).fields;
        let find = |field: &u16| {
            let name = &fields[*field as usize].name;
            equal.iter().find(|(equal, _)| equal == name).map(|(_, value)| *value)
        };
        let prefix: Vec<&Expression> = keys.iter().map_while(find).collect();
        let mut best: Option<(u16, Vec<&Expression>)> = None;
        for (at, index) in indexes.iter().enumerate() {
            let values: Vec<&Expression> = index.iter().map_while(find).collect();
            let names: Vec<&str> = index.iter().map(|field| fields[*field as usize].name.as_str()).collect();
            // An index whose fields the statements change would miss rows that come to fit under way.
            let moves = mode.live && mode.statements.is_some_and(|block| changes_fields(block, &names));
            if values.len() == index.len()
                && !moves
                && best.as_ref().is_none_or(|(_, one)| one.len() < values.len())
            {
                best = Some((at as u16, values));
            }
        }
        let all_keys = prefix.len() == keys.len();
        Some(match best {
            Some((index, values)) if !all_keys && values.len() >= prefix.len() => {
                Choice::Index(index, values)
            }
            _ => Choice::Key(prefix),
        })
    }

    /// Whether the rows of a query's only list come in the order that is asked for as they are found, and then whether
    /// backward. Only keys that no two rows share are turned round: rows that are alike keep their order.
    pub(super) fn found_in_order(&self, loops: &Loops<'_>) -> Option<bool> {
        let ([source], [(_, backward), ..]) = (loops.sources.as_slice(), loops.order) else { return None };
        let Elements::List(expression) = source.over else { return None };
        let list = self.state_list(expression)?;
        let (record, keys, _) = self.checker.keyed(list)?;
        let found = match self.way_to_rows(list, source, Mode::reading(false))? {
            Choice::Index(..) => keys,
            Choice::Key(prefix) => &keys[prefix.len()..],
        };
        let fields = &self.checker.record(record).fields;
        let is_next = |((key, descending), field): (&(Expression, bool), &u16)| {
            descending == backward
                && field_of_element(key, &source.name.text) == Some(fields[*field as usize].name.as_str())
        };
        let fits = loops.order.len() <= found.len() && loops.order.iter().zip(found).all(is_next);
        (fits && (!backward || loops.order.len() == found.len())).then_some(*backward)
    }

    pub(super) fn rows(&mut self, list: u32, source: &Source<'_>, mode: Mode<'_>) -> Rows {
        let backward = mode.backward;
        let (Some((record, keys, indexes)), Some(choice)) =
            (self.checker.keyed(list), self.way_to_rows(list, source, mode))
        else {
            let (from, upto) = (End::Open, End::Open);
            return Rows { list, index: None, first: 0, equal: 0, from, upto, backward };
        };
        let (index, fields, mut values) = match choice {
            Choice::Index(index, values) => (Some(index), indexes[index as usize].clone(), values),
            Choice::Key(prefix) => (None, keys.to_vec(), prefix),
        };
        let equal = values.len() as u16;
        let mut range = Range::default();
        if let (Some(condition), Some(field), None) = (source.condition, fields.get(values.len()), index) {
            let field = &self.checker.record(record).fields[*field as usize];
            range = self.range(condition, &source.name.text, field, mode.live);
        }
        let end = |end: Option<&Expression>| match end {
            Some(_) => End::Included,
            None => End::Open,
        };
        let (from, upto) = (end(range.from), end(range.upto));
        values.extend(range.from.into_iter().chain(range.upto));
        let first = self.row_of_registers(values.len());
        for (at, value) in values.iter().enumerate() {
            let field = fields[at.min(equal as usize)];
            let kind = self.checker.record(record).fields[field as usize].kind.clone();
            let register = self.need(value, &kind);
            self.copy(register, first.saturating_add(at as Register));
        }
        Rows { list, index, first, equal, from, upto, backward }
    }

    /// `x.field == value` among what a condition demands before anything in it can refuse, where the value is of the
    /// field's type, the same all along the loop, and cannot refuse.
    fn equalities<'e>(
        &self,
        condition: &'e Expression,
        element: &str,
        record: u32,
        live: bool,
    ) -> Vec<(String, &'e Expression)> {
        let fields = &self.checker.record(record).fields;
        let mut found = Vec::new();
        for demand in self.demands(condition) {
            let ExpressionKind::Binary(Binary::Equal, left, right) = &*demand.kind else { continue };
            for (side, other) in [(left, right), (right, left)] {
                if let Some(name) = field_of_element(side, element)
                    && self.is_steady(other, live)
                    && fields.iter().any(|field| field.name == name && self.may_be(other, &field.kind))
                {
                    found.push((name.into(), other));
                }
            }
        }
        found
    }

    /// The ends between which a condition demands a field to be, as [`Body::equalities`] finds its values. The
    /// condition is tested all the same: whether an end is included does not matter here.
    fn range<'e>(&self, condition: &'e Expression, element: &str, field: &Field, live: bool) -> Range<'e> {
        let is_field = |side: &Expression| field_of_element(side, element) == Some(field.name.as_str());
        let mut found = Range::default();
        let mut keep = |end: &'e Expression, is_upto: bool| {
            if (self.is_steady(end, live) || is_around_now(end)) && self.may_be(end, &field.kind) {
                let place = if is_upto { &mut found.upto } else { &mut found.from };
                place.get_or_insert(end);
            }
        };
        for demand in self.demands(condition) {
            match &*demand.kind {
                ExpressionKind::Binary(operator, left, right) => {
                    let is_less = match operator {
                        Binary::Less | Binary::LessEqual => true,
                        Binary::Greater | Binary::GreaterEqual => false,
                        _ => continue,
                    };
                    if is_field(left) {
                        keep(right, is_less);
                    } else if is_field(right) {
                        keep(left, !is_less);
                    }
                }
                ExpressionKind::In { value, list: from, upto: Some(upto) } if is_field(value) => {
                    keep(from, false);
                    keep(upto, true);
                }
                _ => {}
            }
        }
        found
    }

    /// What a condition demands, up to the first part that can refuse: rows that a later part leaves out would have
    /// been refused there, and how rows are found must not change that.
    fn demands<'e>(&self, condition: &'e Expression) -> Vec<&'e Expression> {
        let mut found = Vec::new();
        let mut left_over = vec![condition];
        while let Some(next) = left_over.pop() {
            if let ExpressionKind::Binary(Binary::And, left, right) = &*next.kind {
                left_over.extend([right, left]);
            } else if self.can_refuse(next) {
                break;
            } else {
                found.push(next);
            }
        }
        found
    }

    fn can_refuse(&self, demand: &Expression) -> bool {
        let mut can = false;
        walk::inner(demand, &mut |part| {
            can |= match &*part.kind {
                ExpressionKind::Binary(
                    Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder,
                    ..,
                ) => !is_around_now(part),
                ExpressionKind::Negate(value) => !is_number(value),
                ExpressionKind::Index(..) | ExpressionKind::Call { .. } => true,
                // The row that it stands for may be gone.
                ExpressionKind::Name(name) => {
                    matches!(self.find(name).map(|binding| &binding.kind), Some(BindingKind::Row { .. }))
                }
                _ => false,
            };
        });
        can
    }

    /// Whether a steady value may stand where one of a type is wanted. Of a case only the place tells its enum.
    fn may_be(&self, value: &Expression, wanted: &Type) -> bool {
        if let ExpressionKind::Case(case) = &*value.kind {
            let inner = match wanted {
                Type::Optional(inner) => inner,
                other => other,
            };
            return matches!(inner, Type::Enum(number) if self.checker.enumeration(*number).cases.contains(case));
        }
        self.type_of_steady(value).is_some_and(|found| self.checker.fits(&found, wanted))
    }

    fn type_of_steady(&self, value: &Expression) -> Option<Type> {
        Some(match &*value.kind {
            ExpressionKind::Int(_) => Type::Int,
            ExpressionKind::Real(_) => Type::Real,
            ExpressionKind::Duration(_) => Type::Duration,
            ExpressionKind::Bool(_) => Type::Bool,
            ExpressionKind::Text(_) => Type::Text,
            ExpressionKind::Me => Type::Node,
            ExpressionKind::Now => Type::Time,
            ExpressionKind::Binary(..) if is_around_now(value) => Type::Time,
            ExpressionKind::Name(name) => match self.find(name).map(|binding| &binding.kind) {
                Some(BindingKind::Value { kind, .. }) => kind.clone(),
                Some(_) => return None,
                None => {
                    let setting = self.checker.settings.get(name)?;
                    self.checker.module.settings[*setting as usize].kind.clone()
                }
            },
            ExpressionKind::Field(inner, field) => {
                let Type::Record(number) = self.type_of_steady(inner)? else { return None };
                let fields = &self.checker.record(number).fields;
                fields.iter().find(|one| one.name == field.text)?.kind.clone()
            }
            _ => return None,
        })
    }

    fn is_steady(&self, value: &Expression, live: bool) -> bool {
        match &*value.kind {
            ExpressionKind::Int(_)
            | ExpressionKind::Real(_)
            | ExpressionKind::Duration(_)
            | ExpressionKind::Bool(_)
            | ExpressionKind::Me
            | ExpressionKind::Now
            | ExpressionKind::Case(_) => true,
            ExpressionKind::Text(pieces) => {
                pieces.iter().all(|piece| matches!(piece, crate::syntax::tree::Piece::Literal(_)))
            }
            ExpressionKind::Name(name) => match self.find(name).map(|binding| &binding.kind) {
                Some(BindingKind::Value { fixed, .. }) => *fixed || !live,
                Some(_) => false,
                None => self.checker.settings.contains_key(name),
            },
            ExpressionKind::Field(inner, _) => self.is_steady(inner, live),
            _ => false,
        }
    }
}

/// The ends of what a loop runs over, as far as a condition tells them.
#[derive(Default)]
struct Range<'e> {
    from: Option<&'e Expression>,
    upto: Option<&'e Expression>,
}

fn is_number(value: &Expression) -> bool {
    matches!(&*value.kind, ExpressionKind::Int(_) | ExpressionKind::Real(_) | ExpressionKind::Duration(_))
}

/// `now`, some time before or after.
fn is_around_now(end: &Expression) -> bool {
    let ExpressionKind::Binary(Binary::Add | Binary::Subtract, left, right) = &*end.kind else {
        return false;
    };
    matches!((&*left.kind, &*right.kind), (ExpressionKind::Now, ExpressionKind::Duration(_)))
}

fn field_of_element<'e>(side: &'e Expression, element: &str) -> Option<&'e str> {
    let ExpressionKind::Field(inner, field) = &*side.kind else { return None };
    match &*inner.kind {
        ExpressionKind::Name(name) if name == element => Some(&field.text),
        _ => None,
    }
}

/// Whether statements may change one of these fields of some row.
fn changes_fields(block: &Block, fields: &[&str]) -> bool {
    let mut changes = false;
    walk::statements(block, &mut |statement| match &statement.kind {
        StatementKind::Assign { place, .. } => {
            walk::inner(place, &mut |part| {
                if let ExpressionKind::Field(_, field) = &*part.kind {
                    changes |= fields.contains(&field.text.as_str());
                }
            });
        }
        StatementKind::Change(change) => changes |= change.replace,
        StatementKind::Let { .. } | StatementKind::Place(_) => changes |= may_call_or_put(&statement.kind),
        _ => {}
    });
    changes
}

fn may_call_or_put(statement: &StatementKind) -> bool {
    use crate::syntax::tree::{LetValue, Otherwise};
    match statement {
        StatementKind::Place(_) => true,
        StatementKind::Let { value: Some(LetValue::Change(change)), .. } => change.replace,
        StatementKind::Let { value: Some(LetValue::Else(_, Otherwise::Change(change))), .. } => {
            change.replace
        }
        _ => false,
    }
}
