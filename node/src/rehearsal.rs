//! What another version of an app would do to the state that one has: the plan, and the new version's views over a copy.
//!
//! It costs as much as the rows and the views do, beside a node's work: so it is given up when nobody waits for it, and
//! has a bound in time where a node runs.

use crate::http::{VIEW_BYTES_MAX, VIEWS_BYTES_MAX};
use engine::{Allowance, Snapshot, ViewLimits};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};
use weft::{Module, Sources};

/// What a running node gives a plan: less than whoever asks is ready to wait.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(15);
/// Views that fail are all told up to here: more say nothing new.
const FAILED_MAX: usize = 100;
/// Characters that are told of why a view fails: an app's own words may be as long as a text.
const WHY_CHARACTERS_MAX: usize = 1_000;

/// Whether a rehearsal is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It is waited for.
    Yes,
    /// Its time is over.
    NoTime,
    /// Nobody waits for it, or the node stops.
    No,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// The source is not right.
    #[error("{0}")]
    Source(String),
    /// It took too long to go through the rows.
    #[error(
        "going through what the app keeps takes more than {} s, the most that a running node gives a plan. \
         Plan with a copy of the node's folder, or while the node is stopped: that takes as long as it takes",
        TIME_MAX.as_secs()
    )]
    NoTime,
    /// Nobody waits for it any more.
    #[error("the plan was given up: nobody waits for it, or the node is stopping")]
    GivenUp,
}

/// Reads the source of an app, with its libraries, as [`Sources::to_text`] made it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(source: &str) -> Result<Module, NoPlan> {
    Sources::from_text(source).compile("the new version").map_err(|wrong| NoPlan::Source(wrong.to_string()))
}

/// What a plan is made for.
pub(crate) struct Before<'b> {
    /// The shape of what is kept.
    pub(crate) schema: &'b Schema,
    /// The module that has it, if it is still one.
    pub(crate) module: Option<&'b Module>,
    /// What is kept.
    pub(crate) snapshot: &'b Snapshot,
    /// Sends without an outcome, by their output's name.
    pub(crate) sends: BTreeMap<String, u64>,
}

