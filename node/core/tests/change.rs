//! An app whose source changed between two starts: what it keeps goes with it, or the start is refused; a power cut anywhere
//! leaves the old or the new.

#![allow(clippy::disallowed_types, reason = "a test has the log around the core")]

use engine::{App, Context, Event, Snapshot};
use node_core::{
    Control, Core, Effect, Input, Out, Post, Recovery, Reply, ReplyId, Source, Start, StartError,
};
use sealing::{NodeId, Run};
use std::sync::Arc;
use store::{Change, Fault, Log, Memory, Progress};

const OLD: &str = "app a
enum Stage { open, done }
record Job { id: int, what: text, stage: Stage = .open, weight: int = 1, colour: text? }
state jobs: list of Job by id index stage
state limit: int = 10
on add(what: text) -> int { let j = jobs add Job { id: next_id(jobs), what }; start late(j.id, what) after 1 h; return j.id }
on finish(id: int) { let j = jobs[id] else refuse \"none\"; j.stage = .done; remove jobs[id - 1] }
on timer late(id: int, what: text) { limit += 1 }
view all = [j for j in jobs]
view most = limit
";

const NEW: &str = "app a
enum Step was Stage { waiting, todo was open, done }
record Task was Job { step was stage: Step = .waiting, id: int, weight: real, words was what: text, team: text = \"red\", colour: text? }
state fresh: int = 7
state tasks was jobs: list of Task by id, words index step index team
state most was limit: int = 99
on add(what: text) -> int { return next_id_of(what) }
on put(words: text) -> int { let t = tasks add Task { id: fresh, words, weight: 2.0 }; fresh += 1; return t.id }
on timer late(id: int) { most += 100 }
fn next_id_of(what: text) = length(what)
view all = [t for t in tasks]
view waiting = count(t for t in tasks where t.step == .todo)
view both = { most, fresh }
";

struct Node {
    core: Core,
    log: Log<Memory>,
    published: Option<Snapshot>,
    reply: Option<Reply>,
}

/// Starts a node, or says why not; none if the power was cut.
fn start(storage: &Memory, source: &str, allow_loss: bool) -> Option<Result<Node, StartError>> {
    start_after(&[], storage, source, allow_loss)
}

/// The same on a log that begins with these rows.
fn start_after(
    before: &[Change],
    storage: &Memory,
    source: &str,
    allow_loss: bool,
) -> Option<Result<Node, StartError>> {
    let module = weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let apps = vec![Source { text: source.to_owned(), module, settings: Vec::new(), allow_loss }];
    let mut recovery = Recovery::default();
    before.iter().for_each(|change| recovery.change(change.clone()));
    let opened = Log::open(storage.clone(), [5; 32], &mut |change| recovery.change(change));
    let (log, opened) = match opened {
        Ok(opened) => opened,
        Err(_) if storage.is_dead() => return None,
        Err(wrong) => panic!("{wrong}"),
    };
    let run = Run { counter: opened.run, random: [1; 16] };
    let (synced, notices) = (opened.synced, Vec::new());
    let start = Start { me: NodeId([1; 32]), run, entropy: [2; 32], now: 0, synced, apps, notices };
    Some(recovery.start(start).map(|core| Node { core, log, published: None, reply: None }))
}

impl Node {
    /// Carries out what is to be done; none if the power was cut.
    fn settle(&mut self, now: i64) -> Option<()> {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    let appended = self.log.append(sequence, &changes).ok()?;
                    let synced = self.log.sync(appended).ok()?;
                    self.core.handle(now, Input::Synced(synced));
                }
                Effect::WakeAt(_) => {}
                Effect::Checkpoint { synced, image } => {
                    let mut checkpoints = self.log.checkpoints();
                    checkpoints.begin(synced, Box::new(image.into_rows()));
                    while checkpoints.step().ok()? == Some(Progress::More) {}
                }
                Effect::Out(released) => match released.into_inner() {
                    Out::Publish { snapshot, .. } => self.published = Some(snapshot),
                    Out::Outdate { .. } => self.published = None,
                    Out::Reply { reply, .. } => self.reply = Some(reply),
                    Out::Link(_) | Out::Web(_) => {}
                },
            }
        }
        Some(())
    }

    fn post(&mut self, input: &str, body: &str) -> Option<String> {
        let (app, input, body, by) = ("a".to_owned(), input.to_owned(), body.into(), String::new());
        let post = Post { reply: ReplyId(1), app, input, body, by, idempotency_key: None };
        self.core.handle(0, Input::Post(post));
        self.settle(0)?;
        match self.reply.take() {
            Some(Reply::Applied(answer)) => Some(answer.unwrap_or_default()),
            reply => panic!("{reply:?}"),
        }
    }

    fn view(&self, name: &str) -> String {
        let snapshot = self.published.as_ref().unwrap_or_else(|| panic!("a start publishes"));
        snapshot.view(name, &[], "", 0).unwrap_or_else(|wrong| panic!("{wrong}"))
    }
}

