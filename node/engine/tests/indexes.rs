//! An index makes a loop faster and changes nothing else: generated queries come to the same with any indexes and with
//! none, over random rows, refusals and their words included.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use engine::{App, Context, Event};
use proptest::prelude::*;
use std::sync::Arc;
use support::ME;

const RECORD: &str = "app a
enum Mood { calm, wild, odd }
record R { id: int, a: int, b: text, c: Mood, d: int?, r: real }
state log: list of int
";
const PUT: &str = "
on put(row: R) { l put row }
view rows = l
view logged = log
";
const INDEXES: &[&str] =
    &["a", "b", "c", "d", "r", "a, b", "b, a", "c, a", "a, c, b", "d, a", "c, id", "b, r", "a, r"];
const KEYS: &[&str] = &["id", "b, id", "c, id"];

fn number() -> impl Strategy<Value = String> {
    prop_oneof![(-1..4i64).prop_map(|n| n.to_string()), Just("n".to_owned())]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["\"\"", "\"x\"", "\"y\"", "\"yy\""]).prop_map(str::to_owned),
        Just("t".to_owned())
    ]
}

fn sign() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["==", "<", "<=", ">", ">=", "!="])
}

/// A part of a condition on the element `x`.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (sign(), number()).prop_map(|(sign, n)| format!("x.a {sign} {n}")),
        2 => (sign(), number()).prop_map(|(sign, n)| format!("{n} {sign} x.a")),
        2 => (number(), number()).prop_map(|(from, upto)| format!("x.a in {from} .. {upto}")),
        1 => (sign(), number()).prop_map(|(sign, n)| format!("x.id {sign} {n}")),
        3 => (sign(), text()).prop_map(|(sign, t)| format!("x.b {sign} {t}")),
        2 => prop::sample::select(vec!["x.c == .calm", "x.c != .odd", "x.c == .wild", ".odd == x.c"]).prop_map(str::to_owned),
        2 => number().prop_map(|n| format!("x.d == {n}")),
        1 => Just("x.d is v and v > 0".to_owned()),
        1 => (sign(), 0..3i64).prop_map(|(sign, n)| format!("x.r {sign} {n}.5")),
        // These can refuse, or cannot be looked up.
        1 => Just("6 / x.a > 1".to_owned()),
        1 => (sign(), number()).prop_map(|(sign, n)| format!("x.a + 0 {sign} {n}")),
        1 => Just("(x.a == 1 or x.b == \"x\")".to_owned()),
        1 => Just("x.id in l2".to_owned()),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 0..4).prop_map(|parts| match parts.is_empty() {
        true => String::new(),
        // One name is given once.
        false => format!(
            " where {}",
            parts.join(" and ").replacen("is v and v", "is w and w", 1).replace("x.d is v and v > 0", "true")
        ),
    })
}

fn order() -> impl Strategy<Value = String> {
    let key =
        (prop::sample::select(vec!["a", "b", "c", "d", "r", "id"]), prop::sample::select(vec!["", " desc"]));
    let keys = prop::collection::vec(key.prop_map(|(field, turned)| format!("x.{field}{turned}")), 0..3);
    (keys, prop::option::of(0..4)).prop_map(|(keys, take)| {
        let order = if keys.is_empty() { String::new() } else { format!(" order by {}", keys.join(", ")) };
        format!("{order}{}", take.map_or(String::new(), |take| format!(" take {take}")))
    })
}

/// The expression of a view.
fn query() -> impl Strategy<Value = String> {
    let value = || prop::sample::select(vec!["x", "x.id", "x.a", "{ x.id, x.b }", "10 / x.a", "x.d"]);
    let folded = prop::sample::select(vec![
        "count(x",
        "count(x.a",
        "count(6 / x.a",
        "sum(x.a",
        "sum(x.r",
        "min(x.a",
        "max(x.a",
        "min(x.b",
        "max(x.b",
        "max(x.r",
        "min(x.id",
        "mean(x.a",
        "mean(x.r",
        "any(x.a > 1",
        "all(x.a > 0",
        "any(6 / x.a > 2",
        "first(x",
        "first(x.id",
        "max(6 / x.a",
    ]);
    let key = || prop::sample::select(vec!["a", "b", "c", "d", "id"]);
    prop_oneof![
        4 => (value(), condition(), order()).prop_map(|(value, condition, order)| format!("[{value} for x in l{condition}{order}]")),
        4 => (folded, condition(), order()).prop_map(|(folded, condition, order)| format!("{folded} for x in l{condition}{order})")),
        2 => (key(), condition(), key(), order()).prop_map(|(left, condition, right, order)| {
            let other = if left == right { format!("y.{left} == x.{right}") } else { "y.a == x.a and y.id > x.id".into() };
            format!("[{{ x.id, y: y.id }} for x in l{condition} for y in l where {other}{order}]")
        }),
        3 => (key(), condition(), prop::sample::select(vec!["", " where count(g.rows) > 1"]), prop::sample::select(vec!["", " order by count(g.rows) desc", " order by g.key desc take 2"]))
            .prop_map(|(key, condition, having, order)| format!(
                "[{{ g.key, n: count(g.rows), s: sum(y.a for y in g.rows), f: sum(y.r for y in g.rows), m: max(y.b for y in g.rows), ids: [y.id for y in g.rows] }} for x in l{condition} group by x.{key} as g{having}{order}]"
            )),
        2 => (key(), condition()).prop_map(|(key, condition)| format!(
            "[{{ g.key, n: count(g.rows), s: sum(y.a for y in g.rows), f: mean(y.r for y in g.rows), least: min(y.id for y in g.rows) }} for x in l{condition} group by x.{key} as g]"
        )),
        1 => key().prop_map(|key| format!("[g for x in l group by x.{key} as g]")),
    ]
}

