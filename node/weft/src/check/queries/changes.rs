//! Whether the statements of a loop may change the rows that it runs over.

use super::Runs;
use crate::check::body::{BindingKind, Body, Effect};
use crate::check::changes::root_name;
use crate::module::SCRATCH;
use crate::syntax::tree::{
    Block, Change, Expression, ExpressionKind, LetValue, Otherwise, Query, Statement, StatementKind,
};
use crate::syntax::walk;

impl Body<'_, '_> {
    /// Whether what runs for each element may change rows of a list; where it cannot be told, it may.
    pub(super) fn may_change_rows(&self, runs: Runs<'_>, list: u32) -> bool {
        match runs {
            Runs::Value(_) | Runs::Folded(_) => false,
            Runs::Remove => true,
            Runs::Block(_) if self.effect != Effect::Changes && list < SCRATCH => false,
            Runs::Block(block) => {
                let mut changes = false;
                walk::statements(block, &mut |statement| changes |= self.changes_rows(statement, list));
                changes
            }
        }
    }

    /// Whether statements may change one of these fields of a row that a list had when they began, whatever its key.
    pub(super) fn may_change_fields(&self, block: &Block, list: u32, fields: &[&str]) -> bool {
        let (mut changes, mut adds, mut removes) = (false, false, false);
        walk::statements(block, &mut |statement| match &statement.kind {
            StatementKind::Assign { place, .. } => changes |= names_field(place, fields),
            StatementKind::Change(change)
            | StatementKind::Let {
                value: Some(LetValue::Change(change) | LetValue::Else(_, Otherwise::Change(change))),
                ..
            } => {
                changes |= change.replace;
                adds |= self.change_is_of(change, list);
            }
            StatementKind::Remove { place, query } => {
                removes |= self.remove_is_of(place, query.as_ref(), list);
            }
            // A `do` may put into any list of the state.
            StatementKind::Place(_) => changes = true,
            StatementKind::Let { .. }
            | StatementKind::If { .. }
            | StatementKind::For { .. }
            | StatementKind::Require { .. }
            | StatementKind::Exit(_)
            | StatementKind::Send { .. }
            | StatementKind::Start { .. }
            | StatementKind::Cancel { .. }
            | StatementKind::Expect(_)
            | StatementKind::Broken => {}
        });
        // What is removed and added again is another row at the same key.
        changes || adds && removes
    }

    fn changes_rows(&self, statement: &Statement, list: u32) -> bool {
        match &statement.kind {
            StatementKind::Assign { place, .. } => self.place_is_of(place, list),
            StatementKind::Change(change)
            | StatementKind::Let {
                value: Some(LetValue::Change(change) | LetValue::Else(_, Otherwise::Change(change))),
                ..
            } => self.change_is_of(change, list),
            StatementKind::Remove { place, query } => self.remove_is_of(place, query.as_ref(), list),
            // A `do` may change any list of the state.
            StatementKind::Place(_) => list < SCRATCH,
            StatementKind::Let { .. }
            | StatementKind::If { .. }
            | StatementKind::For { .. }
            | StatementKind::Require { .. }
            | StatementKind::Exit(_)
            | StatementKind::Send { .. }
            | StatementKind::Start { .. }
            | StatementKind::Cancel { .. }
            | StatementKind::Expect(_)
            | StatementKind::Broken => false,
        }
    }

    fn change_is_of(&self, change: &Change, list: u32) -> bool {
        match self.state_list(&change.place) {
            Some(changed) => changed == list,
            None => self.place_is_of(&change.place, list),
        }
    }

    fn remove_is_of(&self, place: &Expression, query: Option<&Query>, list: u32) -> bool {
        match query {
            Some(query) => {
                query
                    .sources
                    .iter()
                    .any(|source| self.state_list(&source.list).is_some_and(|removed| removed == list))
                    || self.place_is_of(place, list)
                        && query
                            .sources
                            .iter()
                            .all(|source| Some(source.name.text.as_str()) != root_name(place))
            }
            None => self.place_is_of(place, list),
        }
    }

    /// Whether a place may be a part of a row of a list.
    fn place_is_of(&self, place: &Expression, list: u32) -> bool {
        let Some(root) = root_name(place) else { return true };
        match self.find(root).map(|binding| &binding.kind) {
            Some(BindingKind::Row { list: of, .. } | BindingKind::Keyed { list: of }) => *of == list,
            Some(BindingKind::Value { .. } | BindingKind::Element { .. } | BindingKind::Group { .. }) => {
                false
            }
            None => match self.checker.states.get(root) {
                Some(of) => *of == list,
                // A name of the block's own: it stands for a row of the list only if that has such a field.
                None => self.has_first_field(place, list),
            },
        }
    }

    fn has_first_field(&self, place: &Expression, list: u32) -> bool {
        let Some((record, ..)) = self.checker.keyed(list) else { return true };
        match &*place.kind {
            ExpressionKind::Field(inner, field) if matches!(&*inner.kind, ExpressionKind::Name(_)) => {
                self.checker.record(record).fields.iter().any(|one| one.name == field.text)
            }
            ExpressionKind::Field(inner, _) | ExpressionKind::Index(inner, _) => {
                self.has_first_field(inner, list)
            }
            // A `var` is assigned, or a row removed.
            _ => true,
        }
    }
}

/// Whether a place has one of these fields on its way.
fn names_field(place: &Expression, fields: &[&str]) -> bool {
    let mut names = false;
    walk::inner(place, &mut |part| {
        if let ExpressionKind::Field(_, field) = &*part.kind {
            names |= fields.contains(&field.text.as_str());
        }
    });
    names
}
