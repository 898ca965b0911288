//! What HTTP asks, brought to the owner's mailbox and back; views are read from the board.

use crate::board::Board;
use crate::clock;
use crate::handle::{
    Control, ControlError, Description, Door, Effort, Field, Handle, Look, NamedType, Pieces, Post,
    PostError, ViewError,
};
use crate::http::{LITTLE_OPERATIONS_MAX, VIEW_BYTES_MAX, VIEWS_BYTES_MAX};
use crate::owner::{NotTaken, Ports, Request, Taken};
use crate::process::Ready;
use crate::rehearsal::{self, Before, NoPlan, Wanted};
use engine::{Allowance, Snapshot, ViewLimits};
use node_core::{Reply, ReplyId};
use sealing::{NodeId, Ticket};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{BackedUp, Backup};
use tokio::sync::{Semaphore, oneshot, watch};
use weft::change::schema::Schema;
use weft::{Module, module};

/// When it is worth coming again to a full mailbox: it holds a batch, which takes about this long on a slow card.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Plans being made: each holds a copy of what the app keeps as far as it changes, and a processor.
const PLANS_AT_ONCE: usize = 1;
/// When it is worth coming again while a plan is being made: most take less.
const PLAN_AGAIN_AFTER_SECONDS: u32 = 2;

/// Backups being made: each holds all rows as they were when it began, and what changes meanwhile is kept twice.
const BACKUPS_AT_ONCE: usize = 1;
/// When it is worth coming again while a backup is being made.
const BACK_UP_AGAIN_AFTER_SECONDS: u32 = 10;

/// How long who looks waits for a state that was not published: some frames on a slow card.
const STATE_WAIT_MAX: Duration = Duration::from_secs(2);
const NOT_PUBLISHED: &str =
    "the node is busy, or its disk slow or full: what the app keeps now could not be shown yet";

/// A cheap handle on a running node.
#[derive(Debug, Clone)]
pub struct Service {
    node: Arc<About>,
    ports: Ports,
    board: Arc<Board>,
    /// Of what views make.
    allowance: Arc<Allowance>,
    /// Places for plans being made.
    plans: Arc<Semaphore>,
    /// Places for backups being made.
    backups: Arc<Semaphore>,
}

#[derive(Debug)]
struct About {
    log_id: [u8; 16],
    node: NodeId,
    ticket: String,
    apps: Vec<String>,
    /// What each app takes and shows.
    described: BTreeMap<String, Description>,
    token: String,
}

/// Why there is no reply.
enum NoReply {
    Full,
    Stopping,
    /// It was taken, and the owner ended before it answered.
    Unknown,
}

