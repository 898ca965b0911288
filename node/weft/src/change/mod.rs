//! Change of a module: from what an app was and what it is to be to a plan that a person can read, and to the operations
//! that turn the rows of the one into those of the other.
//!
//! Must not know how rows are kept or found: whoever keeps them hands in what was [found](Findings) among them. [`schema`]
//! is what is kept of a module; `following` gives what comes next the numbers of what was; `operations` is the closed
//! set of what a change does, [`conversion`] does it to values; `travelling` is what messages of the one shape are in the other;
//! `plan` says it all to people, with `answers` and
//! `under_way` of what others read and hear.

mod answers;
pub mod conversion;
mod following;
pub mod operations;
mod plan;
pub mod schema;
mod travelling;
mod under_way;

use crate::module::{ListKind, Module};
use conversion::{Conversion, Tally};
use operations::Operation;
pub use plan::{Item, Plan, Verdict};
use schema::{Constant, Holds, ListShape, Schema};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// What turns one shape into the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The shape of what is kept.
    pub before: Schema,
    /// The shape that it gets.
    pub after: Schema,
    /// What happens to it, in this order.
    pub operations: Vec<Operation>,
    /// What cannot be done, whatever the rows are.
    blocked: Vec<Blocked>,
    /// Lists that are to be transient from now on.
    transient: Vec<u32>,
    /// Outputs that are worth something now or never.
    passing: BTreeSet<String>,
}

/// What cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Blocked {
    name: String,
    why: String,
    help: String,
}

/// What was found among the rows that a change is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Rows of each list, by its number; a variable has one.
    pub rows: BTreeMap<u32, u64>,
    /// By operation, what is lost, or was none and gets a value.
    pub tally: Tally,
    /// By operation, what has no place in the new shape.
    pub misfits: BTreeMap<usize, Misfits>,
    /// Rows that would have more bytes than an event may change, by the number of their list.
    pub too_large: BTreeMap<u32, Misfits>,
    /// Pending timers that the new module does not fire, by name.
    pub timers: BTreeMap<String, Timers>,
    /// Sends without an outcome, by their output's name, where somebody counted them.
    pub sends: BTreeMap<String, u64>,
}

/// Rows that have no place in the new shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Misfits {
    /// How many.
    pub rows: u64,
    /// The first of them, by its key.
    pub first: String,
}

/// Pending timers of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timers {
    /// Those that no `on timer` takes any more.
    pub gone: u64,
    /// Those whose fields do not fit, and why.
    pub misfits: u64,
    /// What is wrong with the first of those.
    pub why: String,
}

impl Change {
    /// The change from a shape to a module.
    pub fn between(before: &Schema, module: &Module) -> Change {
        let (after, ambiguous) = before.followed_by(module);
        let mut operations = operations::operations(before, &after);
        let mut blocked: Vec<Blocked> = ambiguous
            .into_iter()
            .map(|one| Blocked {
                why: format!("it was `{}`, says its `was`; what runs has both", one.was),
                help: format!("leave the `was` out: then `{}` goes and `{}` stays", one.was, one.name),
                name: one.name,
            })
            .collect();
        for list in &after.lists {
            if let Some(old) = before.list(list.number) {
                blocked.extend(blocked_list(old, list, before, &after));
            }
        }
        for operation in &mut operations {
            if let Operation::RetypeVariable { list, none } = operation {
                *none = initial(module, &after, *list);
            }
        }
        let is_transient = |list: &&ListShape| {
            let now = module.lists.iter().filter(|one| one.transient);
            let same = |name: &str, was: Option<&str>| name == list.name || was == Some(&list.name);
            after.list(list.number).is_none() && now.clone().any(|one| same(&one.name, one.was.as_deref()))
        };
        let transient = before.lists.iter().filter(is_transient).map(|list| list.number).collect();
        let passing = module.outputs.iter().filter(|output| output.transient);
        let passing = passing.map(|output| output.name.clone()).collect();
        Change { before: before.clone(), after, operations, blocked, transient, passing }
    }

