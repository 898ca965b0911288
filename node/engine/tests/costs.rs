//! What keys and index entries may take, and that operations count their bytes, so that operations bound time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use engine::{Allowance, App, Applied, Context, Event, EventError, OPERATIONS_MAX, ViewError, ViewLimits};
use std::sync::Arc;
use support::ME;

fn app(source: &str) -> App {
    App::new(Arc::new(weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"))), ME)
}

fn post(app: &mut App, name: &str, arguments: &str) -> Result<Applied, EventError> {
    let context = Context { now: 0, entropy: [1; 32], room: 100 };
    app.event(Event::Input { name, arguments: arguments.as_bytes(), by: "local" }, &context)
}

/// Adds a text of so many bytes, made of one character's JSON.
fn add(app: &mut App, character: &str, count: usize) -> Result<Applied, EventError> {
    post(app, "add", &format!("{{\"t\":\"{}\"}}", character.repeat(count)))
}

fn refused(reason: &str) -> Result<Applied, EventError> {
    Err(EventError::Refused { reason: reason.into() })
}

#[test]
fn keys_and_index_entries_have_a_greatest_size() {
    let key = "a key of `l` is longer than 4096 bytes";
    let entry = "an entry of the index `t` of `l`, its row's key behind it, is longer than 4096 bytes";
    // A text in a key is followed by two bytes, a 0 in it is two, an int takes eight.
    for (rest, character, fits, reason) in [
        ("record R { t: text }\nstate l: list of R by t\non add(t: text) { l add R { t } }", "x", 4_094, key),
        ("record R { t: text }\nstate l: list of R by t\non add(t: text) { l put R { t } }", "x", 4_094, key),
        (
            "record R { t: text }\nstate l: list of R by t\non add(t: text) { l add R { t } }",
            "\\u0000",
            2_047,
            key,
        ),
        (
            "record R { id: int, t: text }\nstate l: list of R by id index t\n\
             on add(t: text) { l put R { id: 1, t } }",
            "x",
            4_086,
            entry,
        ),
        (
            "record R { id: int, t: text = \"\" }\nstate l: list of R by id index t\n\
             on add(t: text) { let r = l[1] else l add R { id: 1 }\n r.t = t }",
            "x",
            4_086,
            entry,
        ),
        (
            "record R { t: text }\nstate n: int = 0\n\
             on add(t: text) { var l: list of R by t\n l add R { t }\n n = count(l) }",
            "x",
            4_094,
            key,
        ),
    ] {
        let mut app = app(&format!("app a\n{rest}"));
        assert!(add(&mut app, character, fits).is_ok(), "{rest}");
        let before = app.snapshot().rows();
        assert_eq!(add(&mut app, character, fits + 1), refused(reason), "{rest}");
        assert_eq!(add(&mut app, character, 100_000), refused(reason), "{rest}");
        assert_eq!(app.snapshot().rows(), before, "{rest}");
    }
}

#[test]
fn a_key_that_no_row_can_have_is_not_looked_up() {
    let app = app("app a\nrecord R { t: text }\nstate l: list of R by t\nview of(t: text) = l[t]");
    let of = |length: usize| app.snapshot().view("of", &[("t".into(), "x".repeat(length))], "local", 0);
    assert_eq!(of(4_094), Ok("null".into()));
    assert_eq!(of(4_095), Ok("null".into()));
    assert_eq!(of(100_000), Ok("null".into()));
}

#[test]
fn a_view_is_written_no_further_than_is_wanted() {
    let app = app("app a\nview of(n: int) = [i for i in 1 .. n]\nview long(t: text) = t");
    let within = |name: &str, key: &str, value: &str, result_bytes: usize| {
        let limits = ViewLimits { operations: OPERATIONS_MAX, result_bytes, allowance: &Allowance::new(0) };
        app.snapshot().view_within(name, &[(key.into(), value.into())], "local", 0, limits)
    };
    assert_eq!(within("of", "n", "3", 7), Ok("[1,2,3]".into()));
    assert_eq!(within("of", "n", "3", 6), Err(ViewError::TooLarge { bytes_max: 6 }));
    assert_eq!(within("of", "n", "100000", 4_000), Err(ViewError::TooLarge { bytes_max: 4_000 }));
    assert_eq!(within("long", "t", "four", 6), Ok("\"four\"".into()));
    assert_eq!(within("long", "t", "fives", 6), Err(ViewError::TooLarge { bytes_max: 6 }));
}

#[test]
fn a_view_goes_no_further_than_its_operations() {
    let app = app("app a\nview of(n: int) = sum(i for i in 1 .. n)");
    let within = |n: u64, operations: u64| {
        let limits = ViewLimits { operations, result_bytes: 100, allowance: &Allowance::new(0) };
        app.snapshot().view_within("of", &[("n".into(), n.to_string())], "local", 0, limits)
    };
    let least = (1..1_000).find(|operations| within(100, *operations).is_ok()).expect("it costs less");
    assert!(least >= 100, "a turn of a loop is an operation: {least}");
    let over = |limit| Err(ViewError::Budget { unit: "operations", limit });
    for operations in [0, 1, least - 1] {
        assert_eq!(within(100, operations), over(operations));
    }
    assert_eq!(within(100, least), Ok("5050".into()));
    assert_eq!(within(1 << 40, u64::MAX), over(OPERATIONS_MAX));
}

#[test]
fn a_list_of_records_that_is_written_while_it_is_made_reads_and_ends_as_one_that_is_made() {
    let source = "app a
record R { i: int, t: text? }
state l: list of R by i
fn some(n: int) = [R { i, t: \"\\\"{i}\" } for i in 1 .. n]
view made(n: int) -> list of R { return some(n) }
view written(n: int) = [R { i, t: \"\\\"{i}\" } for i in 1 .. n]
view others(n: int) = [r for r in some(n)]
view within(n: int) = [{ i, rows: some(i) } for i in 1 .. n order by i desc]
view refused(n: int) = [{ i, half: i / (2 - i) } for i in 1 .. n]
view rows = [r for r in l]";
    let app = app(source);
    let of = |name: &str, n: i64, result_bytes: usize| {
        let query = [("n".into(), n.to_string())];
        let limits = ViewLimits { operations: OPERATIONS_MAX, result_bytes, allowance: &Allowance::new(0) };
        app.snapshot().view_within(name, &query, "local", 0, limits)
    };
    let two = r#"[{"i":1,"t":"\"1"},{"i":2,"t":"\"2"}]"#;
    for view in ["made", "written", "others"] {
        assert_eq!(of(view, 2, two.len()), Ok(two.into()), "{view}");
        assert_eq!(
            of(view, 2, two.len() - 1),
            Err(ViewError::TooLarge { bytes_max: two.len() - 1 }),
            "{view}"
        );
        assert_eq!(of(view, 100_000, 4_000), Err(ViewError::TooLarge { bytes_max: 4_000 }), "{view}");
        assert_eq!(of(view, 0, 2), Ok("[]".into()), "{view}");
        assert_eq!(of(view, 0, 1), Err(ViewError::TooLarge { bytes_max: 1 }), "{view}");
        assert!(matches!(of(view, 10_000_000, usize::MAX), Err(ViewError::Budget { .. })), "{view}");
    }
    let within = format!(r#"[{{"i":2,"rows":{two}}},{{"i":1,"rows":[{{"i":1,"t":"\"1"}}]}}]"#);
    assert_eq!(of("within", 2, usize::MAX), Ok(within));
    assert_eq!(of("refused", 2, usize::MAX), Err(ViewError::Refused { reason: "division by zero".into() }));
    assert_eq!(app.snapshot().view("rows", &[], "local", 0), Ok("[]".into()));
}

#[test]
fn a_query_for_a_text_longer_than_any_key_finds_what_it_would_without_an_index() {
    const BEYOND: [&str; 3] = ["a", "xx", "y"];
    let source = |by: &str| {
        format!(
            "app a\nrecord R {{ id: int, t: text }}\nstate l: list of R by {by}\n\
             on add(id: int, t: text) {{ l add R {{ id, t }} }}\n\
             view of(t: text) = {{ same: count(r for r in l where r.t == t), below: [r.id for r in l where r.t < t],\n\
             above: [r.id for r in l where r.t >= t] }}"
        )
    };
    let of = |by: &str, length: usize| {
        let mut app = app(&source(by));
        for (id, t) in BEYOND.iter().enumerate() {
            post(&mut app, "add", &format!(r#"{{"id":{id},"t":"{t}"}}"#)).unwrap();
        }
        app.snapshot().view("of", &[("t".into(), "x".repeat(length))], "local", 0)
    };
    for length in [1, 4_093, 4_094, 4_095, 4_096, 4_097, 10_000] {
        let without = of("id", length);
        assert!(without.is_ok(), "{length}: {without:?}");
        for by in ["id index t", "t", "t, id"] {
            assert_eq!(of(by, length), without, "{by}, {length}");
        }
    }
}

/// Operations of `work` after texts of a length were added.
fn operations(source: &str, length: usize) -> u64 {
    let mut app = app(source);
    for character in ["a", "b", "c", "d"] {
        add(&mut app, character, length).unwrap();
    }
    post(&mut app, "work", "{}").unwrap().operations
}

#[test]
fn what_is_done_with_long_keys_costs_by_their_bytes() {
    const TURNS: u64 = 500;
    const LENGTH: u64 = 4_000;
    let by_text =
        "record R { t: text, n: int = 0 }\nstate l: list of R by t\non add(t: text) { l add R { t } }";
    let by_index = "record R { id: int, t: text, n: int = 0 }\nstate l: list of R by id index t\n\
                    on add(t: text) { l add R { id: next_id(l), t } }";
    // What a turn does, and how many long keys or entries it makes or finds at least.
    for (rest, work, keys) in [
        (by_text, "for r in l { s = i }", 4),
        (by_text, "for r in l order by r.t desc { s = i }", 4),
        (by_text, "if l[t] is r { s = i }", 1),
        (by_text, "if t in l { s = i }", 1),
        (by_text, "for r in l where r.t == t { s = i }", 1),
        (by_text, "row.n += 1", 1),
        (by_text, "l put R { t }", 1),
        (by_text, "remove l[t]\nl add R { t }", 2),
        (by_index, "for r in l where r.t == t { s = i }", 1),
        (by_index, "row.t = if row.t == \"\" then t else \"\"", 1),
        (by_index, "remove l[1]\nl add R { id: 1, t }", 2),
    ] {
        let source = format!(
            "app a\n{rest}\nstate s: int = 0\non work() {{\n let row = first(r for r in l) else return\n \
             let t = row.t\n for i in 1 .. {TURNS} {{\n{work}\n}}\n}}"
        );
        let (short, long) = (operations(&source, 4), operations(&source, LENGTH as usize));
        let least = TURNS * keys * LENGTH / 64;
        assert!(long >= short + least, "{work}: {short} and {long}: not {least} more");
    }
}

#[test]
fn a_change_beside_the_index_costs_what_it_does_without() {
    let source = |index: &str| {
        format!(
            "app a\nrecord R {{ id: int, t: text, n: int = 0 }}\nstate l: list of R by id{index}\n\
             on add(t: text) {{ l add R {{ id: next_id(l), t }} }}\n\
             on work() {{ let r = l[1] else return\n for i in 1 .. 500 {{ r.n += 1 }} }}"
        )
    };
    let without = operations(&source(""), 4);
    for length in [4, 4_000] {
        assert_eq!(operations(&source(" index t"), length), without);
        assert_eq!(operations(&source(""), length), without);
    }
}

#[test]
fn a_row_costs_by_its_fields_and_its_entries() {
    const TURNS: u64 = 100;
    const FIELDS: u64 = 60;
    let fields = |count: u64| (0..count).map(|at| format!(", f{at}: int = 0")).collect::<String>();
    let source = |count: u64, index: &str, work: &str| {
        format!(
            "app a\nrecord R {{ id: int, t: text, n: int = 0{} }}\nstate l: list of R by id{index}\nstate s: int = 0\n\
             on add(t: text) {{ l add R {{ id: count(l) + 1, t }} }}\n\
             on work() {{\n let row = l[1] else return\n let copy = R {{ id: 9, t: row.t }}\n \
             for i in 1 .. {TURNS} {{\n{work}\n}}\n}}",
            fields(count)
        )
    };
    // What a turn does, and how many rows it puts or removes, or reads as a whole.
    for (work, rows) in
        [("l put copy", 1), ("l put copy\nremove l[9]", 2), ("let all = [r for r in l]\ns = count(all)", 4)]
    {
        let (few, many) = (operations(&source(0, "", work), 4), operations(&source(FIELDS, "", work), 4));
        assert!(many >= few + TURNS * rows * FIELDS, "{work}: {few} and {many}");
    }
    for (work, entries) in [("row.n += 1", 2), ("l put copy\nremove l[9]", 2)] {
        let (without, with) =
            (operations(&source(0, "", work), 4), operations(&source(0, " index n", work), 4));
        assert!(with >= without + TURNS * entries * 8, "{work}: {without} and {with}");
    }
}
