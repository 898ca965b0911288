//! What views read: the last published state of each app, and who waits for the next.

use engine::Snapshot;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

#[derive(Debug)]
struct Published {
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    version: watch::Sender<u64>,
}

/// One place an app. Readers never wait for the owner for longer than it takes to put down a pointer.
#[derive(Debug)]
pub struct Board {
    apps: BTreeMap<String, Published>,
}

impl Board {
    /// Places for these apps, still empty.
    pub fn new(apps: &[String]) -> Board {
        let place = || Published { snapshot: RwLock::new(None), version: watch::Sender::new(0) };
        Board { apps: apps.iter().map(|app| (app.clone(), place())).collect() }
    }

    /// Puts up an app's new state and wakes who watches it.
    pub fn publish(&self, app: &str, snapshot: Snapshot) {
        if let Some(published) = self.apps.get(app) {
            *published.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(snapshot));
            published.version.send_modify(|version| *version += 1);
        }
    }

    /// An app's last published state.
    pub fn snapshot(&self, app: &str) -> Option<Arc<Snapshot>> {
        self.apps.get(app)?.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes each time an app's state is published.
    pub fn watch(&self, app: &str) -> Option<watch::Receiver<u64>> {
        Some(self.apps.get(app)?.version.subscribe())
    }
}
