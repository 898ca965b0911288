//! One node of the demo: a process of this same program.
//!
//! It never outlives the demo: it is killed when its handle is dropped, and it stops by itself when its standard input
//! ends, which the system sees to even if the demo is killed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use sealing::{NodeId, Ticket};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A node that is not ready after so long will not be: it replays a demo's log in well under a second.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// A node that has not drained after so long is killed, as a service manager would.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// What a node says when it is ready, and when it fails, is shorter, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// How a node is started.
#[derive(Debug, Clone)]
pub struct Plan {
    /// This program.
    pub program: PathBuf,
    /// The node's folder.
    pub dir: PathBuf,
    /// The app.
    pub app: PathBuf,
}

/// A node that runs, or is starting.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Dropped to stop the node.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// What a node says when it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub node: NodeId,
    pub http: SocketAddr,
    pub fabric: SocketAddr,
    pub app: String,
    pub ticket: Ticket,
}

#[derive(Deserialize)]
struct ReadyLine {
    node: String,
    http: SocketAddr,
    fabric: SocketAddr,
    apps: Vec<String>,
    ticket: String,
}

#[derive(Deserialize)]
struct ErrorLine {
    error: String,
}

impl Process {
    /// Starts the process; it is not ready yet.
    ///
    /// # Errors
    /// The system starts no process.
    pub fn spawn(plan: &Plan, http: SocketAddr) -> anyhow::Result<Self> {
        let mut child = Command::new(&plan.program)
            .args(["node", "--json", "--exit-with-stdin", "--http", &http.to_string()])
            .args(["--fabric", &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).to_string()])
            .arg("--dir")
            .arg(&plan.dir)
            .arg("--app")
            .arg(&plan.app)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not in the terminal's foreground group: Ctrl-C is for the demo, which stops its nodes in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", plan.program.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("a process has no standard output")?;
        Ok(Self { child, stdin, stdout: BufReader::new(stdout) })
    }

    /// Returns when the node serves.
    ///
    /// # Errors
    /// It ended, with why; or it takes too long.
    pub async fn ready(&mut self) -> anyhow::Result<Ready> {
        let mut line = String::new();
        let mut bounded = (&mut self.stdout).take(LINE_BYTES_MAX);
        let read = tokio::time::timeout(START_PATIENCE, bounded.read_line(&mut line));
        read.await.context("it is not ready after a minute")?.context("it cannot be read from")?;
        if line.is_empty() {
            let status = self.child.wait().await.context("it cannot be waited for")?;
            bail!("it ended before it was ready ({status})");
        }
        parse_ready(&line)
    }

    /// Returns when the process ended, with how, and why if it said so.
    ///
    /// # Errors
    /// The system does not say.
    pub async fn ended(&mut self) -> anyhow::Result<String> {
        let status = self.child.wait().await.context("it cannot be waited for")?;
        let mut last = String::new();
        let read = (&mut self.stdout).take(LINE_BYTES_MAX).read_to_string(&mut last).await;
        Ok(match serde_json::from_str(&last) {
            Ok(ErrorLine { error }) if read.is_ok() => format!("{status}: {error}"),
            _ => status.to_string(),
        })
    }

    /// Kills it, as kill -9 does, and returns when it is gone.
    ///
    /// # Errors
    /// The system does not let us.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill the process")
    }

    /// Lets it drain, and returns when it is gone; it is killed if that takes too long.
    ///
    /// # Errors
    /// The system does not let us.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        drop(self.stdin.take());
        match tokio::time::timeout(STOP_PATIENCE, self.child.wait()).await {
            Ok(status) => status.map(drop).context("cannot wait for the process"),
            Err(_) => self.kill().await,
        }
    }
}

fn parse_ready(line: &str) -> anyhow::Result<Ready> {
    if let Ok(ErrorLine { error }) = serde_json::from_str(line) {
        bail!("{error}");
    }
    let ReadyLine { node, http, fabric, apps, ticket } =
        serde_json::from_str(line).with_context(|| format!("it says what no node says: {line:?}"))?;
    Ok(Ready {
        node: node.parse().with_context(|| format!("it says a node that is none: {node}"))?,
        http,
        fabric,
        app: apps.into_iter().next().context("it runs no app")?,
        ticket: ticket.parse().with_context(|| format!("it says a ticket that is none: {ticket}"))?,
    })
}

/// The address of an app's page.
pub fn page(http: SocketAddr, app: &str) -> String {
    format!("http://{http}/{app}/")
}

/// Where a node of the demo listens first: a free port that only this machine reaches.
pub fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A node's folder in the demo's.
pub fn dir(demo: &Path, name: &str) -> PathBuf {
    demo.join(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn plan(program: &str) -> Plan {
        Plan { program: program.into(), dir: "d".into(), app: "a".into() }
    }

    #[test]
    fn a_ready_line_is_read_and_anything_else_refused() {
        let ticket = sealing::Identity::from_seed(&[3; 64]).ticket(1, &["127.0.0.1:5".parse().unwrap()]);
        let node = ticket.node();
        let line = format!(
            r#"{{"ready":true,"node":"{node}","http":"127.0.0.1:1","fabric":"127.0.0.1:2","apps":["messenger"],"ticket":"{ticket}"}}"#
        );
        let ready = parse_ready(&line).unwrap();
        assert_eq!((ready.node, ready.app.as_str(), ready.ticket), (node, "messenger", ticket));
        assert_eq!(page(ready.http, &ready.app), "http://127.0.0.1:1/messenger/");
        for (line, expected) in [
            (r#"{"error":"the port is taken"}"#.to_owned(), "the port is taken"),
            ("hello".to_owned(), "it says what no node says: \"hello\""),
            (line.replace(r#"["messenger"]"#, "[]"), "it runs no app"),
            (line.replace(&node.to_string(), "sv1x"), "it says a node that is none: sv1x"),
        ] {
            assert_eq!(parse_ready(&line).unwrap_err().to_string(), expected);
        }
    }

    #[tokio::test]
    async fn a_process_that_ends_or_cannot_start_is_told() {
        let error = Process::spawn(&plan("/nonexistent/selvedge"), any_port()).unwrap_err();
        assert!(error.to_string().contains("cannot start /nonexistent/selvedge"), "{error}");
        let mut process = Process::spawn(&plan("false"), any_port()).unwrap();
        let error = process.ready().await.unwrap_err().to_string();
        assert_eq!(error, "it ended before it was ready (exit status: 1)");
        process.stop().await.unwrap();
    }
}
