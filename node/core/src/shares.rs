//! How much may be under way: the shares of the outbox, what fills them, and what waits until there is room in them.
//!
//! Posts fill a first share. What a peer's record makes its app send has a second one beyond it, and what an outcome makes it
//! send a third: a record taken frees a place at its sender, and an outcome heard frees one here, so nodes whose first shares
//! are full of sends to each other still take from each other. The places are bounded all the same: where a second share is
//! full, records wait; and where what filled it waits in turn at nodes that have no room, they are refused (`events.rs`).

use crate::core::Postponed;
use std::collections::{BTreeMap, VecDeque};

/// Unsettled records of a node, of all streams: what a person may leave waiting for peers that are away. An event that
/// would send more is refused. At 200 bytes each this is about 200 MiB of memory, and at most thrice that (outcomes have
/// room for three times as much).
pub const OUTBOX_RECORDS_MAX: usize = 1 << 20;

/// Bytes of all unsettled records: they are held in memory.
pub const OUTBOX_BYTES_MAX: usize = 256 << 20;

/// Records whose places are asked for at once when there is room again: a link's window, which one word of it brings.
const WINDOW: Load = Load { records: link::WINDOW_RECORDS, bytes: link::WINDOW_BYTES };

/// How much may be unsettled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxSizes {
    /// Records of all apps.
    pub records: usize,
    /// Bytes of all apps' records.
    pub bytes: usize,
    /// What of it one app may take is one part of so many: what it leaves waiting must not keep the others from sending.
    pub apps_share: usize,
    /// What each app has for itself, whatever the others took, is one part of so many of its share.
    pub apps_own: usize,
}

impl Default for OutboxSizes {
    fn default() -> OutboxSizes {
        OutboxSizes { records: OUTBOX_RECORDS_MAX, bytes: OUTBOX_BYTES_MAX, apps_share: 4, apps_own: 16 }
    }
}

/// What makes an app send: how many shares it may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A post, a timer, or what is worth something now or never.
    Post = 1,
    /// A record of a peer, or of another app here.
    Record = 2,
    /// The outcome of what it sent.
    Outcome = 3,
}

/// What is unsettled, or may be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Load {
    records: usize,
    bytes: usize,
}

impl Load {
    /// What is left of this many times the shares beside what is taken.
    fn left(self, times: usize, taken: Load) -> Load {
        Load {
            records: (times * self.records).saturating_sub(taken.records),
            bytes: (times * self.bytes).saturating_sub(taken.bytes),
        }
    }

    fn part(self, of: usize) -> Load {
        Load { records: self.records / of, bytes: self.bytes / of }
    }

    /// Sends of an event there is room for. Their bytes are looked at before: the last event goes over by what it sends.
    fn sends(self) -> usize {
        if self.bytes == 0 { 0 } else { self.records }
    }
}

/// The shares and what fills them.
#[derive(Debug, Default)]
pub struct Shares {
    sizes: OutboxSizes,
    all: Load,
    by_app: BTreeMap<String, Load>,
}

impl Shares {
    /// Shares of these sizes, with nothing in them.
    pub fn new(sizes: OutboxSizes) -> Shares {
        Shares { sizes, ..Shares::default() }
    }

    /// Sends that an event of this app may still make.
    pub fn room(&self, app: &str, cause: Cause) -> usize {
        self.left(app, cause).sends()
    }

    /// Whether it is its own share that an app filled, and not all apps together theirs.
    pub fn is_full_itself(&self, app: &str, cause: Cause) -> bool {
        self.own_left(app, cause).sends() <= self.all_left(cause).sends()
    }

    /// Whether there is clearly more room than when there was room for so many sends: for what is asked for at once, or all
    /// that there can be.
    fn has_more_room(&self, app: &str, cause: Cause, than: usize) -> bool {
        let (left, most) = (self.left(app, cause), self.share().left(cause as usize, Load::default()));
        left.bytes >= WINDOW.bytes.min(most.bytes / 4)
            && left.records >= (than + WINDOW.records.min(most.records / 4)).min(most.records)
    }

    fn share(&self) -> Load {
        Load { records: self.sizes.records, bytes: self.sizes.bytes }.part(self.sizes.apps_share)
    }

    fn all_left(&self, cause: Cause) -> Load {
        let all = Load { records: self.sizes.records, bytes: self.sizes.bytes };
        all.left(cause as usize, self.all)
    }

    fn own_left(&self, app: &str, cause: Cause) -> Load {
        self.share().left(cause as usize, self.load(app))
    }

    fn load(&self, app: &str) -> Load {
        self.by_app.get(app).copied().unwrap_or_default()
    }

    fn left(&self, app: &str, cause: Cause) -> Load {
        let (own, all) = (self.own_left(app, cause), self.all_left(cause));
        let kept = self.share().part(self.sizes.apps_own).left(cause as usize, self.load(app));
        Load {
            records: own.records.min(all.records).max(kept.records),
            bytes: own.bytes.min(all.bytes).max(kept.bytes),
        }
    }

    /// Something of an app that is kept until it has its outcome takes its place.
    pub(crate) fn occupy(&mut self, app: &str, bytes: usize) {
        let own = self.by_app.entry(app.to_owned()).or_default();
        for load in [&mut self.all, own] {
            load.records += 1;
            load.bytes += bytes;
        }
    }

