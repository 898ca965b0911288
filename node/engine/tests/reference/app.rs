//! Events and views.

use super::kinds::{Field, Kind, Program};
use super::run::{Flow, GIVEN_UP, Run, over, timer_key};
use super::state::{List, State, Timer};
use super::value::{Value, encode_answer, encode_arguments, json, written_duration};
use engine::Delta;
use sealing::NodeId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use weft::syntax::tree::{Block, FunctionBody, HandlerKind, Source, Word};

/// Which kinds of statements and expressions were run, and how often.
pub type Reached = RefCell<BTreeMap<&'static str, u64>>;

/// One thing that happens, its arguments by name; those that are left out take their defaults.
#[derive(Debug, Clone)]
pub enum Happens {
    Input {
        name: String,
        arguments: Vec<(String, Value)>,
        by: String,
    },
    From {
        name: String,
        arguments: Vec<(String, Value)>,
        peer: [u8; 32],
        app: String,
    },
    /// Without an answer where the other side gave none or one of another type.
    Delivered {
        output: String,
        arguments: Vec<Value>,
        peer: [u8; 32],
        answer: Option<Value>,
    },
    Refused {
        output: String,
        arguments: Vec<Value>,
        peer: [u8; 32],
        reason: String,
    },
    /// What an address said of a send to it.
    Answered {
        output: String,
        arguments: Vec<Value>,
        to: String,
        refusal: Option<String>,
    },
    Due,
}

/// The most bytes of an answer that goes back, and of a transient send.
const ANSWER_BYTES_MAX: usize = 800;
const TRANSIENT_BYTES_MAX: usize = 700;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub output: String,
    pub arguments: Vec<(String, Value)>,
    pub to: Value,
    /// None: to an endpoint.
    pub app: Option<String>,
    pub transient: bool,
}

impl Sent {
    /// As the other engine hands it out: bytes to an app, JSON to an endpoint.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.app {
            Some(_) => encode_arguments(&self.arguments),
            None => json(&Value::Record(self.arguments.clone())).into_bytes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    pub answer: Option<String>,
    /// The answer of a send as it goes back.
    pub carried: Option<Vec<u8>>,
    pub sends: Vec<Sent>,
    pub deltas: Vec<Delta>,
    pub failed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    NoSuch,
    /// A value is missing or not of its type.
    Shape,
    Refused(String),
    /// It took too long.
    GivenUp,
}

impl From<String> for Wrong {
    fn from(why: String) -> Wrong {
        if why == GIVEN_UP { Wrong::GivenUp } else { Wrong::Refused(why) }
    }
}

pub struct App<'p> {
    pub program: &'p Program,
    pub state: State,
    pub settings: BTreeMap<String, Value>,
    me: NodeId,
    ticks: Vec<i64>,
    pub reached: &'p Reached,
}

/// What an event runs: a body, and the values of its names.
struct Work<'p> {
    body: &'p Block,
    names: Vec<(String, Value, Kind)>,
    /// Whether the answer goes to another node.
    goes_back: bool,
}

