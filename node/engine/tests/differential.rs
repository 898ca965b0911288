//! The engine and the naive one in `reference/` do the same: answers, rows, sends, timers, refusals and their words, for
//! programs and histories from seeds. `WEFT_SEEDS=n` tries n seeds, `WEFT_SEED=n` only one; a seed that fails is shown
//! with its program made small.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "how many seeds are tried is said from outside")]

mod generate;
mod reference;
mod support;

use engine::{App, Context, Delta, Event, EventError, ViewError};
use generate::{Declared, Dice, Step, history, program, settings, shrunken};
use reference::{Done, Happens, Program, Value, Wrong, encode_answer, encode_arguments, json, parameter};
use sealing::NodeId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use support::ME;

const BEGINS: i64 = 1_700_000_000_123;
/// Seeds of a run of all tests: some seconds.
const SEEDS: u64 = 200;
const HISTORY: usize = 40;
/// Rows and lists that a history may come to: what grows on would only take time.
const STATE_BYTES_MAX: usize = 60_000;
/// Timers that fire at one step.
const FIRING_MAX: usize = 12;

/// Every kind of statement and expression, as the naive engine calls what it does: a run that misses one fails.
const EVERYTHING: &[&str] = &[
    "!=",
    "%",
    "*",
    "*=",
    "+=",
    "-",
    "-=",
    "/",
    "<",
    "<=",
    "=",
    "==",
    ">",
    ">=",
    "a + b",
    "a - b",
    "abs",
    "add",
    "add to a plain list",
    "all",
    "and",
    "any",
    "break",
    "call of a do",
    "call of a function",
    "cancel",
    "case",
    "ceiling",
    "change of a row",
    "change of a state",
    "change of a var",
    "change of an element",
    "comprehension",
    "contains",
    "continue",
    "count",
    "desc",
    "element by index",
    "else",
    "field",
    "first",
    "floor",
    "floor of a time",
    "for",
    "for in a keyed list",
    "for in a list",
    "for in a range",
    "for … group by",
    "for … order by",
    "for … take",
    "group by",
    "if",
    "if else",
    "if then else",
    "in a keyed list",
    "in a list",
    "in a range",
    "is",
    "length of a list",
    "length of a text",
    "length of bytes",
    "let",
    "let add or put",
    "let else change",
    "let else exit",
    "let else found",
    "let else value",
    "list",
    "lower",
    "max",
    "max of values",
    "me",
    "mean",
    "min",
    "min of values",
    "name of a row",
    "name of a value",
    "new_id",
    "next_id",
    "none",
    "not",
    "now",
    "or",
    "order by",
    "own list",
    "put",
    "random",
    "real",
    "record",
    "record without a name",
    "refuse",
    "remove",
    "remove for",
    "require",
    "return",
    "return value",
    "round",
    "row by key",
    "send",
    "setting",
    "several lists",
    "start after",
    "start at",
    "state",
    "sum",
    "take",
    "take in an expression",
    "text with a value",
    "trim",
    "upper",
    "var",
    "var without a value",
    "where",
    "whole list",
    "whole own list",
    "removed under way",
    "answer",
    "no answer",
    "event done",
    "event refused",
    "view shown",
    "view refused",
];

type Reached = RefCell<BTreeMap<&'static str, u64>>;

/// What the two engines say differently.
type Agreed = Result<(), String>;

struct Pair<'p> {
    app: App,
    naive: reference::App<'p>,
    now: i64,
    events: u8,
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, engine: &T, naive: &T) -> Agreed {
    if engine == naive {
        return Ok(());
    }
    Err(format!("{what} differ\n  engine: {engine:?}\n  naive:  {naive:?}"))
}

/// Both engines through a history.
fn compare(source: &str, steps: &[Step], reached: &Reached) -> Agreed {
    let module = weft::compile(source, "generated.weft").map_err(|wrong| wrong.to_string())?;
    let tree = weft::syntax::parse(source, "generated.weft").map_err(|wrong| wrong.to_string())?;
    let program = Program::of(tree);
    let mut app = App::new(Arc::new(module), ME);
    app.resume(&[], BEGINS);
    let mut naive = reference::App::new(&program, ME, BEGINS, reached);
    for (name, value) in settings() {
        let _ = app.set(&name, &json(&value));
        naive.settings.insert(name, value);
    }
    let mut pair = Pair { app, naive, now: BEGINS, events: 0 };
    for (at, step) in steps.iter().enumerate() {
        let went_on = pair.step(step).map_err(|wrong| format!("step {at}, {step:?}: {wrong}"))?;
        if !went_on {
            break;
        }
    }
    Ok(())
}

/// Of numbers that `next_id` gave the naive engine keeps less.
fn without_counters(deltas: Vec<Delta>) -> Vec<Delta> {
    deltas.into_iter().filter(|delta| delta.list != engine::COUNTERS).collect()
}

