//! Runs contenders in turn, and watches what else the machine does.

use crate::BenchError;
use crate::figure::{Declared, PAIRS, PAIRS_MAX, PAIRS_OF_GROWTH, Pair, Series};
use crate::machine::Ticks;
use std::time::{Duration, Instant};

/// One side of a comparison, with its data loaded.
pub trait Contender {
    /// What it is called, its version behind a space.
    fn name(&self) -> String;
    /// A process of its own whose work is not others'.
    fn process(&self) -> Option<u32> {
        None
    }
    /// Does the work of a round, checks its answers, and gives its value. The same round is the same work for all.
    fn trial(&mut self, round: usize) -> Result<f64, BenchError>;
}

/// The least time of a timed trial: long beside the clock's and the scheduler's grain.
const TRIAL_MILLISECONDS_MIN: u64 = 250;

/// Repeats work until a trial is long enough; gives how often it was done, and in which time.
pub fn repeat(
    mut work: impl FnMut(usize) -> Result<(), BenchError>,
) -> Result<(usize, Duration), BenchError> {
    let least = Duration::from_millis(TRIAL_MILLISECONDS_MIN);
    let started = Instant::now();
    for times in 0.. {
        let elapsed = started.elapsed();
        if elapsed >= least {
            return Ok((times, elapsed));
        }
        work(times)?;
    }
    Ok((0, Duration::ZERO))
}

/// How long a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Judged.
    Judged,
    /// Of another size.
    Growth,
    /// Answers are checked, and that is all.
    Short,
}

/// Runs all contenders once uncounted and then in pairs.
pub fn run(
    declared: &Declared,
    size: String,
    contenders: &mut [Box<dyn Contender>],
    length: Length,
) -> Result<Series, BenchError> {
    let names = contenders.iter().map(|contender| contender.name()).collect();
    let mut series = Series { size, names, counter: declared.counter, pairs: Vec::new() };
    let (wanted, most) = match length {
        Length::Short => (1, 1),
        _ if declared.counter => (1, 1),
        Length::Judged => (PAIRS, PAIRS_MAX),
        Length::Growth => (PAIRS_OF_GROWTH, PAIRS_OF_GROWTH),
    };
    if !declared.counter {
        for contender in contenders.iter_mut() {
            contender.trial(0)?;
        }
    }
    while series.adequate() < wanted && series.pairs.len() < most {
        let round = series.pairs.len();
        series.pairs.push(pair(contenders, round)?);
    }
    Ok(series)
}

fn pair(contenders: &mut [Box<dyn Contender>], round: usize) -> Result<Pair, BenchError> {
    let peers: Vec<u32> = contenders.iter().filter_map(|contender| contender.process()).collect();
    let first = round % contenders.len();
    let mut values = vec![0.0; contenders.len()];
    let before = Ticks::now(&peers)?;
    for turn in 0..contenders.len() {
        let place = (first + turn) % contenders.len();
        // Round 0 warmed up.
        values[place] = contenders[place].trial(round + 1)?;
    }
    let other_work = Ticks::now(&peers)?.other_work_since(before);
    Ok(Pair { values, first, other_work })
}
