//! Ann, ben and what lies between them, and what can be done to them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::Who;
use super::forwarder::Forwarder;
use super::process::{Plan, Process, Ready, any_port, dir, page};
use crate::control::Control;
use crate::output::in_words;

/// The input by which an app learns of another node.
const BEFRIEND: &str = "befriend";

/// Both nodes and the forwarder.
#[derive(Debug)]
pub struct Stage {
    ann: Person,
    ben: Person,
    forwarder: Forwarder,
    recording: PathBuf,
}

/// One node, whether it runs or not.
#[derive(Debug)]
struct Person {
    plan: Plan,
    process: Option<Process>,
    /// As of its last start.
    ready: Option<Ready>,
}

impl Stage {
    /// A stage on which nobody is yet.
    pub fn new(program: &Path, demo: &Path, app: &Path, forwarder: Forwarder, recording: PathBuf) -> Self {
        let person = |who: Who| Person {
            plan: Plan { program: program.to_owned(), dir: dir(demo, who.name()), app: app.to_owned() },
            process: None,
            ready: None,
        };
        Self { ann: person(Who::Ann), ben: person(Who::Ben), forwarder, recording }
    }

    /// Starts a node, at its old address if it had one.
    ///
    /// # Errors
    /// It runs already; it does not start.
    pub async fn start(&mut self, who: Who) -> anyhow::Result<SocketAddr> {
        let person = self.person(who);
        if person.process.is_some() {
            bail!("{} runs already", who.name());
        }
        let http = person.ready.as_ref().map_or_else(any_port, |ready| ready.http);
        // It is on the stage before anything is waited for, so that whoever clears the stage finds it.
        let process = person.process.insert(Process::spawn(&person.plan, http)?);
        let ready = match process.ready().await {
            Ok(ready) => ready,
            Err(error) => {
                let stopped = process.stop().await;
                person.process = None;
                stopped?;
                return Err(error.context(format!("{} does not start", who.name())));
            }
        };
        let (http, fabric) = (ready.http, ready.fabric);
        person.ready = Some(ready);
        self.forwarder.follow(who, fabric);
        Ok(http)
    }

    /// Kills a node with SIGKILL.
    ///
    /// # Errors
    /// It does not run.
    pub async fn kill(&mut self, who: Who) -> anyhow::Result<()> {
        let person = self.person(who);
        let Some(process) = &mut person.process else { bail!("{} does not run", who.name()) };
        process.kill().await?;
        person.process = None;
        Ok(())
    }

    /// Makes them each other's peers, each at the forwarder's address, and, where the app has an input for that, each
    /// other's contacts.
    ///
    /// # Errors
    /// A node refuses.
    pub async fn befriend(&self) -> anyhow::Result<()> {
        for who in Who::BOTH {
            let (here, friend) = (self.at(who), who.other());
            let ready = here.ready.clone().with_context(|| format!("{} never was ready", who.name()))?;
            let other = self
                .at(friend)
                .ready
                .as_ref()
                .with_context(|| format!("{} never was ready", friend.name()))?;
            let (node, ticket) = (other.node.to_string(), other.ticket.clone());
            let between = [self.forwarder.facing(who)];
            let control = control(&here.plan.dir)?;
            blocking(move || {
                control.add_peer(&ticket, friend.name(), &between)?;
                if !control.has_input(&ready.app, BEFRIEND)? {
                    return Ok(());
                }
                let contact = json!({ "node": node, "name": friend.name() });
                control.post_input(&ready.app, BEFRIEND, &contact).map(drop)
            })
            .await
            .with_context(|| format!("{} does not befriend {}", who.name(), friend.name()))?;
        }
        Ok(())
    }

    /// Returns when a node ended by itself, with how; it is off the stage then.
    ///
    /// # Errors
    /// The forwarder can go on no more.
    pub async fn ended(&mut self) -> anyhow::Result<(Who, String)> {
        let (who, how) = tokio::select! {
            error = self.forwarder.failed() => return Err(error),
            how = self.ann.ended() => (Who::Ann, how),
            how = self.ben.ended() => (Who::Ben, how),
        };
        self.person(who).process = None;
        Ok((who, how))
    }

    /// Stops both, letting them drain.
    ///
    /// # Errors
    /// The system does not let us.
    pub async fn clear(&mut self) -> anyhow::Result<()> {
        let (ann, ben) = tokio::join!(self.ann.stop(), self.ben.stop());
        ann.and(ben)
    }

    /// Kills both.
    ///
    /// # Errors
    /// The system does not let us.
    pub async fn kill_all(&mut self) -> anyhow::Result<()> {
        for person in [&mut self.ann, &mut self.ben] {
            if let Some(mut process) = person.process.take() {
                process.kill().await?;
            }
        }
        Ok(())
    }

    /// How both are, as JSON.
    pub async fn status(&self) -> Value {
        let recorded = self.forwarder.recorded();
        json!({
            "ann": self.ann.status().await,
            "ben": self.ben.status().await,
            "recording": {
                "path": self.recording,
                "datagrams": recorded.datagrams,
                "bytes": recorded.bytes,
                "full": recorded.full,
            },
        })
    }

    /// Where a node is reached, as JSON.
    pub fn about(&self, who: Who) -> Value {
        self.at(who).about()
    }

    /// The address of a node's page.
    pub fn page(&self, who: Who) -> String {
        self.at(who).ready.as_ref().map(|ready| page(ready.http, &ready.app)).unwrap_or_default()
    }

    /// Where what passes is recorded.
    pub fn recording(&self) -> &Path {
        &self.recording
    }

    fn person(&mut self, who: Who) -> &mut Person {
        match who {
            Who::Ann => &mut self.ann,
            Who::Ben => &mut self.ben,
        }
    }

    fn at(&self, who: Who) -> &Person {
        match who {
            Who::Ann => &self.ann,
            Who::Ben => &self.ben,
        }
    }
}

impl Person {
    fn about(&self) -> Value {
        match &self.ready {
            None => json!({}),
            Some(ready) => json!({
                "http": ready.http.to_string(),
                "node": ready.node.to_string(),
                "fabric": ready.fabric.to_string(),
                "ticket": ready.ticket.to_string(),
                "page": page(ready.http, &ready.app),
            }),
        }
    }

    async fn status(&self) -> Value {
        let mut about = self.about();
        about["running"] = json!(self.process.is_some());
        if self.process.is_some() {
            let asked = match control(&self.plan.dir) {
                Ok(control) => blocking(move || control.status()).await,
                Err(error) => Err(error),
            };
            match asked {
                Ok(status) => about["status"] = status,
                Err(error) => about["error"] = json!(in_words(&error)),
            }
        }
        about
    }

    async fn ended(&mut self) -> String {
        match &mut self.process {
            None => std::future::pending().await,
            Some(process) => match process.ended().await {
                Ok(how) => how,
                Err(error) => in_words(&error),
            },
        }
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        match &mut self.process {
            Some(process) => process.stop().await,
            None => Ok(()),
        }
    }
}

fn control(dir: &Path) -> anyhow::Result<Control> {
    Control::of(dir)?.with_context(|| format!("no node runs on {}", dir.display()))
}

/// Asks where waiting harms nobody.
async fn blocking<T: Send + 'static>(
    ask: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(ask).await.context("a request ended")?
}