impl Pair<'_> {
    /// Whether there is more to see.
    fn step(&mut self, step: &Step) -> Result<bool, String> {
        match step {
            Step::Event(happens) => self.event(happens)?,
            Step::Misshapen(name, body) => {
                let before = self.app.snapshot().rows();
                let event = Event::Input { name, arguments: body.as_bytes(), by: "local" };
                match self.app.event(event, &self.context()) {
                    Err(EventError::Shape { .. } | EventError::NoSuchInput { .. }) => {}
                    other => return Err(format!("a body that is wrong gave {other:?}")),
                }
                differ("rows after a wrong body", &self.app.snapshot().rows(), &before)?;
            }
            Step::View(name, arguments, by) => self.view(name, arguments, by)?,
            Step::Wait(milliseconds) => {
                self.now += milliseconds;
                for _ in 0..FIRING_MAX {
                    differ("the next times", &self.app.next_due(), &self.naive.next_due())?;
                    if self.app.next_due().is_none_or(|due| due > self.now) {
                        break;
                    }
                    self.event(&Happens::Due)?;
                }
            }
        }
        let bytes: usize =
            self.app.snapshot().rows().iter().map(|row| row.row.as_ref().map_or(0, Vec::len)).sum();
        Ok(bytes < STATE_BYTES_MAX)
    }

    fn reach(&self, what: &'static str) {
        *self.naive.reached.borrow_mut().entry(what).or_default() += 1;
    }

    fn context(&self) -> Context {
        Context { now: self.now, entropy: [self.events; 32], room: 100_000 }
    }

    fn event(&mut self, happens: &Happens) -> Agreed {
        self.events = self.events.wrapping_add(1);
        let context = self.context();
        let naive = self.naive.event(happens, context.now, context.entropy);
        let before = self.app.snapshot().rows();
        let engine = self.engine_event(happens, &context);
        self.reach(if naive.is_ok() { "event done" } else { "event refused" });
        match (&engine, &naive) {
            (Ok(applied), Ok(done)) => agree_on(applied, done)?,
            (Err(EventError::Refused { reason }), Err(Wrong::Refused(other))) => {
                differ("refusals", reason, other)?;
            }
            (Err(EventError::Shape { .. }), Err(Wrong::Shape)) => {}
            (Err(EventError::NoSuchInput { .. }), Err(Wrong::NoSuch)) => {}
            (Err(EventError::Budget { .. }), _) => {
                return Err(format!("it went over its budget: {engine:?}"));
            }
            _ => return Err(format!("outcomes differ\n  engine: {engine:?}\n  naive:  {naive:?}")),
        }
        let rows = self.app.snapshot().rows();
        if engine.is_err() {
            differ("rows after a refusal", &rows, &before)?;
        }
        let kept: BTreeMap<(u32, Vec<u8>), Vec<u8>> = without_counters(rows)
            .into_iter()
            .filter_map(|row| Some(((row.list, row.key), row.row?)))
            .collect();
        differ("rows", &kept, &self.naive.state.rows(self.naive.program))?;
        differ("the next times", &self.app.next_due(), &self.naive.next_due())
    }

    fn engine_event(&mut self, happens: &Happens, context: &Context) -> Result<engine::Applied, EventError> {
        match happens {
            Happens::Input { name, arguments, by } => {
                let arguments = json(&Value::Record(arguments.clone()));
                self.app.event(Event::Input { name, arguments: arguments.as_bytes(), by }, context)
            }
            Happens::From { name, arguments, peer, app } => {
                let arguments = encode_arguments(arguments);
                let event = Event::From { name, arguments: &arguments, peer: NodeId(*peer), app };
                self.app.event(event, context)
            }
            Happens::Delivered { output, arguments, peer, answer } => {
                let arguments = self.named(output, arguments);
                let answer = answer.as_ref().map(encode_answer);
                // One that does not read is as good as none.
                let strange = self.events.is_multiple_of(2).then(|| vec![1, 255]);
                let answer = answer.or(strange);
                let (peer, answer) = (NodeId(*peer), answer.as_deref());
                self.app.event(Event::Delivered { output, arguments: &arguments, peer, answer }, context)
            }
            Happens::Refused { output, arguments, peer, reason } => {
                let arguments = self.named(output, arguments);
                let event = Event::Refused { output, arguments: &arguments, peer: NodeId(*peer), reason };
                self.app.event(event, context)
            }
            Happens::Due => self.app.event(Event::Due, context),
        }
    }

    /// The bytes of what was sent.
    fn named(&self, output: &str, arguments: &[Value]) -> Vec<u8> {
        let fields =
            self.naive.program.outputs.get(output).map(|output| output.fields.as_slice()).unwrap_or_default();
        let names = fields.iter().map(|field| field.name.clone());
        encode_arguments(&names.zip(arguments.iter().cloned()).collect::<Vec<_>>())
    }

    fn view(&self, name: &str, arguments: &[(String, Value)], by: &str) -> Agreed {
        let naive = self.naive.view(name, arguments, by, self.now);
        let query: Vec<(String, String)> =
            arguments.iter().map(|(name, value)| (name.clone(), parameter(value))).collect();
        let engine = self.app.snapshot().view(name, &query, by, self.now);
        self.reach(if naive.is_ok() { "view shown" } else { "view refused" });
        match (&engine, &naive) {
            (Ok(shown), Ok(other)) => differ("views", shown, other),
            (Err(ViewError::Refused { reason }), Err(Wrong::Refused(other))) => {
                differ("refusals", reason, other)
            }
            (Err(ViewError::Shape { .. }), Err(Wrong::Shape)) => Ok(()),
            (Err(ViewError::NoSuchView { .. }), Err(Wrong::NoSuch)) => Ok(()),
            _ => Err(format!("outcomes differ\n  engine: {engine:?}\n  naive:  {naive:?}")),
        }
    }
}

