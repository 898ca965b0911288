//! What a change of the module finds in the rows that there are, and what becomes of them. The table is `plans.txt`: a case
//! is a line `=== name`, the old source, a line `+++`, inputs `name {json}` a line, a line `+++`, the new source, a line
//! `---`, the plan and, where it may be done, what each view of no parameters shows then. `BLESS=1` writes what is said
//! now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

mod support;

use engine::{App, Context, Event};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use support::ME;
use weft::change::schema::Schema;
use weft::change::{Change, Verdict};

fn said(old: &str, inputs: &str, new: &str) -> String {
    let compiled = |source: &str| weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let old = compiled(old);
    let schema = Schema::of(&old);
    let mut app = App::new(Arc::new(old), ME);
    for input in inputs.lines() {
        let (name, arguments) = input.split_once(' ').unwrap();
        let event = Event::Input { name, arguments: arguments.as_bytes(), by: "" };
        app.event(event, &Context { now: 0, entropy: [1; 32], room: 9 }).unwrap();
    }
    let mut module = compiled(new);
    let change = Change::between(&schema, &module);
    change.after.teach(&mut module);
    let (app, findings) = app.change(&change, Arc::new(module));
    let plan = change.plan("a", Some(&findings));
    let mut said = format!("{}: {plan}", plan.verdict().text());
    if plan.verdict() <= Verdict::Loses {
        for view in &app.module().views {
            let shown = app.snapshot().view(&view.name, &[], "", 0).unwrap();
            write!(said, "\n{} = {shown}", view.name).unwrap();
        }
    }
    said.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[test]
fn each_change_finds_what_the_table_has() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let (mut all, mut wrong) = (String::new(), String::new());
    for block in table.split("=== ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (sources, expected) = rest.split_once("\n---\n").unwrap();
        let [old, inputs, new] = sources.split("\n+++\n").collect::<Vec<_>>()[..] else { panic!("{name}") };
        let found = said(old, inputs, new);
        if found != expected.trim_end() {
            writeln!(wrong, "{name}:\nexpected\n{expected}\nsaid\n{found}\n").unwrap();
        }
        write!(all, "=== {name}\n{sources}\n---\n{found}\n\n").unwrap();
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, all).unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}
