//! What constants, registers and rows are made of.
//!
//! A value does not say its type: the checker has proven which one each register holds, so `Word` alone carries bool,
//! int, time, duration and the number of an enum's case.

use std::cmp::Ordering;
use std::sync::Arc;

/// A value. Copying one is cheap: what is large is shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Value {
    /// The `none` of a `T?`; a `T` that is there stands as itself.
    #[default]
    None,
    /// bool (0, 1), int, time and duration (milliseconds), enum (the case's number).
    Word(i64),
    /// text
    Text(Arc<str>),
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
            (Value::Text(left), Value::Text(right)) => {
                *steps = steps.checked_sub(left.len().min(right.len()) as u64 / 16)?;
                left.cmp(right)
            }
            (Value::Node(left), Value::Node(right)) => left.cmp(right),
            (Value::Key(left), Value::Key(right)) => left.cmp(right),
            (Value::Record(left), Value::Record(right)) => return compare_all(left, right, steps),
            (Value::List(left), Value::List(right)) => return compare_all(left, right, steps),
            (left, right) => left.rank().cmp(&right.rank()),
        })
    }

    fn rank(&self) -> u8 {
        u8::from(!matches!(self, Value::None))
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
