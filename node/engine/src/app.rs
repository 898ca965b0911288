//! One app: its module and its state.

mod change;
mod changed;
mod growth;
mod restored;
mod size;
mod snapshot;
mod timers;

pub use snapshot::{Rows, Snapshot, ViewLimits};
pub use timers::Due;

use crate::arguments;
use crate::budget::{ANSWER_BYTES_MAX, Budget, EVENT_BYTES_MAX, Fault, SEND_BYTES_MAX, TRANSIENT_BYTES_MAX};
use crate::codec::Reader;
use crate::event::{Applied, Context, EndpointSend, Event, EventError, RestoreError, Send, SettingError};
use crate::json::{self, Unread};
use crate::machine::{Machine, Room, Sent};
use crate::state::{COUNTERS, List, State, TIMERS};
use changed::{deltas, event_too_large, unwritable};
use sealing::NodeId;
use std::sync::Arc;
use weft::module::{Destination, Door, Field, ListKind, Module, Type};
use weft::{Value, module};

/// One app: a module and its state.
#[derive(Debug, Clone)]
pub struct App {
    module: Arc<Module>,
    state: State,
    /// Where its code runs.
    room: Room,
    /// When each `every` fires next; none before [`App::resume`].
    ticks: Vec<Option<i64>>,
}

/// Code to run for an event, whose arguments are in the room: the function, what it answers, and what reading the
/// arguments left.
struct Work<'m> {
    function: u32,
    answer: Option<&'m Type>,
    /// Whether the answer goes back to another node.
    goes_back: bool,
    budget: Budget,
}

impl App {
    /// An app whose lists are empty and whose state variables have their initial values.
    pub fn new(module: Arc<Module>, me: NodeId) -> App {
        let state = State::new(&module, Arc::new(me.0));
        let ticks = vec![None; module.everies.len()];
        App { module, state, room: Room::default(), ticks }
    }

