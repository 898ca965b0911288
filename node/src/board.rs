//! What views read: the last published state of each app, and who waits for the next.
//!
//! A state that is published costs the owner a copy of each page that the next events change, and nothing where nobody
//! looks: so an app at which nobody looked for some frames is not published any more, and whoever looks then asks for it and
//! waits for the batch that is open. What was published is always as new as what was answered, or it is not there.

use engine::Snapshot;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Frames after which an app at which nobody looked is not published any more: few, so that writing without looking
/// costs little soon, and more than pages that are shown anew with each change leave between two looks.
pub const UNSEEN_FRAMES_MAX: u32 = 16;

#[derive(Debug)]
struct Published {
    /// None: the state is newer than what was published last, and nobody looked.
    state: Mutex<Option<Arc<Snapshot>>>,
    /// Told when there is a state.
    newer: Condvar,
    version: watch::Sender<u64>,
    /// Whether somebody looked since the last frame.
    looked: AtomicBool,
    /// Who waits for a state.
    waiting: AtomicU32,
    /// Frames since somebody looked.
    unseen: AtomicU32,
}

impl Published {
    fn new() -> Published {
        Published {
            state: Mutex::new(None),
            newer: Condvar::new(),
            version: watch::Sender::new(0),
            looked: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            unseen: AtomicU32::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, Option<Arc<Snapshot>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody looks, or did since the last frame.
    fn is_watched(&self) -> bool {
        self.looked.swap(false, Ordering::Relaxed)
            || self.version.receiver_count() > 0
            || self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// One place an app. Who reads what is published never waits for the owner for longer than it takes to put down a pointer.
#[derive(Debug)]
pub struct Board {
    apps: BTreeMap<String, Published>,
}

impl Board {
    /// Places for these apps, still empty.
    pub fn new(apps: &[String]) -> Board {
        Board { apps: apps.iter().map(|app| (app.clone(), Published::new())).collect() }
    }

    /// Puts up an app's new state and wakes who waits for it.
    pub fn publish(&self, app: &str, snapshot: Snapshot) {
        if let Some(published) = self.apps.get(app) {
            let before = published.state().replace(Arc::new(snapshot));
            published.newer.notify_all();
            published.version.send_modify(|version| *version += 1);
            drop(before);
        }
    }

    /// An app's state is newer than what was published, and what was is not shown any more.
    pub fn outdate(&self, app: &str) {
        if let Some(published) = self.apps.get(app)
            && let Some(before) = published.state().take()
        {
            published.version.send_modify(|version| *version += 1);
            drop(before);
        }
    }

    /// Counts a frame; the apps at which nobody looked for too long, each once until somebody does.
    pub fn count_frame(&self) -> Vec<String> {
        let mut unseen = Vec::new();
        for (app, published) in &self.apps {
            if published.is_watched() {
                published.unseen.store(0, Ordering::Relaxed);
            } else if published.unseen.fetch_add(1, Ordering::Relaxed) + 1 == UNSEEN_FRAMES_MAX {
                unseen.push(app.clone());
            }
        }
        unseen
    }

    /// An app's published state, if it is not older than what was answered.
    pub fn snapshot(&self, app: &str) -> Option<Arc<Snapshot>> {
        let published = self.apps.get(app)?;
        published.looked.store(true, Ordering::Relaxed);
        published.state().clone()
    }

    /// An app's newest durable state, for which `ask` asks the owner where it was not published, and which is waited for
    /// as long as this; none if it did not come.
    pub fn newest(&self, app: &str, ask: impl FnOnce(), wait: Duration) -> Option<Arc<Snapshot>> {
        if let Some(snapshot) = self.snapshot(app) {
            return Some(snapshot);
        }
        let published = self.apps.get(app)?;
        published.waiting.fetch_add(1, Ordering::Relaxed);
        ask();
        let waited = published.newer.wait_timeout_while(published.state(), wait, |state| state.is_none());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        published.waiting.fetch_sub(1, Ordering::Relaxed);
        state.clone()
    }

    /// The apps that have a place here.
    pub fn apps(&self) -> impl Iterator<Item = &str> {
        self.apps.keys().map(String::as_str)
    }

    /// Whether an app has a place here.
    pub fn has(&self, app: &str) -> bool {
        self.apps.contains_key(app)
    }

    /// Changes each time an app's state does.
    pub fn watch(&self, app: &str) -> Option<watch::Receiver<u64>> {
        Some(self.apps.get(app)?.version.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let module = weft::compile("app a\nstate n: int = 0\nview seen = n\n", "a.weft");
        let module = module.unwrap_or_else(|errors| panic!("{errors}"));
        engine::App::new(Arc::new(module), sealing::NodeId([1; 32])).snapshot()
    }

    #[test]
    fn who_does_not_look_is_found_once_and_who_looks_never() {
        let board = Board::new(&["a".to_owned(), "b".to_owned()]);
        board.publish("a", snapshot());
        board.publish("b", snapshot());
        let watched = board.watch("b");
        for frame in 1..=3 * UNSEEN_FRAMES_MAX {
            let expected = if frame == UNSEEN_FRAMES_MAX { vec!["a".to_owned()] } else { Vec::new() };
            assert_eq!(board.count_frame(), expected, "{frame}");
        }
        drop(watched);
        assert!(board.snapshot("a").is_some());
        let unseen: Vec<String> = (0..UNSEEN_FRAMES_MAX + 1).flat_map(|_| board.count_frame()).collect();
        assert_eq!(unseen, ["b", "a"], "a was looked at, and nobody watches b any more");
    }

    #[test]
    fn what_is_outdated_is_asked_for_and_not_shown() {
        let board = Board::new(&["a".to_owned()]);
        board.publish("a", snapshot());
        let version = |board: &Board| board.watch("a").map(|version| *version.borrow());
        let before = version(&board);
        board.outdate("a");
        board.outdate("a");
        assert_eq!(version(&board), before.map(|before| before + 1), "answers of before are old, once");
        assert!(board.snapshot("a").is_none());
        assert!(board.newest("a", || {}, Duration::ZERO).is_none());
        assert!(board.newest("a", || board.publish("a", snapshot()), Duration::ZERO).is_some());
        assert!(board.newest("other", || panic!("asked for what is not here"), Duration::ZERO).is_none());
    }
}
