//! A node without its network: the core, the log's thread and the checkpoints' thread, as a node runs them, and a loop that is
//! its owner's but for mailboxes: what is posted comes from the measurement.

use crate::BenchError;
use ::store::{Folder, Installed, Log, StoreError};
use crossbeam_channel::{never, select};
use node::board::Board;
use node::checkpointer::{Checkpointer, Wanted};
use node::log_writer::{LogWriter, Said, Written};
use node::room::{Make, Room};
use node_core::{Core, Effect, Input, Out, Post, Recovery, Reply, ReplyId, Source, Start};
use sealing::{NodeId, Run};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Every event is at this time.
pub const NOW: i64 = 1_767_603_600_000;

/// A node that runs one app.
pub struct Ours {
    core: Core,
    app: String,
    log: Option<LogWriter>,
    checkpointer: Option<Checkpointer>,
    room: Room,
    board: Arc<Board>,
    /// Checkpoints that were finished.
    checkpoints: usize,
    /// Whether checkpoints are made when they are due.
    makes_checkpoints: bool,
    /// Frames that are being written.
    under_way: usize,
    /// Whether more is about to be posted: what a node sees in its mailbox.
    more_waits: bool,
    /// Posts without an answer.
    unanswered: usize,
    /// The first answer that is not the one of an event that was applied.
    wrong: Option<String>,
    threads: Vec<JoinHandle<()>>,
}

/// A folder opened and its core recovered, with nothing around it yet.
struct Recovered {
    core: Core,
    log: Log<Folder>,
    app: String,
}

impl Recovered {
    /// Opens a folder, or makes one, with an app of this source.
    fn open(path: &Path, source: &str) -> Result<Recovered, BenchError> {
        Recovered::open_and(path, source, || {})
    }

    fn open_and(path: &Path, source: &str, log_is_read: impl FnOnce()) -> Result<Recovered, BenchError> {
        let module = weft::compile(source, "bench.weft");
        let module = module.map_err(|errors| BenchError::Compile(errors.to_string()))?;
        let app = module.name.clone();
        let mut recovery = Recovery::default();
        let folder = Folder::open(path)?;
        let (log, opened) = Log::open(folder, entropy(path), &mut |change| recovery.change(change))?;
        log_is_read();
        let apps = vec![Source { text: source.to_owned(), module, settings: Vec::new(), allow_loss: false }];
        let core = recovery.start(Start {
            me: NodeId([7; 32]),
            run: Run { counter: opened.run, random: [1; 16] },
            entropy: [2; 32],
            now: NOW,
            synced: opened.synced,
            apps,
            notices: Vec::new(),
        })?;
        Ok(Recovered { core, log, app })
    }
}

/// A secret for the segments: what is measured is not to be kept secret.
fn entropy(path: &Path) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(path.as_os_str().as_encoded_bytes()).into()
}

impl Ours {
    /// A node on a folder. It has published its state, and nothing is under way.
    pub fn open(path: &Path, source: &str) -> Result<Ours, BenchError> {
        Ours::start(Recovered::open(path, source)?)
    }

    /// The same, saying what a clock says when the log was read, and when the core was made of it.
    pub fn open_in_steps(
        path: &Path,
        source: &str,
        clock: impl Fn() -> f64,
    ) -> Result<(Ours, [f64; 2]), BenchError> {
        let mut read = 0.0;
        let recovered = Recovered::open_and(path, source, || read = clock())?;
        let made = clock();
        Ok((Ours::start(recovered)?, [read, made]))
    }

