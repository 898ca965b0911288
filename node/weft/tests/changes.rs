//! Two versions of an app, and the plan from the one to the other without a look at rows. The table is `changes.txt`: a
//! case is a line `=== name`, the old source, a line `+++`, the new one, a line `---`, and the plan. `BLESS=1` writes what
//! is said now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use weft::change::schema::Schema;
use weft::change::{Change, Findings};

fn plan(old: &str, new: &str) -> String {
    let compile = |source: &str| {
        let mut files = source.split("\n>>> ");
        let app = files.next().unwrap();
        let libraries: HashMap<&str, &str> = files.filter_map(|file| file.split_once('\n')).collect();
        let mut read = |path: &str| Ok(libraries[path].to_owned());
        weft::compile_with(app, "app.weft", &mut read).map_err(|wrong| wrong.to_string())
    };
    match (compile(old), compile(new)) {
        (Ok(old), Ok(new)) => {
            let before = Schema::of(&old);
            let change = Change::between(&before, &new);
            // What comes after it again is nothing, and the shape is one that a log may hand out.
            assert!(Change::between(&change.after, &new).is_nothing());
            assert!(before.is_whole() && change.after.is_whole());
            let mut plan = change.plan(&new.name, None);
            plan.say_answers(&old, &new);
            plan.to_string().trim_end().to_owned()
        }
        (Err(wrong), _) | (_, Err(wrong)) => wrong,
    }
}

#[test]
fn each_change_is_planned_as_the_table_has_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/changes.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let (mut said, mut wrong) = (String::new(), String::new());
    for block in table.split("=== ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (old, rest) = rest.split_once("\n+++\n").unwrap();
        let (new, expected) = rest.split_once("\n---\n").unwrap();
        let found = plan(old, new);
        if found != expected.trim_end() {
            writeln!(wrong, "{name}:\nexpected\n{expected}\nsaid\n{found}\n").unwrap();
        }
        write!(said, "=== {name}\n{old}\n+++\n{new}\n---\n{found}\n\n").unwrap();
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, said).unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

#[test]
fn sends_under_way_are_counted_where_the_change_is_about_them() {
    let compile = |text: &str| weft::compile(text, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let old = compile(
        "app a\non f(n: node) { send say(1) to n; send note(2) to n; send more(3) to n }\non say(x: int) from peer { }\n\
         on note(x: int) from peer { }\non more(x: int) from peer { }\n",
    );
    let new = compile(
        "app a\non f(n: node) { send note(2, 3) to n; send more(3, 4) to n }\non say(x: int) from peer { }\n\
         on note(x: int, y: int) from peer { }\non more(x: int, y: int = 0) from peer { }\n",
    );
    let change = Change::between(&Schema::of(&old), &new);
    let sends = [("say", 3), ("note", 1), ("more", 2), ("other", 0)];
    let sends = sends.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    let plan = change.plan("a", Some(&Findings { sends, ..Findings::default() })).to_string();
    for said in [
        "message   note: it is sent in another shape\n            note: 1 send under way in the old one: delivered as \
         they are, and what becomes of them is not heard, for `y` does not fit\n",
        "message   more: it is sent in another shape\n            note: 2 sends under way in the old one: delivered as \
         they are, and heard of\n",
    ] {
        assert!(plan.contains(said), "{plan}");
    }
    assert!(!plan.contains(" say:") && !plan.contains(" other:"), "{plan}");
    let gone = compile("app a\n");
    let sends = [("say".to_owned(), 3)].into();
    let plan = Change::between(&Schema::of(&old), &gone)
        .plan("a", Some(&Findings { sends, ..Findings::default() }))
        .to_string();
    assert!(
        plan.contains("say: it is sent no more\n            note: 3 sends under way: delivered all the same"),
        "{plan}"
    );
}

#[test]
fn numbers_are_never_used_again_and_names_of_before_are_not_forgotten() {
    let compile = |fields: &str| {
        let source = format!("app a\nrecord R {{ id: int, {fields} }}\nstate l: list of R by id");
        weft::compile(&source, "a.weft").unwrap()
    };
    let mut schema = Schema::of(&compile("a: int = 0"));
    let mut numbers = vec![schema.records[0].fields.fields[1].number];
    for round in 0..100 {
        let module = compile(if round % 2 == 0 { "b: int = 0" } else { "a: int = 0" });
        schema = Change::between(&schema, &module).after;
        numbers.push(schema.records[0].fields.fields[1].number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 101);
    // Of two names that come and go, one is in use and one was.
    assert_eq!(schema.records[0].fields.former.len(), 1);
    let renamed = Change::between(&schema, &compile("c was a: int = 0")).after;
    let mut module = compile("c: int = 0");
    Change::between(&renamed, &module).after.teach(&mut module);
    let former: Vec<(&str, Option<u16>)> =
        module.records[0].former.iter().map(|former| (former.name.as_str(), former.now)).collect();
    assert_eq!(former, [("b", None), ("a", Some(1))]);
}
