//! A node's start and end: folder, identity, sockets, log, core, threads, HTTP; and all of it in reverse.

use crate::board::Board;
use crate::checkpointer::Checkpointer;
use crate::folder::{self, Looked};
use crate::http;
use crate::log_writer::{Held, LogWriter};
use crate::owner::{Owner, Ports};
use crate::service::Service;
use crate::source::{self, SourceError};
use crate::web::Web;
use fabric::{Driver, FabricError};
use node_core::{Core, Source, Start, StartError};
use sealing::{Identity, NodeId, Run, Ticket};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use store::{Folder, Log, Memory, Opened, Storage, StoreError};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use weft::Module;
use weft::change::Plan;

/// The version of a node's card; cards are not rotated in this version.
pub(crate) const CARD_SEQUENCE: u64 = 1;

const OWNER_ENDED: &str = "the owner's thread ended: this is a fault of the program";

/// What a node is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its folder: identity, log, memo. Made if it is not there.
    pub dir: PathBuf,
    /// Files of the apps to run.
    pub apps: Vec<PathBuf>,
    /// Settings of apps.
    pub settings: Vec<Set>,
    /// Apps whose changed source may lose what they keep.
    pub allow_loss: Vec<String>,
    /// Where HTTP listens; port 0 takes a free one.
    pub http: SocketAddr,
    /// Where datagrams come; port 0 takes the one of last time if it is free, else another.
    pub fabric: SocketAddr,
    /// Datagrams are padded to a few lengths, and links have other ids after a move.
    pub discreet: bool,
}

/// A value for a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The app's name.
    pub app: String,
    /// The setting's name.
    pub name: String,
    /// JSON text.
    pub value: String,
}

/// What a node is once it serves.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Who it is.
    pub node: NodeId,
    /// Where HTTP listens.
    pub http: SocketAddr,
    /// Where datagrams come.
    pub fabric: SocketAddr,
    /// The names of its apps.
    pub apps: Vec<String>,
    /// What to give to somebody who is to add it as a peer.
    pub ticket: Ticket,
    /// What this start changed of what apps keep.
    pub changes: Vec<Plan>,
    /// What this start found and mended in the log, for people.
    pub notices: Vec<String>,
}