/// The body of an event.
fn statement() -> impl Strategy<Value = String> {
    let body = prop::sample::select(vec![
        "log add x.id",
        "log add x.id; x.a += 1",
        "log add x.id; if x.a == 1 { x.b = \"y\" }",
        "log add x.id; remove l[x.id]",
        "log add x.id; remove z for z in l where z.id == x.id + 1; l add R { id: x.id + 1, a: n, b: t, c: .odd, r: 0.5 }",
        "log add x.id; remove l[x.id + 1]; let z = l add R { id: x.id + 1, a: n, b: t, c: .odd, r: 0.5 }",
        "log add x.id; l put R { id: x.id + 1, a: n, b: t, c: .odd, r: 0.5 }",
        "let y = x; y.a = n; log add x.a",
        "log add x.id; if length(log) > 3 { break }",
        "note(x.id, n)",
        "for y in l where y.a == x.a { log add y.id; y.a = 0 }",
    ]);
    prop_oneof![
        4 => (condition(), order(), body).prop_map(|(condition, order, body)| format!("for x in l{condition}{order} {{ {body} }}")),
        1 => (condition(), order()).prop_map(|(condition, order)| format!("remove x for x in l{condition}{order}")),
        1 => query().prop_map(|query| format!("let q = {query}; log add 1")),
    ]
}

