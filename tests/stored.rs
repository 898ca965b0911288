//! `selvedge store` on real folders, damaged ones among them.
#![allow(clippy::print_stderr, reason = "a test says what it did")]

mod demo;
mod running;

use demo::wait_for;
use running::{RunningNode, output};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const APP: &str = "app book
record Line { id: int, words: text }
state lines: list of Line by id
on add(words: text) { lines add Line { id: next_id(lines), words } }
view total = count(l for l in lines)
";

const SEGMENT: &str = "node/log-0000000000000001";

/// What a command said, line by line, and its exit code.
fn said(folder: &Path, command: &str) -> (Option<i32>, Vec<Value>) {
    let arguments: Vec<&str> = command.split(' ').collect();
    let output = output(folder, &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{command}: {line}")));
    (output.status.code(), lines.collect())
}

/// Flips a bit of a file.
fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("the file is there");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("it is written");
}

#[test]
fn a_folder_is_looked_at_whatever_is_wrong_with_it() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("book.weft"), APP).expect("the app is written");
    let node = RunningNode::start(folder, "node", "book.weft");
    for words in ["one", "two", "three"] {
        let posted = node.http().post("/book/add", &json!({ "words": words }), None);
        assert_eq!(posted.map(|(status, _)| status), Ok(200), "{words}");
    }
    let (code, lines) = said(folder, "store check --dir node --json");
    let why = lines[0]["error"].as_str().unwrap_or_default();
    assert!(
        code == Some(1) && why.contains("is in use by process") && why.contains("stop it first"),
        "{why}"
    );
    let (code, running) = said(folder, "store stat --dir node --json");
    assert!(code == Some(0) && running[0]["replayed_bytes"].is_null(), "{running:?}");
    drop(node);
    wait_for("the folder is free", || match said(folder, "store check --dir node --json") {
        (Some(0), _) => Ok(()),
        said => Err(format!("{said:?}")),
    });

    let before = std::fs::read(folder.join(SEGMENT)).expect("there is a log");
    let (code, lines) = said(folder, "store stat --dir node --json");
    let stat = &lines[0];
    assert!(code == Some(0) && stat["rows"]["count"].as_u64() > Some(3), "{stat}");
    assert_eq!((&stat["segments"]["count"], &stat["checkpoint"]), (&json!(1), &Value::Null), "{stat}");
    assert!(stat["replayed_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{stat}");
    for same in ["rows", "segments", "checkpoints", "bytes", "starts", "frame"] {
        assert_eq!(stat[same], running[0][same], "{same}: {stat}, while it ran {running:?}");
    }
    assert_eq!(std::fs::read(folder.join(SEGMENT)).expect("there is a log"), before, "nothing was changed");

    let check = |expected_code: i32, damaged: &[&str], refused: &str| {
        let (code, lines) = said(folder, "store check --dir node --json");
        let (last, damages) = lines.split_last().expect("it says something");
        let files: Vec<&str> = damages.iter().filter_map(|damage| damage["damaged"].as_str()).collect();
        assert_eq!((code, files.as_slice()), (Some(expected_code), damaged), "{lines:?}");
        assert_eq!(last["whole"], expected_code == 0, "{last}");
        assert!(last["refused"].as_str().unwrap_or_default().contains(refused), "{last}");
    };
    check(0, &[], "");
    flip(&folder.join(SEGMENT), 4096 + 8);
    check(1, &["log-0000000000000001"], "restore a backup");
    flip(&folder.join(SEGMENT), 4096 + 8);
    flip(&folder.join("node/identity"), 20);
    check(1, &["identity"], "");
    flip(&folder.join("node/identity"), 20);
    check(0, &[], "");

    for command in ["store check --dir nowhere --json", "store stat --dir nowhere --json"] {
        let (code, lines) = said(folder, command);
        let why = lines[0]["error"].as_str().unwrap_or_default();
        assert!(code == Some(1) && why.contains("nowhere is no node's folder"), "{command}: {why}");
    }
    assert!(!folder.join("nowhere").exists(), "a path that was mistyped makes nothing");
}

/// Runs a command on a folder that nobody can write, in a mount namespace of this test; none where the system gives none.
fn said_read_only(folder: &Path, command: &str) -> Option<(Option<i32>, String)> {
    const SCRIPT: &str = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 99; touch "$0/x" 2>/dev/null && exit 98; exec "$@""#;
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT])
        .arg(folder.join("node"))
        .arg(env!("CARGO_BIN_EXE_selvedge"))
        .args(command.split(' '))
        .current_dir(folder)
        .output()
        .ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_ne!(output.status.code(), Some(98), "the folder can be written");
    (output.status.code() != Some(99)).then_some((output.status.code(), said))
}

#[test]
fn what_only_looks_changes_nothing_and_needs_no_folder_that_it_may_write() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("book.weft"), APP).expect("the app is written");
    drop(RunningNode::start(folder, "node", "book.weft"));
    wait_for("the folder is free", || match said(folder, "store check --dir node --json") {
        (Some(0), _) => Ok(()),
        said => Err(format!("{said:?}")),
    });
    let log = || std::fs::read(folder.join(SEGMENT)).expect("there is a log");
    let before = log();
    let commands = [
        ("status --dir node", "not running  sv1"),
        ("id --dir node", "ticket  svt2"),
        ("peer list --dir node", "no peers yet"),
        ("app plan book.weft --node node", "book"),
        ("store check --dir node", "All is as it was written"),
        ("store stat --dir node", "starts       1"),
    ];
    for (command, expected) in commands {
        let said = output(folder, &command.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success() && text.contains(expected), "{command}: {text}");
        assert_eq!(log(), before, "{command} changed the log");
        match said_read_only(folder, command) {
            Some(said) => assert!(said.0 == Some(0) && said.1.contains(expected), "{command}: {said:?}"),
            None => eprintln!("SKIPPED: this system lets no test mount a folder that cannot be written"),
        }
    }
    let adds = output(folder, &["id", "--dir", "node", "--json"]);
    let ticket: Value = serde_json::from_slice(&adds.stdout).expect("--json is JSON");
    let command = format!("peer add --dir node {}", ticket["ticket"].as_str().expect("it is there"));
    if let Some((code, said)) = said_read_only(folder, &command) {
        assert!(code == Some(1) && said.contains("Read-only file system"), "{said}");
    }
}
