//! Who writes the log: a thread that decides nothing, it appends what the owner hands it and syncs it. On a full disk it waits
//! for room and says so.
//!
//! Where nothing else waits for the owner and the disk is quick, the owner writes the frame itself: to wake a thread and be
//! woken by it costs a third of what a quick disk's sync takes, and there is nothing to be done meanwhile.

use crate::room::no_room;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Appended, Change, Folder, Installed, Log, StoreError, Synced};

/// Orders under way: one frame by the store's rule, and what was made beside the log.
const ORDERS_UNDER_WAY: usize = 2;

/// How often a full disk is tried again.
const FULL_DISK_WAIT: Duration = Duration::from_secs(1);

/// The longest that the last frame may have taken where the owner writes the next one itself: what comes meanwhile waits no
/// longer than it would for a moment's work, also where the disk takes a hundred times as long once.
const QUICK_FRAME_MAX: Duration = Duration::from_millis(1);

/// Requests that the owner takes together where the disk is quick and they are there: one sync is enough for them. To take
/// more of them takes longer than to wake the log's thread and take the next while it syncs.
const GATHERED_MAX: usize = 16;

/// The log's thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the log's thread ended: this is a fault of the program")]
pub struct Ended;

/// What the log's thread is to do.
#[derive(Debug)]
enum Order {
    /// One frame is to be written.
    Append {
        /// The batch's number.
        sequence: u64,
        /// Its rows.
        changes: Vec<Change>,
    },
    /// A checkpoint or a spare is in place.
    Installed(Box<Installed>),
}

/// What the log's thread says.
#[derive(Debug, Clone)]
pub enum Said {
    /// A frame is durable.
    Written(Written),
    /// There is no room for a frame, in words; it is tried again until there is.
    Full(String),
}

/// A frame is durable.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// The proof.
    pub synced: Synced,
    /// What the log lacks now.
    pub lacks: Lacks,
}

/// What should be made beside the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lacks {
    /// So much was written that a checkpoint is due.
    pub checkpoint: bool,
    /// A spare of so many bytes.
    pub spare: Option<u64>,
    /// If there is no room for a spare, a checkpoint, for what that frees.
    pub any_room: bool,
    /// How many checkpoints and spares the log had taken by then: what it lacked before it took the newest says nothing.
    pub taken: u64,
}

/// The owner's end of the log. The thread ends when this is dropped, or after the first failure.
#[derive(Debug)]
pub struct LogWriter {
    orders: Sender<Order>,
    said: Receiver<Result<Said, StoreError>>,
    held: Held,
}

/// What holds the log, and with it the lock of the folder, which must outlive everything that writes there.
#[derive(Debug, Clone)]
pub struct Held {
    writer: Arc<Mutex<Writer>>,
    /// The last frame took no longer than [`QUICK_FRAME_MAX`].
    is_quick: Arc<AtomicBool>,
}

impl Held {
    /// The owner hands a frame to the thread or writes it itself, never both: nobody waits here for longer than it takes to
    /// take note of a checkpoint.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A thread that panicked left a log that says itself whether it takes more.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    /// Makes an appended frame durable, whose writing began then.
    fn sync(
        &self,
        writer: &mut Writer,
        appended: Result<Appended, StoreError>,
        begun: Instant,
    ) -> Result<Written, StoreError> {
        let synced = appended.and_then(|appended| writer.log.sync(appended))?;
        self.is_quick.store(begun.elapsed() <= QUICK_FRAME_MAX, Ordering::Relaxed);
        Ok(Written { synced, lacks: writer.lacks() })
    }
}

