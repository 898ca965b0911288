//! The engine and the naive one in `reference/` do the same: answers, rows, sends, timers, refusals and their words, for
//! programs and histories from seeds. `WEFT_SEEDS=n` tries n seeds, `WEFT_SEED=n` only one; a seed that fails is shown
//! with its program made small.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "how many seeds are tried is said from outside")]
#![allow(clippy::print_stderr, reason = "which seed fails is said before its program is made small")]

mod generate;
mod reference;
mod support;

use engine::{App, Context, Delta, Event, EventError, ViewError};
use generate::{Called, Declared, Dice, LIBRARY, Step, Turn, history, program, settings, shrunken, split};
use reference::{
    Done, Happens, List, Program, Value, Wrong, encode_answer, encode_arguments, json, parameter,
};
use sealing::NodeId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use support::ME;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};

/// A send to an app: the output, its arguments, the node, the app, and whether it is worth something now or never.
type ToApp<'s> = (&'s str, Vec<u8>, Value, Option<&'s str>, bool);

const BEGINS: i64 = 1_700_000_000_123;
/// Seeds of a run of all tests: some seconds.
const SEEDS: u64 = 200;
const HISTORY: usize = 40;
/// Rows and lists that a history may come to: what grows on would only take time.
const STATE_BYTES_MAX: usize = 250_000;
/// Rows from which on the trees of a list have several nodes.
const MANY_ROWS: usize = 130;
/// Operations of an event from which on a history ends: with many rows what else it does would only take time.
const OPERATIONS_MAX: u64 = 1 << 18;
/// Bytes of a text that is no key any more.
const LONG_KEY: usize = 4_100;
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
    "an address refuses",
    "an address takes",
    "and",
    "any",
    "break",
    "call of a do",
    "call of a function",
    "cancel",
    "case",
    "ceiling",
    "change of names",
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
    "entry of an index too long",
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
    "index of numbers close together",
    "is",
    "key too long",
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
    "look for a key too long",
    "lower",
    "many rows",
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
    "of a library",
    "old shape",
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
    "send to an endpoint",
    "setting",
    "several lists",
    "start after",
    "start at",
    "slice",
    "state",
    "sum",
    "take",
    "take in an expression",
    "text with a value",
    "timer too long",
    "transient send",
    "transient send too long",
    "trim",
    "upper",
    "var",
    "var of a row",
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
    schema: Schema,
    /// How names became others, in turn.
    turns: Vec<Turn>,
    /// What is still to come of the program.
    versions: std::slice::Iter<'p, Version>,
}

/// A program as both engines take it.
struct Version {
    turn: Turn,
    program: Program,
    module: weft::Module,
}

impl Version {
    fn of(turn: Turn, source: &str) -> Result<Version, String> {
        let tree = weft::syntax::parse(source, "generated.weft").map_err(|wrong| wrong.to_string())?;
        let (app, library) = if turn.library { split(source) } else { (source.to_owned(), String::new()) };
        let mut read = |path: &str| match path {
            LIBRARY => Ok(library.clone()),
            other => Err(format!("there is no {other}")),
        };
        let module = weft::compile_with(&app, "generated.weft", &mut read);
        let module = module.map_err(|wrong| format!("{wrong}\n{app}\n{library}"))?;
        Ok(Version { turn, program: Program::of(tree), module })
    }
}

/// The program, and what it becomes under way.
fn versions(source: &str, steps: &[Step]) -> Result<Vec<Version>, String> {
    let mut source = source.to_owned();
    let mut versions = vec![Version::of(Turn { renamed: 0, library: false }, &source)?];
    for step in steps {
        if let Step::Change(turn) = step {
            source = turn.source(&source);
            versions.push(Version::of(*turn, &source)?);
        }
    }
    Ok(versions)
}

