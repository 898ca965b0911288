//! Calls: the program's functions and the language's own.

use super::evaluate::{calculate, negated, real, whole};
use super::kinds::Kind;
use super::run::{Flow, Outcome, Run};
use super::value::Value;
use rand_core::Rng;
use weft::syntax::tree::{Binary, Expression, Query};
use weft::value::Real;

impl Run<'_> {
    pub fn call(&mut self, name: &str, arguments: &[Expression], query: Option<&Query>) -> Outcome<Value> {
        if let Some(function) = self.program.function(name) {
            self.reach("call of a function");
            let fields = self.program.fields(&function.fields);
            let names = self.arguments(arguments, &fields)?;
            return self.apart(names, &fields, |run| run.body_of(function));
        }
        match (name, arguments) {
            ("min" | "max", [_, _, ..]) => {
                self.reach(if name == "min" { "min of values" } else { "max of values" });
                let values: Outcome<Vec<Value>> =
                    arguments.iter().map(|value| self.evaluate(value)).collect();
                let values = values?.into_iter();
                Ok(if name == "min" { values.min() } else { values.max() }.expect("there are two at least"))
            }
            ("count" | "sum" | "mean" | "min" | "max" | "first" | "any" | "all", [argument]) => {
                self.aggregate(name, argument, query)
            }
            ("next_id", [list]) => {
                self.reach("next_id");
                let list = self.keyed(list).expect("`next_id` is of a keyed list");
                let rows = self.rows_mut(list);
                let next = rows.greatest.checked_add(1).ok_or("the list has no numbers left")?;
                rows.greatest = next;
                Ok(Value::Int(next))
            }
            ("random", [low, high]) => {
                self.reach("random");
                let (low, high) = (self.evaluate(low)?.int(), self.evaluate(high)?.int());
                if low > high {
                    return Err(format!("there is no number from {low} to {high}"));
                }
                Ok(Value::Int(self.between(low, high)))
            }
            ("new_id", []) => {
                self.reach("new_id");
                Ok(Value::Text(self.id()))
            }
            ("floor", [time, unit]) => {
                self.reach("floor of a time");
                let (time, unit) = (self.evaluate(time)?, self.evaluate(unit)?);
                let rest = calculate(Binary::Remainder, &Value::Int(time.int()), &Value::Int(unit.int()))?;
                calculate(Binary::Subtract, &time, &Value::Duration(rest.int()))
            }
            ("contains", [text, part]) => {
                self.reach("contains");
                let (text, part) = (self.evaluate(text)?, self.evaluate(part)?);
                Ok(Value::Bool(text.written().contains(&part.written())))
            }
            ("slice", [text, from, count]) => {
                self.reach("slice");
                let text = self.evaluate(text)?.written();
                let (from, count) = (self.evaluate(from)?.int(), self.evaluate(count)?.int());
                if from < 0 || count < 0 {
                    let least = if from < 0 { from } else { count };
                    return Err(format!("`slice` takes numbers from 0, not {least}"));
                }
                Ok(Value::Text(text.chars().skip(from as usize).take(count as usize).collect()))
            }
            (name, [value]) => {
                let value = self.evaluate(value)?;
                self.of_one(name, value)
            }
            _ => panic!("no function `{name}`"),
        }
    }

    /// Functions of one value.
    fn of_one(&self, name: &str, value: Value) -> Outcome<Value> {
        let reached = |what| self.reach(what);
        Ok(match (name, value) {
            ("length", Value::Text(text)) => {
                reached("length of a text");
                Value::Int(text.chars().count() as i64)
            }
            ("length", Value::Bytes(bytes)) => {
                reached("length of bytes");
                Value::Int(bytes.len() as i64)
            }
            ("length", Value::List(values)) => {
                reached("length of a list");
                Value::Int(values.len() as i64)
            }
            ("lower", Value::Text(text)) => {
                reached("lower");
                Value::Text(text.to_lowercase())
            }
            ("upper", Value::Text(text)) => {
                reached("upper");
                Value::Text(text.to_uppercase())
            }
            ("trim", Value::Text(text)) => {
                reached("trim");
                Value::text(text.trim())
            }
            ("abs", value) => {
                reached("abs");
                let below = match &value {
                    Value::Real(real) => real.get() < 0.0,
                    other => other.int() < 0,
                };
                if below { negated(value)? } else { value }
            }
            ("real", Value::Int(number)) => {
                reached("real");
                real(number as f64)?
            }
            ("floor" | "ceiling" | "round", Value::Real(number)) => {
                let (reach, number) = match name {
                    "floor" => ("floor", number.get().floor()),
                    "ceiling" => ("ceiling", number.get().ceil()),
                    _ => ("round", number.get().round()),
                };
                reached(reach);
                if number.abs() > 1e30 {
                    return Err("a number grew too large".into());
                }
                Value::Int(whole(number as i128)?)
            }
            (name, value) => panic!("no function `{name}` of {value:?}"),
        })
    }

    /// Each number from `low` to `high` as likely as the others: what is drawn above the greatest multiple of their
    /// count is drawn again.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        let count = (i128::from(high) - i128::from(low) + 1) as u128;
        let usable = (1u128 << 64) / count * count;
        loop {
            let drawn = u128::from(self.random.next_u64());
            if drawn >= usable {
                continue;
            }
            // Of all numbers there are each is drawn as it is; of fewer, its place counted from the least.
            return match count == 1 << 64 {
                true => drawn as u64 as i64,
                false => (i128::from(low) + (drawn % count) as i128) as i64,
            };
        }
    }

    fn id(&mut self) -> String {
        let mut bytes = [0; 16];
        self.random.fill_bytes(&mut bytes);
        let number = u128::from_be_bytes(bytes);
        let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyz234567".chars().collect();
        (0..26).map(|at| letters[(number >> (5 * at) & 31) as usize]).collect()
    }

    fn aggregate(&mut self, name: &str, argument: &Expression, query: Option<&Query>) -> Outcome<Value> {
        let mut values = Vec::new();
        let kind = match query {
            Some(query) => self.kind_in(argument, query),
            None => match self.kind_of(argument) {
                Kind::List(element) => *element,
                _ => Kind::Unknown,
            },
        };
        // What decides ends the loop: nothing after it is looked at.
        let ends = |value: &Value| match name {
            "first" => true,
            "any" => value.bool(),
            "all" => !value.bool(),
            _ => false,
        };
        let mut result = Aggregate { name, kind, values: &mut values, sum: Ok(None), wide: 0 };
        match query {
            Some(query) => {
                self.query(query, false, &mut |run| {
                    let value = run.evaluate(argument)?;
                    let ended = ends(&value);
                    result.take(value)?;
                    Ok(if ended { Flow::Break } else { Flow::Next })
                })?;
            }
            None => {
                for value in self.evaluate(argument)?.list() {
                    let ended = ends(&value);
                    result.take(value)?;
                    if ended {
                        break;
                    }
                }
            }
        }
        self.reach(reached(name));
        result.end()
    }
}