fn started(storage: &Memory, source: &str, allow_loss: bool) -> Node {
    let mut node = start(storage, source, allow_loss)
        .unwrap_or_else(|| panic!("the power is on"))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    node.settle(0).unwrap_or_else(|| panic!("the power is on"));
    node
}

fn refused(storage: &Memory, source: &str) -> String {
    match start(storage, source, false) {
        Some(Err(wrong)) => wrong.to_string(),
        _ => panic!("it started"),
    }
}

/// A folder on which the old app ran.
fn used() -> Memory {
    let storage = Memory::new(1);
    let mut node = started(&storage, OLD, false);
    for what in ["a", "b", "c"] {
        node.post("add", &format!(r#"{{"what":"{what}"}}"#));
    }
    node.post("finish", r#"{"id":3}"#);
    storage
}

const ALL: &str = r#"[{"step":"todo","id":1,"weight":1.0,"words":"a","team":"red","colour":null},{"step":"done","id":3,"weight":1.0,"words":"c","team":"red","colour":null}]"#;

#[test]
fn what_an_app_keeps_goes_with_it() {
    let storage = used();
    let node = started(&storage, NEW, false);
    assert_eq!(node.view("all"), ALL);
    // A variable keeps its value though it has another initial one now; a new one begins with its own.
    assert_eq!(node.view("both"), r#"{"most":10,"fresh":7}"#);
    assert_eq!(node.view("waiting"), "1");
    assert_eq!(node.core.plans().len(), 1);
    drop(node);
    // Once more from the log, which has rows of both shapes then.
    let mut node = started(&storage, NEW, false);
    assert!(node.core.plans().is_empty(), "it was changed already");
    assert_eq!(node.view("all"), ALL);
    node.post("put", r#"{"words":"d"}"#);
    let (all, both) = (node.view("all"), node.view("both"));
    drop(node);
    let mut node = started(&storage, NEW, false);
    assert_eq!((node.view("all"), node.view("both")), (all.clone(), both));
    // Timers of before fire, with the fields that there are now.
    for _ in 0..3 {
        node.core.handle(3_600_000, Input::Time);
        node.settle(3_600_000).unwrap_or_else(|| panic!("the power is on"));
    }
    assert_eq!(node.view("both"), r#"{"most":310,"fresh":8}"#);
    drop(node);
    assert_eq!(started(&storage, NEW, false).view("all"), all);
}

#[test]
fn what_would_be_lost_is_kept_until_somebody_says_so() {
    let storage = used();
    let poorer = OLD.replace("weight: int = 1, ", "");
    let why = refused(&storage, &poorer);
    assert!(why.contains("removed   Job.weight: it goes\n            LOST: 2 values"), "{why}");
    assert!(why.contains("--allow-loss a"), "{why}");
    assert!(started(&storage, OLD, false).view("all").contains("weight"), "it is kept");
    let node = started(&storage, &poorer, true);
    assert_eq!(
        node.view("all"),
        r#"[{"id":1,"what":"a","stage":"open","colour":null},{"id":3,"what":"c","stage":"done","colour":null}]"#
    );
    drop(node);
    // What was lost does not come back with its name.
    assert!(
        started(&storage, &OLD.replace("weight: int = 1", "weight: int = 5"), false)
            .view("all")
            .contains(r#""weight":5"#)
    );
}

#[test]
fn what_cannot_be_is_refused_with_the_row_that_does_not_fit() {
    let storage = used();
    let check = |from: &str, to: &str, made: &str, expected: &[&str]| {
        let why = refused(&storage, &OLD.replace(from, to).replace("(jobs), what }", made));
        assert!(why.contains("was not changed, and what it keeps is as it was"), "{why}");
        expected.iter().for_each(|part| assert!(why.contains(part), "{part} in {why}"));
    };
    let made = "(jobs), what, colour: \"red\" }";
    check(
        "colour: text?",
        "colour: text",
        made,
        &["Job.colour: text? becomes text", "2 rows (first: 1) have"],
    );
    let made = "(jobs), what: 7 }";
    check("what: text, stage", "what: int, stage", made, &["values of text do not become int"]);
    let made = "(jobs), what, by: \"me\" }";
    check(
        "colour: text?",
        "colour: text?, by: text",
        made,
        &["Job.by: text", "2 rows would get no value", "by: text = …"],
    );
    let fewer = OLD.replace("{ open, done }", "{ open }").replace("j.stage = .done", "j.stage = .open");
    let why = refused(&storage, &fewer);
    assert!(why.contains("removed   Stage.done") && why.contains("1 row (first: 3) has it"), "{why}");
}

#[test]
fn a_power_cut_anywhere_leaves_the_old_or_the_new() {
    let (mut old, mut new) = (0, 0);
    for cut in 0.. {
        let storage = used();
        storage.restart();
        storage.fail_at(storage.operations() + cut, Fault::PowerCut);
        let told = match start(&storage, NEW, false) {
            Some(Ok(mut node)) => node.settle(0).is_some() && node.published.is_some(),
            Some(Err(wrong)) => panic!("{wrong}"),
            None => false,
        };
        if !storage.is_dead() {
            break;
        }
        storage.restart();
        // The old source still runs if nothing was changed; the new one runs in either case.
        match start(&storage, OLD, false) {
            Some(Ok(mut node)) => {
                assert!(!told, "what was told is not taken back");
                node.settle(0).unwrap_or_else(|| panic!("the power is on"));
                assert_eq!(node.view("most"), "10");
                old += 1;
            }
            _ => new += 1,
        }
        assert_eq!(started(&storage, NEW, false).view("all"), ALL, "cut at {cut}");
    }
    assert!(old > 0 && new > 0, "{old} of the old and {new} of the new");
}

#[test]
fn changes_back_and_forth_leave_nothing_behind() {
    let storage = used();
    let other = OLD
        .replace("what: text, stage", "words was what: text, stage")
        .replace("(jobs), what }", "(jobs), words: what }");
    let back = OLD.replace("what: text, stage", "what was words: text, stage");
    for round in 0..20 {
        let source = if round % 2 == 0 { &other } else { &back };
        started(&storage, source, false);
    }
    let node = started(&storage, &back, false);
    assert_eq!(node.view("all").matches(r#""what":"a""#).count(), 1);
    assert_eq!(node.view("most"), "10");
}

/// The rows of an app as a program before changes of modules left them: lists by their places, a shape as text, and no row
/// of a variable that nothing changed.
fn older(source: &str) -> Vec<Change> {
    let module = weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let text = |text: &str| {
        let length = [text.len() as u8 & 127 | 128, (text.len() >> 7) as u8];
        [&length, text.as_bytes()].concat()
    };
    let shape = module.shape();
    assert!(
        [source.len(), shape.len()].iter().all(|length| (128..1 << 14).contains(length)),
        "two bytes of length"
    );
    let row = [&[1][..], &text(source), &text(&shape)].concat();
    let mut app = App::new(Arc::new(module), NodeId([1; 32]));
    for what in ["a", "c"] {
        let arguments = format!(r#"{{"what":"{what}"}}"#);
        let event = Event::Input { name: "add", arguments: arguments.as_bytes(), by: "" };
        let applied = app.event(event, &Context { now: 0, entropy: [0; 32], room: 0 });
        assert!(applied.is_ok(), "{applied:?}");
    }
    let rows = app.snapshot().rows();
    let kept = rows.into_iter().filter(|row| !row.key.is_empty());
    let kept = kept.map(|row| Change { list: 1 << 32 | u64::from(row.list), key: row.key, row: row.row });
    [Change { list: 1, key: b"a".to_vec(), row: Some(row) }].into_iter().chain(kept).collect()
}

#[test]
fn a_folder_of_before_opens_and_changes() {
    let before = older(OLD);
    let begun = |storage: &Memory, source: &str| {
        let node = start_after(&before, storage, source, false);
        let mut node =
            node.unwrap_or_else(|| panic!("the power is on")).unwrap_or_else(|wrong| panic!("{wrong}"));
        node.settle(0).unwrap_or_else(|| panic!("the power is on"));
        node
    };
    // As it was, and changed later; or changed at once.
    for first in [OLD, NEW] {
        let storage = Memory::new(1);
        assert!(begun(&storage, first).view("all").contains(r#""id":2"#));
        for _ in 0..2 {
            let node = begun(&storage, NEW);
            assert_eq!(node.view("waiting"), "2");
            assert_eq!(node.view("both"), r#"{"most":10,"fresh":7}"#);
        }
    }
}

/// A checkpoint holds what the log before it came to: changed apps, apps that do not run, timers, counters, the core's rows.
#[test]
fn what_a_checkpoint_holds_is_what_the_log_came_to() {
    let storage = used();
    let other = "app b\nstate n: int = 1\non add() { n += 1 }\nview all = n";
    let mut seen = Vec::new();
    for (source, due) in
        [(NEW, true), (NEW, true), (other, true), (other, false), (NEW, false), (NEW, true), (NEW, false)]
    {
        let mut node = started(&storage, source, true);
        if source == NEW {
            seen.push(["all", "waiting", "both"].map(|view| node.view(view)));
        }
        if due {
            node.core.handle(0, Input::CheckpointDue);
            node.settle(0).unwrap_or_else(|| panic!("the power is on"));
        }
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:?}");
    let mut state = std::collections::BTreeMap::new();
    let files = store::checkpoint_files(&mut storage.clone()).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(files.len(), 2, "two are kept");
    store::read(&mut storage.clone(), &mut |change| {
        match change.row {
            Some(row) => state.insert((change.list, change.key), row),
            None => state.remove(&(change.list, change.key)),
        };
    })
    .unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut image = std::collections::BTreeMap::new();
    let mut node = started(&storage, NEW, true);
    node.core.handle(0, Input::CheckpointDue);
    node.settle(0).unwrap_or_else(|| panic!("the power is on"));
    let newest = &store::checkpoint_files(&mut storage.clone()).unwrap_or_else(|wrong| panic!("{wrong}"))[0];
    let read = store::read_checkpoint(&mut storage.clone(), newest, &mut |change| {
        image.insert((change.list, change.key), change.row.unwrap_or_default());
    });
    assert!(read.is_ok(), "{read:?}");
    assert_eq!(image, state, "the rows in the folder before are those of the checkpoint after");
}

#[test]
fn sends_without_an_outcome_are_counted_by_their_output() {
    const SENDING: &str = "app a
output hook(n: int)
output note(n: int)
on go(to: endpoint) { send hook(1) to to; send note(2) to to; send hook(3) to to }
on tell(to: node) { send told(1) to to; send told(2) to to }
on told(n: int) from peer { }
";
    let storage = Memory::new(1);
    let mut node = started(&storage, SENDING, false);
    node.post("go", r#"{"to":"https://mail.example/"}"#);
    node.post("tell", &format!(r#"{{"to":"{}"}}"#, NodeId([7; 32])));
    let expected = [("hook", 2), ("note", 1), ("told", 2)].map(|(name, count)| (name.to_owned(), count));
    let mut sends = |app: &str| {
        let control = Control::Sends(app.to_owned());
        node.core.handle(0, Input::Control { reply: ReplyId(1), control });
        node.settle(0).unwrap_or_else(|| panic!("the power is on"));
        match node.reply.take() {
            Some(Reply::Sends(sends)) => sends,
            reply => panic!("{reply:?}"),
        }
    };
    assert_eq!((sends("a"), sends("b").len()), (expected.clone().into(), 0));
    drop(node);
    // And by who looks at the log while no node runs.
    let mut recovery = Recovery::default();
    Log::open(storage, [5; 32], &mut |change| recovery.change(change))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    let sends = |app: &str| recovery.sends(app).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!((sends("a"), sends("b").len()), (expected.into(), 0));
    assert_eq!((recovery.source("a"), recovery.source("b")), (Some(SENDING), None));
}
