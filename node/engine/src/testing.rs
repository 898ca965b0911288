//! Runs the tests of a module: a world of nodes in memory, with a clock that only `advance` moves.
//!
//! Must not know: files, threads, real time. Sends are delivered at once and in order; what goes to no node of the test
//! stays under way. The same module gives the same results everywhere.
//!
//! A test's own code runs on a machine that reads one node's state at a time; what it asks beside that is done here.

use crate::app::{App, event_error};
use crate::arguments;
use crate::budget::{Budget, Fault};
use crate::event::{Applied, Context, Event, EventError, Send};
use crate::json;
use crate::machine::{Machine, Room, Stopped};
use sealing::NodeId;
use std::collections::VecDeque;
use std::sync::Arc;
use weft::Value;
use weft::code::{Register, Sides, TestOperation};
use weft::module::{Destination, Field, Module, Setting, Test, Type};

/// When tests begin: Monday, 5 January 2026, 09:00 UTC.
pub const START: i64 = 1_767_603_600_000;
/// Nodes of one test.
const NODES_MAX: usize = 64;
/// Sends delivered after one step of a test: more is a conversation that does not end.
const DELIVERIES_MAX: usize = 10_000;
/// Timers and `every` that fire in one `advance`: more is a wait that was meant otherwise.
const TICKS_MAX: usize = 100_000;
/// Bytes of each side of a failed comparison that are kept: whoever shows them shows where they differ.
const SIDE_BYTES_MAX: usize = 1 << 18;

/// How one test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// Its title.
    pub name: String,
    /// Its line in the source, from 1.
    pub line: u32,
    /// How.
    pub outcome: Outcome,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All it expects holds.
    Passed,
    /// Something does not.
    Failed(Failure),
    /// It was not run: never the same as passed.
    NotRun {
        /// Why.
        why: String,
    },
}

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The line of the statement.
    pub line: u32,
    /// What, in a line.
    pub message: String,
    /// The two sides of a comparison.
    pub difference: Option<Difference>,
}

/// The two sides of a comparison that does not hold, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The left one.
    pub left: String,
    /// The right one.
    pub right: String,
}

/// Runs the tests of a module whose titles are wanted, in the order of the source.
pub fn run(module: &Arc<Module>, wanted: &dyn Fn(&str) -> bool) -> Vec<TestResult> {
    let tests = module.tests.iter().filter(|test| wanted(&test.title));
    tests.map(|test| run_one(module, test)).collect()
}

/// Runs one test of a module.
pub fn run_one(module: &Arc<Module>, test: &Test) -> TestResult {
    TestResult { name: test.title.clone(), line: test.line, outcome: outcome(module, test) }
}

fn outcome(module: &Arc<Module>, test: &Test) -> Outcome {
    if let Some(word) = &test.simulator {
        return Outcome::NotRun {
            why: format!("`{word}` needs the simulator of links and disks, which this version does not have"),
        };
    }
    let mut world = World::new(module);
    world.line = test.line;
    let ended = world.run(test).and_then(|()| match world.expected {
        true => Ok(()),
        false => Err(Wrong::new("nothing was expected")),
    });
    match ended {
        Ok(()) => Outcome::Passed,
        Err(Wrong { message, difference }) => {
            Outcome::Failed(Failure { line: world.line, message, difference })
        }
    }
}

/// Why a test does not go on.
struct Wrong {
    message: String,
    difference: Option<Difference>,
}

impl Wrong {
    fn new(message: impl Into<String>) -> Wrong {
        Wrong { message: message.into(), difference: None }
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong::new(match fault {
            Fault::Refused(reason) => reason,
            Fault::Budget { unit, limit } => format!("the test went over its budget of {limit} {unit}"),
        })
    }
}

struct Node {
    id: NodeId,
    app: App,
}

/// Something that was sent and not expected yet.
#[derive(PartialEq, Eq)]
struct Sent {
    output: String,
    /// Encoded for a node, JSON for an endpoint.
    arguments: Vec<u8>,
    to: Value,
}

