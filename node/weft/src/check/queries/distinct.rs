//! `group by` a field that an index, or the key, begins with: groups are not gathered, but run over in the order of the
//! index, and what is asked of their rows is asked of the index.

use super::indexes::{all_rows, field_of_element};
use super::{Loops, Opened, Wanted, conjuncts};
use crate::check::body::{BindingKind, Body, Held, Origin};
use crate::check::expressions::is_plain_word;
use crate::code::{Cursor, Order, Over, Register, Rows};
use crate::module::Type;
use crate::syntax::tree::{Expression, ExpressionKind, Group, Query};
use crate::syntax::walk;

/// By what the groups of a list are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::check) struct Grouping {
    pub(in crate::check) list: u32,
    /// The field that they are alike in.
    field: u16,
    /// An index, none for the key, that has the rows of a group in the order of the key.
    natural: Option<Option<u16>>,
    /// An index, none for the key, for what the order is nothing to.
    folds: Option<u16>,
    /// Whether all groups are run over, each a plain word, so that what is folded of one is folded of all.
    whole: bool,
    /// The loop over the groups, inside of it.
    pub(in crate::check) groups: Option<Cursor>,
}

impl Grouping {
    /// The same inside of the loop over the groups.
    pub(super) fn inside(self, groups: Cursor) -> Grouping {
        Grouping { groups: self.whole.then_some(groups), ..self }
    }

    /// The same when that loop has ended.
    pub(super) fn outside(self) -> Grouping {
        Grouping { groups: None, ..self }
    }

    /// The rows of the group whose key is in a register; none if they would not come in the wanted order.
    pub(in crate::check) fn rows(self, key: Register, wanted: Wanted) -> Option<Rows> {
        let index = if wanted == Wanted::Any { self.folds } else { self.natural? };
        Some(Rows { index, first: key, equal: 1, ..all_rows(self.list) })
    }
}

impl Body<'_, '_> {
    /// How the groups of a query are found without gathering them, if they are: `value` is what is taken of each.
    pub(super) fn grouping(
        &self,
        query: &Query,
        group: &Group,
        value: &Expression,
    ) -> Option<(Grouping, Type)> {
        let [source] = query.sources.as_slice() else { return None };
        if source.condition.is_some() || source.upto.is_some() {
            return None;
        }
        let list = self.state_list(&source.list)?;
        let (record, keys, indexes) = self.checker.keyed(list)?;
        let name = field_of_element(&group.key, &source.name.text)?;
        let fields = &self.checker.record(record).fields;
        let field = fields.iter().position(|field| field.name == name)? as u16;
        let by_key = keys.first() == Some(&field);
        let begins = |index: &&u16| indexes[**index as usize].first() == Some(&field);
        let numbers: Vec<u16> = (0..indexes.len() as u16).collect();
        let single = numbers.iter().find(|index| begins(index) && indexes[**index as usize].len() == 1);
        let natural = single.map(|index| Some(*index)).or_else(|| by_key.then_some(None));
        // The one with most fields: they need not be looked for in the rows.
        let longest = numbers.iter().filter(begins).max_by_key(|index| indexes[**index as usize].len());
        let folds = match (longest, natural) {
            (Some(index), _) => Some(*index),
            (None, Some(None)) => None,
            _ => return None,
        };
        let whole =
            query.take.is_none() && group.condition.is_none() && is_plain_word(&fields[field as usize].kind);
        let grouping = Grouping { list, field, natural, folds, whole, groups: None };
        let parts =
            std::iter::once(value).chain(&group.condition).chain(query.order.iter().map(|(key, _)| key));
        let fits =
            parts.into_iter().all(|part| self.asks_only(part, &group.name.text, record, natural.is_some()));
        fits.then(|| (grouping, fields[field as usize].kind.clone()))
    }

