//! A node on a disk that is full: what makes its state larger is refused with why, what removes goes on, it starts there
//! too, and when there is room again all goes on by itself.
//!
//! The disk is a small one in memory, in a mount namespace of this test. Where the system gives none, the test says so
//! and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "a test says what it did")]

mod demo;
mod running;

use demo::{NodeUnderTest, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const APP: &str = "app book
record Line { id: int, words: text }
state lines: list of Line by id
on add(words: text) { lines add Line { id: next_id(lines), words } }
on strike(id: int) { remove lines[id] }
view total = count(l for l in lines)
";

/// Mounts the disk with a file that fills a part of it, then runs the node, and once more after it ended.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=12m,mode=700 tmpfs "$0" || exit 9
head -c 4m /dev/zero > "$0/fill"
"$@"
exec "$@"
"#;

/// Both runs of the node, one after the other.
struct Runs {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Runs {
    fn start(disk: &Path, app: &Path) -> Runs {
        let node = disk.join("node");
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT])
            .arg(disk)
            .arg(env!("CARGO_BIN_EXE_selvedge"))
            .args([
                "node",
                "--json",
                "--exit-with-stdin",
                "--http",
                "127.0.0.1:0",
                "--fabric",
                "127.0.0.1:0",
                "--dir",
            ])
            .arg(node)
            .arg("--app")
            .arg(app)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare is there");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped"));
        Runs { child, lines }
    }

    /// The next run's node.
    fn next(&mut self) -> NodeUnderTest {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it prints text");
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no node: {line:?}"));
        let text = |key: &str| ready[key].as_str().expect("the line has it").to_owned();
        NodeUnderTest::new(&text("http"), &text("node"))
    }

    /// A path as the node sees it.
    fn inside(&self, path: &Path) -> std::path::PathBuf {
        let root = Path::new("/proc").join(self.child.id().to_string()).join("root");
        root.join(path.strip_prefix("/").expect("it is absolute"))
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        // The node of the first run is no child of this process: it ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_mounts() -> bool {
    let arguments = ["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"];
    Command::new("unshare")
        .args(arguments)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn add(node: &NodeUnderTest) -> (u16, Value) {
    node.post("/book/add", &json!({ "words": "w".repeat(50_000) }), None).expect("it answers")
}

#[test]
fn a_full_disk_refuses_what_grows_and_nothing_else() {
    if !has_mounts() {
        return eprintln!("SKIPPED: this system lets no test mount a small disk");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (disk, app) = (folder.path().join("disk"), folder.path().join("book.weft"));
    std::fs::create_dir(&disk).expect("a folder");
    std::fs::write(&app, APP).expect("a file");
    let mut runs = Runs::start(&disk, &app);
    let node = runs.next();
    let mut added = 0;
    let refused = loop {
        let (status, body) = add(&node);
        if status != 200 {
            break (status, body);
        }
        added += 1;
        assert!(added < 1_000, "12 MiB hold no more");
    };
    let message = refused.1["error"]["message"].as_str().unwrap_or_default();
    assert!(refused.0 == 503 && refused.1["error"]["code"] == "unwritable", "{refused:?}");
    assert!(message.contains("Free some space"), "{message}");
    assert!(added > 10, "{added} rows");
    for id in 1..=added / 2 {
        let (status, body) = node.post("/book/strike", &json!({ "id": id }), None).expect("it answers");
        assert_eq!(status, 200, "{body}");
    }
    let left = added - added / 2;
    assert_eq!(node.get("/book/total"), Ok(json!(left)), "views go on");
    // Killed there, it starts again, and what it keeps is there.
    let control = std::fs::read(runs.inside(&disk.join("node/control.json"))).expect("a node writes it");
    let control: Value = serde_json::from_slice(&control).expect("it is JSON");
    let pid = control["pid"].as_u64().expect("a number");
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill is there");
    assert!(killed.success());
    let node = runs.next();
    assert_eq!(node.get("/book/total"), Ok(json!(left)));
    let (status, body) = node.post("/book/strike", &json!({ "id": added }), None).expect("it answers");
    assert_eq!(status, 200, "{body}");
    wait_for("the disk is known to be full", || match add(&node).0 {
        503 => Ok(()),
        status => Err(status.to_string()),
    });
    std::fs::remove_file(runs.inside(&disk.join("fill"))).expect("it is there");
    wait_for("there is room again", || match add(&node) {
        (200, _) => Ok(()),
        (status, body) => Err(format!("{status} {body}")),
    });
}
