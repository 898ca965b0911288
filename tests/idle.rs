//! An idle node, its timers ticking, writes no byte: a card that nobody writes to lasts.
#![cfg(target_os = "linux")]

mod demo;
mod running;

use demo::wait_for;
use running::RunningNode;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

const APP: &str = "app clock
transient state ticks: int = 0
state late: int = 0
on begin() { start ring() after 1 d }
on timer ring() { late += 1 }
every 1 s { ticks += 1 }
every 2 s { if late > 0 { late += 1 } }
view seen = ticks
";

/// Ticks after which a node that has started is idle, and those that are watched then.
const TICKS: u64 = 3;

/// Bytes of files that a process has handed to the system to be written, and those of them that never will be.
fn written(pid: u32) -> (u64, u64) {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("it runs");
    let of = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.and_then(|count| count.parse().ok()).expect("the system counts it")
    };
    (of("write_bytes"), of("cancelled_write_bytes"))
}

#[test]
fn an_idle_node_with_timers_ticking_writes_no_byte() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("clock.weft"), APP).expect("the folder takes it");
    let node = RunningNode::start(folder.path(), "node", "clock.weft");
    let http = node.http();
    let (status, _) = http.post("/clock/begin", &json!({}), None).expect("it answers");
    assert_eq!(status, 200);
    let ticks = || http.get("/clock/seen").map(|seen| seen.as_u64().unwrap_or_default());
    let more_ticks = || {
        let from = ticks().expect("it serves");
        let enough = |seen| if seen >= from + TICKS { Ok(()) } else { Err(format!("{seen} ticks")) };
        wait_for("timers tick", || ticks().and_then(enough));
    };
    let now = || (written(node.child.id()), files(&folder.path().join("node")));
    more_ticks();
    let before = now();
    more_ticks();
    assert_eq!(now(), before);
}

/// What the files are and when each was last written.
fn files(folder: &Path) -> Vec<(OsString, u64, SystemTime)> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("the folder is read");
            let file = entry.metadata().expect("the file is there");
            (entry.file_name(), file.len(), file.modified().expect("the system knows"))
        })
        .collect();
    files.sort();
    files
}
