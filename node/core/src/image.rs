//! All rows of a node at the end of a batch, for a checkpoint: taken in no time, read row by row by somebody else.
//!
//! The rows of running apps come from their snapshots. Everything else, the core's own rows and those of apps that do not
//! run, is kept beside as the log has it, in a map whose copy is a copy of its root.

use crate::core::Installed;
use crate::rows;
use engine::{COUNTERS, Snapshot, TIMERS};
use imbl::OrdMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use store::{Change, Row};

/// Rows as the log has them, of lists that no running app has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(OrdMap<(u64, Vec<u8>), Arc<[u8]>>);

impl Kept {
    /// Takes what a batch changes; rows of running apps are nothing to it.
    pub fn take(&mut self, changes: &[Change]) {
        for change in changes.iter().filter(|change| rows::split_list(change.list).0 == 0) {
            self.put(change.list, change.key.clone(), change.row.as_deref());
        }
    }

    /// A row, or its end.
    pub fn put(&mut self, list: u64, key: Vec<u8>, row: Option<&[u8]>) {
        match row {
            Some(row) => self.0.insert((list, key), row.into()),
            None => self.0.remove(&(list, key)),
        };
    }

    /// The numbers of the apps that have rows here, the core's 0 among them.
    fn apps(&self) -> Vec<u32> {
        let mut apps = Vec::new();
        let mut from = Bound::Unbounded;
        while let Some(((list, _), _)) = self.0.range((from, Bound::Unbounded)).next() {
            let (app, _) = rows::split_list(*list);
            apps.push(app);
            let Some(next) = app.checked_add(1) else { break };
            from = Bound::Included((rows::app_list(next, 0), Vec::new()));
        }
        apps
    }
}

/// All rows of a node at the end of a batch.
#[derive(Debug, Clone)]
pub struct Image {
    kept: Kept,
    /// By their numbers: the running apps, and their lists' numbers in the log by their places in the module.
    apps: BTreeMap<u32, (Snapshot, Vec<u32>)>,
}

impl Image {
    pub(crate) fn of<'a>(kept: &Kept, apps: impl Iterator<Item = &'a Installed>) -> Image {
        let running =
            |installed: &Installed| (installed.number, (installed.app.snapshot(), installed.lists.clone()));
        Image { kept: kept.clone(), apps: apps.map(running).collect() }
    }

    /// Its rows, in ascending order of list and key; what was read is let go.
    pub fn into_rows(self) -> impl Iterator<Item = Row> + Send + 'static {
        let Image { kept, apps } = self;
        let mut parts: BTreeMap<u32, Part> =
            kept.apps().into_iter().map(|app| (app, Part::kept(kept.clone(), app))).collect();
        for (number, (snapshot, lists)) in apps {
            parts.insert(number, Part::running(number, snapshot, lists));
        }
        let mut parts: VecDeque<Part> = parts.into_values().collect();
        std::iter::from_fn(move || {
            loop {
                match parts.front_mut()?.next() {
                    Some(row) => return Some(row),
                    None => parts.pop_front(),
                };
            }
        })
    }
}

/// The rows of one app, or of the core.
enum Part {
    Kept { kept: Kept, from: Bound<(u64, Vec<u8>)>, last: u64 },
    Running { number: u32, lists: Vec<u32>, rows: Box<engine::Rows> },
}

impl Part {
    fn kept(kept: Kept, app: u32) -> Part {
        let from = Bound::Included((rows::app_list(app, 0), Vec::new()));
        Part::Kept { kept, from, last: rows::app_list(app, u32::MAX) }
    }

    fn running(number: u32, snapshot: Snapshot, lists: Vec<u32>) -> Part {
        let mut order: Vec<u32> = (0..lists.len() as u32).collect();
        order.sort_by_key(|place| lists[*place as usize]);
        Part::Running { number, lists, rows: Box::new(snapshot.into_rows(order)) }
    }

    fn next(&mut self) -> Option<Row> {
        match self {
            Part::Kept { kept, from, last } => {
                let mut rest = kept.0.range((from.clone(), Bound::Unbounded));
                let ((list, key), row) = rest.next().filter(|((list, _), _)| list <= last)?;
                *from = Bound::Excluded((*list, key.clone()));
                Some(Row { list: *list, key: key.clone(), row: row.to_vec() })
            }
            Part::Running { number, lists, rows } => loop {
                let delta = rows.next()?;
                let Some(row) = delta.row else { continue };
                let (list, key) = numbered(*number, lists, delta.list, delta.key);
                return Some(Row { list, key, row });
            },
        }
    }
}

/// A delta's list and key as the log has them: lists by their numbers, which no other list ever has.
pub(crate) fn numbered(app: u32, lists: &[u32], list: u32, key: Vec<u8>) -> (u64, Vec<u8>) {
    let number = |place: u32| lists.get(place as usize).copied().unwrap_or(place);
    match list {
        TIMERS => (rows::app_list(app, list), key),
        COUNTERS => {
            let counted = key.as_slice().try_into().map(u32::from_be_bytes).map(number);
            let key = counted.map_or(key, |number| number.to_be_bytes().to_vec());
            (rows::app_list(app, list), key)
        }
        place => (rows::app_list(app, number(place)), key),
    }
}
