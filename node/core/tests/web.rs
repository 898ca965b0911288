//! Sends to addresses on the web: tried only after the sync, one at a time, again with the same key, heard once; what a
//! person gives up, and what is sent while a share is full.

#![allow(clippy::disallowed_types, reason = "a test has the log around the core")]

use engine::Snapshot;
use node_core::{
    Control, ControlError, Core, Effect, Input, Out, Post, PostError, Recovery, Reply, ReplyId, Source,
    Start, WebAnswer, WebOutcome, WebTry,
};
use sealing::{NodeId, Run};
use store::{Log, Memory};

const SOURCE: &str = r#"
app shop

setting mailer: endpoint

state said: text = ""

output bill(n: int, text: text = "")

on f(n: int) { send bill(n) to mailer }
on fill(text: text) { send bill(0, text) to mailer }
on delivered bill(n, _) to address {
  said = "{said} {n} to {address};"
  if n == 100 { for i in 1 .. 4_000 { send bill(i) to address } }
}
on refused bill(n, _) to _ because why { if n != 0 { said = "{said} {n}: {why};" } }

view all = said
"#;

struct Node {
    core: Core,
    log: Log<Memory>,
    published: Option<Snapshot>,
    /// Tries that left.
    tries: Vec<WebTry>,
    replies: Vec<Reply>,
}

impl Node {
    fn start(storage: &Memory, source: &str) -> Node {
        let module = weft::compile(source, "shop.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
        let settings = vec![("mailer".to_owned(), "\"https://mail.example/\"".to_owned())];
        let apps = vec![Source { text: source.to_owned(), module, settings, allow_loss: false }];
        let mut recovery = Recovery::default();
        let (log, opened) = Log::open(storage.clone(), [5; 32], &mut |change| recovery.change(change))
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let start = Start {
            me: NodeId([1; 32]),
            run: Run { counter: opened.run, random: [1; 16] },
            entropy: [opened.run as u8; 32],
            now: 0,
            synced: opened.synced,
            apps,
            notices: Vec::new(),
        };
        let core = recovery.start(start).unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut node = Node { core, log, published: None, tries: Vec::new(), replies: Vec::new() };
        node.carry_out();
        node
    }

    /// Carries out what the core asks. A try never leaves while rows that it may have read are not on disk.
    fn carry_out(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    let tries = self.tries.len();
                    while let Some(effect) = self.core.poll_effect() {
                        self.let_out(effect);
                    }
                    assert_eq!(self.tries.len(), tries, "a try left before the sync");
                    let appended = self.log.append(sequence, &changes).unwrap_or_else(|w| panic!("{w}"));
                    let synced = self.log.sync(appended).unwrap_or_else(|wrong| panic!("{wrong}"));
                    self.core.handle(0, Input::Synced(synced));
                }
                effect => self.let_out(effect),
            }
        }
    }

    fn let_out(&mut self, effect: Effect) {
        let Effect::Out(released) = effect else { return };
        match released.into_inner() {
            Out::Publish { snapshot, .. } => self.published = Some(snapshot),
            Out::Outdate { .. } => self.published = None,
            Out::Web(attempt) => self.tries.push(attempt),
            Out::Reply { reply, .. } => self.replies.push(reply),
            Out::Link(_) => {}
        }
    }

    fn ask(&mut self, input: Input) -> Reply {
        self.core.handle(0, input);
        self.carry_out();
        self.replies.pop().expect("every request is answered")
    }

    fn post(&mut self, input: &str, body: &str) -> Reply {
        self.ask(Input::Post(Post {
            reply: ReplyId(1),
            app: "shop".to_owned(),
            input: input.to_owned(),
            body: body.as_bytes().to_vec(),
            by: "local".to_owned(),
            idempotency_key: None,
        }))
    }

    fn give_up(&mut self) -> Reply {
        let control = Control::GiveUp("https://mail.example/".to_owned());
        self.ask(Input::Control { reply: ReplyId(2), control })
    }

    /// The one try that is under way.
    fn the_try(&mut self) -> WebTry {
        assert_eq!(self.tries.len(), 1, "{:?}", self.tries);
        self.tries.remove(0)
    }

    fn answer(&mut self, attempt: &WebTry, status: u16) {
        let outcome = WebOutcome::Answered { status, text: "no".to_owned() };
        let (route, number) = (attempt.route.clone(), attempt.number);
        self.core.handle(0, Input::Web(WebAnswer { route, number, outcome }));
        self.carry_out();
    }

    fn said(&self) -> String {
        let snapshot = self.published.as_ref().expect("a start publishes");
        snapshot.view("all", &[], "", 0).unwrap_or_else(|wrong| panic!("{wrong}"))
    }
}