    /// Gives a setting its value, a JSON text; a duration may stand as the language writes it, `5 min`.
    ///
    /// # Errors
    /// There is no such setting, or the value is not of its type; the text says what is expected.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let module = Arc::clone(&self.module);
        let Some(at) = module.settings.iter().position(|setting| setting.name == name) else {
            let there = module.settings.iter().map(|setting| setting.name.clone()).collect();
            return Err(SettingError::NoSuch { app: module.name.clone(), name: name.into(), there });
        };
        let kind = &module.settings[at].kind;
        let value = json::read_setting(value, kind, &module);
        let value = value.map_err(|unread| SettingError::Value {
            app: module.name.clone(),
            name: name.into(),
            message: event_error(unread).to_string(),
        })?;
        self.set_value(at, value);
        Ok(())
    }

    /// The value of a setting, as JSON; none if there is no such setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        let at = self.module.settings.iter().position(|setting| setting.name == name)?;
        let (value, kind) = (self.state.settings.get(at)?, &self.module.settings[at].kind);
        json::write_value(value, kind, &self.module, &mut Budget::new()).ok()
    }

    pub(crate) fn set_value(&mut self, setting: usize, value: Value) {
        if let Some(place) = Arc::make_mut(&mut self.state.settings).get_mut(setting) {
            *place = value;
        }
    }

    /// The module that runs.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What a send of this app carries, as a JSON object of its fields; none where it is not of this module.
    pub fn carried(&self, send: &Send) -> Option<String> {
        let output = self.module.outputs.iter().find(|output| output.name == send.output)?;
        self.shown(&send.arguments, &output.fields)
    }

    /// What a node sends that sends this input these fields, a JSON object, from its app `app`.
    ///
    /// # Errors
    /// There is no such input for sends of that app, or the fields are not of its shape.
    pub fn encoded(&self, input: &str, app: &str, fields: &[u8]) -> Result<Vec<u8>, EventError> {
        let module = &*self.module;
        let is_of = |door: &&Door| door.of.as_ref().unwrap_or(&module.name) == app;
        let door = find(&module.from_inputs, input).filter(is_of).ok_or_else(|| no_input(module, input))?;
        let values = json::read_fields(fields, &door.fields, module, &mut Budget::new());
        let values = values.map_err(event_error)?;
        encoded_send(&values, &door.fields, module)
    }

    /// Encoded arguments as JSON.
    fn shown(&self, arguments: &[u8], fields: &[Field]) -> Option<String> {
        let mut budget = Budget::new();
        let values = arguments::decode(arguments, (fields, &[]), &self.module, &mut budget).ok()?;
        json::write_fields(&values, fields, &self.module, &mut budget).ok()
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The state as it is now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { module: Arc::clone(&self.module), state: self.state.clone() }
    }

    /// Takes one delta from the log.
    ///
    /// # Errors
    /// The list, key or row is not of this module; nothing is changed then.
    pub fn restore(&mut self, list: u32, key: &[u8], row: Option<&[u8]>) -> Result<(), RestoreError> {
        let module = Arc::clone(&self.module);
        if list == COUNTERS {
            return self.restore_counter(key, row);
        }
        if list == TIMERS {
            return self.restore_timer(key, row);
        }
        let Some(declared) = module.lists.get(list as usize) else {
            return Err(RestoreError::NoSuchList { app: module.name.clone(), list });
        };
        let wrong =
            |message: &str| RestoreError::Row { list: declared.name.clone(), message: message.into() };
        match (&declared.kind, row) {
            (ListKind::Variable { kind, initial }, row) => {
                if !key.is_empty() {
                    return Err(wrong("a variable has no key"));
                }
                let value = match row {
                    Some(row) => read_row(row, kind, &module).map_err(wrong)?,
                    None => initial.clone(),
                };
                self.state.lists[list as usize] = List::Variable(value);
            }
            (ListKind::Keyed { record, .. }, Some(row)) => {
                self.restore_row(list, *record, key, row).map_err(|why| wrong(&why))?;
            }
            (ListKind::Keyed { .. }, None) => {
                if let Some(keyed) = self.state.keyed_mut(list)
                    && let Some(place) = keyed.layout().read_key(key)
                {
                    keyed.remove(&place);
                }
            }
        }
        Ok(())
    }

    fn restore_counter(&mut self, key: &[u8], row: Option<&[u8]>) -> Result<(), RestoreError> {
        let wrong = |message: &str| RestoreError::Row { list: "next_id".into(), message: message.into() };
        let list = u32::from_be_bytes(key.try_into().map_err(|_| wrong("its key is no list's number"))?);
        let module = &self.module;
        // A local list has no rows between events, and no counter.
        let keyed = if list < module::SCRATCH { self.state.keyed_mut(list) } else { None };
        let keyed = keyed.ok_or_else(|| RestoreError::NoSuchList { app: module.name.clone(), list })?;
        keyed.counter = match row {
            Some(row) => {
                let mut reader = Reader::new(row);
                let word = reader.word().map_err(|error| wrong(error.0))?;
                if !reader.is_empty() {
                    return Err(wrong("bytes follow the number"));
                }
                word
            }
            None => 0,
        };
        Ok(())
    }

    /// Applies one event, whole or not at all.
    ///
    /// # Errors
    /// Why nothing changed.
    pub fn event(&mut self, event: Event<'_>, context: &Context) -> Result<Applied, EventError> {
        if let Event::Due = event {
            return self.due(context);
        }
        let App { module, state, room, .. } = self;
        match work(event, module, room) {
            Ok(Some(work)) => run(work, module, (state, room), context),
            Ok(None) => Ok(Applied::default()),
            Err(wrong) => {
                room.clear();
                Err(wrong)
            }
        }
    }

    /// Applies one event that makes the state no larger and sends nothing that is kept: as [`App::event`], but for
    /// [`EventError::Grows`].
    ///
    /// # Errors
    /// Why nothing changed.
    pub fn event_without_growth(
        &mut self,
        event: Event<'_>,
        context: &Context,
    ) -> Result<Applied, EventError> {
        self.state.may_grow = false;
        let outcome = self.event(event, context);
        self.state.may_grow = true;
        outcome
    }
}

/// Runs code and says what that comes to. What was changed before it runs is part of the event.
fn run(
    work: Work<'_>,
    module: &Module,
    (state, room): (&mut State, &mut Room),
    context: &Context,
) -> Result<Applied, EventError> {
    let mut machine = Machine::new(module, &mut *state, context, room);
    let outcome = applied(&mut machine, work, context);
    machine.leave_room();
    match &outcome {
        Ok(applied) if !state.may_grow && grows(applied, state, module) => {
            state.roll_back();
            return Err(EventError::Grows);
        }
        Ok(_) => state.commit(),
        Err(_) => state.roll_back(),
    }
    outcome
}

fn grows(applied: &Applied, state: &mut State, module: &Module) -> bool {
    let keeps_sends = applied.sends.iter().any(|send| !send.transient) || !applied.endpoint_sends.is_empty();
    keeps_sends || growth::has_grown(state, module)
}

