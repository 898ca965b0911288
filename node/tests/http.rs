//! The node over HTTP, against a node of a few maps: what each request is answered, who is let in, what streams tell,
//! and how it ends. Requests are written to the socket as they stand, so that every header can be wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use node::handle::{
    Control, ControlError, Description, Door, Effort, Field, Handle, Look, Pieces, Post, PostError, ViewError,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot, watch};

/// Nothing here waits that long unless it is broken; then the test fails instead of hanging.
const BROKEN_AFTER: Duration = Duration::from_secs(60);

const TOKEN: &str = "a-token-of-some-length";

/// A node with the apps `notes` and `messenger`.
#[derive(Clone)]
struct Memory(Arc<State>);

struct State {
    notes: Mutex<Vec<String>>,
    posts: Mutex<Vec<Post>>,
    published: watch::Sender<u64>,
    /// How often a view was computed.
    looked: watch::Sender<u32>,
    /// A `hold` is answered once there is a permit.
    release: Semaphore,
    holding: watch::Sender<u32>,
    /// Plans begun, and those given up.
    planning: watch::Sender<u32>,
    given_up: watch::Sender<u32>,
}

/// A plan that never ends by itself.
struct Planning<'p>(&'p State);

impl Drop for Planning<'_> {
    fn drop(&mut self) {
        self.0.given_up.send_modify(|plans| *plans += 1);
    }
}

impl Memory {
    fn new() -> Memory {
        Memory(Arc::new(State {
            notes: Mutex::default(),
            posts: Mutex::default(),
            published: watch::Sender::new(0),
            looked: watch::Sender::new(0),
            release: Semaphore::new(0),
            holding: watch::Sender::new(0),
            planning: watch::Sender::new(0),
            given_up: watch::Sender::new(0),
        }))
    }

    /// A view that is done once there is a permit, if it may take so long.
    fn costly(&self, effort: Effort) -> Result<String, ViewError> {
        if effort == Effort::Little {
            return Err(ViewError::Costly);
        }
        self.0.holding.send_modify(|holding| *holding += 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.0.release.acquire()).unwrap().forget();
        Ok("[]".to_owned())
    }

    /// One batch: the notes as they are from now on, the same or others.
    fn publish(&self, notes: &[&str]) {
        *self.0.notes.lock().unwrap() = notes.iter().map(|note| (*note).to_owned()).collect();
        self.0.published.send_modify(|batches| *batches += 1);
    }
}

impl Handle for Memory {
    async fn post(&self, post: Post) -> Result<Option<String>, PostError> {
        self.0.posts.lock().unwrap().push(post.clone());
        if post.app != "notes" {
            return Err(PostError::NoSuchRoute { app: post.app, input: post.input });
        }
        match post.input.as_str() {
            "add" => {
                let body: Value = serde_json::from_slice(&post.body)
                    .map_err(|error| PostError::Shape(error.to_string()))?;
                let text = body["text"].as_str().ok_or(PostError::Shape("text: expected text".to_owned()))?;
                let mut notes = self.0.notes.lock().unwrap();
                notes.push(text.to_owned());
                Ok(Some(notes.len().to_string()))
            }
            "hold" => {
                self.0.holding.send_modify(|holding| *holding += 1);
                self.0.release.acquire().await.unwrap().forget();
                Ok(None)
            }
            "nothing" => Ok(None),
            "refuse" => Err(PostError::Refused("no such \"contact\"".to_owned())),
            "overspend" => Err(PostError::Budget("over 16777216 operations".to_owned())),
            "crowd" => Err(PostError::Full { retry_after_seconds: 7 }),
            "fill" => Err(PostError::Unwritable("the disk is full".to_owned())),
            "stop" => Err(PostError::Stopping),
            "lose" => Err(PostError::Unknown("the log failed".to_owned())),
            _ => Err(PostError::NoSuchRoute { app: post.app, input: post.input }),
        }
    }

    fn view(&self, Look { app, view, query, by, effort }: Look<'_>) -> Result<String, ViewError> {
        if view == "costly" {
            return self.costly(effort);
        }
        self.0.looked.send_modify(|times| *times += 1);
        if view == "fault" {
            panic!("a fault, for the test");
        }
        let notes = self.0.notes.lock().unwrap();
        match (app, view) {
            ("notes", "all") => Ok(Value::from(notes.clone()).to_string()),
            ("notes", "echo") => Ok(json!({ "query": query, "by": by }).to_string()),
            ("notes", "large") => Ok("x".repeat(query[0].1.parse().unwrap())),
            ("notes", "pretty") => Ok("[\r\n  1\n]".to_owned()),
            ("notes", "first") if notes.is_empty() => Err(ViewError::Refused("there is no note".to_owned())),
            ("notes", "first") => Ok(Value::from(notes[0].clone()).to_string()),
            ("notes", "shape") => Err(ViewError::Shape("peer: expected a node".to_owned())),
            ("notes", "overspend") => Err(ViewError::Budget("over 16777216 operations".to_owned())),
            ("notes", "stop") => Err(ViewError::Stopping),
            ("notes", "crowd") => {
                Err(ViewError::Crowded { words: "no room".to_owned(), retry_after_seconds: 3 })
            }
            _ => Err(ViewError::NoSuchRoute { app: app.to_owned(), view: view.to_owned() }),
        }
    }