impl<'p> App<'p> {
    pub fn new(program: &'p Program, me: NodeId, now: i64, reached: &'p Reached) -> App<'p> {
        let ticks = program.file.everies.iter().map(|every| next_tick(every.period.0, now)).collect();
        let settings = program.settings.iter();
        let settings =
            settings.filter_map(|setting| Some((setting.name.clone(), setting.default.clone()?))).collect();
        App { program, state: State::of(program), settings, me, ticks, reached }
    }

    fn run(&self, state: State, now: i64, entropy: [u8; 32]) -> Run<'p> {
        Run::new(self.program, state, self.settings.clone(), (self.me.0, now, entropy), self.reached)
    }

    /// One event, whole or not at all.
    pub fn event(&mut self, happens: &Happens, now: i64, entropy: [u8; 32]) -> Result<Done, Wrong> {
        if let Happens::Due = happens {
            let done = self.due(now, entropy);
            let gave_up = done.failed.as_ref().is_some_and(|failed| failed.ends_with(GIVEN_UP));
            return if gave_up { Err(Wrong::GivenUp) } else { Ok(done) };
        }
        let Some(work) = self.work(happens)? else { return Ok(Done::default()) };
        let (done, state) = self.done(&work, self.state.clone(), now, entropy)?;
        self.state = state;
        Ok(done)
    }

    fn done(
        &self,
        work: &Work<'p>,
        state: State,
        now: i64,
        entropy: [u8; 32],
    ) -> Result<(Done, State), String> {
        let mut run = self.run(state, now, entropy);
        for (name, value, kind) in &work.names {
            run.bind_value(name, value.clone(), kind.clone());
        }
        let value = match run.block(work.body)? {
            Flow::Return(value) => value,
            _ => None,
        };
        let answer = value.as_ref().map(json);
        let carried = value.filter(|_| work.goes_back).map(|value| encode_answer(&value));
        if carried.as_ref().is_some_and(|carried| carried.len() > ANSWER_BYTES_MAX) {
            let most = format!("the answer has more than {ANSWER_BYTES_MAX} bytes");
            return Err(format!("{most}, the most that goes back to a node"));
        }
        if run.sends.iter().any(|sent| sent.transient && sent.bytes().len() > TRANSIENT_BYTES_MAX) {
            run.reach("transient send too long");
            return Err(over(TRANSIENT_BYTES_MAX, "bytes of a transient send"));
        }
        let deltas = run.state.deltas(&self.state, self.program);
        Ok((Done { answer, carried, sends: run.sends, deltas, failed: None }, run.state))
    }

    fn work(&self, happens: &Happens) -> Result<Option<Work<'p>>, Wrong> {
        let program = self.program;
        match happens {
            Happens::Input { name, arguments, by } => {
                let is = |kind: &HandlerKind| {
                    matches!(kind, HandlerKind::On { source: Source::Outside { .. }, .. })
                };
                let handler = program.handler(name, is).ok_or(Wrong::NoSuch)?;
                let HandlerKind::On { fields, source: Source::Outside { by: who }, .. } = &handler.kind
                else {
                    return Err(Wrong::NoSuch);
                };
                let mut names = filled(&program.fields(fields), arguments)?;
                names.extend(who.iter().map(|who| (who.text.clone(), Value::text(by), Kind::Text)));
                Ok(Some(Work { body: &handler.body, names, goes_back: false }))
            }
            Happens::From { name, arguments, peer, app } => {
                let is =
                    |kind: &HandlerKind| matches!(kind, HandlerKind::On { source: Source::Peer { .. }, .. });
                let handler = program.handler(name, is).ok_or(Wrong::NoSuch)?;
                let HandlerKind::On { fields, source: Source::Peer { peer: who, of }, .. } = &handler.kind
                else {
                    return Err(Wrong::NoSuch);
                };
                if *app != of.as_ref().map_or(program.file.name.clone(), |of| of.text.clone()) {
                    return Err(Wrong::NoSuch);
                }
                let mut names = filled(&program.fields(fields), arguments)?;
                names.push((who.text.clone(), Value::Node(*peer), Kind::Node));
                Ok(Some(Work { body: &handler.body, names, goes_back: true }))
            }
            Happens::Delivered { output, arguments, peer, answer } => {
                let handler = program.handler(output, |kind| matches!(kind, HandlerKind::Delivered { .. }));
                let Some(handler) = handler else { return Ok(None) };
                let HandlerKind::Delivered { blanks, to, with } = &handler.kind else { return Ok(None) };
                let sent = &program.outputs[output];
                let mut names = given(blanks, arguments, &sent.fields);
                names.extend(to.iter().map(|to| (to.text.clone(), Value::Node(*peer), Kind::Node)));
                if let (Some((_, Some(with))), Some(kind)) = (with, &sent.answer) {
                    let kind = match kind {
                        Kind::Optional(_) => kind.clone(),
                        kind => Kind::Optional(Box::new(kind.clone())),
                    };
                    let reached = if answer.is_some() { "answer" } else { "no answer" };
                    *self.reached.borrow_mut().entry(reached).or_default() += 1;
                    names.push((with.text.clone(), answer.clone().unwrap_or(Value::None), kind));
                }
                Ok(Some(Work { body: &handler.body, names, goes_back: false }))
            }
            Happens::Refused { output, arguments, peer, reason } => {
                let handler = program.handler(output, |kind| matches!(kind, HandlerKind::Refused { .. }));
                let Some(handler) = handler else { return Ok(None) };
                let HandlerKind::Refused { blanks, to, because } = &handler.kind else { return Ok(None) };
                let mut names = given(blanks, arguments, &program.outputs[output].fields);
                names.extend(to.iter().map(|to| (to.text.clone(), Value::Node(*peer), Kind::Node)));
                names.extend(
                    because.iter().map(|because| (because.text.clone(), Value::text(reason), Kind::Text)),
                );
                Ok(Some(Work { body: &handler.body, names, goes_back: false }))
            }
            Happens::Answered { output, arguments, to, refusal } => {
                Ok(self.answered(output, arguments, to, refusal.as_deref()))
            }
            Happens::Due => Ok(None),
        }
    }

    fn answered(
        &self,
        output: &str,
        arguments: &[Value],
        address: &str,
        refusal: Option<&str>,
    ) -> Option<Work<'p>> {
        let handler = self.program.handler(output, |kind| match kind {
            HandlerKind::Delivered { .. } => refusal.is_none(),
            HandlerKind::Refused { .. } => refusal.is_some(),
            _ => false,
        })?;
        let (blanks, to, because) = match &handler.kind {
            HandlerKind::Delivered { blanks, to, .. } => (blanks, to, &None),
            HandlerKind::Refused { blanks, to, because } => (blanks, to, because),
            _ => return None,
        };
        let reached = if refusal.is_some() { "an address refuses" } else { "an address takes" };
        *self.reached.borrow_mut().entry(reached).or_default() += 1;
        let mut names = given(blanks, arguments, &self.program.outputs[output].fields);
        let address = Value::Endpoint(address.into());
        names.extend(to.iter().map(|to| (to.text.clone(), address.clone(), Kind::Endpoint)));
        let reason = Value::text(refusal.unwrap_or_default());
        names.extend(because.iter().map(|because| (because.text.clone(), reason.clone(), Kind::Text)));
        Some(Work { body: &handler.body, names, goes_back: false })
    }

    /// The app of the same program by other names: `now` says how something of before is called. What is transient
    /// begins anew, and so do the times of `every`.
    pub fn renamed<'n>(
        &self,
        program: &'n Program,
        now: i64,
        reached: &'n Reached,
        value: &dyn Fn(&Value) -> Value,
    ) -> App<'n> {
        let mut app = App::new(program, self.me, now, reached);
        app.settings = self.settings.clone();
        let lists = app.state.lists.iter_mut().zip(&self.state.lists).zip(&program.states);
        for ((list, before), _) in lists.filter(|(_, state)| !state.transient) {
            match (list, before) {
                (List::Keyed(rows), List::Keyed(before)) => {
                    before.rows.values().for_each(|row| rows.put(value(row)));
                    rows.greatest = before.greatest;
                }
                (List::Variable(now), List::Variable(before)) => *now = value(before),
                _ => unreachable!("a state stays what it is"),
            }
        }
        for timer in self.state.timers.values() {
            let arguments: Vec<Value> = timer.arguments.iter().map(value).collect();
            let is = |kind: &HandlerKind| matches!(kind, HandlerKind::Timer { .. });
            let handler = program.handler(&timer.name, is).expect("a timer has a handler");
            let HandlerKind::Timer { fields } = &handler.kind else { unreachable!("it was looked for") };
            let names = fields.iter().map(|field| field.name.text.clone());
            let named: Vec<(String, Value)> = names.zip(arguments.iter().cloned()).collect();
            let timer = Timer { name: timer.name.clone(), arguments, due: timer.due };
            app.state.timers.insert(timer_key(&timer.name, &named), timer);
        }
        app
    }

    /// When the first timer or `every` is due.
    pub fn next_due(&self) -> Option<i64> {
        let timers = self.state.timers.values().map(|timer| timer.due);
        timers.chain(self.ticks.iter().copied()).min()
    }

    fn due(&mut self, now: i64, entropy: [u8; 32]) -> Done {
        let Some(due) = self.next_due().filter(|due| *due <= now) else { return Done::default() };
        let first = self.state.timers.iter().find(|(_, timer)| timer.due == due);
        if let Some((key, timer)) = first.map(|(key, timer)| (key.clone(), timer.clone())) {
            return self.fire(&key, &timer, now, entropy);
        }
        let at = self.ticks.iter().position(|tick| *tick == due).expect("a tick is due if no timer is");
        let every = &self.program.file.everies[at];
        self.ticks[at] = next_tick(every.period.0, now);
        let work = Work { body: &every.body, names: Vec::new(), goes_back: false };
        match self.done(&work, self.state.clone(), now, entropy) {
            Ok((done, state)) => {
                self.state = state;
                done
            }
            Err(reason) => {
                let failed = Some(format!("every {}: {reason}", written_duration(every.period.0)));
                Done { failed, ..Done::default() }
            }
        }
    }

    fn fire(&mut self, key: &[u8], timer: &Timer, now: i64, entropy: [u8; 32]) -> Done {
        let mut without = self.state.clone();
        without.timers.remove(key);
        let is = |kind: &HandlerKind| matches!(kind, HandlerKind::Timer { .. });
        let handler = self.program.handler(&timer.name, is).expect("a timer has a handler");
        let HandlerKind::Timer { fields } = &handler.kind else { unreachable!("it was looked for") };
        let fields = self.program.fields(fields).into_iter().zip(timer.arguments.iter().cloned());
        let names = fields.map(|(field, value)| (field.name, value, field.kind)).collect();
        let work = Work { body: &handler.body, names, goes_back: false };
        let (done, state) = self.done(&work, without.clone(), now, entropy).unwrap_or_else(|reason| {
            let failed = Some(format!("timer `{}`: {reason}", timer.name));
            let deltas = without.deltas(&self.state, self.program);
            (Done { failed, deltas, ..Done::default() }, without)
        });
        self.state = state;
        done
    }

    /// What a view shows.
    pub fn view(
        &self,
        name: &str,
        arguments: &[(String, Value)],
        by: &str,
        now: i64,
    ) -> Result<String, Wrong> {
        let view = self.program.function(name).filter(|function| function.is_view).ok_or(Wrong::NoSuch)?;
        let mut run = self.run(self.state.clone(), now, [0; 32]);
        for (name, value, kind) in filled(&self.program.fields(&view.fields), arguments)? {
            run.bind_value(&name, value, kind);
        }
        if let Some(who) = &view.by {
            run.bind_value(&who.text, Value::text(by), Kind::Text);
        }
        let value = run.body_of(view)?;
        assert!(run.state == self.state, "a view changes nothing");
        Ok(json(&value))
    }
}

