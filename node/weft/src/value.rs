//! What constants, registers and rows are made of.
//!
//! A value does not say its type: the checker has proven which one each register holds, so `Word` alone carries bool,
//! int, time, duration and the number of an enum's case.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A `real`: an f64 that is a number and finite, with one zero. So it has an order and equals itself.
#[derive(Debug, Clone, Copy)]
pub struct Real(f64);

impl Real {
    /// 0.0
    pub const ZERO: Real = Real(0.0);

    /// The real of a float; none of NaN and the infinities. -0 becomes 0.
    pub fn new(float: f64) -> Option<Real> {
        float.is_finite().then_some(Real(float + 0.0))
    }

    /// The float.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Real) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Real {}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Real) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Real) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The shortest text that reads as the same real, always with a point or an exponent.
impl fmt::Display for Real {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

/// A value. Copying one is cheap: what is large is shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Value {
    /// The `none` of a `T?`; a `T` that is there stands as itself.
    #[default]
    None,
    /// bool (0, 1), int, time and duration (milliseconds), enum (the case's number).
    Word(i64),
    /// real
    Real(Real),
    /// text, endpoint
    Text(Arc<str>),
    /// bytes
    Bytes(Arc<[u8]>),
    /// node
    Node(Arc<[u8; 32]>),
    /// A record's fields in order.
    Record(Arc<[Value]>),
    /// list of T
    List(Arc<Vec<Value>>),
    /// A row's key, encoded so that bytes compare as keys do. No type of the language: registers of row names hold it.
    Key(Arc<[u8]>),
}

impl Value {
    /// Compares two values of one type; `none` comes first. `steps` is charged one a part compared, because shared
    /// parts can make a value far larger than its memory; it gives up with `None` when there are none left.
    pub fn compare(&self, other: &Value, steps: &mut u64) -> Option<Ordering> {
        *steps = steps.checked_sub(1)?;
        Some(match (self, other) {
            (Value::Word(left), Value::Word(right)) => left.cmp(right),
            (Value::Real(left), Value::Real(right)) => left.cmp(right),
            (Value::Bytes(left), Value::Bytes(right)) => {
                *steps = steps.checked_sub(left.len().min(right.len()) as u64 / 16)?;
                left.cmp(right)
            }
            (Value::Text(left), Value::Text(right)) => {
                *steps = steps.checked_sub(left.len().min(right.len()) as u64 / 16)?;
                left.cmp(right)
            }
            (Value::Node(left), Value::Node(right)) => left.cmp(right),
            (Value::Key(left), Value::Key(right)) => left.cmp(right),
            (Value::Record(left), Value::Record(right)) => return compare_all(left, right, steps),
            (Value::List(left), Value::List(right)) => return compare_all(left, right, steps),
            // Of one type only where one of them is none; what the compiler took for one type and is not is never equal.
            (left, right) => left.rank().cmp(&right.rank()),
        })
    }

    fn rank(&self) -> u8 {
        match self {
            Value::None => 0,
            Value::Word(_) => 1,
            Value::Real(_) => 2,
            Value::Text(_) => 3,
            Value::Bytes(_) => 4,
            Value::Node(_) => 5,
            Value::Record(_) => 6,
            Value::List(_) => 7,
            Value::Key(_) => 8,
        }
    }
}

fn compare_all(left: &[Value], right: &[Value], steps: &mut u64) -> Option<Ordering> {
    for (left, right) in left.iter().zip(right) {
        match left.compare(right, steps)? {
            Ordering::Equal => {}
            different => return Some(different),
        }
    }
    Some(left.len().cmp(&right.len()))
}