struct World<'m> {
    module: &'m Arc<Module>,
    /// The test's own first.
    nodes: Vec<Node>,
    now: i64,
    /// Counts events: each has other entropy.
    events: u64,
    sent: Vec<Sent>,
    line: u32,
    /// Whether an `expect` was reached.
    expected: bool,
}

/// The number of a node in a world.
type Place = usize;

impl<'m> World<'m> {
    fn new(module: &'m Arc<Module>) -> World<'m> {
        let (nodes, sent) = (Vec::new(), Vec::new());
        let mut world = World { module, nodes, now: START, events: 0, sent, line: 0, expected: false };
        world.add_node();
        world
    }

    fn add_node(&mut self) -> NodeId {
        let id = NodeId([self.nodes.len() as u8 + 1; 32]);
        let mut app = App::new(Arc::clone(self.module), id);
        for (at, setting) in self.module.settings.iter().enumerate() {
            if setting.default.is_none() {
                app.set_value(at, invented(setting, at, self.module));
            }
        }
        app.resume(&[], self.now);
        self.nodes.push(Node { id, app });
        id
    }

    fn context(&mut self) -> Context {
        self.events += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.events.to_be_bytes());
        Context { now: self.now, entropy, room: usize::MAX }
    }

    fn run(&mut self, test: &Test) -> Result<(), Wrong> {
        let module = Arc::clone(self.module);
        let own = &self.nodes[0];
        let context = Context { now: self.now, entropy: [0; 32], room: 0 };
        let mut state = own.app.state().clone();
        let mut room = Room::default();
        let mut machine = Machine::new(&module, &mut state, &context, &mut room);
        machine.begin(test.function)?;
        loop {
            match machine.resume()? {
                Stopped::Ended(_) => return Ok(()),
                Stopped::Asks(TestOperation::Line(line)) => self.line = line,
                Stopped::Asks(asked) => self.answer(asked, &mut machine)?,
            }
        }
    }

    /// Does what a test asks; afterwards the machine sees the test's own node as it is then.
    fn answer(&mut self, asked: TestOperation, machine: &mut Machine<'_>) -> Result<(), Wrong> {
        let mut visited = 0;
        self.expected |= matches!(
            asked,
            TestOperation::Expect { .. }
                | TestOperation::ExpectRefused { .. }
                | TestOperation::ExpectSent { .. }
        );
        match asked {
            TestOperation::Line(_) => {}
            TestOperation::Node { out } => {
                if self.nodes.len() >= NODES_MAX {
                    return Err(Wrong::new(format!("a test has at most {NODES_MAX} nodes")));
                }
                let id = self.add_node();
                machine.set(out, Value::Node(Arc::new(id.0)));
            }
            TestOperation::Visit { node } => visited = self.place(node, machine)?,
            TestOperation::Post { node, input, first, count, by, out, refusal } => {
                let door = &self.module.inputs[input as usize];
                let arguments = json_of(machine.several(first, count), &door.fields, self.module)?;
                let by = match by.map(|by| machine.get(by)) {
                    Some(Value::Text(by)) => by.to_string(),
                    _ => "local".to_owned(),
                };
                let event = Event::Input { name: &door.name, arguments: arguments.as_bytes(), by: &by };
                let place = self.place(node, machine)?;
                let outcome = self.event(place, event);
                self.acted(place, outcome, (out, door.answer.as_ref(), refusal), machine)?;
            }
            TestOperation::Deliver { node, input, first, count, from, out, refusal } => {
                let door = &self.module.from_inputs[input as usize];
                let values = machine.several(first, count);
                let arguments = arguments::encode(values, &door.fields, self.module, usize::MAX);
                let arguments = arguments.map_err(|_| Wrong::from(Fault::unproven("arguments")))?;
                let app = door.of.as_ref().unwrap_or(&self.module.name);
                let peer = node_of(machine.get(from))?;
                let event = Event::From { name: &door.name, arguments: &arguments, peer, app };
                let place = self.place(node, machine)?;
                let outcome = self.event(place, event);
                self.acted(place, outcome, (out, door.answer.as_ref(), refusal), machine)?;
            }
            TestOperation::Set { node, setting, value } => {
                let place = self.place(node, machine)?;
                let value = machine.get(value).clone();
                self.nodes[place].app.set_value(setting as usize, value);
            }
            TestOperation::Advance { by } => {
                let Value::Word(by) = *machine.get(by) else { return Err(Fault::unproven("a word").into()) };
                self.advance(by)?;
            }
            TestOperation::Expect { condition, text, sides } => {
                return self.expect(machine, condition, text, sides);
            }
            TestOperation::ExpectRefused { refusal, because } => {
                return expect_refused(machine.get(refusal), because.map(|because| machine.get(because)));
            }
            TestOperation::ExpectSent { output, first, count, to } => {
                return self.expect_sent(output, machine.several(first, count), machine.get(to));
            }
        }
        let node = &self.nodes[visited];
        let before = std::mem::replace(machine.state.changed(), node.app.state().clone());
        machine.state.changed().keep_local_lists_of(before);
        machine.now = self.now;
        Ok(())
    }