    /// Starts what runs around a core.
    fn start(recovered: Recovered) -> Result<Ours, BenchError> {
        let Recovered { core, log, app, .. } = recovered;
        let (checkpointer, checkpoints_thread) =
            Checkpointer::start(log.checkpoints()).map_err(BenchError::Disk)?;
        let (log, log_thread) = LogWriter::start(log).map_err(BenchError::Disk)?;
        let log_thread = std::thread::spawn(move || {
            // With the log goes the folder's lock.
            let _ = log_thread.join();
        });
        let mut ours = Ours {
            core,
            board: Arc::new(Board::new(std::slice::from_ref(&app))),
            app,
            log: Some(log),
            checkpointer: Some(checkpointer),
            room: Room::default(),
            checkpoints: 0,
            makes_checkpoints: true,
            under_way: 0,
            more_waits: false,
            unanswered: 0,
            wrong: None,
            threads: vec![checkpoints_thread, log_thread],
        };
        ours.settle()?;
        Ok(ours)
    }

    /// Where views find the newest durable state.
    pub fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Checkpoints that were finished.
    pub fn checkpoints(&self) -> usize {
        self.checkpoints
    }

    /// Whether one is being made.
    pub fn makes_one(&self) -> bool {
        self.checkpointer.as_ref().is_some_and(|checkpointer| !checkpointer.is_idle())
    }

    /// From now on none is begun, though one be due, or they are again.
    pub fn make_checkpoints(&mut self, makes: bool) {
        self.makes_checkpoints = makes;
    }

    /// Begins one, though none be due.
    pub fn begin_checkpoint(&mut self) -> Result<(), BenchError> {
        self.core.handle(NOW, Input::CheckpointDue);
        self.carry_out()
    }

    /// Posts an input.
    pub fn post(&mut self, input: &str, body: Vec<u8>) -> Result<(), BenchError> {
        self.gather(input, body);
        self.core.close();
        self.carry_out()
    }

    fn gather(&mut self, input: &str, body: Vec<u8>) {
        let (app, input) = (self.app.clone(), input.to_owned());
        let post =
            Post { reply: ReplyId(1), app, input, body, by: "local".to_owned(), idempotency_key: None };
        self.unanswered += 1;
        self.core.gather(NOW, Input::Post(post));
    }

    /// Posts a batch as a node takes what waits in its mailbox: a few together where its disk is quick, which it then writes
    /// itself; else while the batch before is being written, for which this waits then. So batches are as large as they are
    /// asked to be, but for the first post of many that finds nothing under way.
    pub fn batch(&mut self, input: &str, bodies: Vec<Vec<u8>>) -> Result<(), BenchError> {
        let log = self.log.as_ref().ok_or_else(ended)?;
        let together = self.under_way == 0 && log.gathers(bodies.len().saturating_sub(1));
        self.more_waits = !together;
        for body in bodies {
            self.gather(input, body);
            if !together {
                self.core.close();
                self.carry_out()?;
            }
        }
        self.core.close();
        self.carry_out()?;
        self.wait()
    }

    /// Waits until the frame that is under way is durable, if one is.
    pub fn wait(&mut self) -> Result<(), BenchError> {
        while self.under_way > 0 && !self.take()? {}
        Ok(())
    }

    /// Waits until everything that was posted is durable and answered.
    pub fn settle(&mut self) -> Result<(), BenchError> {
        self.more_waits = false;
        self.carry_out()?;
        while self.under_way > 0 {
            self.take()?;
        }
        match (self.wrong.take(), self.unanswered) {
            (None, 0) => Ok(()),
            (None, left) => Err(wrong(format!("{left} posts without an answer"))),
            (Some(said), _) => Err(wrong(said)),
        }
    }

    /// Waits until no checkpoint is being made.
    pub fn finish_checkpoint(&mut self) -> Result<(), BenchError> {
        while self.makes_one() {
            self.take()?;
        }
        Ok(())
    }

    /// Takes one thing that a thread says; whether it was a frame.
    fn take(&mut self) -> Result<bool, BenchError> {
        let nothing = never();
        let made = self.checkpointer.as_ref().and_then(Checkpointer::made).unwrap_or(&nothing);
        let said = self.log.as_ref().ok_or_else(ended)?.said();
        let is_frame = select! {
            recv(said) -> said => { self.take_said(said.map_err(|_| ended())??)?; true }
            recv(made) -> made => { self.take_made(made.map_err(|_| ended())?)?; false }
        };
        self.carry_out()?;
        Ok(is_frame)
    }

