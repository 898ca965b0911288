//! What another version of an app would do to the state that one has: the plan, and the new version's views over a copy.

use engine::Snapshot;
use serde_json::{Value, json};
use std::sync::Arc;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};
use weft::{Module, Sources};

/// Reads the source of an app, with its libraries, as [`Sources::to_text`] made it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(source: &str) -> Result<Module, String> {
    Sources::from_text(source).compile("the new version").map_err(|wrong| wrong.to_string())
}

/// The plan as JSON, with its words as `text`, and `views`: those of the new version that fail over the changed state,
/// among those that need no argument.
pub(crate) fn rehearse(before: &Schema, snapshot: &Snapshot, module: Module, now: i64) -> Value {
    let change = Change::between(before, &module);
    let mut module = module;
    change.after.teach(&mut module);
    let module = Arc::new(module);
    let (changed, findings) = snapshot.change(&change, Arc::clone(&module));
    let plan = change.plan(&module.name, Some(&findings));
    let mut said = plan.to_json();
    said["text"] = json!(plan.to_string());
    let mut failed = Vec::new();
    if plan.verdict() != Verdict::Refused {
        let views =
            module.views.iter().filter(|view| view.fields.iter().all(|field| field.default.is_some()));
        for view in views {
            if let Err(error) = changed.view(&view.name, &[], "local", now) {
                failed.push(json!({ "view": view.name, "error": error.to_string() }));
            }
        }
    }
    said["views"] = json!(failed);
    said
}