    fn place(&self, node: Option<Register>, machine: &Machine<'_>) -> Result<Place, Wrong> {
        let Some(node) = node else { return Ok(0) };
        let id = node_of(machine.get(node))?;
        let found = self.nodes.iter().position(|node| node.id == id);
        found.ok_or_else(|| Wrong::new("this node is none of the test: make it with `node()`"))
    }

    fn event(&mut self, place: Place, event: Event<'_>) -> Result<Applied, EventError> {
        let context = self.context();
        self.nodes[place].app.event(event, &context)
    }

    /// What an input came to: its answer, or its refusal where that is wanted.
    fn acted(
        &mut self,
        place: Place,
        outcome: Result<Applied, EventError>,
        (out, answer, refusal): (Register, Option<&Type>, Option<Register>),
        machine: &mut Machine<'_>,
    ) -> Result<(), Wrong> {
        match outcome {
            Ok(applied) => {
                if let (Some(kind), Some(text)) = (answer, &applied.answer) {
                    let value = json::read_value(text.as_bytes(), kind, self.module, &mut machine.budget);
                    let value = value.map_err(|unread| Wrong::new(event_error(unread).to_string()))?;
                    machine.set(out, value);
                }
                self.deliver(place, applied)
            }
            Err(error) => match refusal {
                Some(refusal) => {
                    machine.set(refusal, refusal_of(&error));
                    Ok(())
                }
                None => Err(Wrong::new(format!("it was refused: {error}"))),
            },
        }
    }

    /// Delivers what an event sent, and what comes of that, until nothing is under way to a node of the test.
    fn deliver(&mut self, place: Place, applied: Applied) -> Result<(), Wrong> {
        let mut under_way: VecDeque<(Place, Send)> = VecDeque::new();
        self.take(place, applied, &mut under_way);
        let mut deliveries = 0;
        while let Some((from, send)) = under_way.pop_front() {
            deliveries += 1;
            if deliveries > DELIVERIES_MAX {
                return Err(Wrong::new(format!("{DELIVERIES_MAX} sends were delivered and there is no end")));
            }
            self.deliver_one(from, &send, &mut under_way)?;
        }
        Ok(())
    }

    fn deliver_one(
        &mut self,
        from: Place,
        send: &Send,
        under_way: &mut VecDeque<(Place, Send)>,
    ) -> Result<(), Wrong> {
        let to = self.nodes.iter().position(|node| node.id == send.to);
        let Some(to) = to.filter(|_| send.app == self.module.name) else { return Ok(()) };
        let (output, arguments) = (send.output.as_str(), send.arguments.as_slice());
        let (sender, receiver, app) = (self.nodes[from].id, send.to, self.module.name.clone());
        let outcome = self.event(to, Event::From { name: output, arguments, peer: sender, app: &app });
        let (reason, answer);
        let word = match outcome {
            Ok(mut applied) => {
                answer = applied.carried.take();
                self.take(to, applied, under_way);
                if send.transient {
                    return Ok(());
                }
                Event::Delivered { output, arguments, peer: receiver, answer: answer.as_deref() }
            }
            // It waits there, as on real nodes.
            Err(
                EventError::NoSuchInput { .. }
                | EventError::Shape { .. }
                | EventError::NoRoom { .. }
                | EventError::Grows,
            ) => {
                return Ok(());
            }
            Err(_) if send.transient => return Ok(()),
            Err(error) => {
                reason = error.to_string();
                Event::Refused { output, arguments, peer: receiver, reason: &reason }
            }
        };
        let heard = self.event(from, word);
        let heard =
            heard.map_err(|error| Wrong::new(format!("the outcome of `{output}` was not heard: {error}")))?;
        self.take(from, heard, under_way);
        Ok(())
    }

