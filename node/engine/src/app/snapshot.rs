//! The state of an app at one moment: its views, and its rows as a log or a checkpoint keeps them.

use super::changed::{counter_row, encoded_row, encoded_variable};
use super::find;
use crate::allowance::Allowance;
use crate::budget::{Budget, Fault};
use crate::deltas::Delta;
use crate::event::{Context, ViewError};
use crate::json::{self, Stream, Unread};
use crate::keyed::Range;
use crate::machine::{Machine, Room};
use crate::state::{COUNTERS, List, State, TIMERS, TimerKey};
use crate::table::Walk;
use std::sync::Arc;
use weft::Value;
use weft::module::{Door, Module, Type};

/// The state of an app at one moment; cheap to make, clone and keep.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) module: Arc<Module>,
    pub(super) state: State,
}

/// What a view may cost.
#[derive(Debug, Clone, Copy)]
pub struct ViewLimits<'l> {
    /// Operations, if that is less than [`OPERATIONS_MAX`](crate::OPERATIONS_MAX).
    pub operations: u64,
    /// Bytes of its result: one of more is refused as soon as it has them.
    pub result_bytes: usize,
    /// Of what most bytes that it makes are taken, until it is done.
    pub allowance: &'l Arc<Allowance>,
}

impl Snapshot {
    /// The module whose state it is.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Runs a view and gives its result as JSON text.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn view(
        &self,
        name: &str,
        query: &[(String, String)],
        by: &str,
        now: i64,
    ) -> Result<String, ViewError> {
        self.computed((name, query, by, now), &mut Budget::new(), usize::MAX)
    }

    /// As [`Snapshot::view`], within limits.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn view_within(
        &self,
        name: &str,
        query: &[(String, String)],
        by: &str,
        now: i64,
        limits: ViewLimits<'_>,
    ) -> Result<String, ViewError> {
        let mut budget = Budget::within(limits.operations, Arc::clone(limits.allowance));
        let view = self.computed((name, query, by, now), &mut budget, limits.result_bytes);
        match view {
            Err(ViewError::Budget { .. }) if budget.is_crowded_out() => {
                Err(ViewError::Crowded { limit: limits.allowance.most() })
            }
            view => view,
        }
    }

    fn computed(
        &self,
        (name, query, by, now): (&str, &[(String, String)], &str, i64),
        budget: &mut Budget,
        bytes_max: usize,
    ) -> Result<String, ViewError> {
        let module = &*self.module;
        let door = find(&module.views, name)
            .ok_or_else(|| ViewError::NoSuchView { app: module.name.clone(), name: name.into() })?;
        let mut arguments = parameters(query, door, module, budget).map_err(|unread| match unread {
            Unread::Misshapen(wrong) => ViewError::Shape { message: wrong.message() },
            Unread::Fault(fault) => view_refusal(fault),
        })?;
        if door.takes_caller {
            arguments.push(Value::Text(by.into()));
        }
        let context = Context { now, entropy: [0; 32], room: 0 };
        let mut room = Room::default();
        room.place(arguments);
        let mut machine = Machine::new(module, &self.state, &context, &mut room);
        let kind = door.answer.as_ref().unwrap_or(&Type::Broken);
        let collects = module.functions[door.function as usize].collects;
        machine.stream = Stream::of(kind, collects, module, bytes_max);
        std::mem::swap(&mut machine.budget, budget);
        let outcome = machine.run(door.function);
        std::mem::swap(&mut machine.budget, budget);
        let text = match machine.stream.take() {
            Some(stream) => stream.end(outcome.map(drop), budget),
            None => outcome.and_then(|value| json::write_within(&value, kind, module, budget, bytes_max)),
        };
        text.map_err(view_refusal)?.ok_or(ViewError::TooLarge { bytes_max })
    }

    /// Bytes that the rows of its lists take, with their keys and indexes; what values share (texts, bytes, lists) is not
    /// counted.
    pub fn memory(&self) -> usize {
        let keyed = |list: &List| match list {
            List::Keyed(keyed) => keyed.memory(),
            List::Variable(_) => 0,
        };
        self.state.lists.iter().map(keyed).sum()
    }

    /// Every durable row of the state as a delta that [`App::restore`](crate::App::restore) takes, in order of list and key.
    /// Variables that have their initial value are there too.
    pub fn rows(&self) -> Vec<Delta> {
        let order = (0..self.state.lists.len() as u32).collect();
        self.clone().into_rows(order).collect()
    }

    /// The same one by one, the lists in another order (their numbers in the module); timers and counters follow. What a list
    /// holds is let go with its last row.
    pub fn into_rows(self, order: Vec<u32>) -> Rows {
        Rows::new(self, order)
    }
}

