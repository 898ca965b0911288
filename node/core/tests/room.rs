//! A full outbox: what it refuses, what waits for room, and that one app's unsettled sends are its own.

#![allow(clippy::disallowed_types, reason = "a test has the log around the core")]

use engine::Snapshot;
use link::Command;
use node_core::{
    Control, Core, Effect, Input, Out, Post, PostError, Recovery, Reply, ReplyId, Source, Start,
};
use sealing::{Identity, NodeId, Run};
use std::collections::BTreeMap;
use store::{Log, Memory};

const CHAIN: &str = r#"
app chain

state heard: int = 0
state ended: int = 0
state burst: int = 0
state words: text = ""
state stranger: node?

on fill(to: node, text: text) { send ignored(text) to to }
on go(to: node) { send part() to to }
on answer_with(count: int, text: text, to: node) {
  burst = count
  words = text
  stranger = to
}
on part() from p { }
on ignored(text: text) from p { }

on delivered part() to p {
  heard += 1
  if burst == 0 { send part() to p }
  for i in 1 .. burst { send ignored(words) to stranger else me }
}
on refused ignored(_) to _ because _ { ended += 1 }

view both = { heard, ended }
"#;

/// Records under way to Ben whose outcomes find one share full, and as many for the second.
const BURSTS: u64 = 11;

const OTHER: &str = "app other\non go(to: node) { send word() to to }\non word() from p { }\nview one = 1\n";

const SAYING: &str = r#"
app saying

transient state heard: int = 0
transient output word(n: int)

on say(to: node, n: int) { for i in 1 .. n { send word(i) to to } }
on word(n: int) from p { heard += 1; send word(n) to p }

view one = heard
"#;

const ASKING: &str = r#"
app asking

state heard: int = 0
state right: int = 0

on go(to: node, n: int) { for i in 1 .. n { send square(i) to to } }
on square(i: int) from p -> int { return i * i }
on delivered square(i) to _ with answer {
  heard += 1
  if answer is a { if a == i * i { right += 1 } }
}

view both = { heard, right }
"#;

struct Node {
    core: Core,
    log: Log<Memory>,
    published: BTreeMap<String, Snapshot>,
    /// Records that the link was handed: stream and number.
    sent: Vec<(NodeId, link::StreamId, u64)>,
    /// What the link was told now or never.
    said: usize,
    replies: Vec<Reply>,
}

impl Node {
    fn start() -> Node {
        let source = |text: &str| {
            let module = weft::compile(text, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
            Source { text: text.to_owned(), module, settings: Vec::new(), allow_loss: false }
        };
        let mut recovery = Recovery::default();
        let (log, opened) = Log::open(Memory::new(1), [5; 32], &mut |change| recovery.change(change))
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let core = recovery
            .start(Start {
                me: NodeId([1; 32]),
                run: Run { counter: opened.run, random: [1; 16] },
                entropy: [2; 32],
                now: 0,
                synced: opened.synced,
                apps: vec![source(CHAIN), source(OTHER), source(SAYING), source(ASKING)],
                notices: Vec::new(),
            })
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut node =
            Node { core, log, published: BTreeMap::new(), sent: Vec::new(), said: 0, replies: Vec::new() };
        node.carry_out();
        node
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    let appended = self.log.append(sequence, &changes).unwrap_or_else(|w| panic!("{w}"));
                    let synced = self.log.sync(appended).unwrap_or_else(|wrong| panic!("{wrong}"));
                    self.core.handle(0, Input::Synced(synced));
                }
                Effect::WakeAt(_) | Effect::Checkpoint { .. } => {}
                Effect::Out(released) => match released.into_inner() {
                    Out::Publish { app, snapshot } => drop(self.published.insert(app, snapshot)),
                    Out::Outdate { app } => drop(self.published.remove(&app)),
                    Out::Link(Command::Send { peer, record }) => {
                        self.sent.push((peer, record.stream, record.number));
                    }
                    Out::Link(Command::Transient { .. }) => self.said += 1,
                    Out::Link(_) | Out::Web(_) => {}
                    Out::Reply { reply, .. } => self.replies.push(reply),
                },
            }
        }
    }

    fn ask(&mut self, input: Input) -> Reply {
        self.core.handle(0, input);
        self.carry_out();
        self.replies.pop().expect("every request is answered")
    }

    fn post(&mut self, app: &str, input: &str, body: String) -> Reply {
        self.ask(Input::Post(Post {
            reply: ReplyId(1),
            app: app.to_owned(),
            input: input.to_owned(),
            body: body.into_bytes(),
            by: "local".to_owned(),
            idempotency_key: None,
        }))
    }

    fn view(&self, app: &str, view: &str) -> String {
        self.published[app].view(view, &[], "local", 0).unwrap_or_else(|wrong| panic!("{wrong}"))
    }
}

