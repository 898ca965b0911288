//! Our driver sends to a receiver that was written from docs/link.md alone (tests/second-receiver, in Python): each record
//! comes once, in order, exactly as sent, over loss, restarts of the sender and deaths of the receiver.
//!
//! It needs a Python that has the packages of tests/second-receiver/requirements.txt: that of `SELVEDGE_PYTHON`, else of
//! the folder's `venv`, else `python3`. Without one it says that it did not run, or fails if `SELVEDGE_REQUIRE_PYTHON` is
//! set, as `.ci/run` does.

#![allow(clippy::unwrap_used)]

mod relay;
mod sender;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use sealing::{Card, Identity, Ticket};
use sha2::{Digest, Sha256};

use crate::relay::Weather;
use crate::sender::{Course, Destination};

/// After so long a test has failed. Nothing depends on it being short.
const WATCHDOG: Duration = Duration::from_secs(120);

const CLEAR: Weather = Weather { seed: 1, lost: 0, doubled: 0, late: 0 };
const STORM: Weather = Weather { seed: 2, lost: 50, doubled: 50, late: 100 };

struct Case {
    name: &'static str,
    records: u64,
    sizes: &'static [usize],
    weather: Weather,
    /// Whether the sender holds the card, or fetches it by the ticket.
    has_card: bool,
    /// Restarts of the sender.
    restarts: u64,
    /// The receiver dies when it has taken so many records, and starts again.
    dies_after: Option<u64>,
}

const CASES: &[Case] = &[
    Case {
        name: "clear",
        records: 300,
        sizes: &[0, 61, 800],
        weather: CLEAR,
        has_card: true,
        restarts: 0,
        dies_after: None,
    },
    Case {
        name: "a storm, records in pieces",
        records: 20,
        sizes: &[61, 801, 20_000, 262_144],
        weather: STORM,
        has_card: false,
        restarts: 0,
        dies_after: None,
    },
    Case {
        name: "a storm, the sender starts anew",
        records: 200,
        sizes: &[61, 800, 801, 5_000],
        weather: STORM,
        has_card: false,
        restarts: 2,
        dies_after: None,
    },
    Case {
        name: "a storm, both start anew",
        records: 200,
        sizes: &[61, 1_200, 9_000],
        weather: STORM,
        has_card: true,
        restarts: 1,
        dies_after: Some(120),
    },
];

/// A record as the receiver shows it: number, length, hash.
type Shown = (u64, usize, String);

#[test]
fn a_receiver_written_from_the_page_takes_each_record_once() {
    let Some(python) = python() else {
        let required = std::env::var_os("SELVEDGE_REQUIRE_PYTHON").is_some();
        assert!(
            !required,
            "SELVEDGE_REQUIRE_PYTHON is set, and no Python has the packages of tests/second-receiver"
        );
        // Not by a macro: the test harness would hide it.
        let why = "NOT RUN: no Python has the packages of tests/second-receiver/requirements.txt (its README says how)\n";
        std::io::stderr().write_all(why.as_bytes()).unwrap();
        return;
    };
    // What takes time is mostly backoff after a loss.
    std::thread::scope(|scope| {
        for case in CASES {
            scope.spawn(|| check(&python, case));
        }
    });
}

fn check(python: &Path, case: &Case) {
    let expected: Vec<Shown> = (1..=case.records).map(|number| shown(case, number)).collect();
    let taken = taken(python, case);
    for (taken, expected) in taken.iter().zip(&expected) {
        assert_eq!(taken, expected, "{}", case.name);
    }
    assert_eq!(taken.len(), expected.len(), "{}", case.name);
}

fn shown(case: &Case, number: u64) -> Shown {
    let payload = course(case).payload(number);
    let hash = Sha256::digest(&payload).iter().map(|byte| format!("{byte:02x}")).collect();
    (number, payload.len(), hash)
}

fn course(case: &Case) -> Course {
    Course {
        identity: Arc::new(Identity::from_seed(&[1; 64])),
        records: case.records,
        sizes: case.sizes.to_vec(),
        restarts: case.restarts,
        weather: case.weather,
        patience: WATCHDOG,
    }
}

/// What the receiver showed over all of its starts, once the sender knows the outcome of everything.
fn taken(python: &Path, case: &Case) -> Vec<Shown> {
    let course = course(case);
    let (mine, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spawn = |address: SocketAddr, dies_after: Option<u64>| {
        let mut command = Command::new(python);
        command.arg("receiver.py").current_dir(folder()).stdout(Stdio::piped());
        command.arg("--dir").arg(theirs.path()).args(["--peer", &course.identity.id().to_string()]);
        command.args(["--listen", &address.to_string()]);
        if let Some(records) = dies_after {
            command.args(["--die-after", &records.to_string()]);
        }
        command.spawn().unwrap()
    };
    let mut shown = Vec::new();
    let (said, heard) = channel();
    let over = AtomicBool::new(false);
    // A port that is free now: the receiver has to find it again.
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let first = Process(spawn(address, case.dies_after));
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut process = first;
            let mut records = process.read(&said);
            if case.dies_after.is_some() && !over.load(Ordering::Relaxed) {
                process = Process(spawn(address, None));
                records.extend(process.read(&said));
            }
            records
        });
        let destination = heard.recv_timeout(WATCHDOG).unwrap();
        let fates = course.run(mine.path(), &destination.told(case.has_card));
        // Whatever it showed is read to the end.
        over.store(true, Ordering::Relaxed);
        let running = heard.try_iter().last().unwrap_or(destination);
        rustix::process::kill_process(running.process, rustix::process::Signal::KILL).unwrap();
        shown = receiver.join().unwrap();
        let fates = fates.unwrap_or_else(|why| panic!("{}: {why}", case.name));
        assert!(fates.iter().all(|(_, outcome)| outcome.is_none()), "{}: all are delivered", case.name);
    });
    shown
}

/// What the receiver says of itself at its start.
struct Start {
    card: Card,
    ticket: Ticket,
    process: rustix::process::Pid,
}

impl Start {
    fn told(&self, has_card: bool) -> Destination {
        let (node, card_hash) = (self.ticket.node(), Some(self.ticket.card_hash()));
        let card = has_card.then(|| self.card.clone());
        Destination { node, card_hash, card, address: self.ticket.addresses()[0] }
    }
}

/// A receiver that does not outlive the test.
struct Process(Child);

impl Process {
    /// Its records, until it ends; what it says of itself is sent as soon as it listens.
    fn read(&mut self, said: &Sender<Start>) -> Vec<Shown> {
        let (mut card, mut ticket, mut records) = (None, None, Vec::new());
        for line in BufReader::new(self.0.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["card", bytes] => card = Some(Card::verify(&bytes_of_hex(bytes)).unwrap()),
                ["ticket", text] => ticket = Some(text.parse().unwrap()),
                ["listening", _] => {
                    let process = rustix::process::Pid::from_child(&self.0);
                    said.send(Start { card: card.take().unwrap(), ticket: ticket.take().unwrap(), process })
                        .unwrap();
                }
                ["record", _, number, length, hash] => {
                    records.push((number.parse().unwrap(), length.parse().unwrap(), hash.to_owned()));
                }
                _ => {}
            }
        }
        records
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bytes_of_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/second-receiver")
}

/// The first Python that has what the receiver needs.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("SELVEDGE_PYTHON").map(PathBuf::from);
    let candidates = [named, Some(folder().join("venv/bin/python")), Some("python3".into())];
    candidates.into_iter().flatten().find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import keys"]).current_dir(folder()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
