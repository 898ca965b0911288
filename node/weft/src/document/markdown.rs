//! An app's page in Markdown.

use super::written;
use crate::module::{Door, Module};
use crate::outline::{Declaration, Declares};
use std::fmt::Write;

/// What an app takes, gives, keeps and sends.
pub fn markdown(module: &Module, source: &str) -> String {
    let outline = super::outline(module, source);
    let mut page = format!("# {}\n", module.name);
    paragraph(&mut page, &outline.comment);
    let section =
        |page: &mut String, title: &str, kinds: &[Declares], about: &dyn Fn(&Declaration) -> String| {
            let mut declared =
                outline.declarations.iter().filter(|one| kinds.contains(&one.declares)).peekable();
            if declared.peek().is_some() {
                let _ = write!(page, "\n## {title}\n");
            }
            for one in declared {
                let heading = if one.name.is_empty() { &one.signature } else { &one.name };
                let _ = write!(page, "\n### {heading}\n");
                paragraph(page, &one.comment);
                page.push_str(&about(one));
            }
        };
    let app = &module.name;
    section(&mut page, "Inputs", &[Declares::Input], &|one| {
        format!(
            "\n`POST /{app}/{}` — {}\n{}",
            one.name,
            signature(one, door(&module.inputs, one), module),
            table(one)
        )
    });
    section(&mut page, "Views", &[Declares::View], &|one| {
        format!(
            "\n`GET /{app}/{}` — {}\n{}",
            one.name,
            signature(one, door(&module.views, one), module),
            table(one)
        )
    });
    section(&mut page, "From other nodes", &[Declares::FromInput], &code);
    section(&mut page, "To other apps", &[Declares::Output], &code);
    section(&mut page, "By itself", &[Declares::Every, Declares::Timer], &code);
    section(&mut page, "Settings", &[Declares::Setting], &code);
    section(&mut page, "State", &[Declares::State], &code);
    if module.is_library {
        section(&mut page, "Functions", &[Declares::Function], &code);
    }
    section(&mut page, "Types", &[Declares::Enum, Declares::Record], &table);
    page
}

fn paragraph(page: &mut String, comment: &str) {
    if !comment.is_empty() {
        let _ = write!(page, "\n{comment}\n");
    }
}

fn code(one: &Declaration) -> String {
    format!("\n`{}`\n{}", one.signature, table(one))
}

fn door<'m>(doors: &'m [Door], one: &Declaration) -> Option<&'m Door> {
    doors.iter().find(|door| door.name == one.name)
}

/// What is declared, with the answer's type also where the source leaves it to be told.
fn signature(one: &Declaration, door: Option<&Door>, module: &Module) -> String {
    let answer = door.and_then(|door| door.answer.as_ref()).filter(|_| one.kind.is_none());
    match answer {
        Some(kind) => format!("`{} -> {}`", one.signature, written(kind, module)),
        None => format!("`{}`", one.signature),
    }
}

/// Fields or cases with what is said of them, if anything is.
fn table(one: &Declaration) -> String {
    let mut rows = String::new();
    let typed = matches!(one.declares, Declares::Enum | Declares::Record);
    if !typed && one.members.iter().all(|member| member.comment.is_empty()) {
        return rows;
    }
    rows.push_str("\n| | |\n| --- | --- |\n");
    for member in &one.members {
        let comment = member.comment.replace('\n', " ").replace('|', "\\|");
        let _ = writeln!(rows, "| `{}` | {comment} |", member.text);
    }
    rows
}
