//! Timers and `every`: when the next is due, and what happens then.
//!
//! Timers are rows. When an `every` fires next is not: whoever runs the app keeps it with whatever else changes
//! ([`App::ticks`]), so that a tick that changes nothing writes nothing.

use super::{App, Work, deltas, event_error, refusal, run};
use crate::arguments;
use crate::budget::{Budget, EVENT_BYTES_MAX};
use crate::codec::Reader;
use crate::event::{Applied, Context, EventError, RestoreError};
use crate::state::{TimerKey, read_timer_key};
use crate::text;
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
    /// at once. One is known by its period, wherever it stands in the source, and of several of one period by which of
    /// them it is; one of a period that was not there then has missed nothing.
    pub fn resume(&mut self, ticks: &[(i64, i64)], now: i64) {
        let mut kept = ticks.to_vec();
        let next = |every: &weft::module::Every| {
            let from_now = next_tick(every.period, now);
            let known = kept.iter().position(|(period, _)| *period == every.period);
            Some(known.map_or(from_now, |at| from_now.min(kept.remove(at).1)))
        };
        self.ticks = self.module.everies.iter().map(next).collect();
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
        self.state.restore_timer(&key.into(), due);
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
        let (name, arguments) = read_timer_key(key).unwrap_or_default();
        let timer = module.timers.iter().find(|timer| timer.name == name);
        let gone = || EventError::Shape { message: "the app has no such timer any more".to_owned() };
        let mut budget = Budget::new();
        let work = timer.ok_or_else(gone).and_then(|timer| {
            let decoded = arguments::decode(arguments, (&timer.fields, &timer.former), module, &mut budget);
            let arguments = decoded.map_err(event_error)?;
            Ok((Work { function: timer.function, answer: None, goes_back: false, budget }, arguments))
        });
        // Not pending any more before its handler runs: it may start itself again.
        let ends = |app: &mut App| app.state.set_timer(key, None).map_err(refusal);
        let outcome = work.and_then(|(work, arguments)| {
            ends(self)?;
            self.room.place(arguments);
            run(work, module, (&mut self.state, &mut self.room), context)
        });
        match outcome {
            // There will be room: it stays pending until then.
            Ok(_) | Err(EventError::NoRoom { .. } | EventError::Grows) => outcome,
            Err(error) => {
                ends(self)?;
                let mut left = EVENT_BYTES_MAX;
                let deltas = deltas(&mut self.state, module, &mut left);
                self.state.commit();
                let failed = Some(format!("timer `{name}`: {error}"));
                Ok(Applied { deltas: deltas?.0, failed, ..Applied::default() })
            }
        }
    }

    /// An `every` fires, once for all that it missed.
    fn tick(&mut self, due: i64, module: &Module, context: &Context) -> Result<Applied, EventError> {
        let Some(at) = self.ticks.iter().position(|tick| *tick == Some(due)) else {
            return Ok(Applied::default());
        };
        let every = module.everies[at];
        let budget = Budget::new();
        let work = Work { function: every.function, answer: None, goes_back: false, budget };
        let outcome = run(work, module, (&mut self.state, &mut self.room), context);
        if let Err(EventError::NoRoom { .. } | EventError::Grows) = outcome {
            return outcome;
        }
        self.ticks[at] = Some(next_tick(every.period, context.now));
        match outcome {
            Ok(applied) => Ok(applied),
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

#[cfg(test)]
mod tests {
    use super::*;
    use sealing::NodeId;

    #[test]
    fn every_goes_on_wherever_it_stands() {
        const NOW: i64 = 100_500;
        let app = |periods: &[&str]| {
            let everies: String =
                periods.iter().map(|period| format!("every {period} {{ n += 1 }}\n")).collect();
            let module = weft::compile(&format!("app a\nstate n: int = 0\n{everies}"), "a.weft").unwrap();
            App::new(Arc::new(module), NodeId([7; 32]))
        };
        let (second, minute) = (1_000, 60_000);
        for (periods, kept, expected) in [
            // Nothing is known of before.
            (&["1 s", "1 min"][..], vec![], vec![101_000, 120_000]),
            // What was missed is fired at once, in whichever order they stand, and what is another one waits.
            (&["1 s", "1 min"], vec![(second, 90_000), (minute, 60_000)], vec![90_000, 60_000]),
            (&["1 min", "1 s"], vec![(second, 90_000), (minute, 60_000)], vec![60_000, 90_000]),
            (
                &["2 s", "1 min", "1 s"],
                vec![(second, 90_000), (minute, 60_000)],
                vec![102_000, 60_000, 90_000],
            ),
            (&["1 min"], vec![(second, 90_000), (minute, 60_000)], vec![60_000]),
            // Several of one period.
            (&["1 s", "1 s"], vec![(second, 90_000)], vec![90_000, 101_000]),
            (
                &["1 s", "1 min", "1 s"],
                vec![(second, 90_000), (second, 91_000)],
                vec![90_000, 120_000, 91_000],
            ),
            // A clock that went back: none waits for longer than its period.
            (&["1 s"], vec![(second, 900_000)], vec![101_000]),
        ] {
            let mut app = app(periods);
            app.resume(&kept, NOW);
            let next: Vec<i64> = app.ticks().into_iter().map(|(_, next)| next).collect();
            assert_eq!(next, expected, "{periods:?} after {kept:?}");
        }
    }
}