/// A value with the names that its fields and cases have after some turns.
fn renamed(value: &Value, turns: &[Turn]) -> Value {
    let name = |name: &str| turns.iter().fold(name.to_owned(), |name, turn| turn.name(&name));
    match value {
        Value::Case(place, case) => Value::Case(*place, name(case)),
        Value::List(values) => Value::List(values.iter().map(|value| renamed(value, turns)).collect()),
        Value::Record(fields) => {
            let fields = fields.iter().map(|(field, value)| (name(field), renamed(value, turns)));
            Value::Record(fields.collect())
        }
        other => other.clone(),
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, engine: &T, naive: &T) -> Agreed {
    if engine == naive {
        return Ok(());
    }
    Err(format!("{what} differ\n  engine: {engine:?}\n  naive:  {naive:?}"))
}

/// Both engines through a history.
fn compare(source: &str, steps: &[Step], reached: &Reached) -> Agreed {
    let versions = versions(source, steps)?;
    let mut left = versions.iter();
    let first = left.next().ok_or("there is no program")?;
    let schema = Schema::of(&first.module);
    let mut app = App::new(Arc::new(first.module.clone()), ME);
    app.resume(&[], BEGINS);
    let mut naive = reference::App::new(&first.program, ME, BEGINS, reached);
    for (name, value) in settings() {
        let _ = app.set(&name, &json(&value));
        naive.settings.insert(name, value);
    }
    let mut pair = Pair { app, naive, now: BEGINS, events: 0, schema, turns: Vec::new(), versions: left };
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
            Step::Change(_) => self.change()?,
            Step::Event(happens) => {
                if !self.event(happens)? {
                    return Ok(false);
                }
            }
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
                    if !self.event(&Happens::Due)? {
                        return Ok(false);
                    }
                }
            }
        }
        let rows = self.app.snapshot().rows();
        if rows.len() > MANY_ROWS {
            self.reach("many rows");
        }
        let is_close = |list: &List| matches!(list, List::Keyed(rows) if rows.has_close_index());
        if self.naive.state.lists.iter().any(is_close) {
            self.reach("index of numbers close together");
        }
        let bytes: usize = rows.iter().map(|row| row.row.as_ref().map_or(0, Vec::len)).sum();
        Ok(bytes < STATE_BYTES_MAX)
    }

    /// Goes on with the next version.
    fn change(&mut self) -> Agreed {
        let version = self.versions.next().ok_or("there is no version left")?;
        let mut module = version.module.clone();
        let change = Change::between(&self.schema, &module);
        change.after.teach(&mut module);
        let (app, findings) = self.app.change(&change, Arc::new(module));
        let plan = change.plan("generated", Some(&findings));
        if plan.verdict() > Verdict::Loses {
            return Err(format!("a change of names alone is refused:\n{plan}"));
        }
        self.app = app;
        self.app.resume(&[], self.now);
        self.schema = change.after;
        self.naive = self.naive.renamed(&version.program, self.now, self.naive.reached, &|value| {
            renamed(value, &[version.turn])
        });
        self.turns.push(version.turn);
        self.reach(if version.turn.library { "of a library" } else { "change of names" });
        differ("rows after a change", &self.kept(), &self.naive.state.rows(self.naive.program))?;
        differ("the next times after a change", &self.app.next_due(), &self.naive.next_due())
    }

    /// The engine's rows without the numbers that `next_id` gave.
    fn kept(&self) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
        let rows = without_counters(self.app.snapshot().rows()).into_iter();
        rows.filter_map(|row| Some(((row.list, row.key), row.row?))).collect()
    }

    /// What happens by the names of now.
    fn now_called(&self, happens: &Happens) -> Happens {
        let now = |value: &Value| renamed(value, &self.turns);
        let mut happens = happens.clone();
        match &mut happens {
            Happens::Input { arguments, .. } => {
                arguments.iter_mut().for_each(|(_, value)| *value = now(value));
            }
            Happens::From { arguments, .. } => {
                if let Value::Record(renamed) = now(&Value::Record(arguments.clone())) {
                    *arguments = renamed;
                }
            }
            Happens::Delivered { arguments, answer, .. } => {
                arguments.iter_mut().for_each(|value| *value = now(value));
                *answer = answer.as_ref().map(now);
            }
            Happens::Refused { arguments, .. } | Happens::Answered { arguments, .. } => {
                arguments.iter_mut().for_each(|value| *value = now(value));
            }
            Happens::Due => {}
        }
        happens
    }

    fn reach(&self, what: &'static str) {
        *self.naive.reached.borrow_mut().entry(what).or_default() += 1;
    }

    fn context(&self) -> Context {
        Context { now: self.now, entropy: [self.events; 32], room: 100_000 }
    }

    /// Whether there is more to see.
    fn event(&mut self, happens: &Happens) -> Result<bool, String> {
        self.events = self.events.wrapping_add(1);
        let context = self.context();
        let now_called = self.now_called(happens);
        let before = self.app.snapshot().rows();
        // What was under way before a change comes by the names of then.
        let is_old = self.events.is_multiple_of(3) && matches!(happens, Happens::From { .. });
        if is_old && !self.turns.is_empty() {
            self.reach("old shape");
        }
        let engine = self.engine_event(if is_old { happens } else { &now_called }, &context);
        match &engine {
            Err(EventError::Budget { unit: "operations", .. }) if before.len() > MANY_ROWS => {
                return Ok(false);
            }
            Ok(applied) if applied.operations > OPERATIONS_MAX => return Ok(false),
            _ => {}
        }
        let naive = self.naive.event(&now_called, context.now, context.entropy);
        if naive == Err(Wrong::GivenUp) {
            return Ok(false);
        }
        self.reach(if naive.is_ok() { "event done" } else { "event refused" });
        match (&engine, &naive) {
            (Ok(applied), Ok(done)) => agree_on(applied, done)?,
            (Err(EventError::Refused { reason }), Err(Wrong::Refused(other))) => {
                differ("refusals", reason, other)?;
            }
            (Err(EventError::Shape { .. }), Err(Wrong::Shape)) => {}
            (Err(EventError::NoSuchInput { .. }), Err(Wrong::NoSuch)) => {}
            (Err(over @ EventError::Budget { .. }), Err(Wrong::Refused(other))) => {
                differ("bounds", &over.to_string(), other)?;
            }
            _ => return Err(format!("outcomes differ\n  engine: {engine:?}\n  naive:  {naive:?}")),
        }
        if engine.is_err() {
            differ("rows after a refusal", &self.app.snapshot().rows(), &before)?;
        }
        differ("rows", &self.kept(), &self.naive.state.rows(self.naive.program))?;
        differ("the next times", &self.app.next_due(), &self.naive.next_due())?;
        Ok(true)
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
            Happens::Answered { output, arguments, to, refusal } => {
                let arguments = self.named(output, arguments);
                let refusal = refusal.as_deref();
                self.app.event(Event::Answered { output, arguments: &arguments, to, refusal }, context)
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
        let arguments: Vec<(String, Value)> =
            arguments.iter().map(|(name, value)| (name.clone(), renamed(value, &self.turns))).collect();
        let query: Vec<(String, String)> =
            arguments.iter().map(|(name, value)| (name.clone(), parameter(value))).collect();
        let engine = self.app.snapshot().view(name, &query, by, self.now);
        let naive = self.naive.view(name, &arguments, by, self.now);
        if naive == Err(Wrong::GivenUp) {
            return Ok(());
        }
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
    let sent: Vec<ToApp<'_>> = to_apps
        .iter()
        .map(|sent| (&*sent.output, sent.bytes(), sent.to.clone(), sent.app.as_deref(), sent.transient))
        .collect();
    let sends = applied.sends.iter().map(|send| {
        let to = Value::Node(send.to.0);
        (&*send.output, send.arguments.clone(), to, Some(&*send.app), send.transient)
    });
    differ("sends", &sends.collect(), &sent)?;
    let sent: Vec<(&str, Vec<u8>, Vec<u8>, Value)> = to_endpoints
        .iter()
        .map(|sent| (&*sent.output, sent.bytes(), encode_arguments(&sent.arguments), sent.to.clone()))
        .collect();
    let sends = applied.endpoint_sends.iter().map(|send| {
        let arguments = send.arguments.clone().into_bytes();
        (&*send.output, arguments, send.encoded.clone(), Value::Endpoint(send.to.clone()))
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
    // And each list by a text is asked for a key that is too long.
    let looks = declared.views.iter().filter(|view| view.name.starts_with("look_"));
    let long = |view: &Called| {
        let key = vec![("p0".to_owned(), Value::text("x".repeat(LONG_KEY)))];
        Step::View(view.name.clone(), key, "ann".into())
    };
    steps.extend(looks.map(long));
    (declared, steps)
}

fn small(seed: u64, source: &str, steps: &[Step], wrong: &str) -> String {
    eprintln!("seed {seed}: {wrong}\nit is made small now");
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
