//! The owner's thread: it takes inputs from four mailboxes, and carries the core's effects out in their order.
//!
//! It decides nothing and never blocks but to wait for the next input, or, where none is there, for a quick disk. The mailboxes
//! are bounded; whoever posts into a full one is told.

use crate::board::Board;
use crate::checkpointer::{Checkpointer, Wanted};
use crate::clock;
use crate::log_writer::{Ended, LogWriter, Said, Written};
use crate::room::{Make, Room, no_room};
use crate::web::{TRIES_MAX, Web};
use crossbeam_channel::{Receiver, Sender, TrySendError, after, bounded, never, select};
use fabric::{CommandSender, FabricEvent};
use node_core::{
    Control, ControlError, Core, Effect, Image, Input, Out, Post, PostError, Reply, ReplyId, WebAnswer,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Installed, StoreError, Synced};
use tokio::sync::{oneshot, watch};

/// The longest wait for a timer before the clock is read again: it may have been set, or the machine may have slept.
const TIMER_WAIT_MILLISECONDS_MAX: i64 = 60_000;

/// Posts and control requests that wait for the owner: one batch. A post into a full mailbox is told to come again.
const REQUESTS_MAX: usize = node_core::BATCH_INPUTS_MAX;

/// What the link heard and the owner has not taken: one stream's window. The link's thread waits while it is full, and
/// its peers wait for it in turn.
const LINK_EVENTS_MAX: usize = link::WINDOW_RECORDS;

/// Bytes of what the link heard and the owner has not taken, if each is one of the largest records.
const LINK_EVENTS_BYTES_MAX: usize = 64 << 20;
const _: () = assert!(LINK_EVENTS_MAX * node_core::RECORD_BYTES_MAX <= LINK_EVENTS_BYTES_MAX);

/// A request with who waits for its answer.
#[derive(Debug)]
pub enum Request {
    /// An input of an app; its `reply` is filled in by the owner.
    Post(Post, oneshot::Sender<Reply>),
    /// What the node's owner asks.
    Control(Control, oneshot::Sender<Reply>),
    /// All rows as they are now, once they are on disk.
    Image(oneshot::Sender<Taken>),
    /// Somebody looks at this app's state, and it was not published.
    Look(String),
    /// Take nothing more, finish what was taken, end.
    Stop,
}

/// All rows at the end of a batch, which is on disk.
#[derive(Debug)]
pub struct Taken {
    /// The proof.
    pub synced: Synced,
    /// The rows.
    pub image: Box<Image>,
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// The mailbox is full.
    Full,
    /// The owner ended.
    Gone,
}

/// The mailboxes' far ends.
#[derive(Debug, Clone)]
pub struct Ports {
    requests: Sender<Request>,
    link_events: Sender<FabricEvent>,
    web_answers: WebAnswers,
}

/// Where tries of the web tell what came of them.
#[derive(Debug, Clone)]
pub struct WebAnswers(Sender<WebAnswer>);

impl WebAnswers {
    /// Tells it; this waits while the mailbox is full.
    pub fn tell(&self, answer: WebAnswer) {
        // Without an owner there is nobody to tell: the record is tried again after the next start.
        let _ = self.0.send(answer);
    }
}

/// The mailboxes' near ends.
#[derive(Debug)]
pub struct Mailbox {
    requests: Receiver<Request>,
    link_events: Receiver<FabricEvent>,
    web_answers: Receiver<WebAnswer>,
}

impl Ports {
    /// Mailboxes of an owner.
    pub fn new() -> (Ports, Mailbox) {
        let (requests, taken_requests) = bounded(REQUESTS_MAX);
        let (link_events, taken_link_events) = bounded(LINK_EVENTS_MAX);
        let (web_answers, taken_web_answers) = bounded(TRIES_MAX);
        let mailbox = Mailbox {
            requests: taken_requests,
            link_events: taken_link_events,
            web_answers: taken_web_answers,
        };
        (Ports { requests, link_events, web_answers: WebAnswers(web_answers) }, mailbox)
    }