/// The plan as JSON, with its words as `text`; `memory`, the bytes of rows, keys and indexes before and after; `views`, those of the new version that fail over the changed state, among
/// those that need no argument; and `untried`, those of them for which no time was left.
///
/// # Errors
/// It is not wanted any more, or there was no time for the rows.
pub(crate) fn rehearse(
    before: Before<'_>,
    module: Module,
    now: i64,
    wanted: &dyn Fn() -> Wanted,
) -> Result<Value, NoPlan> {
    let change = Change::between(before.schema, &module);
    let mut module = module;
    change.after.teach(&mut module);
    let module = Arc::new(module);
    let changed = before.snapshot.change(&change, Arc::clone(&module), &|| wanted() == Wanted::Yes);
    let Some((changed, mut findings)) = changed else {
        return Err(if wanted() == Wanted::No { NoPlan::GivenUp } else { NoPlan::NoTime });
    };
    findings.sends = before.sends;
    let mut plan = change.plan(&module.name, Some(&findings));
    if let Some(old) = before.module {
        plan.say_answers(old, &module);
    }
    let mut said = plan.to_json();
    let (was, is) = (before.snapshot.memory(), changed.memory());
    said["memory"] = json!({ "before": was, "after": is });
    let mut text = plan.to_string();
    if was != is && plan.verdict() != Verdict::Refused {
        text.push_str(&format!(
            "  memory    rows, keys and indexes take {was} bytes, and would take {is} from then on, beside their texts, bytes \
             and lists\n"
        ));
    }
    said["text"] = json!(text);
    let (mut failed, mut untried) = (Vec::new(), Vec::new());
    if plan.verdict() != Verdict::Refused {
        // Of its own: that of the node is for who looks at what there is.
        let allowance = Allowance::new(VIEWS_BYTES_MAX);
        let views =
            module.views.iter().filter(|view| view.fields.iter().all(|field| field.default.is_some()));
        for view in views {
            match wanted() {
                Wanted::No => return Err(NoPlan::GivenUp),
                Wanted::Yes if failed.len() < FAILED_MAX => {}
                Wanted::Yes | Wanted::NoTime => {
                    untried.push(view.name.as_str());
                    continue;
                }
            }
            let limits = ViewLimits {
                operations: engine::OPERATIONS_MAX,
                result_bytes: VIEW_BYTES_MAX,
                allowance: &allowance,
            };
            let looked = changed.view_within(&view.name, &[], "local", now, limits);
            if let Err(error) = looked {
                let why = error.to_string().chars().take(WHY_CHARACTERS_MAX).collect::<String>();
                failed.push(json!({ "view": view.name, "error": why }));
            }
        }
    }
    said["views"] = json!(failed);
    said["untried"] = json!(untried);
    Ok(said)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use engine::{App, Context, Event};
    use sealing::NodeId;
    use std::cell::Cell;

    const OLD: &str = "app a\nstate l: list of R by n\nrecord R { n: int, m: int }\n\
        on fill(m: int) { for n in 1 .. m { l add R { n, m } } }\n";
    const NEW: &str = "app a\nstate l: list of R by n index t\nrecord R { n: int, m: real, t: text = \"\" }\n\
        view fails = 1 / 0\nview long(n: int = 1) = l[n]\nview asks(n: int) = l[n]\nview last = count(r for r in l)\n";

    fn snapshot(rows: u32) -> (Schema, Snapshot) {
        let module = weft::compile(OLD, "a.weft").unwrap();
        let schema = Schema::of(&module);
        let mut app = App::new(Arc::new(module), NodeId([1; 32]));
        let arguments = format!("{{\"m\":{rows}}}");
        let event = Event::Input { name: "fill", arguments: arguments.as_bytes(), by: "local" };
        app.event(event, &Context { now: 0, entropy: [0; 32], room: 0 }).unwrap();
        (schema, app.snapshot())
    }

    /// What comes of it if it is wanted `times` times and then not, with how often it was asked.
    fn rehearsed(rows: u32, times: u32, then: Wanted) -> (Result<Value, NoPlan>, u32) {
        let (schema, snapshot) = snapshot(rows);
        let asked = Cell::new(0);
        let wanted = || {
            asked.set(asked.get() + 1);
            if asked.get() > times { then } else { Wanted::Yes }
        };
        let module = read(NEW).unwrap();
        let before = Before {
            schema: &schema,
            module: Some(snapshot.module()),
            snapshot: &snapshot,
            sends: BTreeMap::new(),
        };
        (rehearse(before, module, 0, &wanted), asked.get())
    }

    #[test]
    fn it_ends_where_it_is_not_wanted() {
        let (whole, asked) = rehearsed(10, u32::MAX, Wanted::No);
        let whole = whole.unwrap();
        assert_eq!(whole["views"], json!([{ "view": "fails", "error": "division by zero" }]));
        assert_eq!(whole["untried"], json!([]));
        let bytes = |when: &str| whole["memory"][when].as_u64().unwrap();
        assert!(bytes("after") > bytes("before"), "an index was added: {}", whole["memory"]);
        let told = format!("take {} bytes, and would take {} from", bytes("before"), bytes("after"));
        assert!(whole["text"].as_str().unwrap().contains(&told), "{}", whole["text"]);
        for times in 0..asked {
            let (given_up, again) = rehearsed(10, times, Wanted::No);
            assert_eq!(given_up, Err(NoPlan::GivenUp), "{times}");
            assert!(again <= times + 2, "{times}: it went on, {again}");
        }
        // With the time over, what was found is told, and what was not tried.
        let (said, _) = rehearsed(10, asked - 2, Wanted::NoTime);
        let said = said.unwrap();
        assert_eq!((&said["views"], &said["untried"]), (&whole["views"], &json!(["long", "last"])));
        assert_eq!(rehearsed(10, 0, Wanted::NoTime).0, Err(NoPlan::NoTime));
    }

    #[test]
    fn rows_are_not_gone_through_for_nobody() {
        let (_, few) = rehearsed(10, u32::MAX, Wanted::No);
        let (_, many) = rehearsed(50_000, u32::MAX, Wanted::No);
        assert!(many >= few + 10, "{few} {many}");
    }
}
