//! From the rows of the log to a core that runs: rows are gathered as they come, then made into apps, streams, peers.

use crate::apps::Apps;
use crate::core::Core;
use crate::image::{Image, Kept};
use crate::inbox::{Inbound, Inbox};
use crate::outbox::Outbox;
use crate::posts::Posts;
use crate::rows::{self, APPS_MAX, HeardRow, OutboxRow, PeerRow, PostRow, StreamRow, WebRow};
use crate::shares::OutboxSizes;
use crate::status;
use engine::{SettingError, Snapshot};
use link::{Outcome, StreamId};
use sealing::{NodeId, Run};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use store::{Change, Row, Synced};
use weft::Module;
use weft::change::Plan;
use weft::change::schema::Schema;

/// Milliseconds by which the time kept may be ahead of the clock before people are told: more than clocks are apart.
const CLOCK_AHEAD_MAX_MS: i64 = 3_600_000;

/// Why a core does not start. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A row of the log is not one that this program wrote.
    #[error(
        "the log has a row in list {list} that does not read: {what}; the folder was written by another program"
    )]
    Row {
        /// The list's number.
        list: u64,
        /// What is wrong.
        what: String,
    },
    /// The app's state has another shape than its rows.
    #[error(
        "{app}: its state has another shape than the rows kept in this folder:\n{}Changing the shape of an app that has \
         rows that an older version wrote needs the source that it had: start it with that once, then change it",
        difference(kept, new)
    )]
    Shape {
        /// The app.
        app: String,
        /// The shape of the rows.
        kept: String,
        /// The shape in the source.
        new: String,
    },
    /// The app's source changed so that what it keeps cannot be taken over.
    #[error(
        "{}the app {} was not changed, and what it keeps is as it was: do what the plan says, or start it with the source it had",
        .0, .0.app
    )]
    Refused(Box<Plan>),
    /// The app's source changed so that some of what it keeps would be lost.
    #[error(
        "{}the app {} was not changed, and what it keeps is as it was: to go on without what is lost, start the node once \
         with --allow-loss {}",
        .0, .0.app, .0.app
    )]
    Loses(Box<Plan>),
    /// The log is another node's.
    #[error(
        "the log in this folder is that of the node {log}, and the folder's identity is that of {me}: put back the files \
         that belong together"
    )]
    OtherNode {
        /// Whose log it is.
        log: NodeId,
        /// Whose identity the folder has.
        me: NodeId,
    },
    /// The same app twice.
    #[error("the app {0} is given twice")]
    Twice(String),
    /// A setting is given that the app does not have, or a value that is not of its type.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A setting has no value.
    #[error("{app} needs a value for its setting `{name}`: {kind}. Give it with --set {app}.{name}=JSON")]
    NoSetting {
        /// The app.
        app: String,
        /// The setting.
        name: String,
        /// Its type.
        kind: String,
    },
    /// Too many apps.
    #[error("this folder has known {APPS_MAX} apps, the most there can be")]
    TooManyApps,
}

/// The lines that only one of two shapes has.
fn difference(kept: &str, new: &str) -> String {
    let only = |here: &str, there: &str, sign: &str| -> String {
        let lines = here.lines().filter(|line| !there.lines().any(|other| other == *line));
        lines.map(|line| format!("  {sign} {line}\n")).collect()
    };
    only(kept, new, "kept:") + &only(new, kept, "new: ")
}

/// An app to run: its source and what it compiled to.
#[derive(Debug)]
pub struct Source {
    /// The text of its file, with its libraries (`weft::Sources::to_text`).
    pub text: String,
    /// What it compiled to.
    pub module: Module,
    /// Settings and their values as JSON texts.
    pub settings: Vec<(String, String)>,
    /// Whether a change of its source may lose what it keeps.
    pub allow_loss: bool,
}

/// What a start is made of.
#[derive(Debug)]
pub struct Start {
    /// This node.
    pub me: NodeId,
    /// This start on this store.
    pub run: Run,
    /// Fresh entropy.
    pub entropy: [u8; 32],
    /// Milliseconds since 1970 UTC.
    pub now: i64,
    /// The token of the start's own frame.
    pub synced: Synced,
    /// The apps to run.
    pub apps: Vec<Source>,
    /// What people should know of how the log was found.
    pub notices: Vec<String>,
}