    /// Takes what is there without waiting.
    pub fn take_what_is_there(&mut self) -> Result<(), BenchError> {
        let made = self.checkpointer.as_ref().and_then(Checkpointer::made);
        if let Some(made) = made.and_then(|made| made.try_recv().ok()) {
            self.take_made(made)?;
        }
        self.carry_out()
    }

    fn take_said(&mut self, said: Said) -> Result<(), BenchError> {
        match said {
            Said::Written(written) => {
                self.under_way -= 1;
                self.take_written(written);
                Ok(())
            }
            Said::Full(why) => Err(BenchError::Machine(format!("the disk is full: {why}"))),
        }
    }

    fn take_written(&mut self, Written { synced, lacks }: Written) {
        self.room.written(lacks);
        for app in self.board.count_frame() {
            self.core.handle(NOW, Input::Watched { app, is_watched: false });
        }
        self.core.handle(NOW, Input::Synced(synced));
        self.make_next();
    }

    fn make_next(&mut self) {
        let Some(checkpointer) = self.checkpointer.as_mut().filter(|one| one.is_idle()) else { return };
        if !self.makes_checkpoints {
            return;
        }
        match self.room.make_next() {
            Some(Make::Checkpoint) => self.core.handle(NOW, Input::CheckpointDue),
            Some(Make::Spare(bytes)) => checkpointer.make(Wanted::Spare(bytes)),
            None => {}
        }
    }

    fn take_made(&mut self, made: Result<Installed, StoreError>) -> Result<(), BenchError> {
        if let Some(checkpointer) = &mut self.checkpointer {
            checkpointer.taken(Some(&made));
        }
        let installed = made?;
        self.checkpoints += usize::from(installed.checkpoint.is_some());
        self.room.made();
        self.log.as_ref().ok_or_else(ended)?.installed(installed).map_err(|_| ended())?;
        self.make_next();
        Ok(())
    }

    fn carry_out(&mut self) -> Result<(), BenchError> {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    let log = self.log.as_ref().ok_or_else(ended)?;
                    match log.append(sequence, changes, !self.more_waits).map_err(|_| ended())? {
                        Some(written) => self.take_written(written?),
                        None => self.under_way += 1,
                    }
                }
                Effect::Checkpoint { synced, image } => {
                    if let Some(checkpointer) = &mut self.checkpointer {
                        checkpointer.make(Wanted::Checkpoint { synced, image });
                    }
                }
                Effect::Out(released) => match released.into_inner() {
                    Out::Publish { app, snapshot } => self.board.publish(&app, snapshot),
                    Out::Outdate { app } => self.board.outdate(&app),
                    Out::Reply { reply: Reply::Applied(_), .. } => self.unanswered -= 1,
                    Out::Reply { reply, .. } => {
                        self.unanswered -= 1;
                        self.wrong.get_or_insert(format!("{reply:?}"));
                    }
                    Out::Link(_) | Out::Web(_) => {}
                },
                Effect::WakeAt(_) => {}
            }
        }
        Ok(())
    }

    /// A view of the newest durable state; nothing is under way.
    pub fn view(&mut self, name: &str, query: &[(String, String)]) -> Result<String, BenchError> {
        if self.board.snapshot(&self.app).is_none() {
            // As a node does where nobody looked for a while.
            self.core.handle(NOW, Input::Watched { app: self.app.clone(), is_watched: true });
            self.carry_out()?;
        }
        let snapshot = self.board.snapshot(&self.app).ok_or_else(|| wrong("nothing published".to_owned()))?;
        Ok(snapshot.view(name, query, "local", NOW)?)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // Both threads end when nobody can give them orders any more, and hold the folder until then.
        (self.log, self.checkpointer) = (None, None);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn wrong(found: String) -> BenchError {
    BenchError::Wrong { who: "our node".into(), expected: "an event applied".into(), found }
}

fn ended() -> BenchError {
    BenchError::Process("a thread of ours ended".into())
}
