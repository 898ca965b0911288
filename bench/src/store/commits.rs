//! `commit_p999_checkpoint`: how long a commit takes while a checkpoint is made, beside how long it takes else.

use super::kept::{self, OurRows};
use super::parts::parts;
use super::rows::Model;
use super::scratch::Scratch;
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{measure, settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;
use std::time::Instant;

pub const COMMIT_P999_CHECKPOINT: Declared = Declared {
    name: "commit_p999_checkpoint",
    unit: "ms",
    better: Better::Lower,
    counter: false,
    bars: &[
        Bar { of: "ours", against: Some("without"), limit: 3.0 },
        Bar { of: "ours_max", against: Some("without_max"), limit: 3.0 },
    ],
};

/// Commits of a trial without a checkpoint, at least: those within one are as many as there is time for.
const COMMITS_MIN: usize = 1_000;

pub fn measure_commits(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let medium = Scratch::new()?.medium()?;
    let contenders = |rows: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let scratch = Scratch::new()?;
        let kept = OurRows::load(&scratch.path("ours"), rows)?;
        let mut commits =
            Commits { kept, model: Model::new(rows), random: Random::new(4), _scratch: scratch };
        let names = ["ours", "without", "ours_max", "without_max", "ours_commits", "ours_p50", "without_p50"];
        Ok(parts(&names, move |round| commits.trial(round)))
    };
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("medium", json!(medium)),
        ("rows_a_commit", json!(1)),
        ("ours_commits", json!("commits within a checkpoint: a count, not milliseconds")),
    ]);
    let sizes = sizes(extent, 1_000, 1_000_000, &[100_000]);
    measure(declared, &sizes, |rows| format!("{rows} rows"), contenders, settings)
}

struct Commits {
    kept: OurRows,
    model: Model,
    random: Random,
    _scratch: Scratch,
}

impl Commits {
    /// Commits within a checkpoint and as many without one; which come first changes with the round.
    fn trial(&mut self, round: usize) -> Result<Vec<f64>, BenchError> {
        self.kept.0.make_checkpoints(false);
        let mut without = Vec::new();
        let mut within = Vec::new();
        if round.is_multiple_of(2) {
            within = self.within()?;
            without = self.without(within.len())?;
        } else {
            // As many as the last round had within are not known yet: as many as there are within follow.
            without.extend(self.without(COMMITS_MIN)?);
            within.extend(self.within()?);
            let more = within.len().saturating_sub(without.len());
            without.extend(self.without(more)?);
        }
        self.kept.0.make_checkpoints(true);
        kept::compare(&mut self.kept, &self.model, &mut self.random)?;
        let (of, beside) = (Latencies::of(within), Latencies::of(without));
        Ok(vec![of.p999, beside.p999, of.max, beside.max, of.count, of.p50, beside.p50])
    }

    fn within(&mut self) -> Result<Vec<f64>, BenchError> {
        let mut milliseconds = Vec::new();
        self.kept.0.begin_checkpoint()?;
        while self.kept.0.makes_one() {
            milliseconds.push(self.commit()?);
            self.kept.0.take_what_is_there()?;
        }
        Ok(milliseconds)
    }

    fn without(&mut self, count: usize) -> Result<Vec<f64>, BenchError> {
        (0..count).map(|_| self.commit()).collect()
    }

    /// One event of one row, until it is durable and answered.
    fn commit(&mut self) -> Result<f64, BenchError> {
        let body = OurRows::inputs(&self.model.updates(&mut self.random, 1)).pop().unwrap_or_default();
        let started = Instant::now();
        self.kept.0.post("set", body)?;
        self.kept.0.settle()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    }
}

/// Of one trial: never pooled with another's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    pub p50: f64,
    pub p999: f64,
    pub max: f64,
    pub count: f64,
}

impl Latencies {
    /// A percentile is the least value that so many are at or below (nearest rank).
    pub fn of(mut values: Vec<f64>) -> Latencies {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let at = |share: f64| {
            let rank = (share * count as f64).ceil() as usize;
            values.get(rank.clamp(1, count.max(1)) - 1).copied().unwrap_or(f64::NAN)
        };
        Latencies { p50: at(0.5), p999: at(0.999), max: at(1.0), count: count as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let of = Latencies::of((1..=2_000).rev().map(f64::from).collect());
        assert_eq!(of, Latencies { p50: 1_000.0, p999: 1_998.0, max: 2_000.0, count: 2_000.0 });
        assert_eq!(Latencies::of(vec![7.0]).p999, 7.0);
    }
}
