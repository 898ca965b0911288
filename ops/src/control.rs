//! The way to a running node: HTTP on this machine, with the token that its folder holds.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use node::ControlFile;
use sealing::Ticket;
use serde_json::{Value, json};
use store::Folder;
use ureq::Agent;
use ureq::Body;
use ureq::http::Response;

/// A node answers when a batch is on disk; a disk that takes longer is as good as gone for whoever waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running node.
#[derive(Clone)]
pub struct Control {
    agent: Agent,
    http: SocketAddr,
    token: String,
}

impl Control {
    /// The node that runs on a folder; none if none does.
    ///
    /// # Errors
    /// The folder cannot be read, or is used by a process that does not serve.
    pub fn of(dir: &Path) -> anyhow::Result<Option<Self>> {
        let Some(owner) = Folder::owner(dir)? else { return Ok(None) };
        match ControlFile::read(dir) {
            // A file of an earlier start leads nowhere.
            Some(file) if file.pid == owner => Ok(Some(Self::new(file.http, file.token))),
            _ => bail!("{} is in use by process {owner}, which does not serve yet: try again", dir.display()),
        }
    }

    fn new(http: SocketAddr, token: String) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // It is on this machine: a proxy of the environment must neither see nor break it.
            .proxy(None);
        Self { agent: config.build().into(), http: reachable(http), token }
    }

    /// The peers, as JSON.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn peers(&self) -> anyhow::Result<Value> {
        self.get("/-/peers")
    }

    /// How the node is, as JSON.
    ///
    /// # Errors
    /// The node refuses, or does not answer.
    pub fn status(&self) -> anyhow::Result<Value> {
        self.get("/-/status")
    }

    /// What another version of an app would do to what this node keeps, as JSON.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn plan(&self, source: &str) -> anyhow::Result<Value> {
        self.post("/-/plan", &json!({ "source": source }))
    }

    /// Adds a peer; with addresses these are taken instead of the ticket's.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn add_peer(&self, ticket: &Ticket, name: &str, addresses: &[SocketAddr]) -> anyhow::Result<()> {
        let peer = json!({ "ticket": ticket.to_string(), "name": name, "addresses": addresses });
        self.post("/-/peers", &peer).map(drop)
    }

    /// Removes a peer, or gives up what waits for an address on the web.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn remove_peer(&self, node: &str) -> anyhow::Result<()> {
        let request = self.agent.delete(self.url(&format!("/-/peers/{}", as_segment(node))));
        self.read(request.header("Authorization", &self.authorization()).call()).map(drop)
    }

    /// Has this copy of the node go on with a peer that took another one.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn resume(&self, node: &str) -> anyhow::Result<()> {
        self.post(&format!("/-/peers/{}/resume", as_segment(node)), &json!({})).map(drop)
    }

    /// The backup that the node makes of itself, as it comes: however long it takes.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn backup(&self) -> anyhow::Result<impl Read + use<>> {
        let request = self.agent.get(self.url("/-/backup")).header("Authorization", &self.authorization());
        let request = request.config().timeout_global(None).timeout_recv_response(Some(PATIENCE)).build();
        let mut response =
            request.call().with_context(|| format!("the node at {} does not answer", self.http))?;
        if !response.status().is_success() {
            let text = response.body_mut().read_to_string().unwrap_or_default();
            read_answer(response.status().as_u16(), &text)?;
        }
        Ok(response.into_body().into_reader())
    }

    /// Posts an input of an app.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn post_input(&self, app: &str, input: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.post(&format!("/{app}/{input}"), arguments)
    }

    /// Whether an app takes an input.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn has_input(&self, app: &str, input: &str) -> anyhow::Result<bool> {
        let request = self.agent.get(self.url(&format!("/{app}/")));
        let described = self.read(request.header("Accept", "application/json").call())?;
        let inputs = described["inputs"].as_array().context("the node does not say what its app takes")?;
        Ok(inputs.iter().any(|described| described["name"] == input))
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.read(self.agent.get(self.url(path)).header("Authorization", &self.authorization()).call())
    }

    fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.agent.post(self.url(path)).header("Authorization", &self.authorization());
        // Sent whole, with its length, rather than in chunks.
        self.read(request.header("Content-Type", "application/json").send(body.to_string()))
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn read(&self, response: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Value> {
        let unanswered = || format!("the node at {} does not answer", self.http);
        let mut response = response.with_context(unanswered)?;
        let text = response.body_mut().read_to_string().with_context(unanswered)?;
        read_answer(response.status().as_u16(), &text)
    }
}