    /// Posts a request.
    ///
    /// # Errors
    /// The mailbox is full, or the owner is gone; it was not taken.
    pub fn request(&self, request: Request) -> Result<(), NotTaken> {
        self.requests.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => NotTaken::Full,
            TrySendError::Disconnected(_) => NotTaken::Gone,
        })
    }

    /// Where the link's thread tells what it heard; it waits there while the mailbox is full.
    pub fn fabric_events(&self) -> Box<dyn FnMut(FabricEvent) + Send> {
        let link_events = self.link_events.clone();
        Box::new(move |event| {
            // Without an owner there is nobody to tell, and the driver is about to be stopped.
            let _ = link_events.send(event);
        })
    }

    /// Where tries of the web tell what came of them.
    pub fn web_answers(&self) -> WebAnswers {
        self.web_answers.clone()
    }

    /// Waits until all that was taken is on disk and said; none if the owner is gone.
    pub async fn settled(&self) -> Option<()> {
        let (teller, told) = oneshot::channel();
        self.request(Request::Control(Control::Barrier, teller)).ok()?;
        told.await.ok().map(drop)
    }

    /// Asks the owner to finish. The mailbox may be full: then this waits its turn.
    pub fn stop(&self) {
        let _ = self.requests.send(Request::Stop);
    }
}

/// The owner's thread and all it holds.
pub struct Owner {
    core: Core,
    mailbox: Mailbox,
    log: LogWriter,
    checkpointer: Checkpointer,
    /// A checkpoint is to be made of the next image.
    makes_checkpoint: bool,
    /// Who else waits for the next image.
    wants_image: Vec<oneshot::Sender<Taken>>,
    room: Room,
    /// The core was told that there is no room.
    lacks_room: bool,
    link: CommandSender,
    web: Web,
    board: Arc<Board>,
    waiting: HashMap<ReplyId, oneshot::Sender<Reply>>,
    next_reply: u64,
    fault: watch::Sender<Option<String>>,
    /// Asked to stop, the owner takes nothing more; when this reply leaves, all that was taken is on disk and said.
    last_reply: Option<ReplyId>,
    stopped: bool,
    /// When apps' timers want to be fired, in milliseconds since 1970 UTC.
    wake: Option<i64>,
}

impl Owner {
    /// An owner that has not begun.
    pub fn new(
        core: Core,
        mailbox: Mailbox,
        log: LogWriter,
        checkpointer: Checkpointer,
        (link, web): (CommandSender, Web),
        board: Arc<Board>,
        fault: watch::Sender<Option<String>>,
    ) -> Owner {
        Owner {
            core,
            mailbox,
            log,
            checkpointer,
            makes_checkpoint: false,
            wants_image: Vec::new(),
            room: Room::default(),
            lacks_room: false,
            link,
            web,
            board,
            waiting: HashMap::new(),
            next_reply: 0,
            fault,
            last_reply: None,
            stopped: false,
            wake: None,
        }
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn start(self) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("owner".to_owned()).spawn(move || self.run())
    }

    fn run(mut self) {
        let fault = loop {
            if let Err(fault) = self.carry_out() {
                break Some(fault);
            }
            if self.stopped {
                break None;
            }
            if let Err(fault) = self.take_one() {
                break Some(fault);
            }
        };
        if fault.is_some() {
            self.fault.send_replace(fault);
        }
    }

    /// Waits for one input and hands it to the core. Of several that are there a random one is taken, so that none of
    /// them starves another.
    fn take_one(&mut self) -> Result<(), String> {
        let (no_requests, no_events, no_answers, no_checkpoint) = (never(), never(), never(), never());
        let made = self.checkpointer.made().unwrap_or(&no_checkpoint);
        let takes = self.core.has_room() && self.last_reply.is_none();
        let requests = if takes { &self.mailbox.requests } else { &no_requests };
        // While a frame waits for room nothing is taken that could only wait, too.
        let waits = self.room.frame_waits().is_some();
        let events = if takes && !waits { &self.mailbox.link_events } else { &no_events };
        let answers = if takes && !waits { &self.mailbox.web_answers } else { &no_answers };
        let wait = self.wake.filter(|_| takes && !waits).map(|wake| wake.saturating_sub(clock::now()));
        let due = wait.map_or_else(never, |wait| {
            after(Duration::from_millis(wait.clamp(0, TIMER_WAIT_MILLISECONDS_MAX) as u64))
        });
        select! {
            recv(due) -> _ => self.take_time(),
            recv(self.log.said()) -> said => self.take_said(said.ok())?,
            recv(made) -> made => self.take_made(made.ok())?,
            recv(events) -> event => self.take_event(event.ok())?,
            recv(answers) -> answer => self.take_web_answer(answer.ok()),
            recv(requests) -> request => self.take_requests(request.unwrap_or(Request::Stop)),
        }
        Ok(())
    }

