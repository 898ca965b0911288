//! The same history gives the same bytes: one number stands here for the answers, deltas, rows, sends and views of
//! several programs, and every build on every machine comes to it, however many threads read meanwhile. A refused event
//! leaves everything as it was, and a snapshot shows what was when it was made, whatever happens later.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "readers are threads, as on a node")]

mod generate;
mod reference;
mod support;

use engine::{App, Applied, Context, Event, EventError, Snapshot};
use generate::{Declared, Dice, Step, history, program, settings};
use reference::{Happens, Value, encode_answer, encode_arguments, json, parameter};
use sealing::NodeId;
use std::sync::{Arc, mpsc};
use support::ME;

const BEGINS: i64 = 1_700_000_000_123;
/// Programs whose histories are recorded, and the length of each.
const SEEDS: [u64; 5] = [11, 22, 33, 44, 55];
const HISTORY: usize = 40;
/// Timers that fire at one step: some begin themselves again at once.
const FIRING_MAX: usize = 20;
/// What all of them come to. It is another one when the generator changes, or what a program means.
const HASH: u64 = 0xd8f7_eabd_6bba_c682;

/// FNV-1a (draft-eastlake-fnv, 64 bits): it need only be the same everywhere.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_be_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn take_applied(&mut self, applied: &Applied) {
        self.take(applied.answer.as_deref().unwrap_or("none").as_bytes());
        self.take(applied.carried.as_deref().unwrap_or_default());
        for delta in &applied.deltas {
            self.take(&delta.list.to_be_bytes());
            self.take(delta.key);
            self.take(delta.row.unwrap_or(b"removed"));
        }
        for send in &applied.sends {
            for part in [send.output.as_bytes(), &send.arguments, &send.to.0, send.app.as_bytes()] {
                self.take(part);
            }
        }
        for send in &applied.endpoint_sends {
            for part in [&send.output, &send.arguments, &send.to] {
                self.take(part.as_bytes());
            }
        }
        self.take(applied.failed.as_deref().unwrap_or("none").as_bytes());
        self.take(&[u8::from(applied.transient)]);
    }
}

/// Every row of a state, and what every view of no parameters shows of it, transient lists too.
fn seen(snapshot: &Snapshot) -> u64 {
    let mut hash = Hash::new();
    for row in snapshot.rows() {
        hash.take(&row.list.to_be_bytes());
        hash.take(&row.key);
        hash.take(row.row.as_deref().unwrap_or(b"none"));
    }
    for view in &snapshot.module().views {
        match snapshot.view(&view.name, &[], "ann", BEGINS) {
            Ok(shown) => hash.take(shown.as_bytes()),
            Err(wrong) => hash.take(wrong.to_string().as_bytes()),
        }
    }
    hash.0
}

struct Recording {
    app: App,
    now: i64,
    events: u8,
    hash: Hash,
}