/// What an event asks for, its arguments put into the room; nothing if it is a word of the fabric that the app does not
/// listen to.
fn work<'m>(event: Event<'_>, module: &'m Module, room: &mut Room) -> Result<Option<Work<'m>>, EventError> {
    let mut budget = Budget::new();
    match event {
        Event::Input { name, arguments, by } => {
            let door = find(&module.inputs, name).ok_or_else(|| no_input(module, name))?;
            let count = door.fields.len();
            let places = room.arguments(count + usize::from(door.takes_caller));
            json::read_arguments(arguments, &door.fields, module, &mut budget, places)
                .map_err(event_error)?;
            if let Some(place) = places.get_mut(count) {
                *place = Value::Text(by.into());
            }
            let answer = door.answer.as_ref();
            Ok(Some(Work { function: door.function, answer, goes_back: false, budget }))
        }
        Event::From { name, arguments, peer, app } => {
            let is_of = |door: &&Door| door.of.as_ref().unwrap_or(&module.name) == app;
            let door = find(&module.from_inputs, name).filter(is_of);
            let door = door.ok_or_else(|| no_input(module, name))?;
            let decoded = arguments::decode(arguments, (&door.fields, &door.former), module, &mut budget);
            let mut arguments = decoded.map_err(event_error)?;
            arguments.push(node(peer));
            room.place(arguments);
            let answer = door.answer.as_ref();
            Ok(Some(Work { function: door.function, answer, goes_back: true, budget }))
        }
        Event::Delivered { output, arguments, peer, answer } => {
            let Some(word) = heard(&module.delivered, output, false, module) else { return Ok(None) };
            let mut arguments = sent(word, arguments, node(peer), module, &mut budget)?;
            if let Some(kind) = &word.answer {
                let read = |bytes| arguments::decode_answer(bytes, kind, module, &mut budget);
                arguments.push(answer.map_or(Ok(Value::None), read).map_err(refusal)?);
            }
            room.place(arguments);
            Ok(Some(Work::on_word(word, budget)))
        }
        Event::Refused { output, arguments, peer, reason } => {
            let Some(word) = heard(&module.refused, output, false, module) else { return Ok(None) };
            let mut arguments = sent(word, arguments, node(peer), module, &mut budget)?;
            arguments.push(Value::Text(reason.into()));
            room.place(arguments);
            Ok(Some(Work::on_word(word, budget)))
        }
        Event::Answered { output, arguments, to, refusal } => {
            let words = if refusal.is_some() { &module.refused } else { &module.delivered };
            let Some(word) = heard(words, output, true, module) else { return Ok(None) };
            let mut arguments = sent(word, arguments, Value::Text(to.into()), module, &mut budget)?;
            arguments.extend(refusal.map(|reason| Value::Text(reason.into())));
            room.place(arguments);
            Ok(Some(Work::on_word(word, budget)))
        }
        Event::Due => Ok(None),
    }
}

impl<'m> Work<'m> {
    /// The handler of the fabric's word on a send.
    fn on_word(word: &module::Word, budget: Budget) -> Work<'m> {
        Work { function: word.function, answer: None, goes_back: false, budget }
    }
}

/// What was sent, and to whom.
fn sent(
    word: &module::Word,
    arguments: &[u8],
    to: Value,
    module: &Module,
    budget: &mut Budget,
) -> Result<Vec<Value>, EventError> {
    let output = &module.outputs[word.output as usize];
    let decoded = arguments::decode(arguments, (&output.fields, &output.former), module, budget);
    let mut arguments = decoded.map_err(event_error)?;
    arguments.push(to);
    Ok(arguments)
}

fn find<'d>(doors: &'d [Door], name: &str) -> Option<&'d Door> {
    doors.iter().find(|door| door.name == name)
}

/// Who listens to this word on an output. Where a send went may have another type than what it goes to now: nobody then.
fn heard<'m>(
    words: &'m [module::Word],
    output: &str,
    to_endpoint: bool,
    module: &Module,
) -> Option<&'m module::Word> {
    words.iter().find(|word| {
        let sent = &module.outputs[word.output as usize];
        sent.name == output && (sent.to == Destination::Endpoint) == to_endpoint
    })
}

fn no_input(module: &Module, name: &str) -> EventError {
    EventError::NoSuchInput { app: module.name.clone(), name: name.into() }
}

fn node(node: NodeId) -> Value {
    Value::Node(Arc::new(node.0))
}

pub(crate) fn event_error(unread: Unread) -> EventError {
    match unread {
        Unread::Misshapen(wrong) => EventError::Shape { message: wrong.message() },
        Unread::Fault(fault) => refusal(fault),
    }
}

fn refusal(fault: Fault) -> EventError {
    match fault {
        Fault::Refused(reason) => EventError::Refused { reason },
        Fault::Budget { unit, limit } => EventError::Budget { unit, limit },
    }
}

