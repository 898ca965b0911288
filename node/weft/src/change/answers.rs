//! What inputs and other apps' handlers answer, before and after a change: nothing of it is kept, and whoever reads it is
//! elsewhere.

use super::{Item, Verdict};
use crate::module::{Destination, Door, Module, Output, Type};
use std::collections::BTreeSet;

/// What of answers changes between two versions.
pub(super) fn changed(old: &Module, new: &Module) -> Vec<Item> {
    let doors = |old_doors: &[Door], new_doors: &[Door], why: &str, help: &str| {
        let changed = old_doors.iter().filter_map(|before| {
            let after = new_doors.iter().find(|door| door.name == before.name && door.of == before.of)?;
            let what = difference((&before.answer, old), (&after.answer, new), "it answered", "answers")?;
            Some(item(&before.name, what, why, help))
        });
        changed.collect::<Vec<Item>>()
    };
    let mut items = doors(
        &old.inputs,
        &new.inputs,
        "whoever posts it reads what it answered before",
        "change who posts it with it",
    );
    items.extend(doors(
        &old.from_inputs,
        &new.from_inputs,
        "a sender that is not changed yet hears none where it expects another type",
        "let `on delivered … with` of the sender be ready for none",
    ));
    // What goes to this app of other nodes was told with its handler.
    let elsewhere = old.outputs.iter().filter(|output| output.to != Destination::Own);
    let outputs = elsewhere.filter_map(|before| {
        let same = |after: &&Output| after.name == before.name && after.to == before.to;
        let after = new.outputs.iter().find(same)?;
        let what = difference((&before.answer, old), (&after.answer, new), "its answer was", "is")?;
        let why = "an answer of the type of before is heard as none, that of a send under way too";
        Some(item(&before.name, what, why, "let `on delivered … with` be ready for none"))
    });
    items.extend(outputs);
    items
}

fn item(name: &str, what: String, why: &str, help: &str) -> Item {
    Item {
        change: "answer",
        name: name.to_owned(),
        what,
        verdict: Verdict::Keeps,
        why: why.to_owned(),
        help: help.to_owned(),
    }
}

/// How two answers differ; none if they do not.
fn difference(
    (before, old): (&Option<Type>, &Module),
    (after, new): (&Option<Type>, &Module),
    was: &str,
    is: &str,
) -> Option<String> {
    let name = |answer: &Option<Type>, module: &Module| {
        answer.as_ref().map_or_else(|| "nothing".to_owned(), |kind| module.type_name(kind))
    };
    let (named, now) = (name(before, old), name(after, new));
    if named != now {
        return Some(format!("{was} {named} and {is} {now}"));
    }
    let whole = |answer: &Option<Type>, module: &Module| {
        let mut text = String::new();
        answer.iter().for_each(|kind| written_out(kind, module, &mut BTreeSet::new(), &mut text));
        text
    };
    (whole(before, old) != whole(after, new)).then(|| format!("{was} {named}, which has another shape now"))
}

/// A type with all that is in it, each record and enum once.
fn written_out(kind: &Type, module: &Module, known: &mut BTreeSet<String>, text: &mut String) {
    let name = module.type_name(kind);
    text.push_str(&name);
    match kind {
        Type::Optional(inner) | Type::List(inner) => written_out(inner, module, known, text),
        Type::Enum(number) if known.insert(name.clone()) => {
            text.push_str(&module.enums[*number as usize].cases.join(","));
        }
        Type::Record(number) if known.insert(name.clone()) => {
            for field in &module.records[*number as usize].fields {
                text.push_str(&field.name);
                written_out(&field.kind, module, known, text);
            }
        }
        _ => {}
    }
}