    /// A change that was made before, as the log has it.
    pub fn made(before: Schema, after: Schema, operations: Vec<Operation>) -> Change {
        Change {
            before,
            after,
            operations,
            blocked: Vec::new(),
            transient: Vec::new(),
            passing: BTreeSet::new(),
        }
    }

    /// Whether what is kept stays as it is, and so does what is understood of before.
    pub fn is_nothing(&self) -> bool {
        self.before == self.after && self.blocked.is_empty()
    }

    /// What happens to values.
    pub fn conversion(&self) -> Conversion {
        Conversion::new(&self.before, &self.after, &self.operations)
    }

    /// The number of the operation that gives a list another key; that after the last if none does.
    pub fn rekey(&self, list: u32) -> usize {
        let is = |one: &Operation| matches!(one, Operation::Rekey { list: rekeyed } if *rekeyed == list);
        self.operations.iter().position(is).unwrap_or(self.operations.len())
    }

    /// The number of the operation that gives a list other indexes; that after the last if none does.
    pub fn reindex(&self, list: u32) -> usize {
        let is = |one: &Operation| matches!(one, Operation::Reindex { list: indexed } if *indexed == list);
        self.operations.iter().position(is).unwrap_or(self.operations.len())
    }

    /// The plan, with what was found among the rows if somebody looked.
    pub fn plan(&self, app: &str, findings: Option<&Findings>) -> Plan {
        Plan::of(self, app, findings)
    }
}

/// The initial value of a variable whose type was a `T?` and is none now: what was none becomes that.
fn initial(module: &Module, after: &Schema, list: u32) -> Option<Constant> {
    let declared = module.lists.get(after.list_place(list)?)?;
    match &declared.kind {
        ListKind::Variable { initial, .. } => Constant::of(initial),
        ListKind::Keyed { .. } => None,
    }
}

fn blocked_list(old: &ListShape, new: &ListShape, before: &Schema, after: &Schema) -> Option<Blocked> {
    let name = new.name.clone();
    let beside = "give the new one another name: then both stand side by side, and an `on` of yours moves what is kept; \
                  once that is done take the old one out";
    match (&old.holds, &new.holds) {
        (Holds::Rows { record: from, .. }, Holds::Rows { record: to, .. }) if from != to => {
            let called = |schema: &Schema, number: u32| {
                schema.record(number).map(|record| record.name.clone()).unwrap_or_default()
            };
            let (from, to) = (called(before, *from), called(after, *to));
            let stays = after.records.iter().any(|record| record.name == from);
            let ((file, new), (_, old)) = (following::split(&to), following::split(&from));
            let place = match file.strip_suffix('.') {
                Some(library) => format!(" in the library `{library}`"),
                None => String::new(),
            };
            let help = match stays || new == old {
                true => beside.to_owned(),
                false => {
                    format!("write `record {new} was {old}`{place} if it is the same record; else {beside}")
                }
            };
            Some(Blocked { name, why: format!("its rows are {from} and would be {to}"), help })
        }
        (Holds::Rows { .. }, Holds::Value(_)) => {
            let why = "it is a list by key and would be a variable, and which value all of its rows are only the app can say"
                .to_owned();
            Some(Blocked { name, why, help: beside.to_owned() })
        }
        (Holds::Value(_), Holds::Rows { .. }) => {
            let why = "it is a variable and would be a list by key, and which rows its value is only the app can say"
                .to_owned();
            Some(Blocked { name, why, help: beside.to_owned() })
        }
        _ => None,
    }
}

impl Plan {
    /// Says, too, which answers change: nothing of them is kept, so the shapes do not tell.
    pub fn say_answers(&mut self, old: &Module, new: &Module) {
        self.items.extend(answers::changed(old, new));
    }

    /// The plan as JSON, the same from version to version.
    pub fn to_json(&self) -> Json {
        let item = |item: &Item| {
            json!({
                "change": item.change,
                "name": item.name,
                "verdict": item.verdict.text(),
                "what": item.what,
                "why": item.why,
                "help": item.help,
            })
        };
        json!({
            "app": self.app,
            "verdict": self.verdict().text(),
            "changes": self.items.iter().map(item).collect::<Vec<Json>>(),
        })
    }
}
