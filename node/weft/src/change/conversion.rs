//! Values of one shape as those of the next.
//!
//! What each type becomes is worked out once (`Conversion::new`), so that a row costs a walk along its own values. The
//! closed list of what a type may become is `retype`'s.

use super::operations::Operation;
use super::schema::{Constant, Fields, Holds, Kind, Schema};
use crate::value::{Real, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A value that has no place in the next shape: the number of the operation that it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit(pub usize);

/// What happened to values on the way, by operation: how many were lost, or were none and got a value.
pub type Tally = Vec<u64>;

/// How a type may become another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Retype {
    /// In no way that keeps values.
    Never,
    /// Where each value meets these conditions; there may be none.
    Where(Vec<&'static str>),
}

/// What a type of one shape may become in the next.
pub(super) fn retype(from: &Kind, to: &Kind, has_default: bool) -> Retype {
    let with = |retype: Retype, condition: &'static str| match retype {
        Retype::Where(mut conditions) => {
            conditions.insert(0, condition);
            Retype::Where(conditions)
        }
        Retype::Never => Retype::Never,
    };
    match (from, to) {
        (from, to) if from == to => Retype::Where(Vec::new()),
        (Kind::Optional(from), Kind::Optional(to)) => retype(from, to, false),
        (from, Kind::Optional(to)) => retype(from, to, false),
        (Kind::Optional(from), to) if has_default => retype(from, to, false),
        (Kind::Optional(from), to) => with(retype(from, to, false), "none of them is none"),
        (Kind::List(from), Kind::List(to)) => retype(from, to, false),
        (Kind::Int, Kind::Real) => Retype::Where(vec!["each is a real exactly"]),
        (Kind::Real, Kind::Int) => Retype::Where(vec!["each is whole and within int"]),
        (Kind::Int, Kind::Time | Kind::Duration)
        | (Kind::Time | Kind::Duration, Kind::Int)
        | (Kind::Enum(_) | Kind::Endpoint, Kind::Text) => Retype::Where(Vec::new()),
        (Kind::Text | Kind::Enum(_), Kind::Enum(_)) => Retype::Where(vec!["each is the name of a case"]),
        _ => Retype::Never,
    }
}

/// How values of one type become those of another.
#[derive(Debug)]
enum Way {
    /// They are the same.
    Same,
    Record {
        /// In the order of the next shape.
        fields: Vec<FieldWay>,
        /// Places and operations of fields that are gone.
        dropped: Vec<(usize, usize)>,
    },
    List(Arc<Way>),
    /// As the inner one where there is a value; where there is none, this or nothing.
    Inner {
        inner: Arc<Way>,
        none: OfNone,
        operation: usize,
    },
    /// By the place of the case.
    Cases(Vec<Result<i64, Misfit>>),
    IntToReal(usize),
    RealToInt(usize),
    CaseToText(Vec<Arc<str>>),
    TextToCase(HashMap<String, i64>, usize),
}

/// What becomes of `none`.
#[derive(Debug)]
enum OfNone {
    Stays,
    Becomes(Value),
    Fails,
}

#[derive(Debug)]
enum FieldWay {
    From(usize, Arc<Way>),
    Constant(Result<Value, Misfit>),
}

/// Where a field comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnWay {
    /// The field at a place before, as it is.
    Kept(usize),
    /// The field at a place before, value by value.
    Made(usize),
    /// It is new.
    Filled,
}

/// How the rows of one shape become those of the next.
#[derive(Debug)]
pub struct Conversion {
    /// By the number of the list, of those that are in both shapes.
    ways: BTreeMap<u32, Arc<Way>>,
    operations: usize,
}

