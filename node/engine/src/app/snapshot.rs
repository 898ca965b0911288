//! The state of an app at one moment: its views, and its rows as a log or a checkpoint keeps them.

use super::{counter_row, encoded_row, encoded_variable, find};
use crate::allowance::Allowance;
use crate::budget::{Budget, Fault};
use crate::event::{Context, Delta, ViewError};
use crate::json::{self, Unread};
use crate::keyed::Range;
use crate::machine::Machine;
use crate::state::{COUNTERS, List, State, TIMERS};
use std::sync::Arc;
use weft::Value;
use weft::module::{Door, Module, Type};

/// The state of an app at one moment; cheap to make, clone and keep.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) module: Arc<Module>,
    pub(super) me: Arc<[u8; 32]>,
    pub(super) state: State,
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

    /// As [`Snapshot::view`], but a result of more bytes is refused as soon as it has them, and what it makes is taken
    /// of an allowance until it is done.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn view_within(
        &self,
        name: &str,
        query: &[(String, String)],
        by: &str,
        now: i64,
        bytes_max: usize,
        allowance: &Arc<Allowance>,
    ) -> Result<String, ViewError> {
        let mut budget = Budget::within(Arc::clone(allowance));
        let view = self.computed((name, query, by, now), &mut budget, bytes_max);
        match view {
            Err(ViewError::Budget { .. }) if budget.is_crowded_out() => {
                Err(ViewError::Crowded { limit: allowance.most() })
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
        let (mut state, context) = (self.state.clone(), Context { now, entropy: [0; 32], room: 0 });
        let mut machine = Machine::new(module, &mut state, &self.me, &context);
        std::mem::swap(&mut machine.budget, budget);
        let value = machine.run(door.function, arguments);
        std::mem::swap(&mut machine.budget, budget);
        let kind = door.answer.as_ref().unwrap_or(&Type::Broken);
        let text = json::write_within(&value.map_err(view_refusal)?, kind, module, budget, bytes_max);
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

    /// Every durable row of the state as a delta that [`App::restore`](super::App::restore) takes, in order of list and key. Variables that have
    /// their initial value are there too.
    pub fn rows(&self) -> Vec<Delta> {
        let module = &*self.module;
        let mut rows = Vec::new();
        for (number, list) in self.state.lists.iter().enumerate() {
            let number = number as u32;
            if module.lists[number as usize].transient {
                continue;
            }
            // A row that came in within the limit of an event's deltas is within any limit.
            match list {
                List::Variable(value) => {
                    let row = encoded_variable(value, number, module, usize::MAX).ok();
                    rows.push(Delta { list: number, key: Vec::new(), row });
                }
                List::Keyed(keyed) => {
                    let mut walk = keyed.walk(&Range::ALL, false);
                    while let Some(key) = walk.next() {
                        let slot = keyed.find(&key);
                        let row = slot.and_then(|slot| encoded_row(keyed, slot, module, usize::MAX).ok());
                        rows.push(Delta { list: number, key: key.to_bytes(), row });
                    }
                }
            }
        }
        for (number, list) in self.state.lists.iter().enumerate() {
            if let List::Keyed(keyed) = list
                && keyed.counter != 0
                && !module.lists[number].transient
            {
                let key = (number as u32).to_be_bytes().to_vec();
                rows.push(Delta { list: COUNTERS, key, row: Some(counter_row(keyed.counter)) });
            }
        }
        for (key, due) in self.state.timers.iter() {
            rows.push(Delta { list: TIMERS, key: key.to_vec(), row: Some(counter_row(*due)) });
        }
        rows
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
