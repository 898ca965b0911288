//! The receiver's side of exactly once, as a pure function of what was committed.
//!
//! For each stream of each peer a store keeps one [`Heard`]; it is committed together with the effects of the record
//! that moved it. The link may deliver a record again in each pair of runs, after any crash of either side: the ledger
//! alone says whether it is applied. It must not know datagrams, runs of this node, or apps.
//!
//! Numbers alone cannot tell a record that came twice from another one that a sender which was set back in time made
//! under the same number. Tags can: each record carries the tag of the run that made it.

use std::collections::BTreeMap;

use sealing::Tag;

use crate::command::{Declaration, Outcome};
use crate::limits::WINDOW_RECORDS;

/// What was heard of one stream: committed, so it survives every crash. The default is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The highest number with an outcome here; 0 before the first.
    pub number: u64,
    /// The tag of that record.
    pub tag: Tag,
    /// What was refused or answered up to `number` and is not settled yet.
    pub outcomes: BTreeMap<u64, Outcome>,
    /// The highest number of which a refusal was forgotten, since its sender had settled it; 0 before the first. Whoever
    /// sends it again does not know any more that it was refused.
    pub settled: u64,
}

impl Default for Heard {
    fn default() -> Heard {
        Heard { number: 0, tag: Tag([0; 8]), outcomes: BTreeMap::new(), settled: 0 }
    }
}

/// What is to be done with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one: apply it.
    Apply,
    /// It has its outcome already, or is out of turn: say `stored` again and do nothing.
    Duplicate,
    /// This node was set back in time: the records `from..=to` were settled by the sender and are gone.
    /// Commit that they are missing, then apply this one.
    Gap {
        /// The first missing number.
        from: u64,
        /// The last missing number.
        to: u64,
    },
    /// The sender was set back in time: apply nothing of this stream any more and say `forked`.
    Forked,
}

impl Heard {
    /// What is to be done with record `number`, made in the run with `tag`, of a stream declared so.
    ///
    /// The link hands records over contiguously from `declaration.oldest` in each pair of runs. So the record at the
    /// number heard, or the tag before the oldest, is compared before anything above it is applied.
    ///
    /// Two things are up to the caller. After [`Verdict::Forked`] nothing more of the stream is judged: records behind
    /// the one that told may be on their way already. A record that is left waiting is not applied, and those behind it
    /// get [`Verdict::Duplicate`] here, since they are out of turn: the link hands them over again (§5.2.1).
    pub fn judge(&self, declaration: &Declaration, number: u64, tag: Tag) -> Verdict {
        let heard = self.number;
        let before_oldest = declaration.oldest.saturating_sub(1);
        if heard > 0 && before_oldest == heard && declaration.tag_before != self.tag {
            return Verdict::Forked;
        }
        // `last` is what the sender had given out when it declared: going past it in the same pair of runs is no
        // fork, but then only the next number comes. What comes at or below the number heard was not past it.
        if declaration.last < heard && number <= heard {
            return Verdict::Forked;
        }
        if number == declaration.oldest && self.was_settled(declaration) {
            return Verdict::Forked;
        }
        match number {
            _ if number == heard && tag != self.tag => Verdict::Forked,
            _ if number <= heard => Verdict::Duplicate,
            _ if number - heard == 1 => Verdict::Apply,
            _ if number == declaration.oldest => Verdict::Gap { from: heard + 1, to: number - 1 },
            _ => Verdict::Duplicate,
        }
    }

    /// Whether the sender declares as unsettled what it had settled. It is asked of the first record of a declaration
    /// alone, since settling goes on behind it. A sender without its past would be told `delivered` of a refusal that is
    /// forgotten here; or, if what it has is further back than a window, would never reach the number heard.
    fn was_settled(&self, declaration: &Declaration) -> bool {
        let reach = declaration.oldest.saturating_sub(1).saturating_add(WINDOW_RECORDS as u64);
        declaration.oldest <= self.settled || self.number > reach
    }

    /// Record `number` has its outcome: applied, with an answer or without one, or refused with a reason.
    pub fn apply(&mut self, number: u64, tag: Tag, outcome: Option<Outcome>) {
        self.number = number;
        self.tag = tag;
        if let Some(outcome) = outcome {
            self.outcomes.insert(number, outcome);
        }
    }

