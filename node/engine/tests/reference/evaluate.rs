//! Expressions.

use super::kinds::Kind;
use super::run::{Outcome, Place, Run, Slot};
use super::state::{KEY_BYTES_MAX, List, key_size};
use super::value::Value;
use std::cmp::Ordering;
use weft::syntax::tree::{Binary, Expression, ExpressionKind, Item, Piece};
use weft::value::Real;

impl Run<'_> {
    /// The value of an expression; what `is` names in it does not reach out of it.
    pub fn evaluate(&mut self, expression: &Expression) -> Outcome<Value> {
        self.step(1)?;
        let depth = self.scope.len();
        let value = self.evaluate_open(expression);
        self.scope.truncate(depth);
        value
    }

    /// Whether a condition holds; what `is` names in it, and in both sides of an `and`, stays.
    pub fn condition(&mut self, condition: &Expression) -> Outcome<bool> {
        let names =
            matches!(&*condition.kind, ExpressionKind::Is { .. } | ExpressionKind::Binary(Binary::And, ..));
        let value = if names { self.evaluate_open(condition)? } else { self.evaluate(condition)? };
        Ok(value.bool())
    }

    fn evaluate_open(&mut self, expression: &Expression) -> Outcome<Value> {
        match &*expression.kind {
            ExpressionKind::Int(number) => Ok(Value::Int(*number)),
            ExpressionKind::Real(real) => Ok(Value::Real(*real)),
            ExpressionKind::Duration(length) => Ok(Value::Duration(*length)),
            ExpressionKind::Bool(value) => Ok(Value::Bool(*value)),
            ExpressionKind::None => {
                self.reach("none");
                Ok(Value::None)
            }
            ExpressionKind::Now => {
                self.reach("now");
                Ok(Value::Time(self.now))
            }
            ExpressionKind::Me => {
                self.reach("me");
                Ok(Value::Node(self.me))
            }
            ExpressionKind::Case(case) => {
                self.reach("case");
                Ok(self.program.case(case))
            }
            ExpressionKind::Text(pieces) => self.text(pieces),
            ExpressionKind::Name(name) => self.named(name),
            ExpressionKind::Record { name, items } => {
                self.reach(if name.is_some() { "record" } else { "record without a name" });
                let given = self.items(items)?;
                Ok(match name {
                    Some(name) => self.program.made(&name.text, given),
                    None => Value::Record(given),
                })
            }
            ExpressionKind::List(values) => {
                self.reach("list");
                let values: Outcome<Vec<Value>> = values.iter().map(|value| self.evaluate(value)).collect();
                values.map(Value::List)
            }
            ExpressionKind::Comprehension(value, query) => {
                self.reach("comprehension");
                self.comprehension(value, query)
            }
            ExpressionKind::Negate(value) => {
                self.reach("-");
                negated(self.evaluate(value)?)
            }
            ExpressionKind::Not(value) => {
                self.reach("not");
                Ok(Value::Bool(!self.evaluate(value)?.bool()))
            }
            ExpressionKind::Binary(operator, left, right) => self.binary(*operator, left, right),
            ExpressionKind::In { value, list, upto } => self.is_in(value, list, upto.as_ref()),
            ExpressionKind::Is { value, name } => {
                self.reach("is");
                let (row_of, kind) = (self.row_of(value), self.kind_of(value));
                let kind = if let Kind::Optional(inner) = kind { *inner } else { kind };
                let found = self.evaluate(value)?;
                let there = found != Value::None;
                self.bind_row(&name.text, found, kind, row_of, false);
                Ok(Value::Bool(there))
            }
            ExpressionKind::Else { value, otherwise } => {
                self.reach("else");
                match self.evaluate(value)? {
                    Value::None => self.evaluate(otherwise),
                    found => Ok(found),
                }
            }
            ExpressionKind::If { condition, then, otherwise } => {
                self.reach("if then else");
                let depth = self.scope.len();
                if self.condition(condition)? {
                    return self.evaluate(then);
                }
                self.scope.truncate(depth);
                self.evaluate(otherwise)
            }
            ExpressionKind::Field(value, field) => {
                self.reach("field");
                Ok(self.evaluate(value)?.field(&field.text).clone())
            }
            ExpressionKind::Index(list, keys) => self.index(list, keys),
            ExpressionKind::Call { callee, arguments, query, .. } => {
                let ExpressionKind::Name(name) = &*callee.kind else { panic!("no name: {callee:?}") };
                self.call(name, arguments, query.as_ref())
            }
            ExpressionKind::Broken => panic!("a tree without errors has nothing broken"),
        }
    }

    fn text(&mut self, pieces: &[Piece]) -> Outcome<Value> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Value(value) => {
                    self.reach("text with a value");
                    text.push_str(&self.evaluate(value)?.written());
                }
            }
        }
        Ok(Value::Text(text))
    }

    fn items(&mut self, items: &[Item]) -> Outcome<Vec<(String, Value)>> {
        let mut given = Vec::new();
        for item in items {
            let (name, value) = match item {
                Item::Named(name, value) => (name.text.clone(), value),
                Item::Place(value) => (item_name(value).to_owned(), value),
            };
            let value = self.evaluate(value)?;
            given.push((name, value));
        }
        Ok(given)
    }

    fn named(&mut self, name: &str) -> Outcome<Value> {
        match self.find(name).cloned() {
            Some(Slot::Value { value, .. }) => {
                self.reach("name of a value");
                return Ok(value);
            }
            Some(Slot::Row { list, key, optional, .. }) => {
                self.reach("name of a row");
                let row = key.as_ref().and_then(|key| self.rows(list).rows.get(key).cloned());
                return match (row, optional) {
                    (Some(row), _) => Ok(row),
                    (None, true) => Ok(Value::None),
                    (None, false) => Err(format!("`{}` has no such row", self.rows(list).name)),
                };
            }
            Some(Slot::Own { list, .. }) => {
                self.reach("whole own list");
                return Ok(Value::List(self.own[list].rows.values().cloned().collect()));
            }
            None => {}
        }
        let state = self.program.states.iter().position(|state| state.name == name);
        Ok(match state.map(|at| &self.state.lists[at]) {
            Some(List::Variable(value)) => {
                self.reach("state");
                value.clone()
            }
            Some(List::Keyed(rows)) => {
                self.reach("whole list");
                Value::List(rows.rows.values().cloned().collect())
            }
            None => {
                self.reach("setting");
                self.settings[name].clone()
            }
        })
    }

    fn binary(&mut self, operator: Binary, left: &Expression, right: &Expression) -> Outcome<Value> {
        self.reach(operator_name(operator));
        if let Binary::And | Binary::Or = operator {
            let is_and = operator == Binary::And;
            let value = if is_and { self.condition(left)? } else { self.evaluate(left)?.bool() };
            if value != is_and {
                return Ok(Value::Bool(value));
            }
            let value = if is_and { self.condition(right)? } else { self.evaluate(right)?.bool() };
            return Ok(Value::Bool(value));
        }
        let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
        Ok(Value::Bool(match operator {
            Binary::Equal => left == right,
            Binary::NotEqual => left != right,
            Binary::Less => left < right,
            Binary::LessEqual => left <= right,
            Binary::Greater => left > right,
            Binary::GreaterEqual => left >= right,
            _ => return calculate(operator, &left, &right),
        }))
    }

    fn is_in(&mut self, value: &Expression, list: &Expression, upto: Option<&Expression>) -> Outcome<Value> {
        if let Some(upto) = upto {
            self.reach("in a range");
            let value = self.evaluate(value)?;
            let (from, upto) = (self.evaluate(list)?, self.evaluate(upto)?);
            return Ok(Value::Bool(from <= value && value <= upto));
        }
        if let Some(list) = self.keyed(list) {
            self.reach("in a keyed list");
            let key = self.key(std::slice::from_ref(value))?;
            return Ok(Value::Bool(self.rows(list).rows.contains_key(key.as_slice())));
        }
        self.reach("in a list");
        let values = self.evaluate(list)?.list();
        let value = self.evaluate(value)?;
        Ok(Value::Bool(values.contains(&value)))
    }

    fn index(&mut self, list: &Expression, keys: &[Expression]) -> Outcome<Value> {
        if let Some(list) = self.keyed(list) {
            self.reach("row by key");
            let key = self.key(keys)?;
            return Ok(self.rows(list).rows.get(&key).cloned().unwrap_or(Value::None));
        }
        self.reach("element by index");
        let values = self.evaluate(list)?.list();
        let index = self.evaluate(&keys[0])?.int();
        let found = usize::try_from(index).ok().and_then(|index| values.get(index).cloned());
        Ok(found.unwrap_or(Value::None))
    }

    pub fn key(&mut self, keys: &[Expression]) -> Outcome<Vec<Value>> {
        let key = keys.iter().map(|key| self.evaluate(key)).collect::<Outcome<Vec<Value>>>()?;
        // No row has such a key.
        if key_size(&key) > KEY_BYTES_MAX {
            self.reach("look for a key too long");
        }
        Ok(key)
    }

    // What an expression is before it is evaluated.

    /// The keyed list that an expression names.
    pub fn keyed(&self, expression: &Expression) -> Option<Place> {
        let ExpressionKind::Name(name) = &*expression.kind else { return None };
        match self.find(name) {
            Some(Slot::Own { list, .. }) => return Some(Place::Own(*list)),
            Some(_) => return None,
            None => {}
        }
        let at = self.program.states.iter().position(|state| state.name == *name)?;
        matches!(self.state.lists[at], List::Keyed(_)).then_some(Place::State(at))
    }

    /// The list of which an expression is a row: of a name that stands for one, `list[key]`, `first(x for x in list)`,
    /// and an `else` between rows of one list.
    pub fn row_of(&self, expression: &Expression) -> Option<Place> {
        match &*expression.kind {
            ExpressionKind::Name(name) => match self.find(name)? {
                Slot::Row { list, .. } => Some(*list),
                Slot::Value { row_of, .. } => *row_of,
                Slot::Own { .. } => None,
            },
            ExpressionKind::Index(list, _) => self.keyed(list),
            ExpressionKind::Else { value, otherwise } => {
                self.row_of(value).filter(|list| self.row_of(otherwise) == Some(*list))
            }
            ExpressionKind::Call { callee, arguments, query, .. } => {
                let is_first = matches!(&*callee.kind, ExpressionKind::Name(name) if name == "first");
                let argument = arguments.first().filter(|_| is_first)?;
                let Some(query) = query else { return self.keyed(argument) };
                let ExpressionKind::Name(name) = &*argument.kind else { return None };
                if query.group.as_ref().is_some_and(|group| group.name.text == *name) {
                    return None;
                }
                let source = query.sources.iter().find(|source| source.name.text == *name);
                match source {
                    Some(source) if query.group.is_none() && source.upto.is_none() => {
                        self.keyed(&source.list)
                    }
                    Some(_) => None,
                    None => self.row_of(argument),
                }
            }
            _ => None,
        }
    }

    /// Whether a row that an expression is may be none.
    pub fn may_be_none(&self, expression: &Expression) -> bool {
        match &*expression.kind {
            ExpressionKind::Name(name) => matches!(self.find(name), Some(Slot::Row { optional: true, .. })),
            ExpressionKind::Else { otherwise, .. } => self.may_be_none(otherwise),
            _ => true,
        }
    }
}