#[test]
fn an_outcome_waits_for_room_and_one_apps_unsettled_sends_are_its_own() {
    let mut node = Node::start();
    let ticket = Identity::from_seed(&[7; 64]).ticket(1, &[]);
    let ben = ticket.node();
    let add = Control::AddPeer { ticket, name: "Ben".to_owned(), addresses: Vec::new() };
    assert!(matches!(node.ask(Input::Control { reply: ReplyId(2), control: add }), Reply::Done));
    let go = format!(r#"{{"to":"{}"}}"#, ben);
    for _ in 0..2 * BURSTS {
        assert!(matches!(node.post("chain", "go", go.clone()), Reply::Applied(_)));
    }

    // Fill the app's share with sends to a node that never was a peer.
    let nobody = NodeId([9; 32]);
    let text = "x".repeat(200 << 10);
    let fill = format!(r#"{{"to":"{nobody}","text":"{text}"}}"#);
    let mut filled = 0;
    while let Reply::Applied(_) = node.post("chain", "fill", fill.clone()) {
        filled += 1;
        assert!(filled < 2_000, "the outbox has a bound");
    }
    assert!(matches!(node.post("chain", "go", go.clone()), Reply::Refused(PostError::Refused(_))));
    assert!(
        matches!(node.post("other", "go", go.clone()), Reply::Applied(_)),
        "another app has its own room"
    );

    // Ben's outcomes are heard all the same, each place that one frees is taken by its handler's send.
    let (peer, stream, number) = node.sent[0];
    assert_eq!((peer, number), (ben, 1));
    let outcome = |node: &mut Node, upto| {
        let outcomes = Vec::new();
        node.core.handle(0, Input::Link(link::Effect::Outcome { peer, stream, upto, outcomes }));
        node.carry_out();
        node.view("chain", "both")
    };
    for heard in 1..=BURSTS {
        assert_eq!(outcome(&mut node, heard), format!(r#"{{"heard":{heard},"ended":0}}"#));
    }

    // Handlers that send more than they free fill a second share; then an outcome waits.
    let answer = format!(r#"{{"count":75,"text":"{text}","to":"{nobody}"}}"#);
    assert!(matches!(node.post("chain", "answer_with", answer), Reply::Applied(_)));
    let mut heard = BURSTS;
    while outcome(&mut node, heard + 1) == format!(r#"{{"heard":{},"ended":0}}"#, heard + 1) {
        heard += 1;
        filled += 75;
        assert!(heard < 2 * BURSTS, "a second share has a bound, too");
    }
    assert!(heard > BURSTS, "a full share lets outcomes through");

    // What waits for the stranger is given up: there is room, and the outcome is heard, once. What its handler sends waits
    // again.
    let remove = Control::RemovePeer(nobody);
    assert!(matches!(node.ask(Input::Control { reply: ReplyId(3), control: remove }), Reply::Done));
    heard += 1;
    assert_eq!(node.view("chain", "both"), format!(r#"{{"heard":{heard},"ended":{filled}}}"#));
    assert_eq!(outcome(&mut node, heard), format!(r#"{{"heard":{heard},"ended":{filled}}}"#));
}

#[test]
fn what_is_sent_to_a_removed_peer_waits_as_for_one_that_was_never_added() {
    let mut node = Node::start();
    let ticket = Identity::from_seed(&[7; 64]).ticket(1, &[]);
    let ben = ticket.node();
    let control = |node: &mut Node, control| node.ask(Input::Control { reply: ReplyId(2), control });
    let add = || Control::AddPeer { ticket: ticket.clone(), name: String::new(), addresses: Vec::new() };
    // What is sent: how many records the link has had, how many were refused, and why one waits.
    let send = |node: &mut Node| {
        assert!(matches!(
            node.post("chain", "fill", format!(r#"{{"to":"{ben}","text":"x"}}"#)),
            Reply::Applied(_)
        ));
    };
    let is = |node: &mut Node, sent: usize, ended: usize, why: Option<&str>| {
        let Reply::Status(status) = control(node, Control::Status) else { panic!("it was asked for") };
        let waits = status.sending.first().and_then(|sending| sending.why.clone());
        assert!(waits.as_deref().unwrap_or_default().starts_with(why.unwrap_or_default()), "{waits:?}");
        assert_eq!(waits.is_some(), why.is_some(), "{waits:?}");
        let said = node.view("chain", "both");
        assert_eq!((node.sent.len(), said), (sent, format!(r#"{{"heard":0,"ended":{ended}}}"#)));
    };
    send(&mut node);
    is(&mut node, 0, 0, Some("it is not a peer of this node: `selvedge peer add`"));
    assert!(matches!(control(&mut node, add()), Reply::Done));
    is(&mut node, 1, 0, Some("no answer yet"));
    assert!(matches!(control(&mut node, Control::RemovePeer(ben)), Reply::Done));
    is(&mut node, 1, 1, None);
    send(&mut node);
    is(&mut node, 1, 1, Some("it was removed: `selvedge peer add`"));
    assert!(matches!(control(&mut node, add()), Reply::Done));
    is(&mut node, 2, 1, Some("no answer yet"));
    assert_ne!(node.sent[0].1, node.sent[1].1, "another stream");
    for ended in 2..4 {
        assert!(matches!(control(&mut node, Control::RemovePeer(ben)), Reply::Done));
        is(&mut node, 2, ended, None);
        if ended == 2 {
            send(&mut node);
            is(&mut node, 2, ended, Some("it was removed"));
        }
    }
    assert!(matches!(control(&mut node, Control::RemovePeer(ben)), Reply::NotDone(_)));
}

#[test]
fn a_name_is_one_peers_alone() {
    let mut node = Node::start();
    let tickets = [7, 8].map(|seed| Identity::from_seed(&[seed; 64]).ticket(1, &[]));
    let (mut ask, mut expected) = (Vec::new(), Vec::new());
    let mut check = |control: Control, done: bool, names: [&str; 2]| {
        ask.push(control);
        expected.push((done, names.map(str::to_owned)));
    };
    let add = |at: usize, name: &str| {
        let (ticket, addresses) = (tickets[at].clone(), Vec::new());
        Control::AddPeer { ticket, name: name.to_owned(), addresses }
    };
    check(add(0, "Ben"), true, ["Ben", ""]);
    check(add(1, "Ben"), false, ["Ben", ""]);
    check(add(1, ""), true, ["Ben", ""]);
    check(add(1, "Eve"), true, ["Ben", "Eve"]);
    check(add(0, "Eve"), false, ["Ben", "Eve"]);
    check(add(0, "Bob"), true, ["Bob", "Eve"]);
    check(Control::RemovePeer(tickets[0].node()), true, ["", "Eve"]);
    check(add(1, "Bob"), true, ["", "Bob"]);
    check(add(0, ""), true, ["", "Bob"]);
    for (at, (control, (done, names))) in ask.into_iter().zip(expected).enumerate() {
        let reply = node.ask(Input::Control { reply: ReplyId(2), control });
        assert_eq!(matches!(reply, Reply::Done), done, "{at}: {reply:?}");
        let Reply::Status(status) = node.ask(Input::Control { reply: ReplyId(2), control: Control::Status })
        else {
            panic!("it was asked for")
        };
        let called = |ticket: &sealing::Ticket| {
            let id = ticket.node().to_string();
            status.peers.iter().find(|peer| peer.node == id).map_or(String::new(), |peer| peer.name.clone())
        };
        assert_eq!([called(&tickets[0]), called(&tickets[1])], names, "{at}");
    }
}

#[test]
fn what_is_said_now_or_never_is_bounded_and_does_not_go_on_for_ever() {
    let mut node = Node::start();
    let ticket = Identity::from_seed(&[7; 64]).ticket(1, &[]);
    let ben = ticket.node();
    let say = |to: NodeId, n: usize| format!(r#"{{"to":"{to}","n":{n}}}"#);
    // To a node that is no peer nothing goes, and nothing waits.
    assert!(matches!(node.post("saying", "say", say(ben, 3)), Reply::Applied(_)));
    assert_eq!(node.said, 0);
    let add = Control::AddPeer { ticket, name: "Ben".to_owned(), addresses: Vec::new() };
    assert!(matches!(node.ask(Input::Control { reply: ReplyId(2), control: add }), Reply::Done));
    assert!(matches!(node.post("saying", "say", say(ben, 3)), Reply::Applied(_)));
    assert_eq!(node.said, 3);
    assert!(matches!(node.post("saying", "say", say(ben, 1_000)), Reply::Applied(_)));
    assert_eq!(node.said, 3 + 256, "of more the newest are dropped");
    // A handler that answers itself ends with the input that began it, and begins anew with the next one.
    for round in 1..=2 {
        assert!(matches!(node.post("saying", "say", say(NodeId([1; 32]), 1)), Reply::Applied(_)));
        assert_eq!(node.view("saying", "one"), (64 * round).to_string());
    }
}

#[test]
fn more_answers_than_a_stream_keeps_come_in_turn() {
    let mut node = Node::start();
    let go = format!(r#"{{"to":"{}","n":2000}}"#, NodeId([1; 32]));
    assert!(matches!(node.post("asking", "go", go), Reply::Applied(_)));
    assert_eq!(node.view("asking", "both"), r#"{"heard":2000,"right":2000}"#);
}