fn agree_on(applied: &engine::Applied, done: &Done) -> Agreed {
    differ("answers", &applied.answer, &done.answer)?;
    differ("answers that go back", &applied.carried, &done.carried)?;
    differ("deltas", &without_counters(applied.deltas.to_vec()), &done.deltas)?;
    differ("failures", &applied.failed, &done.failed)?;
    let (to_apps, to_endpoints): (Vec<_>, Vec<_>) = done.sends.iter().partition(|sent| sent.app.is_some());
    let sent: Vec<(String, Vec<u8>, Value, Option<String>)> = to_apps
        .iter()
        .map(|sent| (sent.output.clone(), sent.bytes(), sent.to.clone(), sent.app.clone()))
        .collect();
    let sends = applied.sends.iter().map(|send| {
        (send.output.clone(), send.arguments.clone(), Value::Node(send.to.0), Some(send.app.clone()))
    });
    differ("sends", &sends.collect(), &sent)?;
    let sent: Vec<(String, Vec<u8>, Value)> =
        to_endpoints.iter().map(|sent| (sent.output.clone(), sent.bytes(), sent.to.clone())).collect();
    let sends = applied.endpoint_sends.iter().map(|send| {
        (send.output.clone(), send.arguments.clone().into_bytes(), Value::Endpoint(send.to.clone()))
    });
    differ("sends to endpoints", &sends.collect(), &sent)
}

/// As [`compare`]; a panic of either engine is a difference too.
fn compare_all(source: &str, steps: &[Step], reached: &Reached) -> Agreed {
    match catch_unwind(AssertUnwindSafe(|| compare(source, steps, reached))) {
        Ok(agreed) => agreed,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
            Err(format!("a panic: {}", said.unwrap_or_default()))
        }
    }
}

fn made(seed: u64) -> (Declared, Vec<Step>) {
    let mut dice = Dice::new(seed);
    let declared = program(&mut dice);
    let mut steps = history(&mut dice, &declared, HISTORY);
    // Every list and variable is seen at the end, transient ones too.
    let all =
        declared.keyed.iter().map(|keyed| &keyed.name).chain(declared.variables.iter().map(|(name, _)| name));
    steps.extend(all.map(|name| Step::View(format!("all_{name}"), Vec::new(), "ann".into())));
    (declared, steps)
}

fn small(seed: u64, source: &str, steps: &[Step], wrong: &str) -> String {
    let ignored = Reached::default();
    let (source, steps) = shrunken(source, steps, &mut |source, steps| {
        weft::compile(source, "generated.weft").is_ok() && compare_all(source, steps, &ignored).is_err()
    });
    let now = compare_all(&source, &steps, &ignored).err().unwrap_or_default();
    let steps: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
    format!("seed {seed}: {wrong}\n\nmade small:\n{source}\n{}\n\n{now}\n", steps.join("\n"))
}

#[test]
fn both_engines_do_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("WEFT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WEFT_SEEDS").unwrap_or(SEEDS),
    };
    let reached = Reached::default();
    for seed in seeds {
        let (declared, steps) = made(seed);
        if let Err(wrong) = compare_all(&declared.source, &steps, &reached) {
            panic!("{}", small(seed, &declared.source, &steps, &wrong));
        }
    }
    let reached = reached.borrow();
    let never: Vec<&&str> = EVERYTHING.iter().filter(|what| !reached.contains_key(**what)).collect();
    let is_whole = number("WEFT_SEED").is_none();
    assert!(!is_whole || never.is_empty(), "no program reached {never:?}");
    let unlisted: Vec<&&str> = reached.keys().filter(|what| !EVERYTHING.contains(what)).collect();
    assert!(unlisted.is_empty(), "not listed: {unlisted:?}");
}
