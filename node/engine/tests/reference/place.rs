//! What changes: variables, fields of rows, elements of lists, rows.

use super::evaluate::calculate;
use super::kinds::Kind;
use super::run::{Outcome, Place, Run, Slot};
use super::state::{KEY_BYTES_MAX, List, key_size};
use super::value::Value;
use weft::syntax::tree::{Assignment, Binary, Change, Expression, ExpressionKind};

/// From a place to a part of it.
enum Step<'e> {
    Field(&'e str),
    Element(&'e Expression),
}

type New<'n, 'p> = &'n mut dyn FnMut(&mut Run<'p>, Value) -> Outcome<Value>;

impl<'p> Run<'p> {
    pub fn assign(&mut self, place: &Expression, operator: Assignment, value: &Expression) -> Outcome<()> {
        let kind = self.kind_of(place);
        self.change_place(place, &mut |run, current| {
            let (reach, binary) = match operator {
                Assignment::Set => {
                    run.reach("=");
                    let value = run.evaluate(value)?;
                    return Ok(run.program.fitted(value, &kind));
                }
                Assignment::Add => ("+=", Binary::Add),
                Assignment::Subtract => ("-=", Binary::Subtract),
                Assignment::Multiply => ("*=", Binary::Multiply),
            };
            run.reach(reach);
            let right = run.evaluate(value)?;
            calculate(binary, &current, &right)
        })
    }

    /// Puts a new value, made from the one that is there, where a place is.
    fn change_place(&mut self, place: &Expression, new: New<'_, 'p>) -> Outcome<()> {
        let (mut path, mut root) = (Vec::new(), place);
        loop {
            root = match &*root.kind {
                ExpressionKind::Field(inner, field) => {
                    path.push(Step::Field(&field.text));
                    inner
                }
                ExpressionKind::Index(inner, keys) if self.keyed(inner).is_none() => {
                    path.push(Step::Element(&keys[0]));
                    inner
                }
                _ => break,
            };
        }
        path.reverse();
        if let Some((list, key)) = self.row_place(root)? {
            self.reach("change of a row");
            let row = self.row_there(list, &key)?;
            let row = self.replaced(row, &path, new)?;
            self.short_entries(list, &row)?;
            self.rows_mut(list).put(row);
            return Ok(());
        }
        let ExpressionKind::Name(name) = &*root.kind else { panic!("no place: {root:?}") };
        if let Some(at) = self.scope.iter().rposition(|binding| binding.name == *name) {
            self.reach("change of a var");
            let Slot::Value { value, .. } = &self.scope[at].slot else { panic!("`{name}` is no var") };
            let changed = self.replaced(value.clone(), &path, new)?;
            let Slot::Value { value, .. } = &mut self.scope[at].slot else { panic!("`{name}` is no var") };
            *value = changed;
            return Ok(());
        }
        self.reach("change of a state");
        let at =
            self.program.states.iter().position(|state| state.name == *name).expect("a state has the name");
        let List::Variable(value) = &self.state.lists[at] else { panic!("`{name}` is no variable") };
        let changed = self.replaced(value.clone(), &path, new)?;
        self.state.lists[at] = List::Variable(changed);
        Ok(())
    }

    fn replaced(&mut self, mut current: Value, path: &[Step<'_>], new: New<'_, 'p>) -> Outcome<Value> {
        let Some((first, rest)) = path.split_first() else { return new(self, current) };
        match first {
            Step::Field(name) => {
                let inner = self.replaced(current.field(name).clone(), rest, new)?;
                current.set_field(name, inner);
                Ok(current)
            }
            Step::Element(index) => {
                self.reach("change of an element");
                let index = self.evaluate(index)?.int();
                let mut values = current.list();
                let length = values.len();
                let place = usize::try_from(index).ok().filter(|place| *place < length);
                let place = place.ok_or_else(|| {
                    format!("the list has no element {index}: it has {length}, counted from 0")
                })?;
                values[place] = self.replaced(values[place].clone(), rest, new)?;
                Ok(Value::List(values))
            }
        }
    }

    /// Refuses a key that is too long to be one.
    fn short_key(&self, list: Place, key: &[Value]) -> Outcome<()> {
        if key_size(key) <= KEY_BYTES_MAX {
            return Ok(());
        }
        self.reach("key too long");
        Err(format!("a key of `{}` is longer than {KEY_BYTES_MAX} bytes", self.rows(list).name))
    }

    /// Refuses a row of which an index would have too long an entry.
    fn short_entries(&self, list: Place, row: &Value) -> Outcome<()> {
        let Kind::Record(record) = self.record_of(list) else { return Ok(()) };
        let rows = self.rows(list);
        let Some(index) = rows.long_entry(row, &self.program.record(&record).fields) else { return Ok(()) };
        self.reach("entry of an index too long");
        Err(format!(
            "an entry of the index `{}` of `{}`, its row's key behind it, is longer than {KEY_BYTES_MAX} bytes",
            index.join(", "),
            rows.name
        ))
    }

    /// The list and the key of a row that a place is.
    fn row_place(&mut self, place: &Expression) -> Outcome<Option<(Place, Vec<Value>)>> {
        match &*place.kind {
            ExpressionKind::Name(name) => match self.find(name) {
                Some(Slot::Row { list, key, .. }) => {
                    Ok(Some((*list, key.clone().expect("the checker lets no row that may be none change"))))
                }
                _ => Ok(None),
            },
            ExpressionKind::Index(list, keys) => match self.keyed(list) {
                Some(list) => {
                    let key = self.key(keys)?;
                    Ok(Some((list, key)))
                }
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    pub fn row_there(&self, list: Place, key: &[Value]) -> Outcome<Value> {
        let rows = self.rows(list);
        rows.rows.get(key).cloned().ok_or_else(|| format!("`{}` has no such row", rows.name))
    }

    pub fn remove(&mut self, place: &Expression) -> Outcome<()> {
        let (list, key) = self.row_place(place)?.expect("only rows are removed");
        self.rows_mut(list).rows.remove(&key);
        Ok(())
    }

    /// `list add value`, `list put value`; gives what was added.
    pub fn change(&mut self, change: &Change) -> Outcome<Value> {
        if let Some(list) = self.keyed(&change.place) {
            self.reach(if change.replace { "put" } else { "add" });
            let value = self.evaluate(&change.value)?;
            let value = self.program.fitted(value, &self.record_of(list));
            let key = self.rows(list).key_of(&value);
            self.short_key(list, &key)?;
            let rows = self.rows(list);
            if !change.replace && rows.rows.contains_key(&key) {
                return Err(format!("`{}` has a row of this key already", rows.name));
            }
            self.short_entries(list, &value)?;
            self.rows_mut(list).put(value.clone());
            return Ok(value);
        }
        self.reach("add to a plain list");
        let element = match self.kind_of(&change.place) {
            Kind::List(element) => *element,
            _ => Kind::Unknown,
        };
        let mut added = Value::None;
        self.change_place(&change.place, &mut |run, current| {
            let value = run.evaluate(&change.value)?;
            added = run.program.fitted(value, &element);
            let mut values = current.list();
            values.push(added.clone());
            Ok(Value::List(values))
        })?;
        Ok(added)
    }
}