    fn take(&mut self, place: Place, applied: Applied, under_way: &mut VecDeque<(Place, Send)>) {
        for send in applied.sends {
            self.sent.push(Sent {
                output: send.output.clone(),
                arguments: send.arguments.clone(),
                to: Value::Node(Arc::new(send.to.0)),
            });
            under_way.push_back((place, send));
        }
        self.sent.extend(applied.endpoint_sends.into_iter().map(|send| Sent {
            output: send.output,
            arguments: send.arguments.into_bytes(),
            to: Value::Text(send.to.into()),
        }));
    }

    /// Lets time pass: what is due by then fires in order of time, and by nodes where times are equal.
    fn advance(&mut self, by: i64) -> Result<(), Wrong> {
        let end = self.now.checked_add(by).filter(|_| by >= 0);
        let end = end.ok_or_else(|| Wrong::new("time only goes forward"))?;
        for _ in 0..TICKS_MAX {
            let due = self.nodes.iter().enumerate().filter_map(|(at, node)| Some((node.app.next_due()?, at)));
            let Some((due, place)) = due.min().filter(|(due, _)| *due <= end) else {
                self.now = end;
                return Ok(());
            };
            self.now = self.now.max(due);
            let applied = self.event(place, Event::Due).map_err(|error| Wrong::new(error.to_string()))?;
            if let Some(failed) = &applied.failed {
                return Err(Wrong::new(failed.clone()));
            }
            self.deliver(place, applied)?;
        }
        Err(Wrong::new(format!("more than {TICKS_MAX} timers fired: advance by less")))
    }

    fn expect(
        &self,
        machine: &Machine<'_>,
        condition: Register,
        text: u32,
        sides: Option<Sides>,
    ) -> Result<(), Wrong> {
        if *machine.get(condition) == Value::Word(1) {
            return Ok(());
        }
        let text = match &self.module.constants[text as usize] {
            Value::Text(text) => text.to_string(),
            _ => String::new(),
        };
        let shown = |register, kind| {
            let text = json::write_value(machine.get(register), kind, self.module, &mut Budget::new());
            side(text.unwrap_or_else(|_| "…".into()))
        };
        let difference = sides.map(|Sides { left, right, kind }| {
            let kind = &self.module.shown[kind as usize];
            Difference { left: shown(left, kind), right: shown(right, kind) }
        });
        Err(Wrong { message: format!("`{text}` does not hold"), difference })
    }

    fn expect_sent(&mut self, output: u32, values: &[Value], to: &Value) -> Result<(), Wrong> {
        let declared = &self.module.outputs[output as usize];
        let arguments = if declared.to == Destination::Endpoint {
            json_of(values, &declared.fields, self.module)?.into_bytes()
        } else {
            arguments::encode(values, &declared.fields, self.module, usize::MAX)
                .map_err(|_| Wrong::from(Fault::unproven("arguments")))?
        };
        let wanted = Sent { output: declared.name.clone(), arguments, to: to.clone() };
        if let Some(at) = self.sent.iter().position(|sent| *sent == wanted) {
            self.sent.remove(at);
            return Ok(());
        }
        let same: Vec<&Sent> = self.sent.iter().filter(|sent| sent.output == wanted.output).collect();
        let more = match same.len() {
            0 => format!("no `{}` is left that was sent and not expected", wanted.output),
            1 => format!("the `{}` that was has other fields or went elsewhere", wanted.output),
            many => format!("{many} `{}` were, none with these fields and to there", wanted.output),
        };
        let message = format!("`{}` was not sent: {more}", wanted.output);
        let shown = |sent: &Sent| self.shown(sent, &declared.fields);
        let difference = same.last().and_then(|last| Some((shown(last)?, shown(&wanted)?)));
        let difference = difference.map(|(left, right)| Difference { left, right });
        Err(Wrong { message, difference })
    }