    /// The wait for a timer is over; it may have been cut short, or the clock may have been set back.
    fn take_time(&mut self) {
        let now = clock::now();
        if self.wake.is_some_and(|wake| wake <= now) {
            self.core.handle(now, Input::Time);
        }
    }

    fn take_said(&mut self, said: Option<Result<Said, StoreError>>) -> Result<(), String> {
        match said.ok_or_else(|| Ended.to_string())?.map_err(|error| error.to_string())? {
            Said::Written(written) => self.take_written(written),
            Said::Full(why) if self.last_reply.is_some() => return Err(why),
            Said::Full(why) => {
                self.answer_who_waits(&why);
                self.room.full(why);
                self.tell_room();
                self.make_next();
            }
        }
        Ok(())
    }

    /// A frame is durable.
    fn take_written(&mut self, Written { synced, lacks }: Written) {
        self.room.written(lacks);
        if !self.lacks_room {
            for app in self.board.count_frame() {
                self.core.handle(clock::now(), Input::Watched { app, is_watched: false });
            }
        }
        self.core.handle(clock::now(), Input::Synced(synced));
        self.tell_room();
        self.make_next();
    }

    /// Whether nothing waits that the owner could do while a frame is written.
    fn is_idle(&self) -> bool {
        let Mailbox { requests, link_events, web_answers } = &self.mailbox;
        requests.is_empty() && link_events.is_empty() && web_answers.is_empty()
    }

    /// Whoever posted what is in the frame that has no room, or after it, is not left without a word.
    fn answer_who_waits(&mut self, why: &str) {
        for (_, teller) in self.waiting.drain() {
            let _ = teller.send(Reply::Refused(PostError::Waits(why.to_owned())));
        }
    }

    /// The core is told when there is room, or none, and it was not so before.
    fn tell_room(&mut self) {
        let lacking = self.room.lacking();
        if lacking.is_some() != self.lacks_room {
            self.lacks_room = lacking.is_some();
            // Who looks at a node whose log has no more room cannot wait for the next frame.
            for app in self.board.apps().filter(|_| self.lacks_room) {
                self.core.handle(clock::now(), Input::Watched { app: app.to_owned(), is_watched: true });
            }
            self.core.handle(clock::now(), Input::Room(lacking));
        }
    }

    /// Has made what the log lacks, one thing at a time.
    fn make_next(&mut self) {
        if !self.checkpointer.is_idle() {
            return;
        }
        match self.room.make_next() {
            Some(Make::Checkpoint) => {
                self.makes_checkpoint = true;
                self.core.handle(clock::now(), Input::CheckpointDue);
            }
            Some(Make::Spare(bytes)) => self.checkpointer.make(Wanted::Spare(bytes)),
            None => {}
        }
    }

    fn take_made(&mut self, made: Option<Result<Installed, StoreError>>) -> Result<(), String> {
        self.checkpointer.taken(made.as_ref());
        let failed =
            |error: &str| format!("no checkpoint could be made, and the log grows until one is: {error}");
        match made {
            Some(Ok(installed)) => {
                self.room.made();
                self.log.installed(installed).map_err(|ended| ended.to_string())?;
            }
            Some(Err(error)) if no_room(&error).is_some() => {
                self.room.not_made(no_room(&error).unwrap_or_default());
            }
            Some(Err(error)) => {
                self.room.failed();
                let why = failed(&error.to_string());
                self.core.handle(clock::now(), Input::CheckpointFailed(why));
            }
            None => {
                let why = failed("the thread that makes them ended: this is a fault of the program");
                self.core.handle(clock::now(), Input::CheckpointFailed(why));
            }
        }
        self.tell_room();
        self.make_next();
        Ok(())
    }

