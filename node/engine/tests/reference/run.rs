//! Statements, and the names that they bind.

use super::app::{Reached, Sent};
use super::kinds::{Field, Kind, Program, empty};
use super::state::{List, Rows, State, Timer};
use super::value::{Value, encode_arguments};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use weft::syntax::tree::{
    Block, Exit, Expression, LetValue, Otherwise, Statement, StatementKind, TypeTree, Word,
};

/// What comes after a statement.
#[derive(Debug)]
pub enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Value>),
}

/// A keyed list: of the state, or of the function that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    State(usize),
    Own(usize),
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Slot {
    /// A value; in an expression it may be a row of a list.
    Value { value: Value, kind: Kind, row_of: Option<Place> },
    /// A list's row at a key, as it is whenever it is looked at.
    Row { list: Place, key: Option<Vec<Value>>, optional: bool, record: Kind },
    /// A keyed list of this function.
    Own { list: usize, record: Kind },
}

#[derive(Debug, Clone)]
pub struct Binding {
    pub name: String,
    pub slot: Slot,
}

pub struct Run<'p> {
    pub program: &'p Program,
    pub state: State,
    pub settings: BTreeMap<String, Value>,
    pub me: [u8; 32],
    pub now: i64,
    pub random: ChaCha20Rng,
    pub sends: Vec<Sent>,
    pub scope: Vec<Binding>,
    pub own: Vec<Rows>,
    reached: &'p Reached,
    /// Rows and expressions that it came by.
    steps: usize,
}

/// Steps after which it gives up: it goes over all rows where the engine goes over a few, and has no budget.
const STEPS_MAX: usize = 1 << 19;
/// Why it gave up.
pub const GIVEN_UP: &str = "the naive engine gave up";

/// A text is why the event is refused.
pub type Outcome<T> = Result<T, String>;