pub(crate) fn read_row(row: &[u8], kind: &Type, module: &Module) -> Result<Value, &'static str> {
    let mut reader = Reader::new(row);
    let value = reader.value(kind, module).map_err(|error| error.0)?;
    if reader.is_empty() { Ok(value) } else { Err("bytes follow it") }
}

/// Runs code on a machine and says what that comes to; the state is as the code left it.
fn applied(machine: &mut Machine<'_>, work: Work<'_>, context: &Context) -> Result<Applied, EventError> {
    let module = machine.module;
    machine.budget = work.budget;
    let value = machine.run(work.function).map_err(refusal)?;
    let stored = machine.sends.iter().filter(|sent| !module.outputs[sent.output as usize].transient);
    if stored.count() > context.room {
        return Err(EventError::NoRoom { room: context.room });
    }
    let answer = match work.answer {
        Some(kind) => Some(json::write_value(&value, kind, module, &mut machine.budget).map_err(refusal)?),
        None => None,
    };
    let carried = match work.answer.filter(|_| work.goes_back) {
        Some(kind) => Some(carried(&value, kind, module)?),
        None => None,
    };
    let answer_bytes = answer.as_ref().map_or(0, String::len);
    let mut left = EVENT_BYTES_MAX.checked_sub(answer_bytes).ok_or_else(event_too_large)?;
    let (deltas, transient) = deltas(machine.state.changed(), module, &mut left)?;
    let mut applied = Applied { answer, carried, deltas, transient, ..Applied::default() };
    for sent in std::mem::take(&mut machine.sends) {
        let bytes = match send(&sent, module)? {
            Sending::Node(send) => {
                applied.sends.push(send);
                applied.sends.last().map_or(0, |send| send.arguments.len())
            }
            Sending::Endpoint(to) => {
                let send = endpoint_send(&sent, to, module, &mut machine.budget)?;
                let bytes = send.arguments.len() + send.encoded.len() + send.to.len();
                applied.endpoint_sends.push(send);
                bytes
            }
        };
        left = left.checked_sub(bytes).ok_or_else(event_too_large)?;
    }
    applied.operations = machine.budget.used();
    Ok(applied)
}

/// An answer as it goes back to the node that sent.
fn carried(value: &Value, kind: &Type, module: &Module) -> Result<Vec<u8>, EventError> {
    arguments::encode_answer(value, kind, module, ANSWER_BYTES_MAX).map_err(|wrong| {
        let reason =
            format!("the answer has more than {ANSWER_BYTES_MAX} bytes, the most that goes back to a node");
        unwritable(wrong, EventError::Refused { reason })
    })
}

fn endpoint_send(
    sent: &Sent,
    to: String,
    module: &Module,
    budget: &mut Budget,
) -> Result<EndpointSend, EventError> {
    let output = &module.outputs[sent.output as usize];
    let encoded = encoded_send(&sent.arguments, &output.fields, module)?;
    let arguments = json::write_fields(&sent.arguments, &output.fields, module, budget).map_err(refusal)?;
    Ok(EndpointSend { output: output.name.clone(), arguments, encoded, to })
}

fn encoded_send(values: &[Value], fields: &[Field], module: &Module) -> Result<Vec<u8>, EventError> {
    let too_large = || EventError::Budget { unit: "bytes of a send", limit: SEND_BYTES_MAX as u64 };
    arguments::encode(values, fields, module, SEND_BYTES_MAX).map_err(|wrong| unwritable(wrong, too_large()))
}

/// Where a send goes.
enum Sending {
    Node(Send),
    Endpoint(String),
}

fn send(sent: &Sent, module: &Module) -> Result<Sending, EventError> {
    let output = &module.outputs[sent.output as usize];
    let app = match &output.to {
        Destination::Own => module.name.clone(),
        Destination::App(app) => app.clone(),
        Destination::Endpoint => {
            let Value::Text(to) = &sent.to else { return Err(refusal(Fault::unproven("an endpoint"))) };
            return Ok(Sending::Endpoint(to.to_string()));
        }
    };
    let Value::Node(to) = &sent.to else { return Err(refusal(Fault::unproven("a node"))) };
    let transient = output.transient;
    let (unit, limit) = match transient {
        true => ("bytes of a transient send", TRANSIENT_BYTES_MAX),
        false => ("bytes of a send", SEND_BYTES_MAX),
    };
    let arguments = arguments::encode(&sent.arguments, &output.fields, module, limit)
        .map_err(|wrong| unwritable(wrong, EventError::Budget { unit, limit: limit as u64 }))?;
    Ok(Sending::Node(Send { output: output.name.clone(), arguments, to: NodeId(**to), app, transient }))
}
