//! What a node is given that is wrong: a clear error, nothing lost, nothing running on.

mod demo;
mod running;

use demo::{Demo, wait_for};
use running::{RunningNode, output, selvedge};
use serde_json::{Value, json};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const APP: &str = "app notes\n\nrecord Note { id: int, text: text }\n\nstate notes: list of Note by id\n\n\
    on note(text: text) -> int {\n  require text != \"\" else \"an empty note\"\n  \
    let n = notes add Note { id: next_id(notes), text }\n  return n.id\n}\n\nview all = [n for n in notes order by n.id]\n";

fn workplace() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it is written");
    write("notes.weft", APP);
    write("broken.weft", "app broken\n\nview all = notse\n\nview two: = 1\n");
    write("bytes.weft", "\u{0}\u{1}");
    write("a file", "not a folder");
    folder
}

#[test]
fn what_cannot_start_says_what_and_what_to_do() {
    let folder = workplace();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken_http = taken.local_addr().expect("it is bound").to_string();
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let taken_fabric = taken.local_addr().expect("it is bound").to_string();
    for (dir, file) in [("open", "lock"), ("full", "letter")] {
        std::fs::create_dir(folder.path().join(dir)).expect("a folder");
        std::fs::write(folder.path().join(dir).join(file), "").expect("it is written");
        let loose = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path().join(dir), loose).expect("its mode is set");
    }

    // Arguments, exit code, words of the message.
    let table: &[(&[&str], i32, &[&str])] = &[
        (
            &["node", "--dir", "new", "--app", "elsewhere.weft", "--http", "127.0.0.1:0"],
            1,
            &["elsewhere.weft", "No such file", "--app"],
        ),
        (
            &["node", "--dir", "new", "--app", "notse.weft", "--http", "127.0.0.1:0"],
            1,
            &["No such file", "did you mean notes.weft?"],
        ),
        (&["node", "--dir", "new", "--app", "bytes.weft", "--http", "127.0.0.1:0"], 1, &["bytes.weft"]),
        (&["node", "--dir", "/proc/new", "--app", "notes.weft", "--http", "127.0.0.1:0"], 1, &["/proc/new"]),
        (
            &["node", "--dir", "new", "--app", "/dev/zero", "--http", "127.0.0.1:0"],
            1,
            &["/dev/zero", "it is a device", "read from a file only"],
        ),
        (
            &["node", "--dir", "new", "--app", "broken.weft", "--http", "127.0.0.1:0"],
            1,
            &["broken.weft:3", "notse", "broken.weft:5"],
        ),
        (
            &["node", "--dir", "new", "--app", "notes.weft", "--http", &taken_http],
            1,
            &[&taken_http, "--http"],
        ),
        (
            &[
                "node",
                "--dir",
                "new",
                "--app",
                "notes.weft",
                "--http",
                "127.0.0.1:0",
                "--fabric",
                &taken_fabric,
            ],
            1,
            &[&taken_fabric, "--fabric"],
        ),
        (
            &["node", "--dir", "a file", "--app", "notes.weft", "--http", "127.0.0.1:0"],
            1,
            &["a file is a file, not a folder"],
        ),
        (
            &["node", "--dir", "a file", "--app", "notes.weft", "notes.weft", "--http", "127.0.0.1:0"],
            1,
            &["the app notes is given twice"],
        ),
        (&["node", "--dir", "new", "--app", ".", "--http", "127.0.0.1:0"], 1, &["it is a folder", ".weft"]),
        (
            &["node", "--dir", "full", "--app", "notes.weft", "--http", "127.0.0.1:0"],
            1,
            &["full is not empty and no node's folder"],
        ),
        (&["id", "--dir", "no/such/deep"], 1, &["there is no folder no/such"]),
        (&["node", "--dir", "a file/x", "--app", "notes.weft", "--http", "127.0.0.1:0"], 1, &["a file/x"]),
        (&["node", "--dir", "open", "--app", "notes.weft", "--http", "127.0.0.1:0"], 1, &["chmod"]),
        (
            &["node", "--dir", "new", "--app", "notes.weft", "--app", "notes.weft", "--http", "127.0.0.1:0"],
            1,
            &["twice"],
        ),
        (
            &["node", "--dir", "new", "--app", "notes.weft", "--http", "nowhere"],
            2,
            &["nowhere", "127.0.0.1:8095"],
        ),
        (&["node", "--app", "notes.weft"], 2, &["--dir"]),
        (&["peer", "add", "--dir", "new", "svt1nonsense"], 2, &["ticket", "version 1"]),
        (&["peer", "remove", "--dir", "new", "sv1nonsense"], 2, &["node"]),
        (&["nonsense"], 2, &["nonsense"]),
    ];
    for (arguments, code, words) in table {
        let output = output(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {error}");
        for word in *words {
            assert!(error.contains(word), "{arguments:?} does not say {word:?}: {error}");
        }
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
    }
}

