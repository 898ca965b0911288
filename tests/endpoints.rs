//! What an app sends to an address on the web: kept over kill -9, sent again with the same key until it is answered, in
//! order, its outcome heard once.

mod demo;
mod running;

use demo::{NodeUnderTest, PATIENCE, wait_for};
use running::{RunningNode, output, selvedge};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

const APP: &str = r#"app shop

record Bill { id: int, text: text, how: text = "waiting" }

setting mailer: endpoint

state bills: list of Bill by id

output bill(id: int, text: text)

on order(text: text) -> int {
  let b = bills add Bill { id: next_id(bills), text }
  send bill(b.id, text) to mailer
  return b.id
}

on delivered bill(id, _) to address {
  let b = bills[id] else refuse "no such bill"
  require b.how == "waiting" and address == mailer else "heard twice"
  b.how = "delivered"
}

on refused bill(id, _) to _ because why {
  let b = bills[id] else refuse "no such bill"
  require b.how == "waiting" else "heard twice"
  b.how = why
}

view all = [b.how for b in bills order by b.id]
"#;

/// A request that the server has read; it waits for its answer.
struct Asked {
    line: String,
    headers: HashMap<String, String>,
    body: Value,
    stream: TcpStream,
}

impl Asked {
    fn read(stream: TcpStream) -> Option<Asked> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let headers: HashMap<String, String> = lines
            .iter()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let (line, body) = (lines.first()?.clone(), serde_json::from_slice(&body).ok()?);
        Some(Asked { line, headers, body, stream })
    }

    /// Answers, and closes the connection.
    fn answer(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        // Whoever asked may be gone.
        let _ = self.stream.write_all(format!("{head}{body}").as_bytes());
    }

    fn key(&self) -> String {
        self.headers["idempotency-key"].clone()
    }
}

/// A server on loopback: its address, and what it is asked.
fn server() -> (String, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/mail?box=1", listener.local_addr().expect("it is bound"));
    let (teller, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let teller = teller.clone();
            std::thread::spawn(move || {
                if let Some(asked) = Asked::read(stream) {
                    // A test that is over asks no more.
                    let _ = teller.send(asked);
                }
            });
        }
    });
    (address, asked)
}

fn next(asked: &Receiver<Asked>) -> Asked {
    asked.recv_timeout(PATIENCE).expect("the node asks within the test's patience")
}

fn start(folder: &Path, mailer: &str) -> RunningNode {
    let set = format!("shop.mailer=\"{mailer}\"");
    let arguments = [
        "node",
        "--dir",
        "ann",
        "--app",
        "shop.weft",
        "--set",
        &set,
        "--http",
        "127.0.0.1:0",
        "--fabric",
        "127.0.0.1:0",
        "--json",
    ];
    RunningNode::of(selvedge(folder, &arguments))
}

fn order(node: &NodeUnderTest, text: &str) {
    let answer = node.post("/shop/order", &json!({ "text": text }), None).expect("the node answers");
    assert_eq!(answer.0, 200, "{}", answer.1);
}

fn see(node: &NodeUnderTest, expected: &Value) {
    wait_for("the outcomes", || match node.get("/shop/all") {
        Ok(seen) if seen == *expected => Ok(()),
        seen => Err(format!("{seen:?}")),
    });
}

/// The lines of `selvedge status` about addresses.
fn waiting(folder: &Path) -> Vec<Value> {
    let status = output(folder, &["status", "--dir", "ann", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("a status is JSON");
    status["status"]["endpoints"].as_array().expect("a list").clone()
}

#[test]
fn a_send_to_an_address_outlives_kill_and_is_answered_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("shop.weft"), APP).expect("it is written");
    let (mailer, asked) = server();
    let before = start(folder.path(), &mailer);
    for text in ["one", "two", "three", "four"] {
        order(&before.http(), text);
    }
    let first = next(&asked);
    assert_eq!(first.line, "POST /mail?box=1 HTTP/1.1");
    let version = concat!("selvedge/", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("content-type", "application/json"),
        ("user-agent", version),
        ("selvedge-app", "shop"),
        ("selvedge-output", "bill"),
    ] {
        assert_eq!(first.headers.get(name).map(String::as_str), Some(value), "{name}");
    }
    let (key, body) = (first.key(), json!({ "id": 1, "text": "one" }));
    assert_eq!(first.body, body);
    // The node is killed while it waits for the answer.
    drop(before);
    drop(first);

    let now = start(folder.path(), &mailer);
    let again = next(&asked);
    assert_eq!((again.key(), &again.body), (key.clone(), &body), "the same, after the restart");
    again.answer("503 Service Unavailable", "", "come later");
    let shown = wait_for("the reason", || match &waiting(folder.path())[..] {
        [one] if one["why"] != json!(null) => Ok(one.clone()),
        other => Err(format!("{other:?}")),
    });
    assert_eq!(
        shown,
        json!({ "endpoint": mailer, "app": "shop", "unsettled": 4, "why": "503: come later (tried once)" })
    );
    let third = next(&asked);
    assert_eq!((third.key(), &third.body), (key.clone(), &body), "the same, after it failed");
    third.answer("204 No Content", "", "");

    let two = next(&asked);
    assert_eq!(two.body["text"], "two");
    assert_ne!(two.key(), key, "another record, another key");
    two.answer("404 Not Found", "", "no such box\n");
    let three = next(&asked);
    assert_eq!(three.body["text"], "three");
    three.answer("302 Found", &format!("Location: {mailer}\r\n"), "");
    let four = next(&asked);
    assert_eq!(four.body["text"], "four", "a redirect is not followed");
    see(&now.http(), &json!(["delivered", "404: no such box", "302", "waiting"]));

    // Nobody answers any more: a person gives it up.
    let removed = output(folder.path(), &["peer", "remove", "--dir", "ann", &mailer, "--json"]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    see(&now.http(), &json!(["delivered", "404: no such box", "302", "given up; arrival unknown"]));
    assert_eq!(waiting(folder.path()), Vec::<Value>::new());
    let nothing = output(folder.path(), &["peer", "remove", "--dir", "ann", &mailer]);
    let words = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(!nothing.status.success() && words.contains("nothing waits for"), "{words}");
    four.answer("200 OK", "", "");
    drop(now);

    // What was heard is heard for good.
    let last = start(folder.path(), &mailer);
    see(&last.http(), &json!(["delivered", "404: no such box", "302", "given up; arrival unknown"]));
}

#[test]
fn what_is_no_address_is_refused_and_what_does_not_listen_is_waited_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("shop.weft"), APP).expect("it is written");
    let node = start(folder.path(), "http://[/");
    order(&node.http(), "one");
    wait_for("the outcome", || match node.http().get("/shop/all") {
        Ok(seen) if seen[0].as_str().is_some_and(|how| how.contains("is no address")) => Ok(()),
        seen => Err(format!("{seen:?}")),
    });
    drop(node);
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/", nobody.local_addr().expect("it is bound"));
    drop(nobody);
    // Nobody listens there; and somebody who does not speak TLS.
    let (plain, _asked) = server();
    for address in [address, plain.replace("http://", "https://")] {
        let node = start(folder.path(), &address);
        order(&node.http(), "two");
        wait_for("the reason", || {
            let waiting = waiting(folder.path());
            let why = waiting.iter().find(|one| one["endpoint"] == *address && one["why"] != json!(null));
            why.map(drop).ok_or_else(|| format!("{waiting:?}"))
        });
    }
}
