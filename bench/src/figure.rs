//! What a figure is: how it is declared, what was measured, and what follows from that alone.

use serde_json::{Map, Value, json};

/// Adequate pairs that a judged series goes on for, and the pairs after which it ends anyway.
pub const PAIRS: usize = 9;
/// Twice as many: where every second pair is disturbed, a series still ends.
pub const PAIRS_MAX: usize = 2 * PAIRS;
/// Adequate pairs without which there is no verdict.
pub const PAIRS_JUDGED_MIN: usize = 5;
/// Pairs of each other size.
pub const PAIRS_OF_GROWTH: usize = 3;
/// The share of the machine's processor time beyond which others' work makes a pair inadequate.
pub const OTHER_WORK_MAX: f64 = 0.15;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A rate.
    Higher,
    /// A time or a size.
    Lower,
}

/// What a bar compares, and with what.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    /// The contender compared with; none compares the value of `of` itself.
    pub against: Option<&'static str>,
    /// Whose value: the first contender, unless several are ours.
    pub of: &'static str,
    /// At least this for [`Better::Higher`], at most for [`Better::Lower`].
    pub limit: f64,
}

/// A figure as it was declared.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its name on the command line.
    pub name: &'static str,
    /// Of its values.
    pub unit: &'static str,
    /// Of its values.
    pub better: Better,
    /// Whether it counts what repeats, like memory: then one pair is judged, and others' work does not matter.
    pub counter: bool,
    /// What is judged.
    pub bars: &'static [Bar],
}

/// What one pair gave.
#[derive(Debug, Clone)]
pub struct Pair {
    /// A value a contender, in the order of the series' names.
    pub values: Vec<f64>,
    /// The contender that went first.
    pub first: usize,
    /// The share of the machine's processor time that others used meanwhile.
    pub other_work: f64,
}

/// All pairs of one size.
#[derive(Debug, Clone)]
pub struct Series {
    /// How much of what, for people.
    pub size: String,
    /// Of the contenders; what is ours begins with `ours`.
    pub names: Vec<String>,
    /// Of the figure.
    pub counter: bool,
    /// In the order in which they ran.
    pub pairs: Vec<Pair>,
}

/// A measured figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What was declared.
    pub declared: Declared,
    /// The judged size.
    pub judged: Series,
    /// The other sizes.
    pub growth: Vec<Series>,
    /// What else describes the run.
    pub settings: Map<String, Value>,
    /// Set when the run judges nothing.
    pub short: bool,
}

/// A median with what lies around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle, or the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub lowest: f64,
    /// The greatest.
    pub highest: f64,
}

impl Spread {
    /// Of values; none of none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Spread { median, lowest, highest })
    }

    fn json(self) -> Value {
        json!({ "median": self.median, "lowest": self.lowest, "highest": self.highest })
    }
}

/// What became of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is met.
    Holds,
    /// It is not.
    Missed,
    /// Too few pairs were adequate.
    Inadequate,
    /// A short run.
    NotJudged,
}

impl Verdict {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Missed => "missed",
            Verdict::Inadequate => "inadequate",
            Verdict::NotJudged => "not judged",
        }
    }
}

impl Series {
    /// Where a contender stands; its version may follow its name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|there| there.split(' ').next() == Some(name))
    }

    /// Adequate pairs.
    pub fn adequate(&self) -> usize {
        self.pairs.iter().filter(|pair| self.is_adequate(pair)).count()
    }

    fn is_adequate(&self, pair: &Pair) -> bool {
        self.counter || pair.other_work <= OTHER_WORK_MAX
    }

    /// Whether it is long enough to be judged.
    pub fn is_judged(&self) -> bool {
        self.adequate() >= if self.counter { 1 } else { PAIRS_JUDGED_MIN }
    }

    /// The values of one contender over the adequate pairs, or over all of them where those are too few to judge.
    pub fn values(&self, place: usize) -> impl Iterator<Item = f64> {
        self.shown().map(move |pair| pair.values[place])
    }

    /// What a bar compares, pair by pair.
    pub fn compared(&self, bar: &Bar) -> Option<Spread> {
        let of = self.place(bar.of)?;
        match bar.against {
            None => Spread::of(self.values(of)),
            Some(against) => {
                let against = self.place(against)?;
                Spread::of(self.shown().map(move |pair| pair.values[of] / pair.values[against]))
            }
        }
    }

    fn shown(&self) -> impl Iterator<Item = &Pair> {
        let all = !self.is_judged();
        self.pairs.iter().filter(move |pair| all || self.is_adequate(pair))
    }

    fn json(&self) -> Value {
        let raw = |place: usize| -> Vec<f64> { self.pairs.iter().map(|pair| pair.values[place]).collect() };
        let others = self.names.iter().enumerate().skip(1);
        let peers: Map<String, Value> =
            others.map(|(place, name)| (name.clone(), json!(raw(place)))).collect();
        json!({
            "size": self.size,
            "ours": raw(0),
            "peers": peers,
            "first": self.pairs.iter().map(|pair| self.names[pair.first].as_str()).collect::<Vec<_>>(),
            "other_work": self.pairs.iter().map(|pair| pair.other_work).collect::<Vec<_>>(),
            "adequate": self.is_judged(),
        })
    }
}

