//! `selvedge store backup` of nodes that run and of folders, `restore`, `salvage`: a prefix of what was acknowledged, whole or not
//! at all.

mod demo;
mod running;

use demo::{NodeUnderTest, wait_for};
use running::{RunningNode, output, selvedge};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const APP: &str = "app book
record Line { id: int, words: text }
state lines: list of Line by id
state last: int = 0
on fill(count: int) { for n in 1 .. count { lines add Line { id: next_id(lines), words: \"before\" } } }
on add(number: int) { lines add Line { id: next_id(lines), words: \"{number}\" }; last = number }
view total = count(l for l in lines)
view newest = last
";

const FILLED: u64 = 20_000;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("book.weft"), APP).expect("the app is written");
        Place { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, dir: &str) -> RunningNode {
        RunningNode::start(self.folder.path(), dir, "book.weft")
    }

    /// What a command said, its last line as JSON, and its exit code.
    fn said(&self, command: &str) -> (Option<i32>, Value) {
        let output = output(self.folder.path(), &command.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        (output.status.code(), last.unwrap_or_else(|| json!(String::from_utf8_lossy(&output.stderr))))
    }

    fn done(&self, command: &str) -> Value {
        let (code, said) = self.said(command);
        assert_eq!(code, Some(0), "{command}: {said}");
        said
    }

    fn refused(&self, command: &str, words: &[&str]) {
        let (code, said) = self.said(command);
        let why = said["error"].as_str().or(said.as_str()).unwrap_or_default();
        assert_eq!(code, Some(1), "{command}: {said}");
        for word in words {
            assert!(why.contains(word), "{command}: {why}");
        }
    }

    /// Stops a node and waits until its folder is free.
    fn stop(&self, dir: &str, node: RunningNode) {
        drop(node);
        wait_for("the folder is free", || match self.said(&format!("store check --dir {dir} --json")) {
            (Some(0), _) => Ok(()),
            said => Err(format!("{said:?}")),
        });
    }
}

fn post(node: &NodeUnderTest, input: &str, arguments: &Value) {
    let posted = node.post(&format!("/book/{input}"), arguments, None);
    assert_eq!(posted.map(|(status, _)| status), Ok(200), "{input}");
}

fn view(node: &NodeUnderTest, name: &str) -> u64 {
    node.get(&format!("/book/{name}")).expect("it answers").as_u64().expect("a number")
}

#[test]
fn a_backup_of_a_node_that_is_posted_to_is_a_prefix_of_what_was_acknowledged() {
    let place = Place::new();
    let node = place.start("node");
    post(&node.http(), "fill", &json!({ "count": FILLED }));
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut backups: Vec<(String, u64, u64)> = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                post(&node.http(), "add", &json!({ "number": number }));
                acknowledged.store(number, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for turn in 0..3 {
            let file = format!("backup-{turn}");
            let before = acknowledged.load(Ordering::SeqCst);
            let said = place.done(&format!("store backup --dir node --to {file} --with-identity --json"));
            // One may be on disk and not yet counted here.
            let after = acknowledged.load(Ordering::SeqCst) + 1;
            assert_eq!((&said["backup"], &said["node"]), (&json!(file), &node.ready["node"]), "{said}");
            assert!(said["rows"].as_u64() >= Some(FILLED + before), "{said}");
            backups.push((file, before, after));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    drop(node);
    for (file, before, after) in backups {
        let restored = place.done(&format!("store restore --dir of-{file} --from {file} --json"));
        assert_eq!(
            (&restored["identity"], &restored["apps"]),
            (&json!(true), &json!(["book"])),
            "{restored}"
        );
        let node = place.start(&format!("of-{file}"));
        assert_eq!(restored["node"], node.ready["node"]);
        let (last, total) = (view(&node.http(), "newest"), view(&node.http(), "total"));
        assert!((before..=after).contains(&last), "{before} to {after} were acknowledged, it has {last}");
        assert_eq!(total, FILLED + last, "whole events only");
        post(&node.http(), "add", &json!({ "number": last + 1 }));
    }
}

#[test]
fn a_backup_is_whole_or_refused_and_a_folder_is_made_whole_or_not_at_all() {
    let place = Place::new();
    let node = place.start("node");
    post(&node.http(), "fill", &json!({ "count": 3_000 }));
    let running = place.done("store backup --dir node --to running --json");
    place.stop("node", node);
    let made = place.done("store backup --dir node --to stopped --json");
    assert_eq!(made["identity"], false);
    for same in ["node", "frame", "run", "rows"] {
        assert_eq!(running[same], made[same], "{same}: of a node and of its folder");
    }
    let stopped = std::fs::read(place.path("stopped")).expect("it is there");
    let mode = std::fs::metadata(place.path("stopped")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    place.refused(
        "store backup --dir node --to stopped --json",
        &["stopped is there already", "another file"],
    );
    place.refused("store backup --dir nowhere --to new --json", &["nowhere is no node's folder"]);
    place.refused("store backup --dir node --to no/where --json", &["cannot write no/where"]);

    // Through a pipe, and back out of one.
    let command = |arguments: &str| selvedge(place.folder.path(), &arguments.split(' ').collect::<Vec<_>>());
    let piped = command("store backup --dir node").output().expect("it runs");
    assert!(piped.status.success() && piped.stdout == stopped);
    let mut restoring = command("store restore --dir piped --identity node/identity --json");
    let mut restoring = restoring.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut input = restoring.stdin.take().expect("its input is piped");
    std::io::Write::write_all(&mut input, &stopped).expect("it reads");
    drop(input);
    let restored = restoring.wait_with_output().expect("it ends");
    let said: Value = serde_json::from_slice(&restored.stdout).expect("--json is JSON");
    assert!(restored.status.success() && said["identity"] == true, "{said}");
    assert_eq!(view(&place.start("piped").http(), "total"), 3_000);

    let restore = |from: &str| format!("store restore --dir new --from {from} --json");
    let mut seed = 7_u64;
    for _ in 0..20 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut damaged = stopped.clone();
        let at = (seed >> 33) as usize % damaged.len();
        damaged[at] ^= 1 << (seed % 8);
        std::fs::write(place.path("damaged"), &damaged).expect("it is written");
        place.refused(&restore("damaged"), &["damaged "]);
        assert!(!place.path("new").exists(), "byte {at}: nothing is made");
    }
    std::fs::write(place.path("cut"), &stopped[..stopped.len() - 1]).expect("it is written");
    place.refused(&restore("cut"), &["cut is damaged", "it ends too early"]);
    place.refused(&restore("book.weft"), &["book.weft is no backup"]);
    place.refused(&restore("nowhere"), &["cannot read nowhere"]);
    place.refused("store restore --dir piped --from stopped --json", &["piped is not empty"]);
    place.done("id --dir other --json");
    let others = "store restore --dir new --from stopped --identity other/identity --json";
    place.refused(others, &["is the identity of sv1", "and these are the rows of sv1"]);
    assert!(!place.path("new").exists());

    // Without its identity it is no node yet.
    assert_eq!(place.done(&restore("stopped"))["identity"], false);
    let app = Path::new("book.weft");
    let start =
        format!("node --dir new --app {} --http 127.0.0.1:0 --fabric 127.0.0.1:0 --json", app.display());
    place.refused(&start, &["identity: it is missing, though the folder has a log"]);
    std::fs::copy(place.path("node/identity"), place.path("new/identity")).expect("it is copied");
    assert_eq!(view(&place.start("new").http(), "total"), 3_000);
}

/// The same app after a change: another field, another name.
const CHANGED: &str = "app book
record Line { id: int, text was words: text, stars: int = 3 }
state lines: list of Line by id
state last: int = 0
on fill(count: int) { for n in 1 .. count { lines add Line { id: next_id(lines), text: \"before\" } } }
on add(number: int) { lines add Line { id: next_id(lines), text: \"{number}\" }; last = number }
view total = sum(l.stars for l in lines)
view newest = last
";

#[test]
fn rows_of_before_an_apps_change_are_backed_up_in_the_shape_of_after() {
    let place = Place::new();
    let node = place.start("node");
    post(&node.http(), "fill", &json!({ "count": 5 }));
    place.stop("node", node);
    std::fs::write(place.path("book.weft"), CHANGED).expect("the app is written");
    let node = place.start("node");
    post(&node.http(), "add", &json!({ "number": 7 }));
    place.done("store backup --dir node --to running --json");
    place.stop("node", node);
    place.done("store backup --dir node --to stopped --json");
    for from in ["running", "stopped"] {
        place.done(&format!("store restore --dir of-{from} --from {from} --identity node/identity --json"));
        let node = place.start(&format!("of-{from}"));
        assert_eq!((view(&node.http(), "total"), view(&node.http(), "newest")), (18, 7), "{from}");
    }
}

/// The pages at which something stands in a segment.
fn pages(bytes: &[u8]) -> Vec<usize> {
    (4096..bytes.len()).step_by(4096).filter(|at| bytes[*at..*at + 4].iter().any(|byte| *byte != 0)).collect()
}

#[test]
fn a_log_with_a_flipped_bit_in_the_middle_is_saved_up_to_there() {
    let place = Place::new();
    let node = place.start("node");
    for number in 1..=20 {
        post(&node.http(), "add", &json!({ "number": number }));
    }
    place.stop("node", node);
    place.refused("store salvage --dir node --json", &["node needs no saving", "a node starts on it"]);
    let log = place.path("node/log-0000000000000001");
    let mut bytes = std::fs::read(&log).expect("there is a log");
    let pages = pages(&bytes);
    bytes[pages[pages.len() / 2] + 100] ^= 16;
    std::fs::write(&log, &bytes).expect("it is written");
    let start = "node --dir node --app book.weft --http 127.0.0.1:0 --fabric 127.0.0.1:0 --json";
    place.refused(start, &["log-0000000000000001 is damaged from byte", "store salvage", "store backup"]);

    let plan = place.done("store salvage --dir node --json");
    let number = |value: &Value| value.as_u64().expect("a number");
    let (kept, lost) = (&plan["kept"], &plan["lost"]);
    assert!(
        number(&lost["frames"]) > 1 && number(&lost["readable"]) == number(&lost["frames"]) - 1,
        "{plan}"
    );
    assert!(number(&lost["changes"]["book"]) > 0 && plan["identity"] == true, "{plan}");
    assert!(std::fs::read(&log).expect("there is a log") == bytes, "a plan changes nothing");
    let saved = place.done("store salvage --dir node --to saved --json");
    assert_eq!((&saved["identity"], &saved["rows"]), (&json!(true), &kept["rows"]), "{saved}");
    assert!(std::fs::read(&log).expect("there is a log") == bytes, "the damaged folder is left as it is");
    place.refused("store salvage --dir node --to saved --json", &["saved is not empty"]);
    let node = place.start("saved");
    let (last, total) = (view(&node.http(), "newest"), view(&node.http(), "total"));
    assert!(last == total && (1..20).contains(&last), "a prefix in whole events: {last}, {total}");
    post(&node.http(), "add", &json!({ "number": last + 1 }));
}

/// All kinds of rows; the source of the second app is made to compile no more.
const SHOP: &str = "app shop
enum Size { small, large }
record Order { id: int, who: text, size: Size, price: real, note: text?, tags: list of text }
state orders: list of Order by id
state open: bool = true
on order(who: text, price: real, note: text?) {
  orders add Order { id: next_id(orders), who, size: .large, price, note, tags: [who, \"new\"] }
}
view all = [o for o in orders order by o.id]
view is_open = open
";

#[test]
fn what_is_exported_is_read_by_people_and_imported_it_is_the_same() {
    let place = Place::new();
    std::fs::write(place.path("shop.weft"), SHOP).expect("the app is written");
    let start = |dir: &str| RunningNode::start(place.folder.path(), dir, "shop.weft");
    let node = start("node");
    for (who, price, note) in [("ann \"of\" Bath", 0.1, json!(null)), ("ben\n", -1e300, json!("fragile"))] {
        let order = json!({ "who": who, "price": price, "note": note });
        let posted = node.http().post("/shop/order", &order, Some("once"));
        let posted = posted.and_then(|_| node.http().post("/shop/order", &order, None));
        assert_eq!(posted.map(|(status, _)| status), Ok(200));
    }
    let all = node.http().get("/shop/all").expect("it answers");
    place.stop("node", node);
    let said = place.done("store export --dir node --to lines --json");
    let count = all.as_array().expect("a list").len() as u64;
    assert_eq!(said["apps"]["shop"].as_u64(), Some(count + 1), "the orders and a variable: {said}");
    let lines = std::fs::read_to_string(place.path("lines")).expect("it is there");
    let shown = r#"{"app":"shop","list":"orders","row":{"id":1,"who":"ann \"of\" Bath","size":"large","price":0.1,"note":null,"tags":["ann \"of\" Bath","new"]}}"#;
    assert!(lines.lines().any(|line| line == shown), "{lines}");
    assert!(lines.lines().any(|line| line == r#"{"app":"shop","list":"open","row":true}"#), "{lines}");
    assert_eq!(lines.lines().last(), Some(format!(r#"{{"rows":{}}}"#, said["rows"]).as_str()));
    let mode = std::fs::metadata(place.path("lines")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    place.done("store import --dir again --from lines --identity node/identity --json");
    place.done("store export --dir again --to lines-again --json");
    assert!(std::fs::read_to_string(place.path("lines-again")).expect("it is there") == lines);
    let node = start("again");
    assert_eq!(node.http().get("/shop/all"), Ok(all.clone()));
    drop(node);

    // A row that a person changed, and one that is no row.
    let import = "store import --dir new --from changed --identity node/identity --json";
    let change = |from: &str, to: &str| {
        assert!(lines.contains(from), "{from}");
        std::fs::write(place.path("changed"), lines.replacen(from, to, 1)).expect("it is written");
    };
    for (from, to, why) in [
        (r#""price":0.1"#, r#""price":"cheap""#, "field `price`"),
        (r#""list":"orders""#, r#""list":"others""#, "keeps nothing of the name others"),
        (r#"{"app":"shop""#, r#"{"app":"shop"#, "line "),
        ("selvedge_export\":1", "selvedge_export\":2", "version 2"),
        ("{\"rows\":", "{\"rows\":1", "rows come before it"),
        ("{\"selvedge", "selvedge", "begins with what it is"),
    ] {
        change(from, to);
        place.refused(import, &["changed, line ", why]);
        assert!(!place.path("new").exists(), "{to}");
    }
    std::fs::write(place.path("changed"), lines.rsplit_once("{\"rows").expect("a last line").0)
        .expect("it is written");
    place.refused(import, &["the last line, with the count of rows, is missing"]);
    change(r#""price":0.1"#, r#""price":0.25"#);
    place.done(import);
    let changed = start("new").http().get("/shop/all").expect("it answers");
    assert_eq!(changed[0]["price"], json!(0.25));
}
