//! A disk without room: what makes the state larger is refused with why, what removes or replaces goes on, views too.

#![allow(clippy::disallowed_types, reason = "a test has the log around the core")]

use engine::Snapshot;
use node_core::{
    Control, ControlError, Core, Effect, Input, Out, Post, PostError, Recovery, Reply, ReplyId, Source, Start,
};
use sealing::{Identity, NodeId, Run};
use store::{Log, Memory};

const APP: &str = "app a
record Line { id: int, words: text, times: int = 0 }
state lines: list of Line by id
state note: text = \"\"
on add(words: text) { lines add Line { id: next_id(lines), words } }
on drop_one(id: int) { remove lines[id] }
on count(id: int) { let l = lines[id] else refuse \"none\"; l.times += 1000 }
on rename(id: int, words: text) { let l = lines[id] else refuse \"none\"; l.words = words }
on swap(id: int, words: text) { remove lines[id]; lines add Line { id: next_id(lines), words } }
on write(words: text) { note = words }
on tell(to: node) { send said(\"x\") to to }
on later() { start remind() after 1 s }
on timer remind() { lines add Line { id: next_id(lines), words: \"a reminder that is longer than a timer\" } }
on said(words: text) from peer { lines add Line { id: next_id(lines), words } }
view all = [l for l in lines]
";

struct Node {
    core: Core,
    log: Log<Memory>,
    published: Option<Snapshot>,
    reply: Option<Reply>,
    wake: Option<i64>,
}

impl Node {
    fn new() -> Node {
        let module = weft::compile(APP, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
        let apps = vec![Source { text: APP.to_owned(), module, settings: Vec::new(), allow_loss: false }];
        let (log, opened) =
            Log::open(Memory::new(1), [5; 32], &mut |_| {}).unwrap_or_else(|wrong| panic!("{wrong}"));
        let start = Start {
            me: NodeId([1; 32]),
            run: Run { counter: opened.run, random: [1; 16] },
            entropy: [2; 32],
            now: 0,
            synced: opened.synced,
            apps,
            notices: Vec::new(),
        };
        let core = Recovery::default().start(start).unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut node = Node { core, log, published: None, reply: None, wake: None };
        node.settle(0);
        node
    }

    fn settle(&mut self, now: i64) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    let appended =
                        self.log.append(sequence, &changes).unwrap_or_else(|wrong| panic!("{wrong}"));
                    let synced = self.log.sync(appended).unwrap_or_else(|wrong| panic!("{wrong}"));
                    self.core.handle(now, Input::Synced(synced));
                }
                Effect::WakeAt(wake) => self.wake = wake,
                Effect::Checkpoint { .. } => {}
                Effect::Out(released) => match released.into_inner() {
                    Out::Publish { snapshot, .. } => self.published = Some(snapshot),
                    Out::Outdate { .. } => self.published = None,
                    Out::Reply { reply, .. } => self.reply = Some(reply),
                    Out::Link(_) | Out::Web(_) => {}
                },
            }
        }
    }

    fn handle(&mut self, now: i64, input: Input) -> Option<Reply> {
        self.core.handle(now, input);
        self.settle(now);
        self.reply.take()
    }

    fn post(&mut self, input: &str, body: &str) -> Option<PostError> {
        let (app, input, body, by) = ("a".to_owned(), input.to_owned(), body.into(), String::new());
        let post = Post { reply: ReplyId(1), app, input, body, by, idempotency_key: None };
        match self.handle(0, Input::Post(post)) {
            Some(Reply::Applied(_)) => None,
            Some(Reply::Refused(error)) => Some(error),
            reply => panic!("{reply:?}"),
        }
    }

    fn lines(&self) -> usize {
        let snapshot = self.published.as_ref().unwrap_or_else(|| panic!("a start publishes"));
        let text = snapshot.view("all", &[], "", 0).unwrap_or_else(|wrong| panic!("{wrong}"));
        text.matches("\"id\"").count()
    }
}

#[test]
fn what_grows_is_refused_and_what_does_not_goes_on() {
    let mut node = Node::new();
    for words in ["one", "two", "three"] {
        assert_eq!(node.post("add", &format!(r#"{{"words":"{words}"}}"#)), None);
    }
    assert_eq!(node.post("later", "{}"), None);
    node.handle(0, Input::Room(Some("no room for log-2".to_owned())));
    let peer = format!(r#"{{"to":"{}"}}"#, NodeId([7; 32]));
    for (input, body, is_taken) in [
        ("add", r#"{"words":"four"}"#, false),
        ("rename", r#"{"id":1,"words":"a much longer text than before"}"#, false),
        ("write", r#"{"words":"a much longer text than before"}"#, false),
        ("tell", peer.as_str(), false),
        ("later", "{}", true),
        ("rename", r#"{"id":1,"words":"1"}"#, true),
        ("count", r#"{"id":1}"#, true),
        ("swap", r#"{"id":2,"words":"2nd"}"#, true),
        ("drop_one", r#"{"id":3}"#, true),
    ] {
        let refused = node.post(input, body);
        match (&refused, is_taken) {
            (None, true) => {}
            (Some(error @ PostError::NoRoom(_)), false) => {
                let words = error.to_string();
                assert!(words.contains("no room for log-2") && words.contains("Free some space"), "{words}");
            }
            _ => panic!("{input} {body}: {refused:?}"),
        }
    }
    assert_eq!(node.lines(), 2, "views go on");
    let other = Identity::from_seed(&[9; 64]);
    let ticket = other.ticket(1, &[]);
    let add = Control::AddPeer { ticket, name: String::new(), addresses: Vec::new() };
    let refused = node.handle(0, Input::Control { reply: ReplyId(2), control: add });
    assert!(matches!(refused, Some(Reply::NotDone(ControlError::NoRoom(_)))), "{refused:?}");
    // A timer that adds a row waits, and fires once there is room.
    node.handle(2_000, Input::Time);
    assert_eq!(node.lines(), 2);
    assert!(node.wake.is_some_and(|wake| wake > 2_000), "it is not tried again at once: {:?}", node.wake);
    node.handle(2_000, Input::Room(None));
    node.handle(2_000, Input::Time);
    assert_eq!(node.lines(), 3);
    assert_eq!(node.post("add", r#"{"words":"four"}"#), None);
    let status = node.handle(2_000, Input::Control { reply: ReplyId(3), control: Control::Status });
    let Some(Reply::Status(status)) = status else { panic!("{status:?}") };
    assert_eq!(status.notices.iter().filter(|notice| notice.contains("the disk has")).count(), 2);
}