impl Conversion {
    /// What the operations do to the rows of `before`.
    pub(super) fn new(before: &Schema, after: &Schema, operations: &[Operation]) -> Conversion {
        let mut builder = Builder { before, after, operations, records: BTreeMap::new() };
        let mut ways = BTreeMap::new();
        for list in &after.lists {
            let Some(old) = before.list(list.number) else { continue };
            let way = match (&old.holds, &list.holds) {
                (Holds::Rows { record, .. }, Holds::Rows { .. }) => builder.record(*record),
                (Holds::Value(from), Holds::Value(to)) => {
                    let retype = |one: &Operation| matches!(one, Operation::RetypeVariable { list: at, .. } if *at == list.number);
                    let at = operations.iter().position(retype);
                    let none = match at.map(|at| &operations[at]) {
                        Some(Operation::RetypeVariable { none, .. }) => none.as_ref(),
                        _ => None,
                    };
                    builder.way(from, to, at.unwrap_or(operations.len()), none)
                }
                // Refused when the plan was made.
                _ => continue,
            };
            ways.insert(list.number, way);
        }
        Conversion { ways, operations: operations.len() }
    }

    /// Nothing counted yet.
    pub fn tally(&self) -> Tally {
        // One more for what has no operation of its own.
        vec![0; self.operations + 1]
    }

    /// Whether the values of a list are what they were.
    pub fn keeps(&self, list: u32) -> bool {
        self.ways.get(&list).is_some_and(|way| matches!(**way, Way::Same))
    }

    /// Where the fields of a list's rows come from, in the order of the next shape; nothing if rows stay as they are.
    pub fn columns(&self, list: u32) -> Option<Vec<ColumnWay>> {
        let Way::Record { fields, .. } = &**self.ways.get(&list)? else { return None };
        let column = |field: &FieldWay| match field {
            FieldWay::From(at, way) if matches!(**way, Way::Same) => ColumnWay::Kept(*at),
            FieldWay::From(at, _) => ColumnWay::Made(*at),
            FieldWay::Constant(_) => ColumnWay::Filled,
        };
        Some(fields.iter().map(column).collect())
    }

    /// A field of a list's rows from the one that [`Conversion::columns`] says that it comes from, or none of what it is
    /// filled with.
    ///
    /// # Errors
    /// It has no place there.
    pub fn field(&self, list: u32, field: usize, value: &Value, tally: &mut Tally) -> Result<Value, Misfit> {
        match self.ways.get(&list).map(|way| &**way) {
            Some(Way::Record { fields, .. }) => match fields.get(field) {
                Some(FieldWay::From(_, way)) => way.apply(value, tally),
                Some(FieldWay::Constant(constant)) => constant.clone(),
                None => Ok(Value::None),
            },
            _ => Ok(value.clone()),
        }
    }

    /// Fields of a list's rows that go, and the operations that drop them.
    pub fn dropped(&self, list: u32) -> &[(usize, usize)] {
        match self.ways.get(&list).map(|way| &**way) {
            Some(Way::Record { dropped, .. }) => dropped,
            _ => &[],
        }
    }

    /// A row or value of a list as the next shape has it.
    ///
    /// # Errors
    /// It has no place there.
    pub fn apply(&self, list: u32, value: &Value, tally: &mut Tally) -> Result<Value, Misfit> {
        match self.ways.get(&list) {
            Some(way) => way.apply(value, tally),
            None => Ok(value.clone()),
        }
    }
}

struct Builder<'s> {
    before: &'s Schema,
    after: &'s Schema,
    operations: &'s [Operation],
    /// What is known of records: types hold each other many times over.
    records: BTreeMap<u32, Arc<Way>>,
}

