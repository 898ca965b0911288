//! A node whose messenger was the first one, whose contacts had no `verified`: with the one of today it has what it had.

mod demo;
mod running;

use demo::NodeUnderTest;
use running::RunningNode;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The messenger as it was first, and as it is.
fn messengers() -> [PathBuf; 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["../tests/changed/messenger.weft", "../apps/messenger/messenger.weft"].map(|path| here.join(path))
}

fn post(node: &NodeUnderTest, input: &str, body: &Value) -> Value {
    let answer = node.post(&format!("/messenger/{input}"), body, None).expect("the node answers");
    assert_eq!(answer.0, 200, "{input}: {}", answer.1);
    answer.1
}

#[test]
fn a_folder_of_the_first_messenger_is_taken_over() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [first, today] = messengers().map(|path| path.to_str().expect("the path is text").to_owned());
    let ben = "sv17777777777777777777777777777777777777777777777777777ictuqe";
    let before = RunningNode::start(folder.path(), "ann", &first);
    post(&before.http(), "befriend", &json!({ "node": ben, "name": "Ben" }));
    post(&before.http(), "write", &json!({ "to": ben, "text": "Shall we mend the net?" }));
    let conversation = format!("/messenger/conversation?peer={ben}");
    let lines = before.http().get(&conversation).expect("the view answers");
    drop(before);

    let now = RunningNode::start(folder.path(), "ann", &today);
    let node = now.http();
    assert_eq!(node.get(&conversation), Ok(lines), "the same lines");
    let people = node.get("/messenger/people").expect("the view answers");
    assert_eq!((&people[0]["name"], &people[0]["verified"]), (&json!("Ben"), &json!(false)), "{people}");
    post(&node, "verify", &json!({ "node": ben }));
    let answer = post(&node, "write", &json!({ "to": ben, "text": "Tomorrow?" }));
    assert_eq!(answer, json!({ "answer": 2 }), "numbers go on");
    let found = node.get("/messenger/search?words=net").expect("the view answers");
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    drop(now);

    let again = RunningNode::start(folder.path(), "ann", &today);
    let people = again.http().get("/messenger/people").expect("the view answers");
    assert_eq!(people[0]["verified"], true, "{people}");
}
