//! Documents of an app, made from the compiled module and the comments of its source.
//!
//! Must not know how an app is served beyond the routes and forms that `docs/node.md` lays down. `markdown` is for
//! people; `schema` says in JSON Schema what inputs take and views give; `interface` says in OpenAPI how to ask for it.

mod interface;
mod markdown;
mod schema;

#[cfg(test)]
mod tests;

pub use interface::open_api;
pub use markdown::markdown;
pub use schema::json_schema;

use crate::diagnostics::Report;
use crate::libraries::library_path;
use crate::module::{Module, Type};
use crate::outline::{Declaration, Declares, Outline};
use crate::syntax::lexer::{self, Kind};
use std::collections::BTreeMap;

/// What an app declares and, behind it, the types of its libraries; types are called as the module calls them.
fn outline(module: &Module, source: &str) -> Outline {
    let libraries = &module.sources.libraries;
    let read: BTreeMap<&str, Outline> =
        libraries.iter().map(|(path, text)| (path.as_str(), Outline::new(text))).collect();
    let called: BTreeMap<&str, String> =
        read.iter().filter_map(|(path, one)| Some((*path, header(one)?.name.clone()))).collect();
    let mut outline = Outline::new(source);
    let words = names(&outline, "", None, &called);
    rename(&mut outline, &words);
    for (path, mut library) in read {
        let Some(name) = called.get(path) else { continue };
        let words = names(&library, path, Some(name), &called);
        rename(&mut library, &words);
        let types = library.declarations.into_iter().filter(is_type);
        outline.declarations.extend(types.map(|mut one| {
            one.name = format!("{name}.{}", one.name);
            one
        }));
    }
    outline
}

fn header(outline: &Outline) -> Option<&Declaration> {
    outline.declarations.iter().find(|one| one.declares == Declares::App)
}

fn is_type(one: &Declaration) -> bool {
    matches!(one.declares, Declares::Record | Declares::Enum)
}

/// What the words of a file stand for: its names of libraries, and its own types if it is a library.
fn names(
    outline: &Outline,
    path: &str,
    own: Option<&str>,
    called: &BTreeMap<&str, String>,
) -> BTreeMap<String, String> {
    let uses = outline.declarations.iter().filter(|one| one.declares == Declares::Use);
    let library = |one: &Declaration| {
        let target = library_path(path, one.kind.as_deref()?).ok()?;
        Some((one.name.clone(), called.get(target.as_str())?.clone()))
    };
    let mut names: BTreeMap<String, String> = uses.filter_map(library).collect();
    if let Some(own) = own {
        let types = outline.declarations.iter().filter(|one| is_type(one));
        names.extend(types.map(|one| (one.name.clone(), format!("{own}.{}", one.name))));
    }
    names
}

/// Calls the types in what is declared after their libraries.
fn rename(outline: &mut Outline, names: &BTreeMap<String, String>) {
    for one in &mut outline.declarations {
        // A library's own type is told by its heading.
        if !is_type(one) {
            one.signature = renamed(&one.signature, names);
        }
        for member in &mut one.members {
            member.text = renamed(&member.text, names);
        }
    }
}

fn renamed(text: &str, names: &BTreeMap<String, String>) -> String {
    let tokens = lexer::tokens(text, 0, text.len(), &mut Report::default());
    let is = |at: Option<usize>, sign: &'static str| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| token.kind == Kind::Sign(sign))
    };
    let (mut out, mut done) = (String::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        let span = token.span.start as usize..token.span.end as usize;
        let stands = match token.kind {
            Kind::Name => {
                is(Some(at + 1), ".") && tokens.get(at + 2).is_some_and(|one| one.kind == Kind::Type)
            }
            Kind::Type => !is(at.checked_sub(1), "."),
            _ => false,
        };
        if let Some(name) = names.get(&text[span.clone()]).filter(|_| stands) {
            out.push_str(&text[done..span.start]);
            out.push_str(name);
            done = span.end;
        }
    }
    out.push_str(&text[done..]);
    out
}

/// A type as the source would write it; the fields of a record without a name with their types.
fn written(kind: &Type, module: &Module) -> String {
    match kind {
        Type::List(element) => format!("list of {}", written(element, module)),
        Type::Optional(inner) => format!("{}?", written(inner, module)),
        Type::Record(number) if module.records[*number as usize].name.is_none() => {
            let fields = &module.records[*number as usize].fields;
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name, written(&field.kind, module)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => module.type_name(other),
    }
}