impl Service {
    /// The service of a node that is ready: its apps' states are published.
    pub fn new(ready: &Ready, log_id: [u8; 16], token: String, ports: Ports, board: Arc<Board>) -> Service {
        let (ticket, apps) = (ready.ticket.to_string(), ready.apps.clone());
        let described =
            apps.iter().filter_map(|app| Some((app.clone(), description(board.snapshot(app)?.module()))));
        let described = described.collect();
        let about = About { log_id, node: ready.node, ticket, apps, described, token };
        Service {
            node: Arc::new(about),
            ports,
            board,
            allowance: Allowance::new(VIEWS_BYTES_MAX),
            plans: Arc::new(Semaphore::new(PLANS_AT_ONCE)),
            backups: Arc::new(Semaphore::new(BACKUPS_AT_ONCE)),
        }
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, NoReply> {
        let (teller, told) = oneshot::channel();
        self.ports.request(request(teller)).map_err(|error| match error {
            NotTaken::Full => NoReply::Full,
            NotTaken::Gone => NoReply::Stopping,
        })?;
        told.await.map_err(|_| NoReply::Unknown)
    }

    /// What another version of an app would do to the state that was published last. It ends when this is dropped.
    async fn plan(&self, source: String) -> Result<Value, ControlError> {
        let place = Arc::clone(&self.plans).try_acquire_owned();
        let place =
            place.map_err(|_| ControlError::Planning { retry_after_seconds: PLAN_AGAIN_AFTER_SECONDS })?;
        let board = Arc::clone(&self.board);
        let (asked, began) = (Arc::new(()), Instant::now());
        let still_asked = Arc::downgrade(&asked);
        let wanted = move || match still_asked.strong_count() {
            0 => Wanted::No,
            _ if began.elapsed() >= rehearsal::TIME_MAX => Wanted::NoTime,
            _ => Wanted::Yes,
        };
        let fault =
            |_| ControlError::Unknown("the plan could not be made; this is a fault of the node's".to_owned());
        let read = tokio::task::spawn_blocking(move || rehearsal::read(&source)).await;
        let module = read.map_err(fault)?.map_err(no_plan)?;
        let sends = self.sends(&module.name).await?;
        let ports = self.ports.clone();
        let planned = tokio::task::spawn_blocking(move || {
            let _place = place;
            plan((&board, &ports), module, sends, &wanted)
        });
        let planned = planned.await;
        drop(asked);
        planned.map_err(fault)?
    }

    /// Sends of an app without an outcome, by their output's name.
    async fn sends(&self, app: &str) -> Result<BTreeMap<String, u64>, ControlError> {
        let control = node_core::Control::Sends(app.to_owned());
        match self.ask(|teller| Request::Control(control, teller)).await {
            Ok(Reply::Sends(sends)) => Ok(sends),
            Ok(Reply::Refused(waits)) => Err(ControlError::Unknown(waits.to_string())),
            Ok(reply) => Err(ControlError::Unknown(format!("the owner answered {reply:?}"))),
            Err(no_reply) => Err(no_reply.into()),
        }
    }

    async fn ask_control(&self, control: node_core::Control) -> Result<Value, ControlError> {
        match self.ask(|teller| Request::Control(control, teller)).await {
            Ok(Reply::Done) => Ok(json!({})),
            Ok(Reply::Status(status)) => {
                let mut value = json!(status);
                value["ticket"] = json!(self.node.ticket);
                Ok(value)
            }
            Ok(Reply::NotDone(error)) => Err(control_error(error)),
            Ok(reply) => Err(ControlError::Unknown(format!("the owner answered {reply:?}"))),
            Err(no_reply) => Err(no_reply.into()),
        }
    }
}

impl From<NoReply> for ControlError {
    fn from(no_reply: NoReply) -> ControlError {
        match no_reply {
            NoReply::Full => ControlError::Full { retry_after_seconds: RETRY_AFTER_SECONDS },
            NoReply::Stopping => ControlError::Stopping,
            NoReply::Unknown => ControlError::Unknown(STOPPED.to_owned()),
        }
    }
}

const STOPPED: &str = "the node stopped before it answered";

impl Handle for Service {
    async fn post(&self, post: Post) -> Result<Option<String>, PostError> {
        let Post { app, input, body, by, idempotency_key } = post;
        let post = node_core::Post { reply: ReplyId(0), app, input, body, by, idempotency_key };
        match self.ask(|teller| Request::Post(post, teller)).await {
            Ok(Reply::Applied(answer)) => Ok(answer),
            Ok(Reply::Refused(error)) => Err(post_error(error)),
            Ok(reply) => Err(PostError::Unknown(format!("the owner answered {reply:?}"))),
            Err(NoReply::Full) => Err(PostError::Full { retry_after_seconds: RETRY_AFTER_SECONDS }),
            Err(NoReply::Stopping) => Err(PostError::Stopping),
            Err(NoReply::Unknown) => Err(PostError::Unknown(STOPPED.to_owned())),
        }
    }

    fn view(&self, Look { app, view, query, by, effort }: Look<'_>) -> Result<String, ViewError> {
        let no_such_route = || ViewError::NoSuchRoute { app: app.to_owned(), view: view.to_owned() };
        if !self.board.has(app) {
            return Err(no_such_route());
        }
        let snapshot = newest(&self.board, &self.ports, app).ok_or_else(|| ViewError::Crowded {
            words: NOT_PUBLISHED.to_owned(),
            retry_after_seconds: RETRY_AFTER_SECONDS,
        })?;
        let operations = match effort {
            Effort::Little => LITTLE_OPERATIONS_MAX,
            Effort::Whole => engine::OPERATIONS_MAX,
        };
        let limits = ViewLimits { operations, result_bytes: VIEW_BYTES_MAX, allowance: &self.allowance };
        let looked = snapshot.view_within(view, query, by, clock::now(), limits);
        looked.map_err(|error| {
            let words = error.to_string();
            match error {
                engine::ViewError::Budget { .. } | engine::ViewError::Crowded { .. }
                    if effort == Effort::Little =>
                {
                    ViewError::Costly
                }
                engine::ViewError::NoSuchView { .. } => no_such_route(),
                engine::ViewError::Shape { .. } => ViewError::Shape(words),
                engine::ViewError::Refused { .. } => ViewError::Refused(words),
                engine::ViewError::Budget { .. } | engine::ViewError::TooLarge { .. } => {
                    ViewError::Budget(words)
                }
                engine::ViewError::Crowded { .. } => {
                    ViewError::Crowded { words, retry_after_seconds: RETRY_AFTER_SECONDS }
                }
            }
        })
    }

    fn watch(&self, app: &str) -> Option<watch::Receiver<u64>> {
        self.board.watch(app)
    }

    async fn control(&self, request: Control) -> Result<Value, ControlError> {
        match request {
            Control::AddPeer { ticket, name, addresses } => {
                let ticket: Ticket =
                    ticket.trim().parse().map_err(|error| ControlError::Shape(format!("{error}")))?;
                self.ask_control(node_core::Control::AddPeer { ticket, name, addresses }).await
            }
            Control::RemovePeer { node } if is_endpoint(&node) => {
                self.ask_control(node_core::Control::GiveUp(node)).await
            }
            Control::RemovePeer { node } => {
                let node: NodeId =
                    node.trim().parse().map_err(|error| ControlError::Shape(format!("{error}")))?;
                self.ask_control(node_core::Control::RemovePeer(node)).await
            }
            Control::Resume { node } => {
                let node: NodeId =
                    node.trim().parse().map_err(|error| ControlError::Shape(format!("{error}")))?;
                self.ask_control(node_core::Control::Resume(node)).await
            }
            Control::Peers => {
                let mut status = self.ask_control(node_core::Control::Status).await?;
                Ok(status["peers"].take())
            }
            Control::Status => self.ask_control(node_core::Control::Status).await,
            Control::Plan { source } => self.plan(source).await,
        }
    }

