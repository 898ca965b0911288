//! Single nodes as child processes.
#![allow(dead_code, reason = "each test uses what it needs of it")]

use crate::demo::NodeUnderTest;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// The command in a folder, without an input.
pub fn selvedge(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub fn output(folder: &Path, arguments: &[&str]) -> Output {
    selvedge(folder, arguments).output().expect("the binary of this build starts")
}

/// A node that is ended by kill -9 when dropped.
pub struct RunningNode {
    /// Its process.
    pub child: Child,
    /// Its ready line.
    pub ready: Value,
    /// What it says after that.
    pub rest: BufReader<ChildStdout>,
}

impl RunningNode {
    /// Starts the node of `dir` with one app and waits until it serves.
    pub fn start(folder: &Path, dir: &str, app: &str) -> RunningNode {
        let arguments = [
            "node",
            "--dir",
            dir,
            "--app",
            app,
            "--http",
            "127.0.0.1:0",
            "--fabric",
            "127.0.0.1:0",
            "--json",
        ];
        RunningNode::of(selvedge(folder, &arguments))
    }

    /// Starts a node by this command and waits until it serves.
    pub fn of(mut command: Command) -> RunningNode {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
        output.read_line(&mut line).expect("it prints text");
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a line of JSON: {line:?}"));
        RunningNode { child, ready, rest: output }
    }

    /// The node over HTTP.
    pub fn http(&self) -> NodeUnderTest {
        let text = |key: &str| self.ready[key].as_str().expect("the line has it").to_owned();
        NodeUnderTest::new(&text("http"), &text("node"))
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