    /// A send as JSON: where to, and what it carries.
    fn shown(&self, sent: &Sent, fields: &[Field]) -> Option<String> {
        let mut budget = Budget::new();
        let (to, fields) = match &sent.to {
            Value::Node(to) => {
                let values =
                    arguments::decode(&sent.arguments, (fields, &[]), self.module, &mut budget).ok()?;
                let fields = json::write_fields(&values, fields, self.module, &mut budget).ok()?;
                (NodeId(**to).to_string(), fields)
            }
            Value::Text(to) => (to.to_string(), String::from_utf8(sent.arguments.clone()).ok()?),
            _ => return None,
        };
        let to = json::write_value(&Value::Text(to.into()), &Type::Text, self.module, &mut budget).ok()?;
        Some(side(format!("{{\"to\":{to},\"fields\":{fields}}}")))
    }
}

/// A side of a comparison, cut where it is too long.
fn side(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(SIDE_BYTES_MAX));
    text
}

/// What an act that changed nothing leaves for `expect refused`: the reason as a text where the app or the language
/// refused, in a record where something else happened.
fn refusal_of(error: &EventError) -> Value {
    let reason = Value::Text(error.to_string().into());
    match error {
        EventError::Refused { .. } => reason,
        _ => Value::Record([reason].into()),
    }
}

/// Without `because` only a refusal will do; the reason that is given may be any.
fn expect_refused(refusal: &Value, because: Option<&Value>) -> Result<(), Wrong> {
    let (reason, refused) = match refusal {
        Value::Text(reason) => (reason, true),
        Value::Record(other) => match &**other {
            [Value::Text(reason)] => (reason, false),
            _ => return Err(Fault::unproven("a reason").into()),
        },
        _ => return Err(Wrong::new("it was not refused")),
    };
    match because {
        Some(Value::Text(because)) if because != reason => {
            let json = |text: &str| format!("{text:?}");
            let difference = Some(Difference { left: json(reason), right: json(because) });
            Err(Wrong { message: "it was refused for another reason".into(), difference })
        }
        None if !refused => Err(Wrong::new(format!("it was not refused: {reason}"))),
        _ => Ok(()),
    }
}

fn node_of(value: &Value) -> Result<NodeId, Wrong> {
    match value {
        Value::Node(node) => Ok(NodeId(**node)),
        _ => Err(Fault::unproven("a node").into()),
    }
}

fn json_of(values: &[Value], fields: &[Field], module: &Module) -> Result<String, Wrong> {
    Ok(json::write_fields(values, fields, module, &mut Budget::new())?)
}

/// What stands for a setting that a test gives no value: a node that is none of the test, an address, nothing.
fn invented(setting: &Setting, at: usize, module: &Module) -> Value {
    value_of(&setting.kind, &setting.name, at, module)
}

fn value_of(kind: &Type, name: &str, at: usize, module: &Module) -> Value {
    match kind {
        Type::Bool | Type::Int | Type::Time | Type::Duration | Type::Enum(_) => Value::Word(0),
        Type::Real => Value::Real(weft::value::Real::ZERO),
        Type::Text => Value::Text("".into()),
        Type::Bytes => Value::Bytes(Arc::from([])),
        Type::Node => Value::Node(Arc::new([255 - (at % 64) as u8; 32])),
        Type::Endpoint => Value::Text(format!("https://{name}.invalid/").into()),
        Type::Record(number) => {
            let fields = module.records[*number as usize].fields.iter();
            Value::Record(fields.map(|field| value_of(&field.kind, name, at, module)).collect())
        }
        Type::List(_) => Value::List(Arc::default()),
        Type::Optional(_) | Type::Nothing | Type::Broken => Value::None,
    }
}