/// Why a node does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// An app's file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadApp {
        /// The file.
        path: PathBuf,
        /// Why.
        source: SourceError,
    },
    /// An app does not compile; the text shows where and why.
    #[error("{}{}", diagnostics, "the node was not started; its folder is unchanged")]
    Compile {
        /// What the compiler says, rendered.
        diagnostics: String,
    },
    /// A setting of an app that is not run, or one twice.
    #[error("--set {app}.{name}: {what}")]
    Setting {
        /// The app named.
        app: String,
        /// The setting named.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// Leave to lose for an app that is not run.
    #[error("--allow-loss {app}: there is no app {app} here: it runs {}", there.join(", "))]
    AllowLoss {
        /// The app named.
        app: String,
        /// The apps that are run.
        there: Vec<String>,
    },
    /// The port of HTTP cannot be had.
    #[error(
        "cannot listen for HTTP on {address}: {source}; choose another with --http, port 0 takes a free one"
    )]
    Http {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The address for datagrams cannot be had.
    #[error("--fabric: {0}")]
    FabricAddress(FabricError),
    /// The links.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The folder or the log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log does not fit the apps.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The file with the node's keys is damaged.
    #[error("{}: {what}. Put back the copy that you kept of it; without it this node is lost, and a new folder makes a new node", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The folder was a node's, and its log is gone.
    #[error("{}: this node's log is gone (the files log-*), and with it its apps' rows, its peers and what it heard of them. Put the files back. Without them begin a new node in a new folder: with this one's identity its peers would take it for the old one", path.display())]
    NoLog {
        /// The folder.
        path: PathBuf,
    },
    /// The log is not the one of this node's last start.
    #[error("{}: the log is another node's, or another copy's, than the last start here had. Put back the files that belong together; if they do, remove control.json", path.display())]
    OtherLog {
        /// The folder.
        path: PathBuf,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Entropy(getrandom::Error),
    /// A thread of the node ended by itself.
    #[error("{0}")]
    Stopped(String),
    /// A thread could not be started.
    #[error("the system starts no more threads: {0}")]
    Thread(std::io::Error),
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    ready: Ready,
    ports: Ports,
    stop_http: Option<oneshot::Sender<()>>,
    http: tokio::task::JoinHandle<std::io::Result<()>>,
    fabric: Option<fabric::DriverHandle>,
    owner: Option<JoinHandle<()>>,
    log: Option<JoinHandle<Held>>,
    checkpointer: Option<JoinHandle<()>>,
    fault: watch::Receiver<Option<String>>,
}

impl Node {
    /// Starts a node; returns once it serves.
    ///
    /// # Errors
    /// What cannot be had, and what to do; then nothing runs on and nothing was changed but what the text says.
    pub async fn start(config: Config) -> Result<Node, NodeError> {
        let mut apps = compile(&config.apps)?;
        give_settings(&mut apps, config.settings)?;
        allow_loss(&mut apps, config.allow_loss)?;
        let names = apps.iter().map(|app| app.module.name.clone()).collect::<Vec<_>>();
        // Before the folder is touched: of two the first could change what it keeps.
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(StartError::Twice(twice.clone()).into());
        }
        let folder = Folder::open(&config.dir)?;
        let path = folder.path().to_owned();
        let listener = listen(config.http).await?;
        let http =
            listener.local_addr().map_err(|source| NodeError::Http { address: config.http, source })?;
        let socket = folder::bind_fabric(&path, config.fabric)?;
        let local = fabric::local_address(&socket)?;

        let Recovered { identity, mut log, opened, core } = recover(folder, apps)?;
        let identity = Arc::new(identity);
        let control = folder::ControlFile::new(http, local, opened.log_id)?;
        control.write(log.storage())?;
        let run = core.run();
        let changes = core.plans().to_vec();
        let board = Arc::new(Board::new(&names));
        let (fault_teller, fault) = watch::channel(None);
        let (ports, mailbox) = Ports::new();
        let checkpoints = Checkpointer::start(log.checkpoints()).map_err(NodeError::Thread)?;
        let (checkpointer, checkpoint_thread) = checkpoints;
        let (log, log_thread) = LogWriter::start(log).map_err(NodeError::Thread)?;
        let driver = Driver::start(
            fabric::Config {
                identity: Arc::clone(&identity),
                card: identity.card(CARD_SEQUENCE),
                run,
                entropy: entropy()?,
                record_bytes_max: node_core::RECORD_BYTES_MAX,
                discreet: config.discreet,
                socket,
                folder: path,
            },
            ports.fabric_events(),
        )?;
        let web = Web::new(tokio::runtime::Handle::current(), ports.web_answers());
        let world = (driver.sender(), web);
        let owner = Owner::new(core, mailbox, log, checkpointer, world, Arc::clone(&board), fault_teller);
        let owner_thread = owner.start().map_err(NodeError::Thread)?;
        if ports.settled().await.is_none() {
            let fault = fault.borrow().clone();
            return Err(NodeError::Stopped(fault.unwrap_or_else(|| OWNER_ENDED.to_owned())));
        }

        let ready = Ready {
            node: identity.id(),
            http,
            fabric: local,
            apps: names,
            ticket: identity.ticket(CARD_SEQUENCE, &fabric::addresses::reachable(local)),
            changes,
            notices: notices(&opened),
        };
        let service = Service::new(&ready, opened.log_id, control.token, ports.clone(), board);
        let (stop_http, stopping) = oneshot::channel::<()>();
        let http = tokio::spawn(http::serve(listener, service, async {
            let _ = stopping.await;
        }));
        Ok(Node {
            ready,
            ports,
            stop_http: Some(stop_http),
            http,
            fabric: Some(driver),
            owner: Some(owner_thread),
            log: Some(log_thread),
            checkpointer: Some(checkpoint_thread),
            fault,
        })
    }

    /// What it is.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Returns when the node stops by itself: a failed disk, say.
    ///
    /// # Errors
    /// Always: why it stopped.
    pub async fn wait_stopped(&mut self) -> Result<(), NodeError> {
        let why = match self.fault.wait_for(Option::is_some).await {
            Ok(fault) => fault.clone().unwrap_or_default(),
            Err(_) => OWNER_ENDED.to_owned(),
        };
        Err(NodeError::Stopped(why))
    }

    /// Drains and stops: no new requests, those under way are answered, what was taken is on disk.
    ///
    /// # Errors
    /// A fault that came while it drained.
    pub async fn stop(mut self) -> Result<(), NodeError> {
        if let Some(stop) = self.stop_http.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.http).await;
        self.ports.stop();
        let (owner, log, fabric) = (self.owner.take(), self.log.take(), self.fabric.take());
        let checkpointer = self.checkpointer.take();
        let joined = tokio::task::spawn_blocking(move || {
            let _ = owner.map(JoinHandle::join);
            let _ = checkpointer.map(JoinHandle::join);
            let log = log.map(JoinHandle::join);
            // The driver writes its memo until it ends; only then the folder's lock goes, with the log.
            drop(fabric);
            drop(log);
        });
        let _ = joined.await;
        match self.fault.borrow().clone() {
            Some(why) => Err(NodeError::Stopped(why)),
            None => Ok(()),
        }
    }
}

/// Reads and compiles the apps' files.
///
/// # Errors
/// The first file that cannot be read, or everything that is wrong in all that can.
pub fn compile(paths: &[PathBuf]) -> Result<Vec<Source>, NodeError> {
    let mut sources = Vec::new();
    let mut diagnostics = String::new();
    for path in paths {
        match compile_file(path)? {
            Ok(source) => sources.push(source),
            Err(text) => diagnostics.push_str(&text),
        }
    }
    match diagnostics.is_empty() {
        true => Ok(sources),
        false => Err(NodeError::Compile { diagnostics }),
    }
}