impl LogWriter {
    /// Starts the thread; it gives back what holds the log.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(log: Log<Folder>) -> io::Result<(LogWriter, JoinHandle<Held>)> {
        let (orders, taken) = bounded::<Order>(ORDERS_UNDER_WAY);
        let (says, said) = bounded(ORDERS_UNDER_WAY);
        let writer = Arc::new(Mutex::new(Writer { log, taken: 0 }));
        let held = Held { writer, is_quick: Arc::default() };
        let of_thread = held.clone();
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            Ends { orders: taken, says }.run(&of_thread);
            of_thread
        })?;
        Ok((LogWriter { orders, said, held }, thread))
    }

    /// Where it is said what came of the frames that the thread writes.
    #[must_use]
    pub fn said(&self) -> &Receiver<Result<Said, StoreError>> {
        &self.said
    }

    /// Whether the owner, which took so many requests since it had the last frame written, takes the next that is there with
    /// them.
    #[must_use]
    pub fn gathers(&self, taken: usize) -> bool {
        taken < GATHERED_MAX && self.held.is_quick()
    }

    /// Has one frame written: what came of it if it was written here, because nothing else waits (`alone`) and the disk is
    /// quick; else none, and the thread says it.
    ///
    /// # Errors
    /// The thread ended.
    pub fn append(
        &self,
        sequence: u64,
        changes: Vec<Change>,
        alone: bool,
    ) -> Result<Option<Result<Written, StoreError>>, Ended> {
        if alone && self.held.is_quick() {
            let mut writer = self.held.writer();
            let begun = Instant::now();
            match writer.log.append(sequence, &changes) {
                // The thread waits for room.
                Err(error) if no_room(&error).is_some() => {}
                result => return Ok(Some(self.held.sync(&mut writer, result, begun))),
            }
        }
        self.orders.send(Order::Append { sequence, changes }).map_err(|_| Ended)?;
        Ok(None)
    }

    /// A checkpoint or a spare is in place.
    ///
    /// # Errors
    /// The thread ended.
    pub fn installed(&self, installed: Installed) -> Result<(), Ended> {
        self.orders.send(Order::Installed(Box::new(installed))).map_err(|_| Ended)
    }
}

/// The log and what is known of it.
#[derive(Debug)]
struct Writer {
    log: Log<Folder>,
    /// Checkpoints and spares taken.
    taken: u64,
}

impl Writer {
    fn take(&mut self, installed: Installed) {
        self.log.checkpointed(installed);
        self.taken += 1;
    }

    fn lacks(&self) -> Lacks {
        Lacks {
            checkpoint: self.log.checkpoint_is_due(),
            spare: self.log.wants_spare(),
            any_room: self.log.is_nearly_out(),
            taken: self.taken,
        }
    }
}

/// The thread's ends.
struct Ends {
    orders: Receiver<Order>,
    says: Sender<Result<Said, StoreError>>,
}

impl Ends {
    /// Carries out orders until nobody gives them any more, or one fails.
    fn run(&self, held: &Held) {
        while let Ok(order) = self.orders.recv() {
            match order {
                Order::Installed(installed) => held.writer().take(*installed),
                Order::Append { sequence, changes } => {
                    let Some(written) = self.write(held, sequence, &changes) else { return };
                    let failed = written.is_err();
                    if self.says.send(written.map(Said::Written)).is_err() || failed {
                        return;
                    }
                }
            }
        }
    }

    /// Writes a frame, waiting for room as long as the disk is full; none if the owner is gone.
    fn write(&self, held: &Held, sequence: u64, changes: &[Change]) -> Option<Result<Written, StoreError>> {
        let mut is_told = false;
        let mut writer = held.writer();
        loop {
            let begun = Instant::now();
            let result = writer.log.append(sequence, changes);
            let Some(full) = result.as_ref().err().and_then(no_room) else {
                return Some(held.sync(&mut writer, result, begun));
            };
            if !std::mem::replace(&mut is_told, true) {
                self.says.send(Ok(Said::Full(full))).ok()?;
            }
            match self.orders.recv_timeout(FULL_DISK_WAIT) {
                Ok(Order::Installed(installed)) => writer.take(*installed),
                // One frame at a time: the owner sends no other before this one is durable.
                Ok(Order::Append { .. }) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}