/// The rows of a log while they are read.
#[derive(Debug, Default)]
pub struct Recovery {
    apps: Apps,
    rows: BTreeMap<u64, BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Recovery {
    /// Whether the log has no row: no node ever ran on it.
    pub fn is_empty(&self) -> bool {
        self.rows.values().all(BTreeMap::is_empty) && self.apps.is_empty()
    }

    /// Takes the next change of the log.
    pub fn change(&mut self, change: Change) {
        if change.list == rows::APPS || rows::split_list(change.list).0 > 0 {
            return self.apps.change(change);
        }
        let rows = self.rows.entry(change.list).or_default();
        match change.row {
            Some(row) => rows.insert(change.key, row),
            None => rows.remove(&change.key),
        };
    }

    /// The core as the log has it, with these apps.
    ///
    /// # Errors
    /// A row that does not read, an app whose state changed its shape.
    pub fn start(self, start: Start) -> Result<Core, StartError> {
        self.start_sized(start, OutboxSizes::default())
    }

    /// [`Recovery::start`] with another bound of what may be under way.
    ///
    /// # Errors
    /// As there.
    pub fn start_sized(mut self, mut start: Start, sizes: OutboxSizes) -> Result<Core, StartError> {
        let mut core = Core::empty(&start);
        self.keep(&mut core.kept);
        core.peers = self.list::<PeerRow, _>(rows::PEERS, |key| Some(NodeId(key.try_into().ok()?)))?;
        core.outbox = self.outbox(sizes)?;
        for (number, row) in self.list::<WebRow, _>(rows::WEB, rows::read_web_key)? {
            core.restore_web(number, row);
        }
        core.inbox = self
            .list::<HeardRow, _>(rows::HEARD, rows::read_heard_key)?
            .into_iter()
            .map(|(key, row)| (key, Inbound::restore(row)))
            .collect::<Inbox>();
        self.outcomes(&mut core.inbox)?;
        core.posts = self.posts()?;
        let clock = self.list::<i64, _>(rows::CLOCK, |key| key.is_empty().then_some(()))?;
        std::mem::take(&mut start.notices).into_iter().for_each(|line| core.notice(line));
        let kept = clock.get(&()).copied().unwrap_or(i64::MIN);
        core.now = kept.max(start.now);
        if kept.saturating_sub(start.now) > CLOCK_AHEAD_MAX_MS {
            core.notice(format!(
                "the clock was ahead by {} hours when this node last ran: for its apps time stands still until it is \
                 that late again",
                (kept - start.now) / 3_600_000
            ));
        }
        let owner = self.list::<[u8; 32], _>(rows::NODE, |key| key.is_empty().then_some(()))?.remove(&());
        match owner.map(NodeId) {
            Some(log) if log != core.me => return Err(StartError::OtherNode { log, me: core.me }),
            Some(_) => {}
            None => core.batch.change(rows::NODE, Vec::new(), Some(rows::encode(core.me.as_bytes()))),
        }
        let newest = self.list::<u64, _>(rows::RUN, |key| key.is_empty().then_some(()))?.remove(&());
        core.begin_run(newest);
        let ticks =
            self.list::<Vec<(i64, i64)>, _>(rows::TICKED, |key| String::from_utf8(key.to_vec()).ok())?;
        self.apps.install(&mut core, start.apps, &ticks)?;
        self.apps.name_absent(&mut core);
        let running: BTreeSet<u32> = core.apps.values().map(|installed| installed.number).collect();
        self.apps.keep(&mut core.kept, |number| running.contains(&number));
        core.begin();
        Ok(core)
    }

    /// All rows as they are at the end of the log, those of each app in the shape that it has by then, in ascending order of list
    /// and key: a log that begins with them is this one.
    ///
    /// # Errors
    /// A row that does not read.
    pub fn into_rows(mut self) -> Result<impl Iterator<Item = Row> + Send + 'static, StartError> {
        if let Some(fault) = self.apps.fault() {
            return Err(fault);
        }
        let mut kept = Kept::default();
        self.keep(&mut kept);
        self.apps.keep(&mut kept, |_| false);
        Ok(Image::of(&kept, std::iter::empty()).into_rows())
    }

    /// The source that an app last ran, with its libraries, if it was ever here.
    pub fn source(&self, app: &str) -> Option<&str> {
        self.apps.source(app)
    }

    /// Sends of an app without an outcome, by their output's name.
    ///
    /// # Errors
    /// A row that does not read.
    pub fn sends(&self, app: &str) -> Result<BTreeMap<String, u64>, StartError> {
        let rows = |list: u64| self.rows.get(&list).into_iter().flatten();
        let unreadable = |list: u64| StartError::Row { list, what: "its value".to_owned() };
        let mut streams = BTreeSet::new();
        for (key, row) in rows(rows::STREAMS) {
            let row: StreamRow = rows::decode(row).ok_or_else(|| unreadable(rows::STREAMS))?;
            if row.from_app == app {
                streams.extend(rows::read_stream_key(key));
            }
        }
        let mut outputs = Vec::new();
        for (key, row) in rows(rows::OUTBOX) {
            if rows::read_outbox_key(key).is_some_and(|(stream, _)| streams.contains(&stream)) {
                let row: OutboxRow = rows::decode(row).ok_or_else(|| unreadable(rows::OUTBOX))?;
                outputs.push(row.output);
            }
        }
        for (_, row) in rows(rows::WEB) {
            let row: WebRow = rows::decode(row).ok_or_else(|| unreadable(rows::WEB))?;
            outputs.extend((row.app == app).then_some(row.output));
        }
        Ok(status::count(outputs.iter().map(String::as_str)))
    }

