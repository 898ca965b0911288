//! Sends that left an app in its old shape and whose outcome it has not heard: they go on as they are, and the new version
//! hears of them, or not.

use super::schema::{Message, MessageKind};
use super::travelling::{Newer, Reading};
use super::{Change, Item, Verdict};
use std::collections::BTreeMap;

/// What is told of sends under way, by their output's name, where the change is about them.
pub(super) fn told(change: &Change, sends: &BTreeMap<String, u64>) -> Vec<Item> {
    let mut reading = Reading::new(&change.before, &change.after, Newer::Reader);
    let mut items = Vec::new();
    for (name, count) in sends.iter().filter(|(_, count)| **count > 0) {
        let is_it = |message: &&Message| message.kind == MessageKind::Output && message.name == *name;
        let old = change.before.messages.iter().find(is_it);
        let new = change.after.messages.iter().find(is_it);
        let sends = if *count == 1 { "1 send".to_owned() } else { format!("{count} sends") };
        let (what, why, help) = match (old, new) {
            (_, None) => (
                "it is sent no more".to_owned(),
                format!("{sends} under way: delivered all the same, and nobody here hears of it"),
                "keep it, with its `on delivered` and `on refused`, until `selvedge status` shows none",
            ),
            (Some(old), Some(new)) => {
                let unread = reading.fields(None, &old.fields, &new.fields);
                match unread.first() {
                    None if old.fields == new.fields => continue,
                    None => (
                        "it is sent in another shape".to_owned(),
                        format!("{sends} under way in the old one: delivered as they are, and heard of"),
                        "",
                    ),
                    Some(first) => (
                        "it is sent in another shape".to_owned(),
                        format!(
                            "{sends} under way in the old one: delivered as they are, and what becomes of them is not \
                             heard, for `{}` does not fit",
                            first.path
                        ),
                        "give new fields a default, or wait until `selvedge status` shows none",
                    ),
                }
            }
            // It was sent by a version before the one that runs.
            (None, Some(_)) => continue,
        };
        let (name, help) = (name.clone(), help.to_owned());
        items.push(Item { change: "message", name, what, verdict: Verdict::Keeps, why, help });
    }
    items
}