/// Rows as JSON.
fn rows() -> impl Strategy<Value = Vec<String>> {
    let row = (
        0..8i64,
        -1..4i64,
        prop::sample::select(vec!["", "x", "y", "yy"]),
        0..3usize,
        prop::option::of(0..3i64),
        0..4i64,
    );
    let row = row.prop_map(|(id, a, b, c, d, r)| {
        let c = ["calm", "wild", "odd"][c];
        let d = d.map_or("null".into(), |d| d.to_string());
        format!(r#"{{"id":{id},"a":{a},"b":"{b}","c":"{c}","d":{d},"r":{r}.25}}"#)
    });
    prop::collection::vec(row, 0..14)
}

fn app(key: &str, indexes: &[&str], views: &[String], events: &[String]) -> Option<App> {
    let mut source = format!("{RECORD}state l: list of R by {key}");
    for index in indexes {
        source += &format!(" index {index}");
    }
    source += "\nstate l2: list of R by id\n";
    source += PUT;
    source += "do note(id: int, n: int) { log add id; for z in l where z.id == id + 1 { z.a = n } }\n";
    for (at, view) in views.iter().enumerate() {
        source += &format!("view v{at}(n: int, t: text) = {view}\n");
    }
    for (at, event) in events.iter().enumerate() {
        source += &format!("on e{at}(n: int, t: text) {{\n{event}\n}}\n");
    }
    let module = weft::compile(&source, "a.weft").ok()?;
    Some(App::new(Arc::new(module), ME))
}

fn post(app: &mut App, name: &str, arguments: &str) -> Result<(), String> {
    let event = Event::Input { name, arguments: arguments.as_bytes(), by: "local" };
    let outcome = app.event(event, &Context { now: 5, entropy: [0; 32], room: 8 });
    outcome.map(drop).map_err(|error| error.to_string())
}

fn view(app: &App, name: &str, n: i64, t: &str) -> Result<String, String> {
    let query: Vec<(String, String)> = match name.starts_with('v') {
        true => vec![("n".into(), n.to_string()), ("t".into(), t.to_owned())],
        false => Vec::new(),
    };
    app.snapshot().view(name, &query, "", 0).map_err(|error| error.to_string())
}

/// Many rows of few numbers, so that an index of those is no tree: what finds, counts, orders, groups and changes them.
#[test]
fn an_index_of_numbers_close_together_changes_nothing() {
    const NUMBERS: i64 = 120;
    let fill = "for i in 0 .. 1_999 {\n  l put R { id: i, a: i * 7 % 120 - n, b: t, c: if i % 3 == 0 then .wild else .calm, d: i % 11, r: 0.5 }\n\
                if i % 5 == 0 { l2 put R { id: i % 120, a: i, b: t, c: .odd, d: none, r: 0.5 } }\n}";
    let views = [
        "[x.id for x in l where x.a == n]",
        "[{ x.id, x.d } for x in l where x.a == n and not x.id in l2]",
        "[x.id for x in l where x.a == n and x.id in 200 .. 900]",
        "count(x for x in l where x.a == n and x.id in l2)",
        "count(x for x in l where x.a < n)",
        "count(x for x in l where x.a in n .. n + 9)",
        "count(x for x in l where x.a == n and x.c == .wild)",
        "[x.id for x in l where x.a > n and x.a <= n + 3 order by x.a desc take 40]",
        "[x.id for x in l where x.a >= n order by x.a take 40]",
        "[x.id for x in l order by x.a desc, x.id desc take 70]",
        "max(x.a for x in l where x.a < n)",
        "sum(x.id for x in l where x.a > n)",
        "[{ g.key, n: count(g.rows), s: sum(y.id for y in g.rows), least: min(y.id for y in g.rows) } for x in l group by x.a as g]",
        "[{ x.id, y: y.id } for x in l where x.a == n for y in l where y.a == x.id and not y.id in l2]",
        "first(x.id for x in l where x.a > n order by x.a)",
    ];
    let events = [
        fill,
        "for x in l where x.a == n { log add x.id; x.a += 1 }",
        "for x in l where x.a == n and not x.id in l2 { log add x.id; x.d = none }",
        "remove x for x in l where x.a == n and not x.id in l2",
        "for x in l where x.a in n .. n + 2 { x.d = 1; if x.id % 2 == 0 { x.c = .odd } }",
        "remove x for x in l where x.a > n",
        // Far apart, and near again.
        "for x in l where x.d == 3 { x.a = x.id * 1_000_000 }",
        "for x in l where x.a > 1_000 { x.a = x.id % 60 }",
    ];
    let (views, events) = (views.map(String::from), events.map(String::from));
    for key in ["id", "b, id"] {
        let mut with = app(key, &["a", "a, c", "a, b"], &views, &events).unwrap();
        let mut without = app(key, &[], &views, &events).unwrap();
        for (round, at) in [0, 4, 1, 2, 3, 5, 0, 6, 7, 0, 3].into_iter().enumerate() {
            let n = round as i64 * 17 % NUMBERS;
            let (name, arguments) = (format!("e{at}"), format!(r#"{{"n":{n},"t":"x"}}"#));
            assert_eq!(post(&mut with, &name, &arguments), post(&mut without, &name, &arguments), "{round}");
            for n in [n, n - 50, -1_000, 1_000] {
                for (at, text) in views.iter().enumerate() {
                    let name = format!("v{at}");
                    assert_eq!(
                        view(&with, &name, n, "x"),
                        view(&without, &name, n, "x"),
                        "{round} {n}: {text}"
                    );
                }
            }
        }
        for name in ["rows", "logged"] {
            assert_eq!(view(&with, name, 0, "x"), view(&without, name, 0, "x"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_index_changes_nothing(
        key in prop::sample::select(KEYS),
        indexes in prop::sample::subsequence(INDEXES, 1..5),
        views in prop::collection::vec(query(), 1..6),
        events in prop::collection::vec(statement(), 1..3),
        rows in rows(),
        n in -1..4i64,
        t in prop::sample::select(vec!["", "x", "y"]),
    ) {
        // What does not compile (an order that there is none of, a key of several fields) is left out.
        let views: Vec<String> = views.into_iter().filter(|view| app(key, &[], std::slice::from_ref(view), &[]).is_some()).collect();
        let events: Vec<String> = events.into_iter().filter(|event| app(key, &[], &[], std::slice::from_ref(event)).is_some()).collect();
        let mut with = app(key, &indexes, &views, &events).unwrap();
        let mut without = app(key, &[], &views, &events).unwrap();
        for row in &rows {
            let arguments = format!(r#"{{"row":{row}}}"#);
            prop_assert_eq!(post(&mut with, "put", &arguments), post(&mut without, "put", &arguments));
        }
        let arguments = format!(r#"{{"n":{n},"t":"{t}"}}"#);
        for round in 0..2 {
            for (at, text) in views.iter().enumerate() {
                let name = format!("v{at}");
                prop_assert_eq!(view(&with, &name, n, t), view(&without, &name, n, t), "{} {}: {}", round, n, text);
            }
            for (at, text) in events.iter().enumerate() {
                let name = format!("e{at}");
                prop_assert_eq!(post(&mut with, &name, &arguments), post(&mut without, &name, &arguments), "{}", text);
                for name in ["rows", "logged"] {
                    prop_assert_eq!(view(&with, name, n, t), view(&without, name, n, t), "{}", text);
                }
            }
        }
    }
}