impl Builder<'_> {
    fn record(&mut self, number: u32) -> Arc<Way> {
        if let Some(way) = self.records.get(&number) {
            return Arc::clone(way);
        }
        let (Some(old), Some(new)) = (self.before.record(number), self.after.record(number)) else {
            return Arc::new(Way::Same);
        };
        let way = Arc::new(self.fields(number, &old.fields, &new.fields));
        self.records.insert(number, Arc::clone(&way));
        way
    }

    fn fields(&mut self, record: u32, old: &Fields, new: &Fields) -> Way {
        let mut fields = Vec::new();
        let mut same = old.fields.len() == new.fields.len();
        for (place, field) in new.fields.iter().enumerate() {
            let Some(at) = old.fields.iter().position(|one| one.number == field.number) else {
                same = false;
                fields.push(FieldWay::Constant(self.added(record, field.number)));
                continue;
            };
            let (operation, none) = self.retyped(record, field.number);
            let way = self.way(&old.fields[at].kind, &field.kind, operation, none.as_ref());
            same &= at == place && matches!(*way, Way::Same);
            fields.push(FieldWay::From(at, way));
        }
        if same {
            return Way::Same;
        }
        let is_gone = |number: u32| new.get(number).is_none();
        let gone = old.fields.iter().enumerate().filter(|(_, field)| is_gone(field.number));
        let dropped = gone.map(|(at, field)| {
            let drop = |one: &Operation| {
                matches!(one, Operation::DropField { record: of, field: dropped } if *of == record && *dropped == field.number)
            };
            (at, self.find(drop))
        });
        Way::Record { dropped: dropped.collect(), fields }
    }

    /// The number of an operation; that after the last stands for none.
    fn find(&self, is: impl Fn(&Operation) -> bool) -> usize {
        self.operations.iter().position(is).unwrap_or(self.operations.len())
    }

    fn added(&self, record: u32, field: u32) -> Result<Value, Misfit> {
        let add = |one: &Operation| matches!(one, Operation::AddField { record: of, field: added, .. } if *of == record && *added == field);
        let at = self.find(add);
        match self.operations.get(at) {
            Some(Operation::AddField { constant: Some(constant), .. }) => Ok(Value::from(constant)),
            _ => Err(Misfit(at)),
        }
    }

    fn retyped(&self, record: u32, field: u32) -> (usize, Option<Constant>) {
        let retype = |one: &Operation| matches!(one, Operation::RetypeField { record: of, field: at, .. } if *of == record && *at == field);
        let at = self.find(retype);
        match self.operations.get(at) {
            Some(Operation::RetypeField { none, .. }) => (at, none.clone()),
            _ => (at, None),
        }
    }

    fn way(&mut self, from: &Kind, to: &Kind, operation: usize, none: Option<&Constant>) -> Arc<Way> {
        let way = match (from, to) {
            (Kind::Optional(from), Kind::Optional(to)) => {
                let inner = self.way(from, to, operation, None);
                match *inner {
                    Way::Same => return inner,
                    _ => Way::Inner { inner, none: OfNone::Stays, operation },
                }
            }
            (Kind::Optional(from), to) => {
                let inner = self.way(from, to, operation, None);
                let none = none.map_or(OfNone::Fails, |constant| OfNone::Becomes(Value::from(constant)));
                Way::Inner { inner, none, operation }
            }
            (from, Kind::Optional(to)) => return self.way(from, to, operation, None),
            (Kind::List(from), Kind::List(to)) => {
                let inner = self.way(from, to, operation, None);
                match *inner {
                    Way::Same => return inner,
                    _ => Way::List(inner),
                }
            }
            (Kind::Record(from), Kind::Record(to)) if from == to => return self.record(*from),
            (Kind::Enum(from), Kind::Enum(to)) => self.cases(*from, *to, operation),
            (Kind::Enum(from), Kind::Text) => {
                let cases = self.before.enumeration(*from).map_or(&[][..], |one| &one.cases);
                Way::CaseToText(cases.iter().map(|(_, name)| name.as_str().into()).collect())
            }
            (Kind::Text, Kind::Enum(to)) => {
                let cases = self.after.enumeration(*to).map_or(&[][..], |one| &one.cases);
                let places = (0..).zip(cases).map(|(at, (_, name))| (name.clone(), at));
                Way::TextToCase(places.collect(), operation)
            }
            (Kind::Int, Kind::Real) => Way::IntToReal(operation),
            (Kind::Real, Kind::Int) => Way::RealToInt(operation),
            _ => Way::Same,
        };
        Arc::new(way)
    }

    /// Cases of one enum by their numbers; of another by their names.
    fn cases(&self, from: u32, to: u32, operation: usize) -> Way {
        let cases = |schema: &Schema, number: u32| {
            schema.enumeration(number).map(|one| one.cases.clone()).unwrap_or_default()
        };
        let (old, new) = (cases(self.before, from), cases(self.after, to));
        let place = |(number, name): &(u32, String)| {
            let same = |one: &(u32, String)| if from == to { one.0 == *number } else { one.1 == *name };
            let dropped = |one: &Operation| matches!(one, Operation::DropCase { enumeration, case } if *enumeration == from && case == number);
            let failing = if from == to { self.find(dropped) } else { operation };
            new.iter().position(same).map(|at| at as i64).ok_or(Misfit(failing))
        };
        let places: Vec<Result<i64, Misfit>> = old.iter().map(place).collect();
        let same = (0..).zip(&places).all(|(at, place)| *place == Ok(at));
        if same { Way::Same } else { Way::Cases(places) }
    }
}