    /// It has its outcome.
    pub(crate) fn vacate(&mut self, app: &str, bytes: usize) {
        let own = self.by_app.get_mut(app);
        for load in [&mut self.all].into_iter().chain(own) {
            load.records -= 1;
            load.bytes -= bytes;
        }
    }
}

/// What goes on when an app has room again.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Apps for which records wait, and the sends that there was room for then.
    records: BTreeMap<String, usize>,
    /// Apps for which outcomes wait, the sends that there was room for then, and these: at most one of each kind a stream of
    /// ours, and one an address.
    outcomes: BTreeMap<String, (usize, VecDeque<Postponed>)>,
}

impl Waits {
    /// A peer's record waits, where there was room for so many sends.
    pub(crate) fn record(&mut self, app: &str, room: usize) {
        self.records.insert(app.to_owned(), room);
    }

    /// Something waits, where there was room for so many sends.
    pub(crate) fn outcome(&mut self, app: &str, room: usize, rest: Postponed) {
        let waits = self.outcomes.entry(app.to_owned()).or_default();
        waits.0 = room;
        waits.1.push_back(rest);
    }

    /// Whether records wait for an app, and were not asked for again.
    pub(crate) fn has_record(&self, app: &str) -> bool {
        self.records.contains_key(app)
    }

    /// The apps for which records wait.
    pub(crate) fn apps(&self) -> Vec<String> {
        self.records.keys().cloned().collect()
    }

    /// The apps for which records wait and that have more room now.
    pub(crate) fn apps_with_room(&self, shares: &Shares) -> Vec<String> {
        let has_room = |app: &str, than: usize| shares.has_more_room(app, Cause::Record, than);
        let apps = self.records.iter().filter(|(app, than)| has_room(app, **than));
        apps.map(|(app, _)| app.clone()).collect()
    }

    /// Records are asked for again: whether any wait.
    pub(crate) fn take_record(&mut self, app: &str) -> bool {
        self.records.remove(app).is_some()
    }

    /// The outcomes that apps have room for now.
    pub(crate) fn take_outcomes(&mut self, shares: &Shares) -> VecDeque<Postponed> {
        let mut ready = VecDeque::new();
        self.outcomes.retain(|app, (than, waiting)| {
            let has_room = shares.has_more_room(app, Cause::Outcome, *than);
            if has_room {
                ready.append(waiting);
            }
            !has_room
        });
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: OutboxSizes = OutboxSizes { records: 400, bytes: 400_000, apps_share: 4, apps_own: 10 };

    /// Shares that each of these apps filled with so many records of 1 byte.
    fn filled(apps: &[(&str, usize)]) -> Shares {
        let mut shares = Shares::new(SIZES);
        for (app, records) in apps {
            (0..*records).for_each(|_| shares.occupy(app, 1));
        }
        shares
    }

    #[test]
    fn each_cause_has_room_beyond_the_one_before_and_each_app_its_own() {
        for (loads, app, room) in [
            (&[][..], "a", [100, 200, 300]),
            (&[("a", 100)], "a", [0, 100, 200]),
            (&[("a", 200)], "a", [0, 0, 100]),
            (&[("a", 300)], "b", [100, 200, 300]),
            (&[("a", 300), ("c", 90)], "b", [10, 200, 300]),
            // All share what the node has, but for what each has for itself.
            (&[("a", 300), ("c", 100)], "b", [10, 200, 300]),
            (&[("a", 300), ("c", 300), ("d", 300), ("e", 300)], "b", [10, 20, 30]),
            (&[("a", 300), ("c", 300), ("d", 300), ("e", 300), ("b", 15)], "b", [0, 5, 15]),
        ] {
            let shares = filled(loads);
            let rooms = [Cause::Post, Cause::Record, Cause::Outcome].map(|cause| shares.room(app, cause));
            assert_eq!(rooms, room, "{loads:?}: {app}");
        }
        let mut shares = Shares::new(SIZES);
        shares.occupy("a", 100_000);
        assert_eq!(shares.room("a", Cause::Post), 0, "bytes count, too");
        assert_eq!(shares.room("a", Cause::Record), 199);
        shares.vacate("a", 100_000);
        assert_eq!(shares.room("a", Cause::Post), 100);
    }

    #[test]
    fn what_waits_goes_on_when_its_own_app_has_more_room_than_before() {
        let mut shares = filled(&[("a", 195), ("b", 200)]);
        let mut waits = Waits::default();
        waits.record("a", 5);
        waits.record("b", 0);
        assert_eq!(waits.apps_with_room(&shares), [""; 0]);
        (0..50).for_each(|_| shares.vacate("a", 1));
        assert_eq!(waits.apps_with_room(&shares), ["a"], "whatever b has");
        waits.record("a", 60);
        assert_eq!(waits.apps_with_room(&shares), [""; 0]);
        (0..55).for_each(|_| shares.vacate("a", 1));
        assert_eq!(waits.apps_with_room(&shares), ["a"]);
        assert!(waits.take_record("a") && !waits.take_record("a"));
        assert_eq!(waits.apps(), ["b"]);
    }
}