/// The name that `{ a.b }` gives its value.
pub fn item_name(value: &Expression) -> &str {
    match &*value.kind {
        ExpressionKind::Name(name) => name,
        ExpressionKind::Field(_, field) => &field.text,
        _ => panic!("no name: {value:?}"),
    }
}

fn operator_name(operator: Binary) -> &'static str {
    match operator {
        Binary::And => "and",
        Binary::Or => "or",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterEqual => ">=",
        Binary::Add => "a + b",
        Binary::Subtract => "a - b",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
    }
}

fn grown() -> String {
    "a number grew too large".into()
}

pub fn real(float: f64) -> Outcome<Value> {
    Real::new(float).map(Value::Real).ok_or_else(grown)
}

pub fn whole(number: i128) -> Outcome<i64> {
    i64::try_from(number).map_err(|_| grown())
}

pub fn negated(value: Value) -> Outcome<Value> {
    match value {
        Value::Int(number) => whole(-i128::from(number)).map(Value::Int),
        Value::Duration(number) => whole(-i128::from(number)).map(Value::Duration),
        Value::Real(number) => real(-number.get()),
        other => panic!("-{other:?}"),
    }
}

pub fn calculate(operator: Binary, left: &Value, right: &Value) -> Outcome<Value> {
    use Value::{Duration, Int, Time};
    if let (Value::Real(left), Value::Real(right)) = (left, right) {
        let (left, right) = (left.get(), right.get());
        return real(match operator {
            Binary::Add => left + right,
            Binary::Subtract => left - right,
            Binary::Multiply => left * right,
            Binary::Divide if right == 0.0 => return Err("division by zero".into()),
            Binary::Divide => left / right,
            _ => panic!("no operator on reals: {operator:?}"),
        });
    }
    let (a, b) = (i128::from(left.int()), i128::from(right.int()));
    let number = whole(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide | Binary::Remainder if b == 0 => return Err("division by zero".into()),
        Binary::Divide => floored(a, b),
        Binary::Remainder => a - b * floored(a, b),
        _ => panic!("no operator on whole numbers: {operator:?}"),
    })?;
    Ok(match (operator, left, right) {
        (Binary::Subtract, Time(_), Time(_)) => Duration(number),
        (_, Time(_), _) | (_, _, Time(_)) => Time(number),
        (Binary::Divide, Duration(_), Duration(_)) => Int(number),
        (_, Duration(_), _) | (_, _, Duration(_)) => Duration(number),
        _ => Int(number),
    })
}

/// The greatest whole number that is not above a quotient.
fn floored(a: i128, b: i128) -> i128 {
    let (a, b) = if b < 0 { (-a, -b) } else { (a, b) };
    a.div_euclid(b)
}

/// The order of sorting: by each key in turn, some of them turned round.
pub fn ordering(left: &[Value], right: &[Value], descending: &[bool]) -> Ordering {
    let parts = left.iter().zip(right).zip(descending);
    let parts = parts.map(|((left, right), turned)| if *turned { right.cmp(left) } else { left.cmp(right) });
    parts.fold(Ordering::Equal, Ordering::then)
}