    /// Whether an expression asks of a group only its key, how many rows it has, and what is looped over: folded only,
    /// if the rows do not come in the order of the key.
    fn asks_only(&self, part: &Expression, group: &str, record: u32, in_order: bool) -> bool {
        let (mut named, mut allowed) = (0, 0);
        let is_rows = |one: &Expression| member_of(one, group) == Some("rows");
        walk::inner(part, &mut |one| match &*one.kind {
            ExpressionKind::Name(name) if name == group => named += 1,
            ExpressionKind::Field(..) if member_of(one, group) == Some("key") => allowed += 1,
            ExpressionKind::Comprehension(_, query) if in_order => {
                allowed += query.sources.iter().filter(|source| is_rows(&source.list)).count();
            }
            ExpressionKind::Call { callee, arguments, query, .. } => {
                let ExpressionKind::Name(callee) = &*callee.kind else { return };
                match (arguments.as_slice(), query) {
                    ([rows], None) if callee == "count" && is_rows(rows) => allowed += 1,
                    ([argument], Some(query))
                        if in_order || self.is_fold(callee, argument, query, record) =>
                    {
                        allowed += query.sources.iter().filter(|source| is_rows(&source.list)).count();
                    }
                    _ => {}
                }
            }
            _ => {}
        });
        named == allowed
    }

    /// Whether a call folds a plain field of all rows of its only list.
    fn is_fold(&self, callee: &str, argument: &Expression, query: &Query, record: u32) -> bool {
        let [source] = query.sources.as_slice() else { return false };
        let field = field_of_element(argument, &source.name.text);
        let fields = &self.checker.record(record).fields;
        let kind = fields.iter().find(|one| Some(one.name.as_str()) == field).map(|one| &one.kind);
        let is_all = source.condition.is_none() && query.group.is_none() && query.order.is_empty();
        is_all
            && query.take.is_none()
            && match callee {
                "sum" => matches!(kind, Some(Type::Int | Type::Duration)),
                "min" | "max" => kind.is_some_and(is_plain_word),
                _ => false,
            }
    }

    /// The group whose rows an expression names, and the register of its key.
    pub(in crate::check) fn rows_of_group(&self, expression: &Expression) -> Option<(Grouping, Register)> {
        let ExpressionKind::Field(inner, rows) = &*expression.kind else { return None };
        let ExpressionKind::Name(name) = &*inner.kind else { return None };
        match self.find(name).map(|binding| &binding.kind) {
            Some(BindingKind::Group { key, grouping, .. }) if rows.text == "rows" => Some((*grouping, *key)),
            _ => None,
        }
    }

    /// What a loop over the rows of a group runs over.
    pub(super) fn group_source<'q>(
        &mut self,
        loops: &Loops<'q>,
        at: usize,
        wanted: Wanted,
    ) -> Option<Opened<'q>> {
        let source = &loops.sources[at];
        let super::Elements::List(expression) = source.over else { return None };
        let (grouping, key) = self.rows_of_group(expression)?;
        let (record, ..) = self.checker.keyed(grouping.list)?;
        let wanted = if wanted == Wanted::Any && !self.any_refuses(loops) { wanted } else { Wanted::List };
        let rows = grouping.rows(key, wanted).or_else(|| grouping.rows(key, Wanted::Any))?;
        Some(Opened {
            over: Over::Rows(rows),
            element: Type::Record(record),
            origin: Some((Origin { list: grouping.list, held: Held::Key }, false)),
            conditions: source.condition.map(conjuncts).unwrap_or_default(),
            is_scan: false,
        })
    }

    /// The loop over the keys of groups.
    pub(super) fn group_keys(&self, grouping: Grouping) -> Over {
        let index = grouping.natural.unwrap_or(grouping.folds);
        let rows = Rows { index, order: Order::Forward, ..all_rows(grouping.list) };
        Over::Distinct(rows, grouping.field)
    }
}

/// `key` or `rows` of a group.
fn member_of<'e>(expression: &'e Expression, group: &str) -> Option<&'e str> {
    field_of_element(expression, group)
}