#[test]
fn asking_about_a_folder_makes_none() {
    let folder = workplace();
    assert!(output(folder.path(), &["id", "--dir", "./ann"]).status.success());
    let ben = output(folder.path(), &["id", "--dir", "ben", "--json"]);
    let ben: Value = serde_json::from_slice(&ben.stdout).expect("a line of JSON");
    let ticket = ben["ticket"].as_str().expect("the line has the ticket");
    let node = ben["node"].as_str().expect("the line has the node");
    for arguments in [
        &["status", "--dir", "./annn"][..],
        &["peer", "list", "--dir", "./annn"],
        &["peer", "add", "--dir", "./annn", ticket],
        &["peer", "remove", "--dir", "./annn", node],
        &["peer", "remove", "--dir", "./annn", "Ben"],
    ] {
        let output = output(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("./annn is no node's folder; did you mean ./ann?"), "{arguments:?}: {error}");
        assert!(!folder.path().join("annn").exists(), "{arguments:?}");
    }
    let elsewhere = output(folder.path(), &["status", "--dir", "elsewhere"]);
    let error = String::from_utf8_lossy(&elsewhere.stderr);
    assert!(error.contains("elsewhere is no node's folder; selvedge id"), "{error}");

    // A peer is removed by what it is called, where only one is called that.
    assert!(
        output(folder.path(), &["peer", "add", "--dir", "ann", ticket, "--name", "Ben"]).status.success()
    );
    let wrong = output(folder.path(), &["peer", "remove", "--dir", "ann", "Bem"]);
    let error = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(1) && error.contains("did you mean Ben?"), "{error}");
    let removed = output(folder.path(), &["peer", "remove", "--dir", "ann", "Ben", "--json"]);
    assert_eq!(String::from_utf8_lossy(&removed.stdout), format!("{{\"removed\":\"{node}\"}}\n"));

    std::fs::write(folder.path().join("ben/identity"), "").expect("it is written");
    let emptied = output(folder.path(), &["id", "--dir", "ben"]);
    let error = String::from_utf8_lossy(&emptied.stderr);
    assert!(emptied.status.code() == Some(1) && error.contains("identity: it is empty"), "{error}");
}

#[test]
fn whoever_posted_what_a_full_disk_cannot_keep_is_told_that_the_outcome_is_not_known() {
    let folder = workplace();
    // Room for the log's first segment of 1 MiB (2048 blocks) and not for the next one of twice that.
    let script = "trap '' XFSZ; ulimit -f 3000; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_selvedge"), "node", "--dir", "node", "--json"]);
    command.args(["--app", "notes.weft", "--http", "127.0.0.1:0", "--fabric", "127.0.0.1:0"]);
    command.current_dir(folder.path()).stdin(Stdio::null());
    let mut node = RunningNode::of(command);
    let http = node.http();
    let text = "x".repeat(300_000);
    let mut answers = (0..8).map(|_| http.post("/notes/note", &json!({ "text": text }), None));
    let first = answers.find(|answer| !matches!(answer, Ok((200, _))));
    let (status, answer) = first.expect("the disk is full").expect("the post is answered");
    // Refused, if the node knew of it before; else applied and not kept.
    let code = answer["error"]["code"].as_str().expect("an error has a code");
    assert!(matches!((status, code), (500, "unknown") | (503, "unwritable")), "{answer}");
    let (status, answer) = http.post("/notes/note", &json!({ "text": text }), None).expect("it is answered");
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("unwritable")), "{answer}");
    assert!(http.get("/notes/all").is_ok(), "views go on");
    assert!(node.child.try_wait().expect("it is a child of this process").is_none(), "the node goes on");
}