    fn take_event(&mut self, event: Option<FabricEvent>) -> Result<(), String> {
        match event {
            Some(FabricEvent::Link(effect)) => {
                self.core.handle(clock::now(), Input::Link(effect));
                Ok(())
            }
            Some(FabricEvent::Stopped(error)) => Err(error.to_string()),
            None => Err("the link's thread ended: this is a fault of the program".to_owned()),
        }
    }

    fn take_web_answer(&mut self, answer: Option<WebAnswer>) {
        // The owner's own `Web` holds the mailbox open.
        if let Some(answer) = answer {
            self.core.handle(clock::now(), Input::Web(answer));
        }
    }

    /// Takes a request, and those that are there, too, where one sync is enough for all.
    fn take_requests(&mut self, first: Request) {
        let (mut next, mut taken) = (Some(first), 0);
        while let Some(request) = next {
            self.take_request(request);
            taken += 1;
            let takes = self.core.has_room() && self.last_reply.is_none() && self.log.gathers(taken);
            next = if takes { self.mailbox.requests.try_recv().ok() } else { None };
        }
        self.core.close();
    }

    fn take_request(&mut self, request: Request) {
        let reply = ReplyId(self.next_reply);
        self.next_reply += 1;
        let (input, teller) = match request {
            Request::Post(_, teller) if self.room.frame_waits().is_some() => {
                // It would wait without an answer as long as the disk is full.
                let why = self.room.frame_waits().cloned().unwrap_or_default();
                let _ = teller.send(Reply::Refused(PostError::NoRoom(why)));
                return;
            }
            Request::Control(_, teller) if self.room.frame_waits().is_some() => {
                let why = self.room.frame_waits().cloned().unwrap_or_default();
                let _ = teller.send(Reply::NotDone(ControlError::NoRoom(why)));
                return;
            }
            Request::Post(post, teller) => (Input::Post(Post { reply, ..post }), teller),
            Request::Control(control, teller) => (Input::Control { reply, control }, teller),
            Request::Image(teller) => {
                // Who is gone, as of a disk that stays full, is not kept.
                self.wants_image.retain(|teller| !teller.is_closed());
                self.wants_image.push(teller);
                return self.core.gather(clock::now(), Input::CheckpointDue);
            }
            Request::Look(app) => {
                return self.core.gather(clock::now(), Input::Watched { app, is_watched: true });
            }
            Request::Stop => {
                self.last_reply = Some(reply);
                let barrier = Input::Control { reply, control: Control::Barrier };
                return self.core.gather(clock::now(), barrier);
            }
        };
        self.waiting.insert(reply, teller);
        self.core.gather(clock::now(), input);
    }

    fn carry_out(&mut self) -> Result<(), String> {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    let alone = self.is_idle();
                    let written = self.log.append(sequence, changes, alone);
                    if let Some(written) = written.map_err(|ended| ended.to_string())? {
                        self.take_written(written.map_err(|error| error.to_string())?);
                    }
                }
                Effect::Checkpoint { synced, image } => self.hand_out(synced, image),
                Effect::Out(released) => self.let_out(released.into_inner()),
                Effect::WakeAt(wake) => self.wake = wake,
            }
        }
        Ok(())
    }

    /// An image goes to all who want one: it holds all that was on disk when they asked.
    fn hand_out(&mut self, synced: Synced, image: Box<Image>) {
        for teller in self.wants_image.drain(..) {
            // Who is gone wants it no more.
            let _ = teller.send(Taken { synced, image: image.clone() });
        }
        if std::mem::take(&mut self.makes_checkpoint) {
            self.checkpointer.make(Wanted::Checkpoint { synced, image });
        }
    }

    fn let_out(&mut self, out: Out) {
        match out {
            Out::Publish { app, snapshot } => self.board.publish(&app, snapshot),
            Out::Outdate { app } => self.board.outdate(&app),
            Out::Link(command) => self.link.send(command),
            Out::Web(attempt) => self.web.attempt(attempt),
            Out::Reply { to, .. } if self.last_reply == Some(to) => self.stopped = true,
            Out::Reply { to, reply } => {
                if let Some(teller) = self.waiting.remove(&to) {
                    // Whoever asked may have gone away; what they asked for is done all the same.
                    let _ = teller.send(reply);
                }
            }
        }
    }
}
