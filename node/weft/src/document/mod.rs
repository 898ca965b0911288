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

use crate::module::{Module, Type};
use crate::outline::{Declares, Outline};

/// What an app declares and, behind it, the types of its libraries as the module calls them.
fn outline(module: &Module, source: &str) -> Outline {
    let mut outline = Outline::new(source);
    for text in module.sources.libraries.values() {
        let library = Outline::new(text);
        let header = library.declarations.iter().find(|one| one.declares == Declares::App);
        let Some(name) = header.map(|one| one.name.clone()) else { continue };
        let types = library
            .declarations
            .into_iter()
            .filter(|one| matches!(one.declares, Declares::Record | Declares::Enum));
        outline.declarations.extend(types.map(|mut one| {
            one.name = format!("{name}.{}", one.name);
            one
        }));
    }
    outline
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