impl Way {
    fn apply(&self, value: &Value, tally: &mut Tally) -> Result<Value, Misfit> {
        // What is not of its type came from nowhere: it stays, and is found out where it is written.
        Ok(match (self, value) {
            (Way::Record { fields, dropped }, Value::Record(values)) => {
                for (at, operation) in dropped {
                    tally[*operation] +=
                        u64::from(values.get(*at).is_some_and(|value| *value != Value::None));
                }
                let field = |way: &FieldWay| match way {
                    FieldWay::From(at, way) => match (&**way, &values[*at]) {
                        (Way::Same, value) => Ok(value.clone()),
                        (way, value) => way.apply(value, tally),
                    },
                    FieldWay::Constant(constant) => constant.clone(),
                };
                Value::Record(fields.iter().map(field).collect::<Result<_, Misfit>>()?)
            }
            (Way::List(inner), Value::List(values)) => {
                let values: Result<Vec<Value>, Misfit> =
                    values.iter().map(|value| inner.apply(value, tally)).collect();
                Value::List(Arc::new(values?))
            }
            (Way::Inner { none: OfNone::Stays, .. }, Value::None) => Value::None,
            (Way::Inner { none: OfNone::Fails, operation, .. }, Value::None) => {
                return Err(Misfit(*operation));
            }
            (Way::Inner { none: OfNone::Becomes(other), operation, .. }, Value::None) => {
                tally[*operation] += 1;
                other.clone()
            }
            (Way::Inner { inner, .. }, value) => inner.apply(value, tally)?,
            (Way::Cases(places), Value::Word(word)) => {
                let place = usize::try_from(*word).ok().and_then(|at| places.get(at).copied());
                Value::Word(place.unwrap_or(Ok(0))?)
            }
            (Way::IntToReal(operation), Value::Word(word)) => {
                let float = *word as f64;
                let exact = Real::new(float).filter(|_| float as i128 == i128::from(*word));
                Value::Real(exact.ok_or(Misfit(*operation))?)
            }
            (Way::RealToInt(operation), Value::Real(real)) => {
                let float = real.get();
                let whole = i64::try_from(float as i128).ok().filter(|word| *word as f64 == float);
                Value::Word(whole.ok_or(Misfit(*operation))?)
            }
            (Way::CaseToText(names), Value::Word(word)) => {
                let name = usize::try_from(*word).ok().and_then(|at| names.get(at));
                Value::Text(name.cloned().unwrap_or_default())
            }
            (Way::TextToCase(places, operation), Value::Text(text)) => {
                Value::Word(*places.get(&**text).ok_or(Misfit(*operation))?)
            }
            (_, value) => value.clone(),
        })
    }
}