#[test]
fn a_second_process_on_a_folder_is_refused_and_the_first_goes_on() {
    let folder = workplace();
    let first = RunningNode::start(folder.path(), "node", "notes.weft");
    let arguments = ["node", "--dir", "node", "--app", "notes.weft", "--http", "127.0.0.1:0"];
    let second = output(folder.path(), &arguments);
    let error = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{error}");
    assert!(error.contains(&first.child.id().to_string()), "the first one's process number: {error}");
    let answer = first.http().post("/notes/note", &json!({ "text": "still here" }), None);
    assert_eq!(answer, Ok((200, json!({ "answer": 1 }))));
}

#[test]
fn what_was_answered_is_there_after_kill_and_a_wrong_shape_changes_nothing() {
    let folder = workplace();
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    let http = node.http();
    assert_eq!(http.post("/notes/note", &json!({ "text": "kept" }), None), Ok((200, json!({ "answer": 1 }))));
    // Path, body, status, words of the message.
    let table: &[(&str, Value, u16, &str)] = &[
        ("/notes/note", json!({ "text": 7 }), 400, "text"),
        ("/notes/note", json!({ "txet": "a" }), 400, "txet"),
        ("/notes/note", json!({}), 400, "text"),
        ("/notes/note", json!([]), 400, "object"),
        ("/notes/note", json!({ "text": "" }), 409, "an empty note"),
        ("/notes/none", json!({}), 404, "none"),
        ("/none/note", json!({}), 404, "none"),
    ];
    for (path, body, status, words) in table {
        let (code, answer) = http.post(path, body, None).expect("the node answers");
        assert_eq!(code, *status, "{path} {body}: {answer}");
        let message = answer["error"]["message"].as_str().expect("an error has a message");
        assert!(message.contains(words), "{path} {body}: {message}");
    }
    drop(node);
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    assert_eq!(node.http().get("/notes/all"), Ok(json!([{ "id": 1, "text": "kept" }])));
}

#[test]
fn the_same_key_is_answered_the_same_also_after_kill() {
    let folder = workplace();
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    let post = |node: &RunningNode, text: &str| {
        node.http().post("/notes/note", &json!({ "text": text }), Some("key 1")).expect("the node answers")
    };
    assert_eq!(post(&node, "once"), (200, json!({ "answer": 1 })));
    assert_eq!(post(&node, "once"), (200, json!({ "answer": 1 })));
    assert_eq!(post(&node, "other").0, 409);
    drop(node);
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    assert_eq!(post(&node, "once"), (200, json!({ "answer": 1 })));
    assert_eq!(node.http().get("/notes/all"), Ok(json!([{ "id": 1, "text": "once" }])));
}