fn compile_file(path: &Path) -> Result<Result<Source, String>, NodeError> {
    let text = source::read(path).map_err(|source| NodeError::ReadApp { path: path.to_owned(), source })?;
    let name = path.display().to_string();
    let compiled: Result<Module, _> = weft::compile_with(&text, &name, &mut crate::libraries::beside(path));
    Ok(compiled
        .map(|module| Source {
            text: module.sources.to_text(),
            module,
            settings: Vec::new(),
            allow_loss: false,
        })
        .map_err(|diagnostics| diagnostics.to_string()))
}

/// Hands each app its settings.
fn give_settings(apps: &mut [Source], settings: Vec<Set>) -> Result<(), NodeError> {
    for Set { app, name, value } in settings {
        let names: Vec<&str> = apps.iter().map(|source| source.module.name.as_str()).collect();
        let Some(at) = names.iter().position(|one| *one == app) else {
            let what = format!("there is no app {app} here: it runs {}", names.join(", "));
            return Err(NodeError::Setting { app, name, what });
        };
        if apps[at].settings.iter().any(|(given, _)| *given == name) {
            return Err(NodeError::Setting { app, name, what: "it is given twice".to_owned() });
        }
        apps[at].settings.push((name, value));
    }
    Ok(())
}

/// Lets apps lose what they keep when their source changed.
fn allow_loss(apps: &mut [Source], allowed: Vec<String>) -> Result<(), NodeError> {
    for app in allowed {
        match apps.iter_mut().find(|source| source.module.name == app) {
            Some(source) => source.allow_loss = true,
            None => {
                let there = apps.iter().map(|source| source.module.name.clone()).collect();
                return Err(NodeError::AllowLoss { app, there });
            }
        }
    }
    Ok(())
}

/// A node's folder, opened, and the core that recovered from its log.
pub(crate) struct Recovered<S: Storage> {
    pub(crate) identity: Identity,
    pub(crate) log: Log<S>,
    pub(crate) opened: Opened,
    pub(crate) core: Core,
}

/// A core without apps as a folder's log has it, of which nothing is changed: what the core would write goes to a log in
/// memory, and the start that this would be is counted nowhere.
pub(crate) fn look(dir: &Path) -> Result<Recovered<Memory>, NodeError> {
    let Looked { identity, contents, recovery } = folder::look(dir)?;
    let (log, opened) = Log::open(Memory::new(0), entropy()?, &mut |_| {})?;
    let [random, seed] = [entropy()?, entropy()?];
    let mut run = Run { counter: contents.run + 1, random: [0; 16] };
    run.random.copy_from_slice(&random[..16]);
    let start = Start {
        me: identity.id(),
        run,
        entropy: seed,
        now: crate::clock::now(),
        synced: opened.synced,
        apps: Vec::new(),
        notices: notices_of_damage(&contents.passed_over).collect(),
    };
    Ok(Recovered { identity, log, core: recovery.start(start)?, opened })
}

/// Opens the folder and recovers the core from its log.
pub(crate) fn recover(folder: Folder, apps: Vec<Source>) -> Result<Recovered<Folder>, NodeError> {
    let (identity, log, opened, recovery) = folder::open(folder)?;
    let [random, seed] = [entropy()?, entropy()?];
    let mut run = Run { counter: opened.run, random: [0; 16] };
    run.random.copy_from_slice(&random[..16]);
    let start = Start {
        me: identity.id(),
        run,
        entropy: seed,
        now: crate::clock::now(),
        synced: opened.synced,
        apps,
        notices: notices(&opened),
    };
    Ok(Recovered { identity, log, core: recovery.start(start)?, opened })
}

/// What a person should know of how the log was found.
fn notices(opened: &Opened) -> Vec<String> {
    let torn = |cut| {
        format!("a crash had left a torn end of the log; none of it was acknowledged, and it is cut: {cut}")
    };
    let rotten =
        |cut| format!("unused bytes of the log had changed and were cleared; the disk may be failing: {cut}");
    let mended = opened.cut.iter().map(torn).chain(opened.mended.iter().map(rotten));
    mended.chain(notices_of_damage(&opened.passed_over)).collect()
}

/// What a person should know of checkpoints that were passed over.
fn notices_of_damage(passed_over: &[String]) -> impl Iterator<Item = String> {
    passed_over.iter().map(|why| {
        format!(
            "the newest checkpoint cannot be used; the one before it and the log after that were, and nothing is lost. The disk may be failing: {why}"
        )
    })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, NodeError> {
    TcpListener::bind(address).await.map_err(|source| NodeError::Http { address, source })
}

/// 32 fresh bytes of the system.
pub(crate) fn entropy() -> Result<[u8; 32], NodeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(NodeError::Entropy)?;
    Ok(bytes)
}