/// The durable rows of a state, one by one.
#[derive(Debug)]
pub struct Rows {
    module: Arc<Module>,
    lists: Vec<List>,
    /// The lists that are left, the next one last.
    order: Vec<u32>,
    walk: Option<(u32, Walk)>,
    /// Timers and counters, the next one last.
    rest: Vec<Delta>,
}

impl Rows {
    fn new(snapshot: Snapshot, mut order: Vec<u32>) -> Rows {
        let Snapshot { module, state, .. } = snapshot;
        order.retain(|list| module.lists.get(*list as usize).is_some_and(|list| !list.transient));
        let timer = |(key, due): (&TimerKey, &i64)| Delta {
            list: TIMERS,
            key: key.to_vec(),
            row: Some(counter_row(*due)),
        };
        let counter = |list: &u32| match &state.lists[*list as usize] {
            List::Keyed(keyed) if keyed.counter != 0 => {
                let key = list.to_be_bytes().to_vec();
                Some(Delta { list: COUNTERS, key, row: Some(counter_row(keyed.counter)) })
            }
            _ => None,
        };
        let mut rest: Vec<Delta> =
            state.timers.iter().map(timer).chain(order.iter().filter_map(counter)).collect();
        rest.reverse();
        order.reverse();
        Rows { module, lists: state.lists, order, walk: None, rest }
    }

    /// The row that a walk is at; a row that came in within the limit of an event's deltas is within any limit.
    fn row(&self, list: u32, walk: &Walk) -> Option<Delta> {
        let List::Keyed(keyed) = &self.lists[list as usize] else { return None };
        let key = walk.key()?;
        let row = encoded_row(keyed, (walk.slot()?, &key), &self.module);
        Some(Delta { list, key: key.to_bytes(), row })
    }
}

impl Iterator for Rows {
    type Item = Delta;

    fn next(&mut self) -> Option<Delta> {
        loop {
            if let Some((list, mut walk)) = self.walk.take() {
                if walk.advance() {
                    let row = self.row(list, &walk);
                    self.walk = Some((list, walk));
                    return row;
                }
                self.lists[list as usize] = List::Variable(Value::None);
            }
            let Some(list) = self.order.pop() else { return self.rest.pop() };
            match &self.lists[list as usize] {
                List::Keyed(keyed) => self.walk = Some((list, keyed.walk(&Range::ALL, false))),
                List::Variable(value) => {
                    let row = encoded_variable(value, list, &self.module);
                    return Some(Delta { list, key: Vec::new(), row });
                }
            }
        }
    }
}

fn view_refusal(fault: Fault) -> ViewError {
    match fault {
        Fault::Refused(reason) => ViewError::Refused { reason },
        Fault::Budget { unit, limit } => ViewError::Budget { unit, limit },
    }
}

/// A view's arguments from a query's parameters.
fn parameters(
    query: &[(String, String)],
    door: &Door,
    module: &Module,
    budget: &mut Budget,
) -> json::Read<Vec<Value>> {
    let wrong = |message: String| Err(json::Misshapen::new(message).into());
    let mut values: Vec<Option<Value>> = vec![None; door.fields.len()];
    for (name, text) in query {
        let Some(at) = door.fields.iter().position(|field| field.name == *name) else {
            let there: Vec<&str> = door.fields.iter().map(|field| field.name.as_str()).collect();
            let there = if there.is_empty() { "none".into() } else { there.join(", ") };
            let name: String = name.chars().take(40).collect();
            return wrong(format!("there is no parameter `{name}`: `{}` takes {there}", door.name));
        };
        if values[at].is_some() {
            return wrong(format!("parameter `{name}` is there twice"));
        }
        values[at] = Some(json::read_parameter(text, &door.fields[at], module, budget)?);
    }
    json::filled(values, &door.fields, module).map_err(|unread| unread.said(json::Misshapen::of_parameter))
}
