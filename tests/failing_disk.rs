//! A node whose disk fails under it: the process says which file and why and ends with a code of its own, whoever posted
//! is not told that it was done, and the next start has all that was answered.
//!
//! A write is made to fail by the system's limit on the size of files (`prlimit`), a sync by `strace`, which gives the node
//! an error in its place. Where the system has no `strace`, or lets nobody trace, the test says so and passes, or fails if
//! `SELVEDGE_REQUIRE_STRACE` is set.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "a test says what it did")]

mod demo;
mod running;

use running::{RunningNode, selvedge};
use serde_json::json;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

const APP: &str = "app book
record Line { id: int, words: text }
state lines: list of Line by id
on add(words: text) { lines add Line { id: next_id(lines), words } }
view total = count(l for l in lines)
";

/// As `EX_SOFTWARE` of sysexits; docs/node.md.
const STOPPED_BY_A_FAULT: i32 = 70;

/// Posts, at most, until the disk fails.
const POSTS_MAX: u64 = 500;

/// The node, started by another program.
fn under(folder: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(env!("CARGO_BIN_EXE_selvedge"));
    command.args(["node", "--dir", "node", "--app", "book.weft", "--json"]);
    command.args(["--http", "127.0.0.1:0", "--fabric", "127.0.0.1:0"]);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("book.weft"), APP).expect("a file");
    folder
}

/// Posts until the node answers no more, `fail` coming after the third; then looks at how it ended, and at what is there.
fn check(folder: &Path, mut node: RunningNode, expected: &[&str], fail: impl Fn(u32)) {
    let http = node.http();
    let mut added = 0u64;
    for post in 0..POSTS_MAX {
        if post == 3 {
            fail(node.child.id());
        }
        match http.post("/book/add", &json!({ "words": "w".repeat(100) }), None) {
            Ok((200, _)) => added += 1,
            Ok((status, body)) => {
                assert!(status == 500 || status == 503, "{status} {body}");
                break;
            }
            Err(_) => break,
        }
    }
    assert!((3..POSTS_MAX).contains(&added), "{added} posts were answered");
    let mut said = String::new();
    node.rest.read_to_string(&mut said).expect("it prints text");
    let status = node.child.wait().expect("it is a child of this process");
    assert_eq!(status.code(), Some(STOPPED_BY_A_FAULT), "{said}");
    for words in expected {
        assert!(said.contains(words), "{words} in {said}");
    }
    drop(node);
    let arguments = ["node", "--dir", "node", "--app", "book.weft", "--json"];
    let mut again = selvedge(folder, &arguments);
    again.args(["--http", "127.0.0.1:0", "--fabric", "127.0.0.1:0"]);
    let node = RunningNode::of(again);
    let total = node.http().get("/book/total").expect("it answers").as_u64().expect("a number");
    // The one that got no answer may be there or not.
    assert!(total == added || total == added + 1, "{total} rows, {added} posts were answered");
}

#[test]
fn a_write_that_fails_ends_the_node_with_its_own_code_and_nothing_answered_is_lost() {
    let folder = folder();
    // The signal that comes with it would end the process before it can say anything.
    let node = RunningNode::of(under(folder.path(), "sh", &["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]));
    let limit = |pid: u32| {
        let (pid, size) = (format!("--pid={pid}"), "--fsize=4096");
        assert!(Command::new("prlimit").args([&pid, size]).status().expect("prlimit is there").success());
    };
    check(folder.path(), node, &["log-", "write", "File too large"], limit);
}

#[test]
fn a_sync_that_fails_ends_the_node_with_its_own_code_and_nothing_answered_is_lost() {
    let traces =
        Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !traces.is_ok_and(|status| status.success()) {
        let required = std::env::var_os("SELVEDGE_REQUIRE_STRACE").is_some();
        assert!(!required, "SELVEDGE_REQUIRE_STRACE is set, and there is no strace, or it may trace nothing");
        return eprintln!("SKIPPED: there is no strace here, or it may trace nothing");
    }
    let folder = folder();
    // A start takes far fewer syncs.
    let inject = "inject=fdatasync:error=EIO:when=60+";
    let arguments = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", inject];
    let node = RunningNode::of(under(folder.path(), "strace", &arguments));
    check(folder.path(), node, &["log-", "sync", "Input/output error"], |_| {});
}