    /// What an app of this log is: its shape and its state; none if it was never here. Nothing is started or changed.
    ///
    /// # Errors
    /// A row that does not read.
    pub fn app(mut self, name: &str, module: &Module) -> Result<Option<(Schema, Snapshot)>, StartError> {
        self.apps.kept(name, module)
    }

    /// The core's own rows go on as the log has them.
    fn keep(&self, kept: &mut Kept) {
        for (list, rows) in &self.rows {
            for (key, row) in rows {
                kept.put(*list, key.clone(), Some(row));
            }
        }
    }

    fn list<T: DeserializeOwned, K: Ord>(
        &mut self,
        list: u64,
        read_key: impl Fn(&[u8]) -> Option<K>,
    ) -> Result<BTreeMap<K, T>, StartError> {
        let unreadable = |what: &str| StartError::Row { list, what: what.to_owned() };
        self.rows
            .remove(&list)
            .unwrap_or_default()
            .into_iter()
            .map(|(key, row)| {
                let key = read_key(&key).ok_or_else(|| unreadable("its key"))?;
                Ok((key, rows::decode(&row).ok_or_else(|| unreadable("its value"))?))
            })
            .collect()
    }

    fn outbox(&mut self, sizes: OutboxSizes) -> Result<Outbox, StartError> {
        let mut records: BTreeMap<StreamId, Vec<(u64, OutboxRow)>> = BTreeMap::new();
        for ((stream, number), row) in self.list::<OutboxRow, _>(rows::OUTBOX, rows::read_outbox_key)? {
            records.entry(stream).or_default().push((number, row));
        }
        let mut outbox = Outbox::new(sizes);
        for (id, row) in self.list::<StreamRow, _>(rows::STREAMS, rows::read_stream_key)? {
            let own = records.remove(&id).unwrap_or_default();
            outbox.restore(id, row, own).map_err(|what| StartError::Row { list: rows::OUTBOX, what })?;
        }
        match records.is_empty() {
            true => Ok(outbox),
            false => {
                Err(StartError::Row { list: rows::OUTBOX, what: "a record without its stream".to_owned() })
            }
        }
    }

    /// What was refused and answered goes to the streams that it is of.
    fn outcomes(&mut self, inbox: &mut Inbox) -> Result<(), StartError> {
        let refusals = self.list::<String, _>(rows::REFUSALS, rows::read_outcome_key)?;
        let answers = self.list::<Vec<u8>, _>(rows::ANSWERS, rows::read_outcome_key)?;
        let refusals = refusals.into_iter().map(|(key, reason)| (key, Outcome::Refused(reason)));
        let answers = answers.into_iter().map(|(key, answer)| (key, Outcome::Answered(answer)));
        for ((key, number), outcome) in refusals.chain(answers) {
            let (list, what) = match outcome {
                Outcome::Refused(_) => (rows::REFUSALS, "a refusal without its stream"),
                Outcome::Answered(_) => (rows::ANSWERS, "an answer without its stream"),
            };
            let inbound =
                inbox.get_mut(&key).ok_or_else(|| StartError::Row { list, what: what.to_owned() })?;
            inbound.heard.outcomes.insert(number, outcome);
        }
        Ok(())
    }

    fn posts(&mut self) -> Result<BTreeMap<String, Posts>, StartError> {
        let mut posts: BTreeMap<String, Posts> = BTreeMap::new();
        for ((app, key), row) in self.list::<PostRow, _>(rows::POSTS, rows::read_post_key)? {
            posts.entry(app).or_default().insert(key, row);
        }
        Ok(posts)
    }
}

/// The first setting that needs a value and is given none.
pub(crate) fn missing_setting(module: &Module, given: &[(String, String)]) -> Option<StartError> {
    let is_given = |name: &str| given.iter().any(|(given, _)| given == name);
    let missing = module.settings.iter().find(|one| one.default.is_none() && !is_given(&one.name))?;
    let (app, name) = (module.name.clone(), missing.name.clone());
    Some(StartError::NoSetting { app, name, kind: module.type_name(&missing.kind) })
}