impl Figure {
    /// What follows from the raw pairs for a bar.
    pub fn verdict(&self, bar: &Bar) -> Verdict {
        if self.short {
            return Verdict::NotJudged;
        }
        match self.judged.compared(bar) {
            Some(spread) if self.judged.is_judged() => {
                let met = match self.declared.better {
                    Better::Higher => spread.median >= bar.limit,
                    Better::Lower => spread.median <= bar.limit,
                };
                if met { Verdict::Holds } else { Verdict::Missed }
            }
            _ => Verdict::Inadequate,
        }
    }

    /// Everything of it.
    pub fn json(&self, provenance: &Value) -> Value {
        let bars = self.declared.bars.iter().map(|bar| {
            json!({
                "of": bar.of,
                "against": bar.against,
                "limit": bar.limit,
                "measured": self.judged.compared(bar).map(Spread::json),
                "verdict": self.verdict(bar).word(),
            })
        });
        let mut object = json!({
            "name": self.declared.name,
            "unit": self.declared.unit,
            "better": if self.declared.better == Better::Higher { "higher" } else { "lower" },
        });
        let judged = self.judged.json();
        for part in [
            &judged,
            &json!({
                "bars": bars.collect::<Vec<_>>(),
                "growth": self.growth.iter().map(Series::json).collect::<Vec<_>>(),
                "settings": self.settings,
                "provenance": provenance,
            }),
        ] {
            for (key, value) in part.as_object().into_iter().flatten() {
                object[key] = value.clone();
            }
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAR: Bar = Bar { against: Some("peer"), of: "ours", limit: 2.0 };
    const DECLARED: Declared =
        Declared { name: "f", unit: "events/s", better: Better::Higher, counter: false, bars: &[BAR] };

    fn figure(pairs: &[(f64, f64, f64)]) -> Figure {
        let pair = |&(ours, peer, other_work): &(f64, f64, f64)| Pair {
            values: vec![ours, peer],
            first: 0,
            other_work,
        };
        let names = vec!["ours".into(), "peer 1.0".into()];
        let judged =
            Series { size: "10".into(), names, counter: false, pairs: pairs.iter().map(pair).collect() };
        Figure { declared: DECLARED, judged, growth: Vec::new(), settings: Map::new(), short: false }
    }

    #[test]
    fn a_verdict_follows_from_adequate_pairs_alone() {
        let good = (20.0, 10.0, 0.0);
        let bad = (19.0, 10.0, 0.0);
        let disturbed = (90.0, 10.0, 0.16);
        let slowed = (1.0, 10.0, 0.16);
        for (pairs, verdict) in [
            (vec![good; 9], Verdict::Holds),
            (vec![bad; 9], Verdict::Missed),
            ([vec![bad; 5], vec![disturbed; 13]].concat(), Verdict::Missed),
            ([vec![good; 5], vec![slowed; 13]].concat(), Verdict::Holds),
            ([vec![good; 4], vec![slowed; 14]].concat(), Verdict::Inadequate),
            ([vec![good; 4], vec![disturbed; 14]].concat(), Verdict::Inadequate),
            (vec![], Verdict::Inadequate),
        ] {
            assert_eq!(figure(&pairs).verdict(&BAR), verdict, "{pairs:?}");
        }
    }

    #[test]
    fn ratios_are_taken_within_pairs() {
        let figure = figure(&[(10.0, 1.0, 0.0), (10.0, 10.0, 0.0), (30.0, 10.0, 0.0)]);
        let spread = Spread { median: 3.0, lowest: 1.0, highest: 10.0 };
        assert_eq!(figure.judged.compared(&BAR), Some(spread));
    }

    #[test]
    fn an_object_holds_every_pair() {
        let object = figure(&[(1.0, 2.0, 0.0), (3.0, 4.0, 0.5)]).json(&json!({}));
        assert_eq!(object["ours"], json!([1.0, 3.0]));
        assert_eq!(object["peers"], json!({ "peer 1.0": [2.0, 4.0] }));
        assert_eq!(object["other_work"], json!([0.0, 0.5]));
        assert_eq!(object["bars"][0]["verdict"], "inadequate");
    }
}
