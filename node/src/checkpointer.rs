//! The thread that makes checkpoints and spares beside the log: it decides nothing, it takes one step of the store's job after
//! the other, and pauses as long as each took, so that the disk is the log's for half of the time at least.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use node_core::Image;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Checkpoints, Folder, Installed, Progress, StoreError, Synced};

/// The longest pause between two steps: a disk that was slow once must not make a checkpoint last for hours.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// After a failure nothing is tried for so long: a disk that is full or failing is not made better by more.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// What is to be made.
#[derive(Debug)]
pub enum Wanted {
    /// A checkpoint.
    Checkpoint {
        /// Its batch is durable.
        synced: Synced,
        /// Its rows.
        image: Box<Image>,
    },
    /// A spare of so many bytes.
    Spare(u64),
}

/// The ends of the thread that the owner holds.
#[derive(Debug)]
pub struct Checkpointer {
    wanted: Sender<Wanted>,
    made: Receiver<Result<Installed, StoreError>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Busy,
    /// The thread ended by itself: no checkpoint is made any more, and the log goes on.
    Gone,
}

impl Checkpointer {
    /// Starts the thread. It ends when this is dropped, at the latest after a step.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(checkpoints: Checkpoints<Folder>) -> io::Result<(Checkpointer, JoinHandle<()>)> {
        let (wanted, taken) = bounded(1);
        let (done, made) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || run(checkpoints, &taken, &done))?;
        Ok((Checkpointer { wanted, made, state: State::Idle }, thread))
    }

    /// Whether one can be made now.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Where it is told what comes of the one that is under way.
    pub fn made(&self) -> Option<&Receiver<Result<Installed, StoreError>>> {
        (self.state == State::Busy).then_some(&self.made)
    }

    /// One more is to be made.
    pub fn make(&mut self, wanted: Wanted) {
        self.state = if self.wanted.try_send(wanted).is_ok() { State::Busy } else { State::Gone };
    }

    /// What came of one was taken; none if the thread is gone.
    pub fn taken(&mut self, made: Option<&Result<Installed, StoreError>>) {
        self.state = if made.is_some() { State::Idle } else { State::Gone };
    }
}

fn run(
    mut checkpoints: Checkpoints<Folder>,
    wanted: &Receiver<Wanted>,
    done: &Sender<Result<Installed, StoreError>>,
) {
    let mut pause = Duration::ZERO;
    while let Some(next) = next(wanted, pause) {
        match next {
            Wanted::Checkpoint { synced, image } => checkpoints.begin(synced, Box::new(image.into_rows())),
            Wanted::Spare(bytes) => checkpoints.begin_spare(bytes),
        }
        let Some(result) = make(&mut checkpoints, wanted) else { return };
        pause = if result.is_err() { PAUSE_AFTER_FAILURE } else { Duration::ZERO };
        if done.send(result).is_err() {
            return;
        }
    }
}

/// Makes what was begun; none if the owner is gone.
fn make(
    checkpoints: &mut Checkpoints<Folder>,
    wanted: &Receiver<Wanted>,
) -> Option<Result<Installed, StoreError>> {
    loop {
        let begun = Instant::now();
        match checkpoints.step() {
            Ok(Some(Progress::Done(installed))) => return Some(Ok(installed)),
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        // One is under way, so nothing else comes.
        let pause = wanted.recv_timeout(begun.elapsed().min(PAUSE_MAX));
        if matches!(pause, Err(RecvTimeoutError::Disconnected)) {
            return None;
        }
    }
}

/// What is to be made next, after a pause; none if the owner is gone.
fn next(wanted: &Receiver<Wanted>, pause: Duration) -> Option<Wanted> {
    let until = Instant::now() + pause;
    let next = wanted.recv().ok()?;
    while Instant::now() < until {
        if matches!(wanted.recv_deadline(until), Err(RecvTimeoutError::Disconnected)) {
            return None;
        }
    }
    Some(next)
}