#[test]
fn an_app_whose_source_changed_keeps_what_it_has_or_says_why_not() {
    let folder = workplace();
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it is written");
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    let answer = node.http().post("/notes/note", &json!({ "text": "kept" }), None);
    assert_eq!(answer, Ok((200, json!({ "answer": 1 }))));
    let needy = APP.replace("text: text }", "text: text, at: int }").replace("), text }", "), text, at: 1 }");
    write("needy.weft", &needy);
    write(
        "changed.weft",
        &APP.replace("text: text }", "words was text: text, at: int = 7 }")
            .replace("), text }", "), words: text }"),
    );
    write(
        "poorer.weft",
        "app notes\nrecord Note { id: int }\nstate notes: list of Note by id\nview all = [n for n in notes]\n",
    );
    write(
        "failing.weft",
        &format!(
            "{APP}view share = 1 / (count(n for n in notes) - 1)\n\
             test \"there are two\" {{ expect count(n for n in notes) == 2 }}\n"
        ),
    );
    // A node that runs is asked, and a folder on which none runs is looked at; neither changes anything.
    let plan_of = |file: &str, of: [&str; 2], code: i32| {
        let output = output(folder.path(), &[&["app", "plan", file, "--json"], &of[..]].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str::<Value>(&said).unwrap_or_else(|_| panic!("{said}"))
    };
    let plans = |of: [&str; 2]| {
        [("notes.weft", 0), ("changed.weft", 0), ("needy.weft", 1), ("poorer.weft", 1), ("failing.weft", 1)]
            .map(|(file, code)| plan_of(file, of, code))
    };
    let asked = plans(["--node", "node"]);
    let verdicts = asked.each_ref().map(|plan| plan["verdict"].as_str().unwrap_or_default());
    assert_eq!(verdicts, ["keeps", "keeps", "refused", "loses", "keeps"]);
    assert_eq!(asked[4]["views"], json!([{ "view": "share", "error": "division by zero" }]));
    assert_eq!(asked[4]["tests"][0]["test"], "there are two");
    let done =
        |arguments: &[&str]| assert!(output(folder.path(), arguments).status.success(), "{arguments:?}");
    done(&["store", "backup", "--dir", "node", "--to", "running.backup"]);
    drop(node);
    assert_eq!(plans(["--node", "node"]), asked);
    // A backup is as good as the folder, whether the node ran or not, and with the identity in it.
    done(&["store", "backup", "--dir", "node", "--to", "stopped.backup", "--with-identity"]);
    for backup in ["running.backup", "stopped.backup"] {
        assert_eq!(plans(["--backup", backup]), asked, "{backup}");
    }
    let whole = std::fs::read(folder.path().join("stopped.backup")).expect("it is there");
    write("strange.weft", "app strange\nstate n: int = 0\non put(m: int) { n = m }\nview all = n\n");
    std::fs::write(folder.path().join("cut.backup"), &whole[..whole.len() - 1]).expect("it is written");
    for (file, backup, words) in [
        ("notes.weft", "cut.backup", "cut.backup"),
        ("notes.weft", "notes.weft", "notes.weft"),
        ("notes.weft", "nowhere", "cannot read nowhere"),
        ("strange.weft", "stopped.backup", "the app strange was never on this node"),
    ] {
        let said = plan_of(file, ["--backup", backup], 1);
        assert!(said["error"].as_str().is_some_and(|why| why.contains(words)), "{backup}: {said}");
    }
    let start = |arguments: &[&str]| {
        let all = ["node", "--dir", "node", "--http", "127.0.0.1:0", "--fabric", "127.0.0.1:0", "--json"];
        selvedge(folder.path(), &[&all, arguments].concat())
    };
    for (file, words) in [("needy.weft", "1 row would get no value"), ("poorer.weft", "--allow-loss notes")] {
        let output = start(&["--app", file]).output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(words), "{said}");
    }
    let node = RunningNode::of(start(&["--app", "changed.weft"]));
    assert_eq!(node.ready["changes"][0]["verdict"], "keeps", "{}", node.ready);
    assert_eq!(node.http().get("/notes/all"), Ok(json!([{ "id": 1, "words": "kept", "at": 7 }])));
    drop(node);
    let node = RunningNode::of(start(&["--app", "poorer.weft", "--allow-loss", "notes"]));
    assert_eq!(node.http().get("/notes/all"), Ok(json!([{ "id": 1 }])));
}

/// The files of a node's log.
fn log_files(folder: &Path, dir: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder.join(dir)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-")))
        .collect()
}

#[test]
fn a_log_that_is_gone_or_another_nodes_is_not_taken_for_a_new_one() {
    let folder = workplace();
    for dir in ["one", "two"] {
        let node = RunningNode::start(folder.path(), dir, "notes.weft");
        let answer = node.http().post("/notes/note", &json!({ "text": dir }), None);
        assert_eq!(answer, Ok((200, json!({ "answer": 1 }))));
    }
    let [one, two] = ["one", "two"].map(|dir| log_files(folder.path(), dir).remove(0));
    let aside = folder.path().join("aside");
    let start = |words: &str| {
        let arguments = ["node", "--dir", "one", "--app", "notes.weft", "--http", "127.0.0.1:0"];
        let output = output(folder.path(), &arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(words), "{error}");
    };
    std::fs::rename(&one, &aside).expect("it is moved");
    start("this node's log is gone");
    std::fs::copy(&two, &one).expect("it is copied");
    std::fs::set_permissions(&one, std::fs::Permissions::from_mode(0o600)).expect("its mode is set");
    start("the log is another node's");
    std::fs::rename(&aside, &one).expect("it is moved back");
    let [own, other] = ["one", "two"].map(|dir| folder.path().join(dir).join("identity"));
    std::fs::rename(&own, &aside).expect("it is moved");
    start("the folder has a log");
    std::fs::copy(&other, &own).expect("it is copied");
    start("the log in this folder is that of the node");
    std::fs::rename(&aside, &own).expect("it is moved back");
    // control.json guards nothing alone.
    std::fs::remove_file(folder.path().join("one/control.json")).expect("it is removed");
    std::fs::rename(&one, &aside).expect("it is moved");
    start("this node's log is gone");
    std::fs::rename(&aside, &one).expect("it is moved back");
    let node = RunningNode::start(folder.path(), "one", "notes.weft");
    assert_eq!(node.http().get("/notes/all"), Ok(json!([{ "id": 1, "text": "one" }])));
}