fn reached(name: &str) -> &'static str {
    match name {
        "count" => "count",
        "sum" => "sum",
        "mean" => "mean",
        "min" => "min",
        "max" => "max",
        "first" => "first",
        "any" => "any",
        _ => "all",
    }
}

/// The int that a sum is.
fn word(sum: i128) -> Outcome<i64> {
    i64::try_from(sum).map_err(|_| "a number grew too large".into())
}

/// What a function makes of the values of a query.
struct Aggregate<'a> {
    name: &'a str,
    /// Of the values, for where there are none.
    kind: Kind,
    values: &'a mut Vec<Value>,
    sum: Outcome<Option<Value>>,
    /// The sum of ints.
    wide: i128,
}

impl Aggregate<'_> {
    /// A sum of reals that grows too large refuses at once; one of ints where all of it is too large.
    fn take(&mut self, value: Value) -> Outcome<()> {
        if let ("sum" | "mean", Value::Int(word) | Value::Duration(word)) = (self.name, &value) {
            self.wide += i128::from(*word);
        } else if let "sum" | "mean" = self.name {
            let before = std::mem::replace(&mut self.sum, Ok(None))?;
            let before = before.unwrap_or_else(|| self.zero(&value));
            self.sum = Ok(Some(calculate(Binary::Add, &before, &value)?));
        }
        self.values.push(value);
        Ok(())
    }

    fn zero(&self, like: &Value) -> Value {
        match like {
            Value::Real(_) => Value::Real(Real::ZERO),
            Value::Duration(_) => Value::Duration(0),
            _ => Value::Int(0),
        }
    }

    fn end(self) -> Outcome<Value> {
        let count = self.values.len() as i64;
        let sum = match self.values.first() {
            Some(Value::Int(_)) => Ok(Some(Value::Int(word(self.wide)?))),
            Some(Value::Duration(_)) => Ok(Some(Value::Duration(word(self.wide)?))),
            _ => self.sum,
        };
        Ok(match self.name {
            "count" => Value::Int(count),
            "sum" => match sum? {
                Some(sum) => sum,
                None => match self.kind {
                    Kind::Real => Value::Real(Real::ZERO),
                    Kind::Duration => Value::Duration(0),
                    _ => Value::Int(0),
                },
            },
            "mean" => match sum? {
                Some(Value::Int(sum)) => real(sum as f64 / count as f64)?,
                Some(Value::Real(sum)) => real(sum.get() / count as f64)?,
                _ => Value::None,
            },
            "min" => self.values.iter().min().cloned().unwrap_or(Value::None),
            "max" => self.values.iter().max().cloned().unwrap_or(Value::None),
            "first" => self.values.first().cloned().unwrap_or(Value::None),
            "any" => Value::Bool(self.values.iter().any(Value::bool)),
            _ => Value::Bool(self.values.iter().all(Value::bool)),
        })
    }
}
