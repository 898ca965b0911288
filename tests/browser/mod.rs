//! A person at a page: headless Chromium, driven over the WebDriver protocol (W3C WebDriver level 2).
//!
//! It must not know what the page is for: it opens addresses, types, clicks and reads, all by CSS selectors. It starts
//! chromedriver on a port of the system's choosing with a profile of its own, and ends what it started, by process id.
#![allow(dead_code, reason = "each test uses what it needs of it")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// chromedriver says its port at once; a busy machine takes a second or two.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// One command. Starting Chromium with an empty profile is the slowest.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Between two looks at the page while waiting for something to show there.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The key that WebDriver's standard calls Enter (level 2, 17.4.2).
const ENTER: &str = "\u{E007}";

/// The name under which WebDriver passes elements about (level 2, 12.1).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Nothing that calls home or needs a screen. No sandbox: tests run as root in containers, and open our own page only.
const ARGUMENTS: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1100,800",
];

/// One Chromium with one window.
pub struct Browser {
    driver: Driver,
    session: String,
    /// The browser's own process, if chromedriver says which.
    process: Option<u64>,
}

/// chromedriver and what belongs to it.
struct Driver {
    process: Child,
    address: String,
    agent: ureq::Agent,
    profile: PathBuf,
}

impl Browser {
    /// Starts chromedriver and a browser. `None`: they are not installed, chromedriver neither at `$CHROMEDRIVER` nor
    /// `/usr/bin/chromedriver`, or Chromium nowhere that chromedriver looks.
    pub fn start() -> Result<Option<Browser>, String> {
        let chosen = std::env::var_os("CHROMEDRIVER").filter(|path| !path.is_empty());
        let program = chosen.map_or_else(|| PathBuf::from("/usr/bin/chromedriver"), PathBuf::from);
        if !program.exists() {
            return Ok(None);
        }
        let driver = Driver::start(&program)?;
        let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).to_vec();
        arguments.push(format!("--user-data-dir={}", driver.profile.display()));
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
        } } });
        let answer = match driver.command("POST", "/session", Some(capabilities)) {
            Err(error) if error.contains("cannot find Chrome binary") => return Ok(None),
            answer => answer?,
        };
        let session =
            answer["sessionId"].as_str().ok_or_else(|| format!("no session in {answer}"))?.to_owned();
        let process = answer["capabilities"]["goog:processID"].as_u64();
        Ok(Some(Browser { driver, session, process }))
    }

    /// Opens an address and waits for its document.
    pub fn open(&self, url: &str) -> Result<(), String> {
        self.command("POST", "/url", Some(json!({ "url": url }))).map(drop)
    }

    /// Types into the first element that matches. Characters of the basic plane alone: chromedriver takes no others.
    pub fn type_into(&self, css: &str, text: &str) -> Result<(), String> {
        let element = self.find(css)?;
        self.command("POST", &format!("/element/{element}/value"), Some(json!({ "text": text }))).map(drop)
    }

    /// Presses Enter in the first element that matches.
    pub fn press_enter(&self, css: &str) -> Result<(), String> {
        self.type_into(css, ENTER)
    }

    /// Clicks the first element that matches.
    pub fn click(&self, css: &str) -> Result<(), String> {
        let element = self.find(css)?;
        self.command("POST", &format!("/element/{element}/click"), Some(json!({}))).map(drop)
    }

    /// The texts of all elements that match, in the document's order.
    pub fn texts(&self, css: &str) -> Result<Vec<String>, String> {
        let script =
            "return Array.from(document.querySelectorAll(arguments[0]), (element) => element.textContent)";
        let texts = self.run(script, json!([css]))?;
        serde_json::from_value(texts).map_err(|error| format!("{css}: no list of texts: {error}"))
    }

    /// What the first element that matches has been filled with: an input's value.
    pub fn value(&self, css: &str) -> Result<String, String> {
        let element = self.find(css)?;
        let value = self.command("GET", &format!("/element/{element}/property/value"), None)?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an element that matches contains the text, visible to the person.
    pub fn wait_for_text(&self, css: &str, text: &str, deadline: Instant) -> Result<(), String> {
        let script = "return Array.from(document.querySelectorAll(arguments[0]))\
            .some((element) => element.textContent.includes(arguments[1]) && element.checkVisibility())";
        self.wait_for(script, json!([css, text]), deadline, || format!("{text:?} in {css}"))
            .map_err(|error| format!("{error}; there is {:?}", self.texts(css)))
    }

    /// Waits until no element that matches is visible.
    pub fn wait_until_gone(&self, css: &str, deadline: Instant) -> Result<(), String> {
        let script = "return Array.from(document.querySelectorAll(arguments[0]))\
            .every((element) => !element.checkVisibility())";
        self.wait_for(script, json!([css]), deadline, || format!("no {css}"))
    }

    fn wait_for(
        &self,
        script: &str,
        arguments: Value,
        deadline: Instant,
        what: impl FnOnce() -> String,
    ) -> Result<(), String> {
        loop {
            if self.run(script, arguments.clone())? == Value::Bool(true) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("waited in vain for {}", what()));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn find(&self, css: &str) -> Result<String, String> {
        let question = json!({ "using": "css selector", "value": css });
        let found = self.command("POST", "/element", Some(question))?;
        found[ELEMENT].as_str().map(str::to_owned).ok_or_else(|| format!("{css}: no element in {found}"))
    }

    fn run(&self, script: &str, arguments: Value) -> Result<Value, String> {
        self.command("POST", "/execute/sync", Some(json!({ "script": script, "args": arguments })))
    }

    fn command(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
        self.driver.command(method, &format!("/session/{}{path}", self.session), body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser. chromedriver, its parent, is ended after it; should the browser not listen, so is it.
        let ended = self.command("DELETE", "", None).is_ok();
        if let (false, Some(process)) = (ended, self.process) {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
    }
}

impl Driver {
    fn start(program: &Path) -> Result<Driver, String> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("selvedge-browser-{}-{number}", std::process::id()));
        std::fs::create_dir(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
        let mut process = Command::new(program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let said = process.stdout.take().ok_or("chromedriver has no output")?;
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(COMMAND_TIMEOUT))
            .build()
            .into();
        // Complete from here on, so that dropping it ends the process whatever happens.
        let mut driver = Driver { process, address: String::new(), agent, profile };
        let port = port_said(said).recv_timeout(START_TIMEOUT);
        let port = port.map_err(|_| format!("{} says no port", program.display()))?;
        driver.address = format!("http://127.0.0.1:{port}");
        Ok(driver)
    }

    fn command(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
        let url = format!("{}{path}", self.address);
        let failed = |error: ureq::Error| format!("{method} {path}: {error}");
        let answer = match (method, body) {
            ("GET", _) => self.agent.get(&url).call(),
            ("DELETE", _) => self.agent.delete(&url).call(),
            (_, body) => self.agent.post(&url).send_json(body.unwrap_or_else(|| json!({}))),
        };
        let mut answer: Value = answer.map_err(failed)?.body_mut().read_json().map_err(failed)?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{method} {path}: {error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].take()),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Reads what chromedriver prints, to its end so that it never blocks, and hands on the port when it comes.
fn port_said(output: ChildStdout) -> mpsc::Receiver<u16> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // "ChromeDriver was started successfully on port 41233."
            let port = line.split("successfully on port ").nth(1);
            if let Some(port) = port.and_then(|rest| rest.trim_end_matches('.').parse().ok()) {
                let _ = sender.send(port);
            }
        }
    });
    receiver
}