#[test]
fn a_send_is_tried_until_it_is_answered_over_restarts_and_changes_of_the_app() {
    let storage = Memory::new(1);
    let mut node = Node::start(&storage, SOURCE);
    for n in [1, 2] {
        assert!(matches!(node.post("f", &format!(r#"{{"n":{n}}}"#)), Reply::Applied(_)));
    }
    let first = node.the_try();
    assert_eq!((&*first.body, first.after_milliseconds), (r#"{"n":1,"text":""}"#, 0));
    node.answer(&first, 503);
    let again = node.the_try();
    assert!((500..=1_000).contains(&again.after_milliseconds), "{again:?}");
    assert_eq!(WebTry { after_milliseconds: 0, ..again.clone() }, first, "the same, with the same key");

    // Another version, whose output has another shape, hears what the first one sent.
    drop(node);
    storage.restart();
    let renamed = SOURCE.replace("bill(n: int, text", "bill(number was n: int, text");
    let mut node = Node::start(&storage, &renamed);
    let after = node.the_try();
    assert_eq!(after, first, "the same, after a restart");
    node.answer(&after, 204);
    assert_eq!(node.said(), r#"" 1 to https://mail.example/;""#);
    let second = node.the_try();
    assert_ne!(second.idempotency_key, first.idempotency_key);
    node.answer(&after, 404);
    assert_eq!(node.said(), r#"" 1 to https://mail.example/;""#, "an answer of before means nothing");
    node.answer(&second, 404);
    assert_eq!(node.said(), r#"" 1 to https://mail.example/; 2: 404: no;""#);
    assert!(node.tries.is_empty());

    assert!(matches!(node.post("f", r#"{"n":3}"#), Reply::Applied(_)));
    let third = node.the_try();
    assert!(matches!(node.give_up(), Reply::Done));
    let said = r#"" 1 to https://mail.example/; 2: 404: no; 3: given up; arrival unknown;""#;
    assert_eq!(node.said(), said);
    node.answer(&third, 200);
    assert_eq!(node.said(), said, "once");
    assert!(matches!(node.give_up(), Reply::NotDone(ControlError::NothingWaits(_))));

    drop(node);
    storage.restart();
    let node = Node::start(&storage, &renamed);
    assert_eq!((node.said().as_str(), node.tries.len()), (said, 0));
}

#[test]
fn sends_to_addresses_take_their_share_and_an_outcome_waits_for_room() {
    let mut node = Node::start(&Memory::new(1), SOURCE);
    assert!(matches!(node.post("f", r#"{"n":100}"#), Reply::Applied(_)));
    let first = node.the_try();
    let fill = format!(r#"{{"text":"{}"}}"#, "x".repeat(200 << 10));
    let mut filled = 0;
    let refused = loop {
        match node.post("fill", &fill) {
            Reply::Applied(_) => filled += 1,
            reply => break reply,
        }
        assert!(filled < 1_000, "the share has a bound");
    };
    assert!(matches!(refused, Reply::Refused(PostError::Refused(_))), "{refused:?}");
    assert!(node.tries.is_empty(), "one at a time");
    // An outcome is heard though the share is full: there is a second one for what its handler sends.
    node.answer(&first, 200);
    assert_eq!(node.said(), r#"" 100 to https://mail.example/;""#);
    // All of it is given up, over more than one batch.
    assert!(matches!(node.give_up(), Reply::Done));
    assert!(node.said().contains(" 4000: given up; arrival unknown;"));
    assert!(matches!(node.post("fill", &fill), Reply::Applied(_)), "there is room again");
}
