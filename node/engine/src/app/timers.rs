//! Timers and `every`: when the next is due, and what happens then.
//!
//! Timers are rows. When an `every` fires next is not: whoever runs the app keeps it with whatever else changes
//! ([`App::ticks`]), so that a tick that changes nothing writes nothing.

use super::{App, Work, deltas, event_error};
use crate::arguments;
use crate::budget::{Budget, EVENT_BYTES_MAX};
use crate::codec::Reader;
use crate::event::{Applied, Context, EventError, RestoreError};
use crate::keyed::Key;
use crate::state::{TIMERS, TimerKey, read_timer_key};
use crate::text;
use std::collections::BTreeSet;
use std::sync::Arc;
use weft::module::Module;

/// What fires next, as the source names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// A timer.
    Timer {
        /// Its name.
        name: String,
        /// What it was started with: a JSON object of its fields.
        arguments: String,
    },
    /// An `every`.
    Every {
        /// Its period, as the source writes it: `5 min`.
        period: String,
    },
}

impl App {
    /// From `now` (milliseconds since 1970 UTC) on each `every` fires: for what it missed since `ticks` were taken once and
    /// at once. One that was not there then, or had another period, has missed nothing.
    pub fn resume(&mut self, ticks: &[(i64, i64)], now: i64) {
        let next = |(index, every): (usize, &weft::module::Every)| {
            let from_now = next_tick(every.period, now);
            let kept = ticks.get(index).filter(|(period, _)| *period == every.period);
            Some(kept.map_or(from_now, |(_, next)| from_now.min(*next)))
        };
        self.ticks = self.module.everies.iter().enumerate().map(next).collect();
    }

    /// When the first timer or `every` is due, in milliseconds since 1970 UTC; [`crate::Event::Due`] fires it.
    pub fn next_due(&self) -> Option<i64> {
        let timer = self.state.timers.first().map(|(due, _)| *due);
        timer.into_iter().chain(self.ticks.iter().flatten().copied()).min()
    }

    /// What [`crate::Event::Due`] fires next, and when it is due; none also where the module has no such timer any more.
    pub fn next(&self) -> Option<(i64, Due)> {
        let due = self.next_due()?;
        let timer = self.state.timers.first().filter(|(first, _)| *first == due);
        let Some((_, key)) = timer else {
            let at = self.ticks.iter().position(|tick| *tick == Some(due))?;
            return Some((due, Due::Every { period: text::duration(self.module.everies[at].period) }));
        };
        let (name, arguments) = read_timer_key(key)?;
        let timer = self.module.timers.iter().find(|timer| timer.name == name)?;
        let arguments = self.shown(arguments, &timer.fields)?;
        Some((due, Due::Timer { name: timer.name.clone(), arguments }))
    }

    /// Each `every`'s period and when it fires next, in the order of the module: what [`App::resume`] is given after a
    /// restart.
    pub fn ticks(&self) -> Vec<(i64, i64)> {
        let periods = self.module.everies.iter().map(|every| every.period);
        periods.zip(&self.ticks).filter_map(|(period, next)| Some((period, (*next)?))).collect()
    }

    pub(super) fn restore_timer(&mut self, key: &[u8], row: Option<&[u8]>) -> Result<(), RestoreError> {
        let wrong = |message: &str| RestoreError::Row { list: "timers".into(), message: message.into() };
        if read_timer_key(key).is_none() {
            return Err(wrong("its key is no timer's name and arguments"));
        }
        let due = match row {
            Some(row) => {
                let mut reader = Reader::new(row);
                let word = reader.word().map_err(|error| wrong(error.0))?;
                if !reader.is_empty() {
                    return Err(wrong("bytes follow the time"));
                }
                Some(word)
            }
            None => None,
        };
        self.state.timers.set(&key.into(), due);
        Ok(())
    }

    /// Fires the first timer or `every` that is due by now.
    pub(super) fn due(&mut self, context: &Context) -> Result<Applied, EventError> {
        let module = Arc::clone(&self.module);
        let Some(due) = self.next_due().filter(|due| *due <= context.now) else {
            return Ok(Applied::default());
        };
        match self.state.timers.first().filter(|(first, _)| *first == due).map(|(_, key)| Arc::clone(key)) {
            Some(key) => self.fire(&key, &module, context),
            None => self.tick(due, &module, context),
        }
    }

    /// A timer fires: it is not pending any more, whatever its handler does.
    fn fire(&mut self, key: &TimerKey, module: &Module, context: &Context) -> Result<Applied, EventError> {
        let mut state = self.state.clone();
        state.timers.set(key, None);
        let touched = BTreeSet::from([(TIMERS, Key::Bytes(Arc::clone(key)))]);
        let (name, arguments) = read_timer_key(key).unwrap_or_default();
        let timer = module.timers.iter().find(|timer| timer.name == name);
        let gone = || EventError::Shape { message: "the app has no such timer any more".to_owned() };
        let mut budget = Budget::new();
        let work = timer.ok_or_else(gone).and_then(|timer| {
            let decoded = arguments::decode(arguments, (&timer.fields, &timer.former), module, &mut budget);
            let arguments = decoded.map_err(event_error)?;
            Ok(Work { function: timer.function, arguments, answer: None, budget })
        });
        let outcome = work.and_then(|work| self.run(work, state.clone(), touched.clone(), context));
        let (applied, state) = match outcome {
            Ok(done) => done,
            // There will be room: it stays pending until then.
            Err(error @ EventError::NoRoom { .. }) => return Err(error),
            Err(error) => {
                let mut left = EVENT_BYTES_MAX;
                let deltas = deltas(&self.state, &state, &touched, module, &mut left)?;
                let failed = Some(format!("timer `{name}`: {error}"));
                (Applied { deltas, failed, ..Applied::default() }, state)
            }
        };
        self.state = state;
        Ok(applied)
    }

    /// An `every` fires, once for all that it missed.
    fn tick(&mut self, due: i64, module: &Module, context: &Context) -> Result<Applied, EventError> {
        let Some(at) = self.ticks.iter().position(|tick| *tick == Some(due)) else {
            return Ok(Applied::default());
        };
        let every = module.everies[at];
        let (arguments, budget) = (Vec::new(), Budget::new());
        let work = Work { function: every.function, arguments, answer: None, budget };
        let outcome = self.run(work, self.state.clone(), BTreeSet::new(), context);
        if let Err(error @ EventError::NoRoom { .. }) = outcome {
            return Err(error);
        }
        self.ticks[at] = Some(next_tick(every.period, context.now));
        match outcome {
            Ok((applied, state)) => {
                self.state = state;
                Ok(applied)
            }
            Err(error) => {
                let failed = Some(format!("every {}: {error}", text::duration(every.period)));
                Ok(Applied { failed, ..Applied::default() })
            }
        }
    }
}

/// The first multiple of a period after a time.
fn next_tick(period: i64, after: i64) -> i64 {
    after.div_euclid(period).saturating_add(1).saturating_mul(period)
}