impl Recording {
    fn event(&mut self, happens: &Happens) {
        self.events = self.events.wrapping_add(1);
        let context = Context { now: self.now, entropy: [self.events; 32], room: 100_000 };
        let before = seen(&self.app.snapshot());
        match apply(&mut self.app, happens, &context) {
            Ok(applied) => self.hash.take_applied(&applied),
            Err(wrong) => {
                assert_eq!(seen(&self.app.snapshot()), before, "{happens:?} was refused and left a trace");
                self.hash.take(wrong.to_string().as_bytes());
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Event(happens) => self.event(happens),
            Step::Misshapen(name, body) => {
                let event = Event::Input { name, arguments: body.as_bytes(), by: "ann" };
                let context = Context { now: self.now, entropy: [0; 32], room: 0 };
                self.hash.take(self.app.event(event, &context).unwrap_err().to_string().as_bytes());
            }
            Step::View(name, arguments, by) => {
                let query: Vec<(String, String)> =
                    arguments.iter().map(|(name, value)| (name.clone(), parameter(value))).collect();
                match self.app.snapshot().view(name, &query, by, self.now) {
                    Ok(shown) => self.hash.take(shown.as_bytes()),
                    Err(wrong) => self.hash.take(wrong.to_string().as_bytes()),
                }
            }
            // What becomes of state under another module has tests of its own.
            Step::Change(_) => {}
            Step::Wait(milliseconds) => {
                self.now += milliseconds;
                for _ in 0..FIRING_MAX {
                    if self.app.next_due().is_some_and(|due| due <= self.now) {
                        self.event(&Happens::Due);
                    }
                }
            }
        }
    }
}

fn apply(app: &mut App, happens: &Happens, context: &Context) -> Result<Applied, EventError> {
    match happens {
        Happens::Input { name, arguments, by } => {
            let arguments = json(&Value::Record(arguments.clone()));
            app.event(Event::Input { name, arguments: arguments.as_bytes(), by }, context)
        }
        Happens::From { name, arguments, peer, app: from } => {
            let arguments = encode_arguments(arguments);
            app.event(Event::From { name, arguments: &arguments, peer: NodeId(*peer), app: from }, context)
        }
        Happens::Delivered { output, arguments, peer, answer } => {
            let arguments = named(app, output, arguments);
            let answer = answer.as_ref().map(encode_answer);
            let (peer, answer) = (NodeId(*peer), answer.as_deref());
            app.event(Event::Delivered { output, arguments: &arguments, peer, answer }, context)
        }
        Happens::Refused { output, arguments, peer, reason } => {
            let arguments = named(app, output, arguments);
            app.event(Event::Refused { output, arguments: &arguments, peer: NodeId(*peer), reason }, context)
        }
        Happens::Answered { output, arguments, to, refusal } => {
            let arguments = named(app, output, arguments);
            let event = Event::Answered { output, arguments: &arguments, to, refusal: refusal.as_deref() };
            app.event(event, context)
        }
        Happens::Due => app.event(Event::Due, context),
    }
}

fn named(app: &App, output: &str, arguments: &[Value]) -> Vec<u8> {
    let output = app.module().outputs.iter().find(|one| one.name == output).unwrap();
    let names = output.fields.iter().map(|field| field.name.clone());
    encode_arguments(&names.zip(arguments.iter().cloned()).collect::<Vec<_>>())
}

/// A seed's program through its history, while so many threads read every snapshot.
fn recorded(seed: u64, readers: usize) -> u64 {
    let mut dice = Dice::new(seed);
    let declared: Declared = program(&mut dice);
    let steps = history(&mut dice, &declared, HISTORY);
    let module = weft::compile(&declared.source, "generated.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut app = App::new(Arc::new(module), ME);
    for (name, value) in settings() {
        app.set(&name, &json(&value)).unwrap();
    }
    app.resume(&[], BEGINS);
    let mut recording = Recording { app, now: BEGINS, events: 0, hash: Hash::new() };
    std::thread::scope(|scope| {
        let (senders, reading): (Vec<_>, Vec<_>) = (0..readers)
            .map(|_| {
                let (sender, receiver) = mpsc::channel::<(Snapshot, u64)>();
                let reader = scope.spawn(move || {
                    // While the events go on, and once more when all is over.
                    let same = |(snapshot, then): &(Snapshot, u64)| seen(snapshot) == *then;
                    let kept: Vec<(Snapshot, u64)> =
                        receiver.into_iter().inspect(|one| assert!(same(one))).collect();
                    kept.iter().rev().all(same)
                });
                (sender, reader)
            })
            .unzip();
        for step in &steps {
            recording.step(step);
            let snapshot = recording.app.snapshot();
            let now = seen(&snapshot);
            recording.hash.take(&now.to_be_bytes());
            for sender in &senders {
                sender.send((snapshot.clone(), now)).unwrap();
            }
        }
        drop(senders);
        for reader in reading {
            assert!(
                reader.join().unwrap(),
                "seed {seed}: a snapshot shows something else than when it was made"
            );
        }
    });
    recording.hash.0
}

#[test]
fn a_history_gives_the_same_bytes_everywhere() {
    let whole = |readers: usize| {
        let mut hash = Hash::new();
        SEEDS.iter().for_each(|seed| hash.take(&recorded(*seed, readers).to_be_bytes()));
        hash.0
    };
    let alone = whole(1);
    assert_eq!(alone, whole(8), "how many read makes a difference");
    assert_eq!(alone, HASH, "the recorded histories come to another number: {alone:#018x}");
}