impl<'p> Run<'p> {
    pub fn new(
        program: &'p Program,
        state: State,
        settings: BTreeMap<String, Value>,
        (me, now, entropy): ([u8; 32], i64, [u8; 32]),
        reached: &'p Reached,
    ) -> Run<'p> {
        let random = ChaCha20Rng::from_seed(entropy);
        let (sends, scope, own) = (Vec::new(), Vec::new(), Vec::new());
        Run { program, state, settings, me, now, random, sends, scope, own, reached, steps: 0 }
    }

    pub fn reach(&self, what: &'static str) {
        *self.reached.borrow_mut().entry(what).or_default() += 1;
    }

    pub fn step(&mut self, count: usize) -> Outcome<()> {
        self.steps += count;
        if self.steps > STEPS_MAX { Err(GIVEN_UP.to_owned()) } else { Ok(()) }
    }

    pub fn bind(&mut self, name: &str, slot: Slot) {
        self.scope.push(Binding { name: name.into(), slot });
    }

    pub fn bind_value(&mut self, name: &str, value: Value, kind: Kind) {
        self.bind(name, Slot::Value { value, kind, row_of: None });
    }

    pub fn find(&self, name: &str) -> Option<&Slot> {
        self.scope.iter().rev().find(|binding| binding.name == name).map(|binding| &binding.slot)
    }

    pub fn rows(&self, place: Place) -> &Rows {
        match place {
            Place::Own(number) => &self.own[number],
            Place::State(number) => match &self.state.lists[number] {
                List::Keyed(rows) => rows,
                List::Variable(_) => panic!("a variable has no rows"),
            },
        }
    }

    pub fn rows_mut(&mut self, place: Place) -> &mut Rows {
        match place {
            Place::Own(number) => &mut self.own[number],
            Place::State(number) => match &mut self.state.lists[number] {
                List::Keyed(rows) => rows,
                List::Variable(_) => panic!("a variable has no rows"),
            },
        }
    }

    /// Gives a value a name that stands for its row, where it is one.
    pub fn bind_row(&mut self, name: &str, value: Value, kind: Kind, row_of: Option<Place>, optional: bool) {
        let Some(list) = row_of else { return self.bind(name, Slot::Value { value, kind, row_of: None }) };
        let key = match &value {
            Value::None => None,
            row => Some(self.rows(list).key_of(row)),
        };
        self.bind(name, Slot::Row { list, key, optional, record: kind });
    }

    pub fn block(&mut self, block: &Block) -> Outcome<Flow> {
        let depth = self.scope.len();
        let mut flow = Flow::Next;
        for statement in &block.statements {
            flow = self.statement(statement)?;
            if !matches!(flow, Flow::Next) {
                break;
            }
        }
        self.scope.truncate(depth);
        Ok(flow)
    }

    fn statement(&mut self, statement: &Statement) -> Outcome<Flow> {
        if let StatementKind::Let { fixed, name, kind, value } = &statement.kind {
            return self.let_statement(*fixed, name, kind.as_ref(), value.as_ref());
        }
        let depth = self.scope.len();
        let flow = self.other_statement(&statement.kind)?;
        self.scope.truncate(depth);
        Ok(flow)
    }

    fn other_statement(&mut self, statement: &StatementKind) -> Outcome<Flow> {
        match statement {
            StatementKind::If { arms, otherwise } => {
                self.reach(if otherwise.is_some() { "if else" } else { "if" });
                for (condition, block) in arms {
                    let depth = self.scope.len();
                    if self.condition(condition)? {
                        return self.block(block);
                    }
                    self.scope.truncate(depth);
                }
                return otherwise.as_ref().map_or(Ok(Flow::Next), |block| self.block(block));
            }
            StatementKind::For { query, body } => {
                self.reach("for");
                return self.loop_over(query, &mut |run| run.block(body));
            }
            StatementKind::Require { condition, otherwise } => {
                self.reach("require");
                if !self.evaluate(condition)?.bool() {
                    return Err(self.reason(otherwise)?);
                }
            }
            StatementKind::Exit(exit) => return self.exit(exit),
            StatementKind::Change(change) => drop(self.change(change)?),
            StatementKind::Assign { place, operator, value } => self.assign(place, *operator, value)?,
            StatementKind::Place(call) => self.call_procedure(call)?,
            StatementKind::Remove { place, query: None } => {
                self.reach("remove");
                self.remove(place)?;
            }
            StatementKind::Remove { place, query: Some(query) } => {
                self.reach("remove for");
                self.loop_over(query, &mut |run| run.remove(place).map(|()| Flow::Next))?;
            }
            StatementKind::Send { name, arguments, to } => self.send(name, arguments, to)?,
            StatementKind::Start { name, arguments, at, time } => self.start(name, arguments, *at, time)?,
            StatementKind::Cancel { name, arguments } => {
                self.reach("cancel");
                let arguments = self.timer_arguments(name, arguments)?;
                let (key, _) = self.timer(name, arguments)?;
                self.state.timers.remove(&key);
            }
            StatementKind::Expect(_) | StatementKind::Let { .. } | StatementKind::Broken => {
                panic!("no statement of an app: {statement:?}")
            }
        }
        Ok(Flow::Next)
    }

    pub fn reason(&mut self, text: &Expression) -> Outcome<String> {
        match self.evaluate(text)? {
            Value::Text(text) => Ok(text),
            other => panic!("{other:?} is no reason"),
        }
    }

    fn exit(&mut self, exit: &Exit) -> Outcome<Flow> {
        Ok(match exit {
            Exit::Return(None) => {
                self.reach("return");
                Flow::Return(None)
            }
            Exit::Return(Some(value)) => {
                self.reach("return value");
                Flow::Return(Some(self.evaluate(value)?))
            }
            Exit::Refuse(reason) => {
                self.reach("refuse");
                return Err(self.reason(reason)?);
            }
            Exit::Break => {
                self.reach("break");
                Flow::Break
            }
            Exit::Continue => {
                self.reach("continue");
                Flow::Continue
            }
        })
    }

    fn let_statement(
        &mut self,
        fixed: bool,
        name: &Word,
        tree: Option<&TypeTree>,
        value: Option<&LetValue>,
    ) -> Outcome<Flow> {
        self.reach(if fixed { "let" } else { "var" });
        if let Some(TypeTree::Keyed { element, keys, .. }) = tree {
            self.reach("own list");
            let keys = keys.iter().map(|key| key.text.clone()).collect();
            self.own.push(Rows { name: name.text.clone(), keys, ..Rows::default() });
            let record = Kind::Record(element.text.clone());
            self.bind(&name.text, Slot::Own { list: self.own.len() - 1, record });
            return Ok(Flow::Next);
        }
        let depth = self.scope.len();
        let kind = tree.map(|tree| self.program.kind(tree));
        let (value, row_of, optional, inferred) = match value {
            None => {
                self.reach("var without a value");
                (empty(kind.as_ref().unwrap_or(&Kind::Unknown)), None, false, Kind::Unknown)
            }
            Some(LetValue::Expression(value)) => {
                let (row_of, optional, inferred) =
                    (self.row_of(value), self.may_be_none(value), self.kind_of(value));
                (self.evaluate(value)?, row_of, optional, inferred)
            }
            Some(LetValue::Change(change)) => {
                self.reach("let add or put");
                let row_of = self.keyed(&change.place);
                let inferred = row_of.map_or(Kind::Unknown, |list| self.record_of(list));
                (self.change(change)?, row_of, false, inferred)
            }
            Some(LetValue::Else(value, otherwise)) => match self.let_else(value, otherwise)? {
                Ok(found) => found,
                Err(flow) => {
                    self.scope.truncate(depth);
                    return Ok(flow);
                }
            },
        };
        self.scope.truncate(depth);
        let kind = kind.unwrap_or(inferred);
        let value = self.program.fitted(value, &kind);
        if !fixed && row_of.is_some() {
            self.reach("var of a row");
        }
        self.bind_row(&name.text, value, kind, row_of.filter(|_| fixed), optional);
        Ok(Flow::Next)
    }

    /// The value of `let name = value else otherwise`, or where the way out goes.
    #[expect(clippy::type_complexity, reason = "what a `let` binds, or a way out")]
    fn let_else(
        &mut self,
        value: &Expression,
        otherwise: &Otherwise,
    ) -> Outcome<Result<(Value, Option<Place>, bool, Kind), Flow>> {
        let kind = match self.kind_of(value) {
            Kind::Optional(inner) => *inner,
            other => other,
        };
        let row_of = match otherwise {
            Otherwise::Exit(..) => self.row_of(value),
            Otherwise::Change(change) => {
                self.row_of(value).filter(|list| self.keyed(&change.place) == Some(*list))
            }
            Otherwise::Expression(other) => {
                self.row_of(value).filter(|list| self.row_of(other) == Some(*list))
            }
        };
        let found = self.evaluate(value)?;
        if found != Value::None {
            self.reach("let else found");
            return Ok(Ok((found, row_of, false, kind)));
        }
        Ok(match otherwise {
            Otherwise::Exit(exit, _) => {
                self.reach("let else exit");
                Err(self.exit(exit)?)
            }
            Otherwise::Change(change) => {
                self.reach("let else change");
                Ok((self.change(change)?, row_of, false, kind))
            }
            Otherwise::Expression(other) => {
                self.reach("let else value");
                Ok((self.evaluate(other)?, row_of, false, kind))
            }
        })
    }

    // Calls, sends and timers.

    /// The values of fields: the arguments in turn, then defaults.
    pub fn arguments(&mut self, arguments: &[Expression], fields: &[Field]) -> Outcome<Vec<(String, Value)>> {
        let mut values = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let value = match arguments.get(at) {
                Some(argument) => self.evaluate(argument)?,
                None => field.default.clone().expect("what has no default is given"),
            };
            values.push((field.name.clone(), self.program.fitted(value, &field.kind)));
        }
        Ok(values)
    }

    /// Runs something in a scope of its own.
    pub fn apart<T>(
        &mut self,
        names: Vec<(String, Value)>,
        fields: &[Field],
        work: impl FnOnce(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        let (scope, own) = (std::mem::take(&mut self.scope), std::mem::take(&mut self.own));
        for ((name, value), field) in names.into_iter().zip(fields) {
            self.bind(&name, Slot::Value { value, kind: field.kind.clone(), row_of: None });
        }
        let result = work(self);
        (self.scope, self.own) = (scope, own);
        result
    }

    fn call_procedure(&mut self, call: &Expression) -> Outcome<()> {
        self.reach("call of a do");
        let (name, arguments) = called(call);
        let program = self.program;
        let procedure = program.file.procedures.iter().find(|procedure| procedure.name.text == name);
        let procedure = procedure.unwrap_or_else(|| panic!("no `do {name}`"));
        let fields = program.fields(&procedure.fields);
        let names = self.arguments(arguments, &fields)?;
        self.apart(names, &fields, |run| run.block(&procedure.body).map(drop))
    }

    fn send(&mut self, name: &Word, arguments: &[Expression], to: &Expression) -> Outcome<()> {
        let output = &self.program.outputs[&name.text];
        let arguments = self.arguments(arguments, &output.fields)?;
        let to = self.evaluate(to)?;
        let (app, transient) = (output.app.clone(), output.transient);
        self.reach(match (&app, transient) {
            (None, _) => "send to an endpoint",
            (Some(_), true) => "transient send",
            (Some(_), false) => "send",
        });
        self.sends.push(Sent { output: name.text.clone(), arguments, to, app, transient });
        Ok(())
    }

    fn start(&mut self, name: &Word, arguments: &[Expression], at: bool, time: &Expression) -> Outcome<()> {
        self.reach(if at { "start at" } else { "start after" });
        let arguments = self.timer_arguments(name, arguments)?;
        let time = self.evaluate(time)?.int();
        let due = match at {
            true => time,
            false => self.now.checked_add(time).ok_or("a number grew too large")?,
        };
        let (key, arguments) = self.timer(name, arguments)?;
        self.state.timers.insert(key, Timer { name: name.text.clone(), arguments, due });
        Ok(())
    }

    fn timer_arguments(&mut self, name: &Word, arguments: &[Expression]) -> Outcome<Vec<(String, Value)>> {
        let is = |kind: &weft::syntax::tree::HandlerKind| {
            matches!(kind, weft::syntax::tree::HandlerKind::Timer { .. })
        };
        let handler = self.program.handler(&name.text, is).expect("a timer has a handler");
        let weft::syntax::tree::HandlerKind::Timer { fields } = &handler.kind else {
            unreachable!("it was looked for")
        };
        let fields = self.program.fields(fields);
        self.arguments(arguments, &fields)
    }

    /// The key of a timer, and its arguments: looked at when all that stands beside them is known.
    fn timer(&mut self, name: &Word, arguments: Vec<(String, Value)>) -> Outcome<(Vec<u8>, Vec<Value>)> {
        let key = timer_key(&name.text, &arguments);
        if key.len() - name.text.len() - 1 > TIMER_BYTES_MAX {
            self.reach("timer too long");
            return Err(over(TIMER_BYTES_MAX, "bytes of a timer's arguments"));
        }
        Ok((key, arguments.into_iter().map(|(_, value)| value).collect()))
    }
}

/// The most bytes of a timer's arguments.
const TIMER_BYTES_MAX: usize = 4096;

/// What is said of an event that goes over a bound.
pub fn over(most: usize, unit: &str) -> String {
    format!("the event went over its budget of {most} {unit}")
}

/// What a timer is found by.
pub fn timer_key(name: &str, arguments: &[(String, Value)]) -> Vec<u8> {
    let mut key = vec![name.len() as u8];
    key.extend_from_slice(name.as_bytes());
    key.extend_from_slice(&encode_arguments(arguments));
    key
}

/// The name and the arguments of a call.
pub fn called(call: &Expression) -> (&str, &[Expression]) {
    use weft::syntax::tree::ExpressionKind;
    let ExpressionKind::Call { callee, arguments, .. } = &*call.kind else { panic!("no call: {call:?}") };
    let ExpressionKind::Name(name) = &*callee.kind else { panic!("no name: {callee:?}") };
    (name, arguments)
}
