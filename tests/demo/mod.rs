//! The demo as a child process: its lines of JSON in and out, and its two nodes over HTTP.
#![allow(dead_code, reason = "each test uses what it needs of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up: a failure, not a measure.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A running `selvedge demo --json`.
pub struct Demo {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// The first line.
    pub ready: Value,
}

impl Demo {
    /// Starts the demo and waits until both nodes serve.
    pub fn start(arguments: &[&str]) -> Demo {
        let mut child = Command::new(env!("CARGO_BIN_EXE_selvedge"))
            .args(["demo", "--json"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary of this build starts");
        let output = child.stdout.take().expect("its output is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "not JSON": line }));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut demo = Demo { child, input, lines, ready: Value::Null };
        demo.ready = demo.answer();
        assert_eq!(demo.ready["ready"], true, "{}", demo.ready);
        demo
    }

    /// The next line of its output.
    pub fn answer(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("the demo answers within the test's patience")
    }

    /// Types a command and waits until it has taken effect.
    pub fn command(&mut self, command: &str) -> Value {
        let input = self.input.as_mut().expect("the demo's input is open");
        writeln!(input, "{command}").expect("the demo reads its input");
        self.answer()
    }

    /// One of the two nodes.
    pub fn node(&self, name: &str) -> NodeUnderTest {
        let about = &self.ready[name];
        let text =
            |key: &str| about[key].as_str().unwrap_or_else(|| panic!("no {key} in {about}")).to_owned();
        NodeUnderTest::new(&text("http"), &text("node"))
    }

    /// Where the recording is.
    pub fn recording(&self) -> PathBuf {
        PathBuf::from(self.ready["recording"].as_str().expect("the first line names the recording"))
    }

    /// The demo's process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its input and waits for its end.
    pub fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        self.child.wait().expect("the demo is a child of this process")
    }

    /// Waits for its end, which something else brings about.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("the demo is a child of this process")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A node over HTTP.
#[derive(Clone)]
pub struct NodeUnderTest {
    /// Its address, `127.0.0.1:PORT`.
    pub http: String,
    /// Its identity.
    pub id: String,
    agent: ureq::Agent,
}

impl NodeUnderTest {
    /// A node that listens at `http`.
    pub fn new(http: &str, id: &str) -> NodeUnderTest {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        NodeUnderTest { http: http.to_owned(), id: id.to_owned(), agent: config.build().into() }
    }

    /// Posts once: status and body, or why there was no answer.
    pub fn post(&self, path: &str, body: &Value, key: Option<&str>) -> Result<(u16, Value), String> {
        let mut request = self.agent.post(format!("http://{}{path}", self.http));
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let mut response = request.send_json(body).map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let body = response.body_mut().read_json().map_err(|error| error.to_string())?;
        Ok((status, body))
    }

    /// Posts with a key until it is answered, over the node's deaths; its answer is a success.
    pub fn post_until_answered(&self, path: &str, body: &Value, key: &str) {
        wait_for(&format!("POST {path} {body}"), || match self.post(path, body, Some(key)) {
            Ok((200, _)) => Ok(()),
            Ok((status @ (500 | 503), body)) => Err(format!("{status} {body}")),
            Ok((status, body)) => panic!("POST {path}: {status} {body}"),
            Err(error) => Err(error),
        });
    }

    /// Reads a view: its JSON, or why there was none.
    pub fn get(&self, path: &str) -> Result<Value, String> {
        let mut response = self
            .agent
            .get(format!("http://{}{path}", self.http))
            .call()
            .map_err(|error| error.to_string())?;
        let body: Value = response.body_mut().read_json().map_err(|error| error.to_string())?;
        if response.status() == 200 { Ok(body) } else { Err(body.to_string()) }
    }
}

/// Looks at a condition until it holds; panics with what it last said.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(value) => return value,
            Err(why) if Instant::now() > deadline => panic!("{what}: not within {PATIENCE:?}: {why}"),
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}