#[test]
fn rows_of_an_app_that_does_not_run_are_kept_and_named() {
    let folder = workplace();
    std::fs::write(folder.path().join("other.weft"), "app other\n\nview one = 1\n").expect("it is written");
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    assert!(node.http().post("/notes/note", &json!({ "text": "kept" }), None).is_ok());
    drop(node);
    let node = RunningNode::start(folder.path(), "node", "other.weft");
    let status = output(folder.path(), &["status", "--dir", "node", "--json"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("rows of the app notes are kept here"), "{status}");
    drop(node);
    let node = RunningNode::start(folder.path(), "node", "notes.weft");
    assert_eq!(node.http().get("/notes/all"), Ok(json!([{ "id": 1, "text": "kept" }])));
}

#[test]
fn noise_and_strangers_change_nothing_and_are_shown() {
    let demo = Demo::start(&[]);
    let (ann, ben) = (demo.node("ann"), demo.node("ben"));
    // Noise straight at ben: any bytes, and bytes of every first byte's kind.
    let noise = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let fabric = demo.ready["ben"]["fabric"].as_str().expect("the first line says where datagrams come");
    for first in 0..=255u8 {
        for length in [1, 29, 600, 1200] {
            let mut bytes = vec![first.wrapping_mul(31); length];
            bytes[0] = first;
            let _ = noise.send_to(&bytes, fabric);
        }
    }
    // A stranger who has ben's ticket, and whom ben does not know.
    let folder = workplace();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps/messenger/messenger.weft");
    let source = source.to_str().expect("the path is text");
    let stranger = RunningNode::start(folder.path(), "stranger", source);
    let ticket = demo.ready["ben"]["ticket"].as_str().expect("the first line has the ticket");
    let added = output(folder.path(), &["peer", "add", "--dir", "stranger", ticket, "--name", "Ben"]);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let http = stranger.http();
    let befriend = http.post("/messenger/befriend", &json!({ "node": ben.id, "name": "Ben" }), None);
    assert_eq!(befriend.map(|(status, _)| status), Ok(200));
    let write = http.post("/messenger/write", &json!({ "to": ben.id, "text": "let me in" }), None);
    assert_eq!(write.map(|(status, _)| status), Ok(200));
    wait_for("the stranger is told why its line waits", || {
        let status = output(folder.path(), &["status", "--dir", "stranger", "--json"]);
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        if status.contains("has not added this node") { Ok(()) } else { Err(status) }
    });
    let conversation =
        http.get(&format!("/messenger/conversation?peer={}", ben.id)).expect("the view answers");
    assert_eq!(conversation[0]["progress"], "waiting");
    // Between the two that are friends all goes on.
    ann.post_until_answered("/messenger/write", &json!({ "to": ben.id, "text": "all well?" }), "1");
    wait_for("ann's line is delivered", || {
        let lines = ann.get(&format!("/messenger/conversation?peer={}", ben.id))?;
        if lines[0]["progress"] == "delivered" { Ok(()) } else { Err(lines.to_string()) }
    });
    let heard =
        ben.get(&format!("/messenger/conversation?peer={}", stranger.http().id)).expect("the view answers");
    assert_eq!(heard, json!([]));
    assert!(demo.end().success());
}

#[test]
fn the_demo_runs_an_app_that_befriends_nobody() {
    let folder = workplace();
    let app = folder.path().join("notes.weft");
    let demo = Demo::start(&["--app", app.to_str().expect("the path is text")]);
    for name in ["ann", "ben"] {
        let page = demo.node(name).get("/notes/").expect("the address that is printed leads somewhere");
        assert_eq!(page["inputs"][0]["name"], "note", "{page}");
        let about = &demo.ready[name];
        assert!(about["page"].as_str().is_some_and(|page| page.ends_with("/notes/")), "{about}");
    }
    assert!(demo.end().success());
}

#[test]
fn a_node_that_is_asked_to_stop_finishes_and_exits_well() {
    let folder = workplace();
    let mut node = RunningNode::start(folder.path(), "node", "notes.weft");
    let pid = node.child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().expect("there is kill");
    assert!(killed.success());
    let status = node.child.wait().expect("it is a child of this process");
    assert_eq!(status.code(), Some(0));
    let mut rest = String::new();
    if let Some(mut error) = node.child.stderr.take() {
        error.read_to_string(&mut rest).expect("it prints text");
    }
    assert!(!rest.contains("panicked"), "{rest}");
}
