//! A folder that was put back from an older copy: found out by its peers, told to people, applied twice by nobody; it goes on
//! by itself.

mod demo;
mod running;

use demo::{NodeUnderTest, wait_for};
use running::{RunningNode, output};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Pair {
    folder: tempfile::TempDir,
    app: PathBuf,
}

impl Pair {
    fn start(&self, dir: &str) -> RunningNode {
        RunningNode::start(self.folder.path(), dir, self.app.to_str().expect("the path is text"))
    }

    fn copy(&self, from: &str, to: &str) {
        let _ = std::fs::remove_dir_all(self.folder.path().join(to));
        let copied = Command::new("cp").args(["-a", from, to]).current_dir(self.folder.path()).status();
        assert!(copied.expect("there is cp").success());
    }

    /// Ann's log.
    fn log(&self) -> PathBuf {
        self.folder.path().join("ann/log-0000000000000001")
    }

    /// Each is the other's peer and contact.
    fn befriend(&self, one: (&str, &RunningNode), other: (&str, &RunningNode)) {
        for ((dir, node), (name, peer)) in [(one, other), (other, one)] {
            let ticket = peer.ready["ticket"].as_str().expect("the line has the ticket");
            let added = output(self.folder.path(), &["peer", "add", "--dir", dir, ticket, "--name", name]);
            assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
            let befriend = json!({ "node": peer.http().id, "name": name });
            assert_eq!(node.http().post("/messenger/befriend", &befriend, None), Ok((200, json!({}))));
        }
    }

    fn status(&self, dir: &str) -> String {
        let status = output(self.folder.path(), &["status", "--dir", dir, "--json"]);
        String::from_utf8_lossy(&status.stdout).into_owned()
    }
}

fn write(from: &NodeUnderTest, to: &NodeUnderTest, text: &str) {
    let wrote = from.post("/messenger/write", &json!({ "to": to.id, "text": text }), None);
    assert_eq!(wrote.map(|(status, _)| status), Ok(200), "{text}");
}

/// Texts and progress of a conversation, oldest first.
fn lines(node: &NodeUnderTest, peer: &NodeUnderTest) -> Result<Vec<(String, String)>, String> {
    let conversation: Value = node.get(&format!("/messenger/conversation?peer={}&n=1000", peer.id))?;
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let lines = conversation.as_array().ok_or("no list")?.iter().rev();
    Ok(lines.map(|line| (text(line, "text"), text(line, "progress"))).collect())
}

/// Waits until a line has this progress at its writer's.
fn wait_until(writer: &NodeUnderTest, reader: &NodeUnderTest, text: &str, progress: &str) {
    wait_for(&format!("{text:?} is {progress}"), || {
        let lines = lines(writer, reader)?;
        let found = lines.iter().any(|line| line.0 == text && line.1 == progress);
        if found { Ok(()) } else { Err(format!("{lines:?}")) }
    });
}

/// How a folder is saved and put back.
enum By {
    /// Copied while the node is stopped, and copied back.
    Copy,
    /// Its log damaged where the copy would have been made, and what can be saved of it saved.
    Salvage,
    /// Backed up while the node runs, and restored.
    Backup,
}

impl By {
    fn save(&self, pair: &Pair, ann: RunningNode) -> RunningNode {
        match self {
            By::Copy => {
                drop(ann);
                pair.copy("ann", "copy");
                pair.start("ann")
            }
            By::Backup => {
                let made = output(pair.folder.path(), &["store", "backup", "--dir", "ann", "--to", "saved"]);
                assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
                ann
            }
            By::Salvage => {
                let log = std::fs::read(pair.log()).expect("there is a log");
                let written = log.chunks(4096).rposition(|page| page.iter().any(|byte| *byte != 0));
                let next = (written.expect("it has a first page") + 1) * 4096;
                std::fs::write(pair.folder.path().join("next"), next.to_string()).expect("it is written");
                ann
            }
        }
    }

    fn put_back(&self, pair: &Pair) {
        let path = |name: &str| pair.folder.path().join(name);
        let done = |command: &str| {
            let done = output(pair.folder.path(), &command.split(' ').collect::<Vec<_>>());
            assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        };
        match self {
            By::Copy => pair.copy("copy", "ann"),
            By::Backup => {
                std::fs::rename(path("ann"), path("lost")).expect("it is moved");
                done("store restore --dir ann --from saved --identity lost/identity");
            }
            By::Salvage => {
                let next = std::fs::read_to_string(path("next")).expect("it was written");
                let next: usize = next.parse().expect("a number");
                let mut log = std::fs::read(pair.log()).expect("there is a log");
                log[next + 100] ^= 1;
                std::fs::write(pair.log(), log).expect("it is written");
                std::fs::rename(path("ann"), path("lost")).expect("it is moved");
                done("store salvage --dir lost --to ann");
            }
        }
    }
}

#[test]
fn a_folder_put_back_goes_on_by_itself_and_nothing_is_applied_twice() {
    goes_on_by_itself(&By::Copy);
}

#[test]
fn a_folder_saved_from_a_damaged_one_goes_on_by_itself_and_nothing_is_applied_twice() {
    goes_on_by_itself(&By::Salvage);
}

#[test]
fn a_folder_restored_of_a_backup_goes_on_by_itself_and_nothing_is_applied_twice() {
    goes_on_by_itself(&By::Backup);
}

fn goes_on_by_itself(by: &By) {
    let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps/messenger/messenger.weft");
    let pair = Pair { folder: tempfile::tempdir().expect("a temporary folder"), app };
    let ben = pair.start("ben");
    let ann = pair.start("ann");
    pair.befriend(("ann", &ann), ("ben", &ben));
    write(&ann.http(), &ben.http(), "before the copy");
    wait_until(&ann.http(), &ben.http(), "before the copy", "delivered");
    let ann = by.save(&pair, ann);
    write(&ann.http(), &ben.http(), "after the copy");
    wait_until(&ann.http(), &ben.http(), "after the copy", "delivered");
    write(&ben.http(), &ann.http(), "ben, after the copy");
    wait_until(&ben.http(), &ann.http(), "ben, after the copy", "delivered");
    drop(ann);
    // One start more, so that ben knows a run that the copy has not counted.
    drop(pair.start("ann"));

    by.put_back(&pair);
    let ann = pair.start("ann");
    // The number of this line is one that ben heard already, of another line.
    write(&ann.http(), &ben.http(), "made anew");
    wait_until(&ann.http(), &ben.http(), "made anew", "refused");
    write(&ann.http(), &ben.http(), "and on we go");
    wait_until(&ann.http(), &ben.http(), "and on we go", "delivered");
    write(&ben.http(), &ann.http(), "so we do");
    wait_until(&ben.http(), &ann.http(), "so we do", "delivered");

    let at_bens = lines(&ben.http(), &ann.http()).expect("the view answers");
    let texts: Vec<&str> = at_bens.iter().map(|line| line.0.as_str()).collect();
    let expected = ["before the copy", "after the copy", "ben, after the copy", "and on we go", "so we do"];
    assert_eq!(texts, expected, "nothing twice, nothing of a line whose arrival nobody can know");
    let status = pair.status("ann");
    assert!(status.contains("was set back"), "people are told: {status}");
    assert!(status.contains("are missing here"), "what ben sent meanwhile is named: {status}");
}
