//! A node that is posted to all the time and killed (kill -9) at random instants: what was answered is there at the next
//! start, in whole events, and the folder stays bounded, whatever a checkpoint was doing.
//!
//! More kills: `SELVEDGE_KILLS=500`.

mod demo;
mod running;

use running::RunningNode;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::mpsc;

/// Kills of the short form.
const KILLS: u64 = 25;

/// Bytes of a row: so large that 500 kills fall among several checkpoints.
const ROW_BYTES: usize = 50_000;
const ROWS: u64 = 40;

/// What a state of a few megabytes may leave, over any number of writes.
const FOLDER_BYTES_MAX: u64 = 200 << 20;

const APP: &str = "app book
record Line { id: int, number: int, words: text }
state lines: list of Line by id
state last: int = 0
on put(number: int, words: text) {
  require number == last + 1 else \"{last} was the last\"
  last = number
  lines put Line { id: number % 40, number, words }
}
view all = { last, numbers: [l.number for l in lines order by l.number] }
";

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}

/// What a node must show whose last event was this one.
fn all(last: u64) -> Value {
    let first = last.saturating_sub(ROWS - 1).max(1);
    json!({ "last": last, "numbers": (first..=last).collect::<Vec<u64>>() })
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |file| file.len())).sum()
}

#[test]
fn what_was_answered_survives_kills_at_random_instants() {
    let kills = std::env::var("SELVEDGE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("book.weft"), APP).expect("a file");
    let mut chance = Chance(7);
    let words = "w".repeat(ROW_BYTES);
    let (mut answered, mut tried) = (0, 0);
    for kill in 0..=kills {
        let mut node = RunningNode::start(folder.path(), "node", "book.weft");
        let http = node.http();
        let shown = http.get("/book/all").expect("it serves");
        let last = shown["last"].as_u64().expect("a number");
        assert!((answered..=tried).contains(&last), "kill {kill}: {last}, not from {answered} to {tried}");
        assert_eq!(shown, all(last), "kill {kill}: whole events");
        let bytes = folder_bytes(&folder.path().join("node"));
        assert!(bytes < FOLDER_BYTES_MAX, "kill {kill}: {bytes} bytes");
        if kill == kills {
            break;
        }
        let (answers, heard) = mpsc::channel();
        let words = words.clone();
        let writer = std::thread::spawn(move || {
            let mut number = last;
            loop {
                number += 1;
                let body = json!({ "number": number, "words": words });
                match http.post("/book/put", &body, None) {
                    Ok((200, _)) => answers.send(number).expect("it is heard"),
                    // Killed before it answered.
                    Ok((500.., _)) | Err(_) => return number,
                    Ok(other) => panic!("{other:?}"),
                }
            }
        });
        for _ in 0..chance.below(12) {
            heard.recv().expect("the node answers until it is killed");
        }
        // Anywhere in what it does next.
        for turn in 0..chance.below(400_000) {
            std::hint::black_box(turn);
        }
        node.child.kill().expect("it runs");
        node.child.wait().expect("it ends");
        tried = writer.join().expect("the writer ends with its node");
        answered = tried - 1;
    }
}