    /// The sender forgot its rows up to `upto`: so are the refusals and answers here. That an answer was forgotten is not
    /// remembered: of its record `delivered` is still true.
    pub fn settle(&mut self, upto: u64) {
        let kept = self.outcomes.split_off(&upto.saturating_add(1));
        let forgotten = std::mem::replace(&mut self.outcomes, kept);
        let refused = forgotten.iter().rev().find(|(_, outcome)| matches!(outcome, Outcome::Refused(_)));
        self.settled = self.settled.max(refused.map_or(0, |(number, _)| *number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::StreamId;

    const A: Tag = Tag([1; 8]);
    const B: Tag = Tag([2; 8]);

    fn check(heard: (u64, Tag), declared: (u64, Tag, u64), record: (u64, Tag), expected: Verdict) {
        let heard = Heard { number: heard.0, tag: heard.1, ..Heard::default() };
        let declaration = Declaration {
            stream: StreamId([7; 16]),
            from_app: "a".into(),
            to_app: "b".into(),
            oldest: declared.0,
            tag_before: declared.1,
            last: declared.2,
        };
        assert_eq!(
            heard.judge(&declaration, record.0, record.1),
            expected,
            "heard {heard:?}, declared {declared:?}, record {record:?}"
        );
    }

    #[test]
    fn verdicts() {
        let zero = Tag([0; 8]);
        // heard, (oldest, tag before, last), record, verdict
        check((0, zero), (1, zero, 1), (1, A), Verdict::Apply);
        check((0, zero), (3, A, 3), (3, A), Verdict::Gap { from: 1, to: 2 });
        check((5, A), (6, A, 9), (6, A), Verdict::Apply);
        check((5, A), (6, B, 9), (6, B), Verdict::Forked);
        check((5, A), (4, A, 9), (4, A), Verdict::Duplicate);
        check((5, A), (4, A, 9), (5, A), Verdict::Duplicate);
        check((5, A), (4, A, 9), (5, B), Verdict::Forked);
        check((5, A), (4, A, 9), (6, B), Verdict::Apply);
        check((5, A), (4, A, 4), (4, A), Verdict::Forked);
        check((5, A), (8, A, 9), (8, B), Verdict::Gap { from: 6, to: 7 });
        check((5, A), (6, A, 9), (7, A), Verdict::Duplicate);
        // Past what was declared in the same pair of runs.
        check((12, A), (6, A, 9), (13, A), Verdict::Apply);
        // Backup at 50, the peer heard 60 of run A, new 51–70 made in run B while away.
        check((60, A), (51, A, 70), (60, B), Verdict::Forked);
        check((60, A), (51, A, 70), (51, B), Verdict::Duplicate);
        // No sender has more than a window unsettled: this one was set back, and would never reach the number heard.
        check((300, A), (45, A, 400), (45, A), Verdict::Duplicate);
        check((300, A), (44, A, 400), (44, A), Verdict::Forked);
        check((300, A), (44, A, 400), (45, A), Verdict::Duplicate);
    }

    #[test]
    fn a_sender_that_forgot_what_it_settled() {
        // The refused number that was settled up to which, the oldest, the record, the verdict.
        let rows = [
            (3, 5, 3, 3, Verdict::Forked),
            (3, 5, 2, 2, Verdict::Forked),
            // It settled further up in the same pair of runs.
            (3, 5, 2, 3, Verdict::Duplicate),
            // What is unsettled was not refused, so `delivered` is true of it.
            (3, 5, 4, 4, Verdict::Duplicate),
            // The refusal is still kept, and is told again.
            (3, 2, 3, 3, Verdict::Duplicate),
        ];
        for (refused, upto, oldest, number, expected) in rows {
            let mut heard = Heard::default();
            for number in 1..=6 {
                // An answer that was forgotten changes no verdict.
                let answered = (number == 4).then(|| Outcome::Answered(vec![7]));
                heard.apply(
                    number,
                    A,
                    (number == refused).then(|| Outcome::Refused("no".into())).or(answered),
                );
            }
            heard.settle(upto);
            let declaration = Declaration {
                stream: StreamId([7; 16]),
                from_app: "a".into(),
                to_app: "b".into(),
                oldest,
                tag_before: A,
                last: 9,
            };
            let row = (refused, upto, oldest, number);
            assert_eq!(heard.judge(&declaration, number, A), expected, "{row:?}");
        }
    }

    #[test]
    fn settling_forgets_outcomes_up_to_a_number() {
        let mut heard = Heard::default();
        heard.apply(1, A, Some(Outcome::Refused("no".into())));
        heard.apply(2, A, Some(Outcome::Answered(vec![1])));
        heard.apply(3, A, Some(Outcome::Refused("never".into())));
        heard.apply(4, A, None);
        heard.apply(5, A, Some(Outcome::Answered(vec![2])));
        heard.settle(2);
        assert_eq!(heard.settled, 1);
        assert_eq!(heard.outcomes.keys().copied().collect::<Vec<_>>(), [3, 5]);
    }
}
