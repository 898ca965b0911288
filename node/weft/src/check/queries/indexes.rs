//! How the rows of a list are found: by an index or by the key, in which order, and between which ends.
//!
//! Whatever is found is tested against the whole condition all the same: what is chosen here only makes it fewer.

use super::{Elements, Loops, Mode, Source};
use crate::check::body::{BindingKind, Body};
use crate::code::{Operation, Over, Register};
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
        let mut equal = Vec::new();
        if let Some(condition) = source.condition {
            self.equalities(condition, &source.name.text, mode.live, &mut equal);
        }
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

    pub(super) fn rows(&mut self, list: u32, source: &Source<'_>, mode: Mode<'_>) -> Over {
        let backward = mode.backward;
        let (Some((record, keys, indexes)), Some(choice)) =
            (self.checker.keyed(list), self.way_to_rows(list, source, mode))
        else {
            return Over::Rows { list, prefix: None, from: None, upto: None, backward };
        };
        let (keys, indexes) = (keys.to_vec(), indexes.to_vec());
        let prefix = match choice {
            Choice::Index(index, values) => {
                let prefix = self.encoded(list, Some(index), &indexes[index as usize], &values, record);
                return Over::Index { list, index, prefix, backward };
            }
            Choice::Key(prefix) => prefix,
        };
        let mut range = Range::default();
        if let (Some(condition), Some(field)) = (source.condition, keys.get(prefix.len())) {
            let field = self.checker.record(record).fields[*field as usize].name.clone();
            self.range(condition, (&source.name.text, &field), mode.live, &mut range);
        }
        let mut end = |value: Option<&Expression>| {
            let mut values = prefix.clone();
            values.push(value?);
            Some(self.encoded(list, None, &keys, &values, record))
        };
        let (from, upto) = (end(range.from), end(range.upto));
        let prefix = match prefix.is_empty() {
            true => None,
            false => Some(self.encoded(list, None, &keys, &prefix, record)),
        };
        Over::Rows { list, prefix, from, upto, backward }
    }

    fn encoded(
        &mut self,
        list: u32,
        index: Option<u16>,
        fields: &[u16],
        values: &[&Expression],
        record: u32,
    ) -> Register {
        let first = self.row_of_registers(values.len());
        for (at, (value, field)) in values.iter().zip(fields).enumerate() {
            let kind = self.checker.record(record).fields[*field as usize].kind.clone();
            let register = self.need(value, &kind);
            self.copy(register, first.saturating_add(at as Register));
        }
        let out = self.register();
        self.emit(Operation::MakeKey { out, list, index, first, count: values.len() as u16 });
        out
    }

    /// `x.field == value` among what a condition demands, where the value is the same all along the loop and cannot
    /// refuse.
    fn equalities<'e>(
        &self,
        condition: &'e Expression,
        element: &str,
        live: bool,
        found: &mut Vec<(String, &'e Expression)>,
    ) {
        match &*condition.kind {
            ExpressionKind::Binary(Binary::And, left, right) => {
                self.equalities(left, element, live, found);
                self.equalities(right, element, live, found);
            }
            ExpressionKind::Binary(Binary::Equal, left, right) => {
                for (side, other) in [(left, right), (right, left)] {
                    if let Some(field) = field_of_element(side, element)
                        && self.is_steady(other, live)
                    {
                        found.push((field.into(), other));
                    }
                }
            }
            _ => {}
        }
    }

    /// The ends between which a condition demands a field to be, where they are the same all along the loop and cannot
    /// refuse. The condition is tested all the same: whether an end is included does not matter here.
    fn range<'e>(
        &self,
        condition: &'e Expression,
        (element, field): (&str, &str),
        live: bool,
        found: &mut Range<'e>,
    ) {
        let is_field = |side: &Expression| field_of_element(side, element) == Some(field);
        let mut keep = |end: &'e Expression, is_upto: bool| {
            if self.is_steady(end, live) || is_around_now(end) {
                let place = if is_upto { &mut found.upto } else { &mut found.from };
                place.get_or_insert(end);
            }
        };
        match &*condition.kind {
            ExpressionKind::Binary(Binary::And, left, right) => {
                self.range(left, (element, field), live, found);
                self.range(right, (element, field), live, found);
            }
            ExpressionKind::Binary(operator, left, right) => {
                let is_less = match operator {
                    Binary::Less | Binary::LessEqual => true,
                    Binary::Greater | Binary::GreaterEqual => false,
                    _ => return,
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