/// What an answer says: its JSON, or why the node did not do it.
/// A text as one segment of a path (RFC 3986, 2.1).
fn as_segment(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

fn read_answer(status: u16, text: &str) -> anyhow::Result<Value> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    if (200..300).contains(&status) {
        return match value {
            Some(value) => Ok(value),
            None if text.is_empty() => Ok(Value::Null),
            None => bail!("the node answered something that is not JSON"),
        };
    }
    match value.as_ref().and_then(|value| value["error"]["message"].as_str()) {
        Some(message) => bail!("{message}"),
        None => bail!("the node answered with status {status}"),
    }
}

/// A node that listens everywhere is reached on loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn answers_are_read_and_refusals_told_in_the_nodes_words() {
        let check = |status: u16, text: &str, expected: Result<Value, &str>| {
            let found = read_answer(status, text).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{status} {text}");
        };
        check(200, r#"{"a":1}"#, Ok(json!({"a": 1})));
        check(204, "", Ok(Value::Null));
        check(200, "<html>", Err("the node answered something that is not JSON"));
        check(409, r#"{"error":{"code":"refused","message":"no such contact"}}"#, Err("no such contact"));
        check(500, "oh", Err("the node answered with status 500"));
        check(302, r#"{"error":"x"}"#, Err("the node answered with status 302"));
    }

    #[test]
    fn addresses_for_everybody_are_reached_on_loopback() {
        for (listening, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("127.0.0.1:80", "127.0.0.1:80"),
        ] {
            assert_eq!(reachable(listening.parse().unwrap()), reached.parse().unwrap());
        }
    }

    #[test]
    fn only_the_owner_of_the_folder_is_asked_and_a_file_that_a_killed_node_left_leads_nowhere() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("node");
        assert!(Control::of(&dir).unwrap().is_none());
        let folder = Folder::open(&dir).unwrap();
        let write = |pid: u32| {
            let text =
                json!({"http": "127.0.0.1:9", "fabric": "127.0.0.1:8", "token": "t", "pid": pid, "log": ""});
            std::fs::write(dir.join("control.json"), text.to_string()).unwrap();
        };
        let pid = std::process::id();
        for before in [|_: &dyn Fn(u32)| {}, |write: &dyn Fn(u32)| write(1)] {
            before(&write);
            let error = Control::of(&dir).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(&format!("in use by process {pid}, which does not serve yet")), "{error}");
        }
        write(pid);
        assert!(Control::of(&dir).unwrap().is_some());
        drop(folder);
        // A process that another test is just starting holds the lock too, until it became another program.
        while Control::of(&dir).unwrap().is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn requests_carry_the_token_and_go_to_the_node() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.ends_with(br#"{"text":"hello"}"#) {
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "{}", String::from_utf8_lossy(&request));
                request.extend_from_slice(&buffer[..count]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntrue")
                .unwrap();
            String::from_utf8(request).unwrap().to_lowercase()
        });
        let control = Control::new(address, "the-token".to_owned());
        assert_eq!(control.post_input("messenger", "write", &json!({"text": "hello"})).unwrap(), json!(true));
        let request = server.join().unwrap();
        assert!(request.starts_with("post /messenger/write http/1.1\r\n"), "{request}");
        for header in
            ["authorization: bearer the-token", "content-type: application/json", &format!("host: {address}")]
        {
            assert!(request.contains(header), "{header} in {request}");
        }
    }
}