    fn watch(&self, app: &str) -> Option<watch::Receiver<u64>> {
        (app == "notes").then(|| self.0.published.subscribe())
    }

    async fn control(&self, request: Control) -> Result<Value, ControlError> {
        match request {
            Control::AddPeer { ticket, .. } if !ticket.starts_with("svt2") => {
                Err(ControlError::Shape(format!("{ticket} is no ticket")))
            }
            Control::AddPeer { ticket, name, addresses } => {
                Ok(json!({ "ticket": ticket, "name": name, "addresses": addresses }))
            }
            Control::RemovePeer { node } if node == "sv1ben" => Ok(json!({ "removed": node })),
            Control::RemovePeer { node } => Err(ControlError::NoSuchPeer { node }),
            Control::Resume { node } if node == "sv1ben" => Ok(json!({ "resumed": node })),
            Control::Resume { node } => Err(ControlError::NoSuchPeer { node }),
            Control::Peers => Ok(json!(["sv1ben"])),
            Control::Status => Ok(json!({ "up": true })),
            Control::Plan { source } if source == "long" => {
                self.0.planning.send_modify(|plans| *plans += 1);
                let _planning = Planning(&self.0);
                std::future::pending().await
            }
            Control::Plan { source } if source == "crowd" => {
                Err(ControlError::Planning { retry_after_seconds: 2 })
            }
            Control::Plan { source } => Ok(json!({ "source": source })),
        }
    }

    async fn backup(&self) -> Result<Pieces, ControlError> {
        Err(ControlError::BackingUp { retry_after_seconds: 4 })
    }

    fn token(&self) -> &str {
        TOKEN
    }

    fn describe(&self, app: &str) -> Option<Description> {
        let door = |name: &str, fields: &[(&str, &str, bool)]| Door {
            name: name.to_owned(),
            fields: fields
                .iter()
                .map(|&(name, kind, optional)| Field {
                    name: name.to_owned(),
                    kind: kind.to_owned(),
                    optional,
                })
                .collect(),
            answer: Some("list of <Note>".to_owned()),
        };
        let described = |inputs, views| Description { app: app.to_owned(), inputs, views, types: vec![] };
        match app {
            "notes" => Some(described(
                vec![door("add", &[("text", "text", false)])],
                vec![door("all", &[]), door("first", &[("n", "int", true)])],
            )),
            "messenger" => Some(described(vec![], vec![])),
            _ => None,
        }
    }

    fn apps(&self) -> Vec<String> {
        vec!["messenger".to_owned(), "notes".to_owned()]
    }

    fn node_id(&self) -> String {
        "sv1me".to_owned()
    }
}