/// The arguments of fields: each of those given, defaults for the others.
fn filled(fields: &[Field], given: &[(String, Value)]) -> Result<Vec<(String, Value, Kind)>, Wrong> {
    if given.iter().any(|(name, _)| fields.iter().all(|field| field.name != *name)) {
        return Err(Wrong::Shape);
    }
    let value = |field: &Field| {
        let value = given.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value.clone());
        let value = value.or_else(|| field.default.clone()).ok_or(Wrong::Shape)?;
        Ok((field.name.clone(), value, field.kind.clone()))
    };
    fields.iter().map(value).collect()
}

fn given(blanks: &[Option<Word>], values: &[Value], fields: &[Field]) -> Vec<(String, Value, Kind)> {
    let named = blanks.iter().zip(values.iter().zip(fields));
    let named = named.filter_map(|(blank, (value, field))| {
        Some((blank.as_ref()?.text.clone(), value.clone(), field.kind.clone()))
    });
    named.collect()
}

fn next_tick(period: i64, after: i64) -> i64 {
    (after.div_euclid(period) + 1) * period
}

impl Run<'_> {
    /// What a `fn` or `view` gives, its arguments being bound.
    pub fn body_of(&mut self, function: &weft::syntax::tree::Function) -> Result<Value, String> {
        let kind = function.answer.as_ref().map(|answer| self.program.kind(answer));
        let value = match &function.body {
            FunctionBody::Expression(value) => self.evaluate(value)?,
            FunctionBody::Block(block) => match self.block(block)? {
                Flow::Return(Some(value)) => value,
                _ => panic!("`{}` ended without its value", function.name.text),
            },
        };
        Ok(match kind {
            Some(kind) => self.program.fitted(value, &kind),
            None => value,
        })
    }
}
