//! The web of one seed: an address that loses what it is asked, fails, or takes it and loses the answer. It takes each key
//! once, and says the same to whoever comes with it again.

use crate::world::Chance;
use node_core::{WebOutcome, WebTry};
use std::collections::{BTreeMap, BTreeSet};

/// The longest that an address takes to fail, in virtual microseconds.
const FAILS_AFTER_MAX: u64 = 2_000_000;

/// What becomes of a try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Lost,
    Failed,
    AnswerLost,
    Answered,
}

impl Way {
    pub(crate) fn by(chance: &mut Chance, calm: bool) -> Way {
        match chance.below(12) {
            _ if calm => Way::Answered,
            0 => Way::Lost,
            1 => Way::Failed,
            2 => Way::AnswerLost,
            _ => Way::Answered,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct SimulatedWeb {
    /// The numbers that it took of each node, in the order in which they came first.
    pub(crate) taken: BTreeMap<usize, Vec<u64>>,
    keys: BTreeSet<String>,
}

impl SimulatedWeb {
    /// What comes of a try, how long it takes, and what was reached by it.
    pub(crate) fn ask(
        &mut self,
        node: usize,
        attempt: &WebTry,
        way: Way,
        chance: &mut Chance,
    ) -> (WebOutcome, u64, Vec<&'static str>) {
        let answered = |status, text: &str| WebOutcome::Answered { status, text: text.to_owned() };
        let failed = || WebOutcome::Failed("no answer".to_owned());
        let slow = chance.below(FAILS_AFTER_MAX);
        match way {
            Way::Lost => return (failed(), slow, vec!["web lost"]),
            Way::Failed => return (answered(503, "busy"), slow, vec!["web failed"]),
            Way::AnswerLost | Way::Answered => {}
        }
        let body: serde_json::Value = serde_json::from_str(&attempt.body).expect("JSON is sent");
        let number = body["number"].as_u64().expect("a number");
        let mut reached = Vec::new();
        let outcome = if number.is_multiple_of(11) {
            answered(404, "no multiples of eleven\n")
        } else {
            if self.keys.insert(attempt.idempotency_key.clone()) {
                self.taken.entry(node).or_default().push(number);
            } else {
                reached.push("web asked again");
            }
            answered(204, "")
        };
        match way {
            Way::AnswerLost => {
                reached.push("web answer lost");
                (failed(), slow, reached)
            }
            _ => (outcome, 1_000 + slow / 100, reached),
        }
    }
}