    async fn backup(&self) -> Result<Pieces, ControlError> {
        let place = Arc::clone(&self.backups).try_acquire_owned();
        let place = place
            .map_err(|_| ControlError::BackingUp { retry_after_seconds: BACK_UP_AGAIN_AFTER_SECONDS })?;
        let Taken { synced, image } = self.ask(Request::Image).await?;
        let about = BackedUp::after(self.node.log_id, &synced);
        let mut backup = Backup::new(&about, Box::new(image.into_rows()));
        Ok(Box::new(std::iter::from_fn(move || {
            let _place = &place;
            backup.next().map(|piece| piece.map_err(|error| error.to_string()))
        })))
    }

    fn token(&self) -> &str {
        &self.node.token
    }

    fn describe(&self, app: &str) -> Option<Description> {
        self.node.described.get(app).cloned()
    }

    fn apps(&self) -> Vec<String> {
        self.node.apps.clone()
    }

    fn node_id(&self) -> String {
        self.node.node.to_string()
    }
}

/// Whether it is an address on the web, and no node's id.
fn is_endpoint(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// An app's newest durable state; this may wait for the batch that is open.
fn newest(board: &Board, ports: &Ports, app: &str) -> Option<Arc<Snapshot>> {
    let ask = || {
        // A full mailbox is told by that nothing comes.
        let _ = ports.request(Request::Look(app.to_owned()));
    };
    board.newest(app, ask, STATE_WAIT_MAX)
}

fn plan(
    (board, ports): (&Board, &Ports),
    module: Module,
    sends: BTreeMap<String, u64>,
    wanted: &dyn Fn() -> Wanted,
) -> Result<Value, ControlError> {
    let never = || {
        let app = &module.name;
        ControlError::Refused(format!(
            "the app {app} does not run on this node: there is nothing that could change"
        ))
    };
    if !board.has(&module.name) {
        return Err(never());
    }
    let unpublished = || ControlError::Refused(NOT_PUBLISHED.to_owned());
    let snapshot = newest(board, ports, &module.name).ok_or_else(unpublished)?;
    let schema = Schema::of(snapshot.module());
    let before = Before { schema: &schema, module: Some(snapshot.module()), snapshot: &snapshot, sends };
    rehearsal::rehearse(before, module, clock::now(), wanted).map_err(no_plan)
}

fn no_plan(error: NoPlan) -> ControlError {
    match error {
        NoPlan::Source(words) => ControlError::Shape(words),
        NoPlan::NoTime => ControlError::Refused(error.to_string()),
        NoPlan::GivenUp => ControlError::Stopping,
    }
}

fn description(module: &Module) -> Description {
    let field = |field: &module::Field| Field {
        name: field.name.clone(),
        kind: module.type_name(&field.kind),
        optional: field.default.is_some(),
    };
    let door = |door: &module::Door| Door {
        name: door.name.clone(),
        fields: door.fields.iter().map(field).collect(),
        answer: door.answer.as_ref().map(|kind| module.type_name(kind)),
    };
    let enums = module.enums.iter().map(|named| NamedType {
        name: named.name.clone(),
        declaration: format!("enum {} {{ {} }}", named.name, named.cases.join(", ")),
    });
    let records = module.records.iter().filter_map(|record| {
        let name = record.name.clone()?;
        let written = |field: &module::Field| format!("{}: {}", field.name, module.type_name(&field.kind));
        let fields: Vec<String> = record.fields.iter().map(written).collect();
        let declaration = format!("record {name} {{ {} }}", fields.join(", "));
        Some(NamedType { name, declaration })
    });
    Description {
        app: module.name.clone(),
        inputs: module.inputs.iter().map(door).collect(),
        views: module.views.iter().map(door).collect(),
        types: enums.chain(records).collect(),
    }
}

fn post_error(error: node_core::PostError) -> PostError {
    match error {
        node_core::PostError::NoSuchInput { app, input } => PostError::NoSuchRoute { app, input },
        node_core::PostError::Shape(words) => PostError::Shape(words),
        node_core::PostError::Refused(words) => PostError::Refused(words),
        node_core::PostError::Budget(words) => PostError::Budget(words),
        error @ node_core::PostError::AnswerForgotten => PostError::AnswerForgotten(error.to_string()),
        error @ node_core::PostError::NoRoom(_) => PostError::Unwritable(error.to_string()),
        error @ node_core::PostError::Waits(_) => PostError::Unknown(error.to_string()),
    }
}

fn control_error(error: node_core::ControlError) -> ControlError {
    match error {
        node_core::ControlError::NoSuchPeer(node) => ControlError::NoSuchPeer { node: node.to_string() },
        error => ControlError::Refused(error.to_string()),
    }
}