/// A server on a thread of its own.
struct Server {
    address: SocketAddr,
    memory: Memory,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    fn start() -> Server {
        let memory = Memory::new();
        let handle = memory.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            tokio::runtime::Runtime::new().unwrap().block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                node::http::serve(listener, handle, async {
                    let _ = stopped.await;
                })
                .await
            })
        });
        Server { address, memory, stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(BROKEN_AFTER)).unwrap();
        stream
    }

    /// Sends a request and reads the whole answer. `PORT` in a header stands for the server's. Without a `Host` among
    /// the headers it is the server's own; an empty one leaves it out.
    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(self.head(method, target, headers, body).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::read(&bytes)
    }

    fn head(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let port = self.address.port().to_string();
        let mut head =
            format!("{method} {} HTTP/1.1\r\nConnection: close\r\n", target.replace("PORT", &port));
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {}\r\n", value.replace("PORT", &port)));
        }
        if method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head + "\r\n"
    }

    fn watch(&self, target: &str) -> Stream {
        let mut stream = self.connect();
        let head = self.head("GET", target, &[("Accept", "text/event-stream")], b"");
        stream.write_all(head.as_bytes()).unwrap();
        Stream(BufReader::new(stream))
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    fn ended(&mut self) -> std::io::Result<()> {
        self.thread.take().unwrap().join().unwrap()
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(bytes: &[u8]) -> Answer {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer in {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn error_code(&self) -> String {
        let error: Value = serde_json::from_str(&self.body).unwrap_or(Value::Null);
        error["error"]["code"].as_str().unwrap_or("").to_owned()
    }
}

/// Waits on this thread until a count has come so far.
fn wait_for(count: &mut watch::Receiver<u32>, target: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let reached = async {
        tokio::time::timeout(BROKEN_AFTER, count.wait_for(|count| *count >= target)).await.map(drop)
    };
    runtime.block_on(reached).unwrap_or_else(|_| panic!("{target} was not reached"));
}

/// An event stream as it comes; the sizes of the pieces it came in are passed over.
struct Stream(BufReader<TcpStream>);

impl Stream {
    /// The next line of the stream that says something; `None` at its end.
    fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end();
            if line.starts_with("data: ") || line.starts_with("event: ") || line.starts_with("HTTP/1.1 ") {
                return Some(line.to_owned());
            }
        }
    }

    fn expect(&mut self, lines: &[&str]) {
        for line in lines {
            assert_eq!(self.next().as_deref(), Some(*line));
        }
    }
}

/// A request and its answer: method, target, headers, body, status, and either the body or the error's code.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16, &'a str);

fn check(rows: &[Row<'_>]) {
    let server = Server::start();
    for row @ (method, target, headers, body, status, expected) in rows {
        let answer = server.ask(method, target, headers, body.as_bytes());
        assert_eq!(answer.status, *status, "{row:?}: {}", answer.body);
        if answer.status < 400 {
            assert_eq!(answer.body, *expected, "{row:?}");
        } else {
            assert_eq!(answer.error_code(), *expected, "{row:?}: {}", answer.body);
        }
        for header in ["content-security-policy: default-src 'self'", "x-content-type-options: nosniff"] {
            assert!(answer.head.contains(header), "{row:?}: {}", answer.head);
        }
        assert!(!answer.head.contains("access-control-"), "{row:?}: {}", answer.head);
        // hyper panics at the date of a clock before 1970 or after 9999; see `auto_date_header` in the server.
        assert!(!answer.head.contains("\r\ndate:"), "{row:?}: {}", answer.head);
    }
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn inputs() {
    let key_of_128 = "k".repeat(128);
    let key_of_129 = "k".repeat(129);
    check(&[
        ("POST", "/notes/add", &[JSON], r#"{"text":"a"}"#, 200, r#"{"answer":1}"#),
        ("POST", "/notes/add", &[JSON], " {\"text\":\"b\"}\n", 200, r#"{"answer":2}"#),
        ("POST", "/notes/nothing", &[JSON], "{}", 200, "{}"),
        ("POST", "/notes/nothing", &[("Content-Type", "Application/JSON; charset=utf-8")], "{}", 200, "{}"),
        ("POST", "/notes/nothing", &[JSON, ("Idempotency-Key", "a key")], "{}", 200, "{}"),
        ("POST", "/notes/nothing", &[JSON, ("Idempotency-Key", &key_of_128)], "{}", 200, "{}"),
        ("POST", "/notes/nothing", &[JSON, ("Idempotency-Key", &key_of_129)], "{}", 400, "shape"),
        ("POST", "/notes/nothing", &[JSON, ("Idempotency-Key", "clé")], "{}", 400, "shape"),
        ("POST", "/notes/nothing", &[JSON, ("Idempotency-Key", "a\tb")], "{}", 400, "shape"),
        (
            "POST",
            "/notes/nothing",
            &[JSON, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")],
            "{}",
            400,
            "shape",
        ),
        ("POST", "/notes/add", &[JSON], r#"{"text":1}"#, 400, "shape"),
        ("POST", "/notes/add", &[JSON], "{", 400, "shape"),
        ("POST", "/notes/add", &[JSON], "", 400, "shape"),
        ("POST", "/notes/add", &[JSON], "[]", 400, "shape"),
        ("POST", "/notes/add", &[], r#"{"text":"a"}"#, 415, "content_type"),
        ("POST", "/notes/add", &[("Content-Type", "text/plain")], r#"{"text":"a"}"#, 415, "content_type"),
        ("POST", "/notes/add", &[JSON, ("Content-Encoding", "gzip")], "{}", 415, "content_type"),
        ("POST", "/notes/nowhere", &[JSON], "{}", 404, "no_such_route"),
        ("POST", "/nowhere/add", &[JSON], "{}", 404, "no_such_route"),
        ("POST", "/notes/%ff", &[JSON], "{}", 400, "shape"),
        ("POST", "/notes/add/more", &[JSON], "{}", 404, "no_such_route"),
        ("POST", "/notes/refuse", &[JSON], "{}", 409, "refused"),
        ("POST", "/notes/overspend", &[JSON], "{}", 413, "budget"),
        ("POST", "/notes/crowd", &[JSON], "{}", 503, "full"),
        ("POST", "/notes/fill", &[JSON], "{}", 503, "unwritable"),
        ("POST", "/notes/stop", &[JSON], "{}", 503, "stopping"),
        ("POST", "/notes/lose", &[JSON], "{}", 500, "unknown"),
        ("PUT", "/notes/add", &[JSON], "{}", 405, "method"),
        ("POST", "/", &[JSON], "{}", 405, "method"),
        ("POST", "/messenger/page.js", &[JSON], "{}", 405, "method"),
        ("OPTIONS", "/notes/add", &[], "", 405, "method"),
    ]);
}

#[test]
fn views() {
    const NONE: &[(&str, &str)] = &[];
    const EVENTS: &[(&str, &str)] = &[("Accept", "text/event-stream")];
    check(&[
        ("GET", "/notes/all", NONE, "", 200, "[]"),
        ("GET", "/notes/echo", NONE, "", 200, r#"{"query":[],"by":"local"}"#),
        (
            "GET",
            "/notes/echo?a=1&b=%C3%A4+%26&a=",
            NONE,
            "",
            200,
            r#"{"query":[["a","1"],["b","ä &"],["a",""]],"by":"local"}"#,
        ),
        ("GET", "/notes/shape", NONE, "", 400, "shape"),
        ("GET", "/notes/first", NONE, "", 409, "refused"),
        ("GET", "/notes/overspend", NONE, "", 413, "budget"),
        ("GET", "/notes/stop", NONE, "", 503, "stopping"),
        ("GET", "/notes/crowd", NONE, "", 503, "full"),
        ("GET", "/notes/fault", NONE, "", 500, "unknown"),
        ("GET", "/notes/nowhere", NONE, "", 404, "no_such_route"),
        ("GET", "/nowhere/all", NONE, "", 404, "no_such_route"),
        ("GET", "/nowhere", NONE, "", 404, "no_such_route"),
        ("GET", "/notes/all", NONE, "", 200, "[]"),
        // What is wrong at once is no stream.
        ("GET", "/notes/first", EVENTS, "", 409, "refused"),
        ("GET", "/notes/nowhere", EVENTS, "", 404, "no_such_route"),
        ("GET", "/nowhere/all", EVENTS, "", 404, "no_such_route"),
        ("GET", "/", NONE, "", 200, r#"{"node":"sv1me","apps":["messenger","notes"]}"#),
        (
            "GET",
            "/",
            &[("Accept", "application/json")],
            "",
            200,
            r#"{"node":"sv1me","apps":["messenger","notes"]}"#,
        ),
        ("GET", "/messenger", NONE, "", 308, ""),
        ("GET", "/notes", NONE, "", 308, ""),
        ("GET", "/nowhere/", NONE, "", 404, "no_such_route"),
        ("GET", "/-/", NONE, "", 404, "no_such_route"),
        (
            "GET",
            "/messenger/",
            &[("Accept", "application/json")],
            "",
            200,
            r#"{"app":"messenger","inputs":[],"views":[],"types":[]}"#,
        ),
    ]);
}

#[test]
fn what_is_not_there_is_answered_with_what_there_is() {
    let server = Server::start();
    // Method, target, headers, status, the message whole.
    for (method, target, headers, status, expected) in [
        ("POST", "/notes/all", &[JSON][..], 405, "all is a view: GET it"),
        ("POST", "/notes/all", &[], 405, "all is a view: GET it"),
        ("GET", "/notes/add", &[], 405, "add is an input: POST to it"),
        ("GET", "/notes/add", &[("Accept", "text/event-stream")], 405, "add is an input: POST to it"),
        (
            "GET",
            "/note/all",
            &[],
            404,
            "there is no app note here; there are: messenger, notes; did you mean notes?",
        ),
        (
            "GET",
            "/note/",
            &[],
            404,
            "there is no app note here; there are: messenger, notes; did you mean notes?",
        ),
        (
            "GET",
            "/note",
            &[],
            404,
            "there is no app note here; there are: messenger, notes; did you mean notes?",
        ),
        ("POST", "/elsewhere/add", &[], 404, "there is no app elsewhere here; there are: messenger, notes"),
        (
            "POST",
            "/notes/ad",
            &[JSON],
            404,
            "there is no input ad in notes; there are: add; did you mean add?",
        ),
        (
            "GET",
            "/notes/firts",
            &[],
            404,
            "there is no view firts in notes; there are: all, first; did you mean first?",
        ),
        ("GET", "/messenger/line", &[], 404, "there is no view line in messenger; there are none"),
    ] {
        let answer = server.ask(method, target, headers, b"{}");
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (answer.status, body["error"]["message"].as_str()),
            (status, Some(expected)),
            "{method} {target}"
        );
    }
}

#[test]
fn who_may_ask() {
    let all = |headers: &'static [(&'static str, &'static str)], status, expected| -> Row<'static> {
        ("GET", "/notes/all", headers, "", status, expected)
    };
    check(&[
        all(&[("Host", "127.0.0.1:PORT")], 200, "[]"),
        all(&[("Host", "localhost:PORT")], 200, "[]"),
        all(&[("Host", "LocalHost:PORT")], 200, "[]"),
        all(&[("Host", "[::1]:PORT")], 200, "[]"),
        all(&[("Host", "evil.example:PORT")], 421, "host"),
        all(&[("Host", "evil.example")], 421, "host"),
        all(&[("Host", "localhost.evil.example:PORT")], 421, "host"),
        all(&[("Host", "127.0.0.1")], 421, "host"),
        all(&[("Host", "127.0.0.1:1")], 421, "host"),
        all(&[("Host", "127.0.0.2:PORT")], 421, "host"),
        all(&[("Host", "192.0.2.1:PORT")], 421, "host"),
        all(&[("Host", "localhost@evil.example:PORT")], 421, "host"),
        all(&[("Host", "evil@localhost:PORT")], 421, "host"),
        all(&[("Host", "")], 400, "host"),
        all(&[("Host", "127.0.0.1:PORT"), ("Host", "evil.example")], 400, "host"),
        all(&[("Host", "a b")], 400, "host"),
        ("GET", "http://evil.example:PORT/notes/all", &[("Host", "127.0.0.1:PORT")], "", 400, "host"),
        ("GET", "http://127.0.0.1:PORT/notes/all", &[("Host", "127.0.0.1:PORT")], "", 200, "[]"),
        all(&[("Origin", "http://127.0.0.1:PORT")], 200, "[]"),
        all(&[("Host", "localhost:PORT"), ("Origin", "http://localhost:PORT")], 200, "[]"),
        all(&[("Origin", "http://evil.example")], 403, "origin"),
        all(&[("Origin", "https://127.0.0.1:PORT")], 403, "origin"),
        all(&[("Origin", "http://127.0.0.1:1")], 403, "origin"),
        all(&[("Origin", "http://localhost:PORT")], 403, "origin"),
        all(&[("Origin", "null")], 403, "origin"),
        all(&[("Sec-Fetch-Site", "same-origin")], 200, "[]"),
        all(&[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")], 200, "[]"),
        all(&[("Sec-Fetch-Site", "same-site")], 403, "origin"),
        all(&[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")], 403, "origin"),
        all(&[("Sec-Fetch-Site", "news")], 403, "origin"),
        // A link on another page leads to a page of ours in a window of its own, and nowhere else.
        all(&[LINK[0], LINK[1], LINK[2]], 403, "origin"),
        ("GET", "/messenger", &LINK, "", 308, ""),
        ("GET", "/messenger/", &[LINK[0], LINK[1], ("Sec-Fetch-Dest", "iframe")], "", 403, "origin"),
        ("GET", "/messenger/page.js", &[LINK[0], ("Sec-Fetch-Mode", "no-cors")], "", 403, "origin"),
        ("POST", "/messenger/", &LINK, "", 403, "origin"),
        ("POST", "/notes/nothing", &[JSON, ("Origin", "http://127.0.0.1:PORT")], "{}", 200, "{}"),
        ("POST", "/notes/nothing", &[JSON, ("Origin", "http://evil.example")], "{}", 403, "origin"),
        ("OPTIONS", "/notes/add", &[("Origin", "http://evil.example")], "", 403, "origin"),
    ]);
}

const LINK: [(&str, &str); 3] =
    [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];

#[test]
fn control() {
    const OPERATOR: (&str, &str) = ("Authorization", "Bearer a-token-of-some-length");
    check(&[
        ("GET", "/-/status", &[OPERATOR], "", 200, r#"{"up":true}"#),
        ("GET", "/-/peers", &[OPERATOR], "", 200, r#"["sv1ben"]"#),
        ("POST", "/-/peers/sv1ben/resume", &[OPERATOR], "", 200, r#"{"resumed":"sv1ben"}"#),
        ("POST", "/-/peers/sv1tim/resume", &[OPERATOR], "", 404, "no_such_peer"),
        ("POST", "/-/peers/sv1ben/resume", &[], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[("Authorization", "bearer a-token-of-some-length")], "", 200, r#"["sv1ben"]"#),
        ("GET", "/-/backup", &[], "", 401, "unauthorized"),
        ("GET", "/-/backup", &[OPERATOR], "", 503, "full"),
        ("GET", "/-/peers", &[], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[("Authorization", "Bearer a-token-of-some-lengthy")], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[("Authorization", "Bearer a-token-of-some-lengtn")], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[("Authorization", "Bearer ")], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[("Authorization", "Basic a-token-of-some-length")], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[OPERATOR, OPERATOR], "", 401, "unauthorized"),
        ("GET", "/-/peers?token=a-token-of-some-length", &[], "", 401, "unauthorized"),
        ("GET", "/-/peers", &[OPERATOR, ("Origin", "http://evil.example")], "", 403, "origin"),
        ("GET", "/-/status", &[], "", 401, "unauthorized"),
        ("POST", "/-/peers", &[JSON], "{}", 401, "unauthorized"),
        (
            "POST",
            "/-/peers",
            &[JSON, OPERATOR],
            r#"{"ticket":"svt2x","name":"Ben","addresses":["192.0.2.1:7"]}"#,
            200,
            r#"{"ticket":"svt2x","name":"Ben","addresses":["192.0.2.1:7"]}"#,
        ),
        (
            "POST",
            "/-/peers",
            &[JSON, OPERATOR],
            r#"{"ticket":"svt2x"}"#,
            200,
            r#"{"ticket":"svt2x","name":"","addresses":[]}"#,
        ),
        ("POST", "/-/peers", &[JSON, OPERATOR], r#"{"ticket":"svt2x","addresses":["here"]}"#, 400, "shape"),
        ("POST", "/-/peers", &[JSON, OPERATOR], r#"{"ticket":"x"}"#, 400, "shape"),
        ("POST", "/-/peers", &[JSON, OPERATOR], r#"{"tickets":"svt2x"}"#, 400, "shape"),
        ("POST", "/-/peers", &[JSON, OPERATOR], "{}", 400, "shape"),
        ("POST", "/-/peers", &[OPERATOR], "{}", 415, "content_type"),
        ("DELETE", "/-/peers/sv1ben", &[], "", 401, "unauthorized"),
        ("DELETE", "/-/peers/sv1ben", &[OPERATOR], "", 200, r#"{"removed":"sv1ben"}"#),
        ("DELETE", "/-/peers/sv1cleo", &[OPERATOR], "", 404, "no_such_peer"),
        ("POST", "/-/plan", &[JSON, OPERATOR], r#"{"source":"app a"}"#, 200, r#"{"source":"app a"}"#),
        ("POST", "/-/plan", &[JSON, OPERATOR], r#"{"source":"crowd"}"#, 503, "full"),
        ("POST", "/-/plan", &[JSON], r#"{"source":"app a"}"#, 401, "unauthorized"),
        ("GET", "/-/nowhere", &[OPERATOR], "", 404, "no_such_route"),
    ]);
}

#[test]
fn a_plan_ends_with_its_client_and_with_the_node() {
    const OPERATOR: (&str, &str) = ("Authorization", "Bearer a-token-of-some-length");
    let mut server = Server::start();
    let (mut planning, mut given_up) =
        (server.memory.0.planning.subscribe(), server.memory.0.given_up.subscribe());
    let ask = || {
        let body = br#"{"source":"long"}"#;
        let mut stream = server.connect();
        stream.write_all(server.head("POST", "/-/plan", &[JSON, OPERATOR], body).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream
    };
    let gone = ask();
    wait_for(&mut planning, 1);
    drop(gone);
    wait_for(&mut given_up, 1);

    let mut waiting = ask();
    wait_for(&mut planning, 2);
    server.stop();
    wait_for(&mut given_up, 2);
    let mut bytes = Vec::new();
    waiting.read_to_end(&mut bytes).unwrap();
    let answer = Answer::read(&bytes);
    assert_eq!((answer.status, answer.error_code().as_str()), (503, "stopping"));
    server.ended().unwrap();
}

#[test]
fn what_the_app_hears_and_what_the_client_is_told() {
    let server = Server::start();
    server.ask("POST", "/notes/nothing", &[JSON, ("Idempotency-Key", "k~1")], b"{ }");
    let heard = server.memory.0.posts.lock().unwrap().pop().unwrap();
    let (app, input) = ("notes".to_owned(), "nothing".to_owned());
    let key = Some("k~1".to_owned());
    assert_eq!(
        heard,
        Post { app, input, body: b"{ }".to_vec(), by: "local".to_owned(), idempotency_key: key }
    );

    let refused = server.ask("POST", "/notes/refuse", &[JSON], b"{}");
    assert_eq!(refused.body, r#"{"error":{"code":"refused","message":"no such \"contact\""}}"#);
    let full = server.ask("POST", "/notes/crowd", &[JSON], b"{}");
    assert!(full.head.contains("retry-after: 7"), "{}", full.head);
    let lost = server.ask("POST", "/notes/lose", &[JSON], b"{}");
    assert!(lost.body.contains("is not known"), "{}", lost.body);
    let stranger = server.ask("GET", "/-/status", &[], b"");
    assert!(stranger.head.contains("www-authenticate: bearer"), "{}", stranger.head);
}

#[test]
fn pages() {
    let server = Server::start();
    for (target, content_type, part) in [
        ("/", "text/html", "<a href=\"/messenger/\">messenger</a>"),
        ("/", "text/html", "<a href=\"/notes/\">notes</a>"),
        ("/notes/", "text/html", "POST /notes/add<br><code>text: text → list of &lt;Note&gt;</code>"),
        (
            "/notes/",
            "text/html",
            "GET <a href=\"/notes/all\">/notes/all</a><br><code>takes nothing → list of &lt;Note&gt;</code>",
        ),
        ("/notes/", "text/html", "<code>n: int (may be left out) → "),
        ("/messenger/", "text/html", "id=\"line\""),
        ("/messenger/page.css", "text/css", "prefers-color-scheme"),
        ("/messenger/page.js", "text/javascript", "EventSource"),
        ("/messenger/icon.svg", "image/svg+xml", "<svg"),
    ] {
        let answer = server.ask(
            "GET",
            target,
            &[("Accept", "text/html,*/*;q=0.8"), ("Sec-Fetch-Site", "same-origin")],
            b"",
        );
        assert_eq!(answer.status, 200, "{target}");
        assert!(answer.head.contains(&format!("content-type: {content_type}")), "{target}: {}", answer.head);
        assert!(answer.body.contains(part), "{target}");
        assert!(!answer.body.contains("innerHTML"), "{target}");
        let elsewhere =
            answer.body.matches("http").count() - answer.body.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(
            elsewhere,
            answer.body.matches("https and loopback").count(),
            "{target} names no other host"
        );
    }
}

#[test]
fn a_body_over_the_bound_is_refused_with_words() {
    let server = Server::start();
    let text_of = |bytes: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(bytes - 11)).into_bytes();
    let fits = server.ask("POST", "/notes/add", &[JSON], &text_of(1024 * 1024));
    assert_eq!((fits.status, fits.body.as_str()), (200, r#"{"answer":1}"#));
    let over = server.ask("POST", "/notes/add", &[JSON], &text_of(1024 * 1024 + 1));
    assert_eq!((over.status, over.error_code().as_str()), (413, "body_too_large"));
    let far_over = server.ask("POST", "/notes/add", &[JSON], &text_of(6 * 1024 * 1024));
    assert_eq!((far_over.status, far_over.error_code().as_str()), (413, "body_too_large"));

    // Without an announced length.
    let mut stream = server.connect();
    let head = server.head("PATCH", "/notes/add", &[JSON, ("Transfer-Encoding", "chunked")], b"");
    stream.write_all(head.replace("PATCH", "POST").as_bytes()).unwrap();
    for _ in 0..33 {
        stream.write_all(format!("8000\r\n{}\r\n", "{".repeat(0x8000)).as_bytes()).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!(Answer::read(&bytes).status, 413);

    // Who asks first hears it before sending anything.
    let mut stream = server.connect();
    let head =
        server.head("POST", "/notes/add", &[JSON, ("Expect", "100-continue")], &text_of(2 * 1024 * 1024));
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!(Answer::read(&bytes).status, 413);
    assert_eq!(server.memory.0.notes.lock().unwrap().len(), 1);
}

#[test]
fn a_view_over_the_bound_is_refused_with_words() {
    let server = Server::start();
    let fits = server.ask("GET", "/notes/large?bytes=4194304", &[], b"");
    assert_eq!((fits.status, fits.body.len()), (200, 4 * 1024 * 1024));
    for accept in ["application/json", "text/event-stream"] {
        let over = server.ask("GET", "/notes/large?bytes=4194305", &[("Accept", accept)], b"");
        assert_eq!((over.status, over.error_code().as_str()), (413, "budget"));
        assert!(over.body.contains("the view has 4194305 bytes"), "{}", over.body);
        assert!(over.body.contains("take fewer rows"), "{}", over.body);
    }
}

#[test]
fn a_view_that_costs_little_waits_for_none_that_costs_much() {
    let server = Server::start();
    let targets: Vec<String> = (0..16).map(|at| format!("/notes/costly?n={at}")).collect();
    std::thread::scope(|scope| {
        let costly: Vec<_> =
            targets.iter().map(|target| scope.spawn(|| server.ask("GET", target, &[], b"").status)).collect();
        let mut holding = server.memory.0.holding.subscribe();
        wait_for(&mut holding, 4);
        // More of them wait than are computed, and none is done before it is let go.
        for _ in 0..16 {
            assert_eq!(server.ask("GET", "/notes/all", &[], b"").body, "[]");
        }
        assert_eq!(*holding.borrow(), 4, "so many at once");
        server.memory.0.release.add_permits(16);
        for asking in costly {
            assert_eq!(asking.join().unwrap(), 200);
        }
    });
}

#[test]
fn streams_of_one_view_share_what_was_computed() {
    let server = Server::start();
    let mut streams: Vec<Stream> = (0..16).map(|_| server.watch("/notes/all")).collect();
    for stream in &mut streams {
        stream.expect(&["HTTP/1.1 200 OK", "data: []"]);
    }
    let before = *server.memory.0.looked.borrow();
    for (times, notes) in [(1, "a"), (2, "b")] {
        server.memory.publish(&[notes]);
        for stream in &mut streams {
            stream.expect(&[&format!("data: [{notes:?}]")]);
        }
        assert_eq!(*server.memory.0.looked.borrow(), before + times);
    }
}

#[test]
fn a_head_over_the_bound_is_refused() {
    let server = Server::start();
    let answer = server.ask("GET", "/notes/all", &[("X-Long", &"x".repeat(40 * 1024))], b"");
    assert_eq!(answer.status, 431);
}

#[test]
fn a_body_cut_short_changes_nothing() {
    let server = Server::start();
    let mut stream = server.connect();
    let body = br#"{"text":"whole"}"#;
    stream.write_all(server.head("POST", "/notes/add", &[JSON], body).as_bytes()).unwrap();
    stream.write_all(&body[..10]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    assert!(server.memory.0.posts.lock().unwrap().is_empty());
}

#[test]
fn a_stream_tells_at_once_and_then_only_changes() {
    let server = Server::start();
    server.memory.publish(&["a"]);
    let mut stream = server.watch("/notes/all");
    stream.expect(&["HTTP/1.1 200 OK", r#"data: ["a"]"#]);
    server.memory.publish(&["a", "b"]);
    stream.expect(&[r#"data: ["a","b"]"#]);
    // The same again is no event, though it is looked at each time; the next one told is the next change.
    let mut looked = server.memory.0.looked.subscribe();
    for times in 3..=10 {
        server.memory.publish(&["a", "b"]);
        wait_for(&mut looked, times);
    }
    server.memory.publish(&["c"]);
    stream.expect(&[r#"data: ["c"]"#]);

    let mut pretty = server.watch("/notes/pretty");
    pretty.expect(&["HTTP/1.1 200 OK", "data: [    1 ]"]);
}

#[test]
fn a_view_that_fails_ends_its_stream_alone() {
    let server = Server::start();
    server.memory.publish(&["a"]);
    let mut first = server.watch("/notes/first");
    let mut all = server.watch("/notes/all");
    first.expect(&["HTTP/1.1 200 OK", r#"data: "a""#]);
    all.expect(&["HTTP/1.1 200 OK", r#"data: ["a"]"#]);
    server.memory.publish(&[]);
    first.expect(&["event: error", r#"data: {"error":{"code":"refused","message":"there is no note"}}"#]);
    assert_eq!(first.next(), None);
    all.expect(&["data: []"]);
    server.memory.publish(&["b"]);
    all.expect(&[r#"data: ["b"]"#]);
}

#[test]
fn a_reader_that_does_not_read_stalls_nobody_and_then_sees_the_newest() {
    const BATCHES: usize = 64;
    let server = Server::start();
    let mut slow = server.watch("/notes/all");
    slow.expect(&["HTTP/1.1 200 OK", "data: []"]);
    let mut quick = server.watch("/notes/all");
    quick.expect(&["HTTP/1.1 200 OK", "data: []"]);
    // More than any system keeps between two sockets.
    let long = "x".repeat(512 * 1024);
    for batch in 0..BATCHES {
        let note = format!("{batch}:{long}");
        server.memory.publish(&[&note]);
        assert!(quick.next().unwrap().starts_with(&format!("data: [\"{batch}:")));
    }
    let mut told = 0;
    let newest = format!("data: [\"{}:", BATCHES - 1);
    while !slow.next().unwrap().starts_with(&newest) {
        told += 1;
    }
    assert!(told < BATCHES - 1, "all {told} batches were kept for a reader that did not read");
}

#[test]
fn at_the_end_streams_end_and_what_is_under_way_is_answered() {
    let mut server = Server::start();
    let mut stream = server.watch("/notes/all");
    stream.expect(&["HTTP/1.1 200 OK", "data: []"]);
    let _idle = server.connect();
    let mut held = server.connect();
    held.write_all(server.head("POST", "/notes/hold", &[JSON], b"{}").as_bytes()).unwrap();
    held.write_all(b"{}").unwrap();
    let mut holding = server.memory.0.holding.subscribe();
    wait_for(&mut holding, 1);

    server.stop();
    assert_eq!(stream.next(), None);
    server.memory.0.release.add_permits(1);
    let mut bytes = Vec::new();
    held.read_to_end(&mut bytes).unwrap();
    assert_eq!(Answer::read(&bytes).body, "{}");
    server.ended().unwrap();
    assert!(TcpStream::connect(server.address).is_err());
}
