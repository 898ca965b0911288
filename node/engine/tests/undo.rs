//! A refused event leaves no trace, whatever it did before and however it ends; a snapshot stays what it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use engine::{App, Applied, Context, Event, EventError};
use std::sync::Arc;
use support::ME;

/// What an event does before it is refused, to all that can be changed.
const SOURCE: &str = r#"
app undone
record Item { id: int, kind: text, n: int = 0, r: real = 0.5, note: text?, at: time?, tags: list of text = [] }
record Pair { left: int, right: int, n: int = 0 }
record Named { name: text, n: int = 0 }
record Box { id: int, l: list of text }
state items: list of Item by id index kind index n, kind index at
state pairs: list of Pair by left, right index right
state named: list of Named by name index n
state boxes: list of Box by id
state total: int = 3
state last: Item?
state unused: int = 0
transient state seen: list of Named by name index n
transient state count_seen: int = 0
on wait(n: int) from peer { total += n }
on timer later(n: int) { work(); refuse "later {n}" }
do work() {
  for i in items where i.kind == "a" { i.kind = "z"; i.n -= 7; i.note = "changed"; i.at = now }
  for i in items { i.tags add "t"; i.r = i.r + 1.0; i.n += i.id }
  remove i for i in items where i.id % 3 == 0
  items put Item { id: 1, kind: "new" }
  remove items[1]
  items put Item { id: 1, kind: "again" }
  for p in pairs { p.n += 1; p.n += 1 }
  remove p for p in pairs where p.left == 2
  pairs put Pair { left: 2, right: 1 }
  for n in named { n.n = 9 - n.n }
  remove named["n3"]
  named put Named { name: "n3", n: 1 }
  named put Named { name: "n9" }
  seen put Named { name: "s", n: 8 }
  for s in seen { s.n += 1 }
  remove seen["s1"]
  count_seen += 1
  total = next_id(items)
  last = items[1]
  start later(1) at now
  start later(77) after 5 ms
  cancel later(2)
  let n = next_id(pairs_counter)
  remove pairs_counter[1]
}
state pairs_counter: list of Named2 by id
record Named2 { id: int }
on fill() {
  for n in 1 .. 9 {
    items put Item { id: n, kind: if n % 2 == 0 then "a" else "b", n }
    pairs put Pair { left: n % 3, right: n }
    named put Named { name: "n{n}", n: n % 4 }
    seen put Named { name: "s{n}", n }
  }
  boxes put Box { id: 1, l: [] }
  pairs_counter put Named2 { id: 1 }
  start later(1) after 1000 ms
  start later(2) after 2000 ms
  count_seen += 1
}
on change() { work() }
on say() { work(); refuse "said" }
on required() { work(); require 1 > 2 else "required" }
on overflow() { work(); total = 9223372036854775807; total += 1 }
on twice() { work(); items add Item { id: 2, kind: "" } }
on gone(id: int) { work(); let i = items[2] else return; remove items[2]; i.n = 1 }
on operations() { work(); for i in 1 .. 100_000_000 { total = i } }
on memory() {
  work()
  var t = "0123456789"
  for i in 1 .. 40 { t = "{t}{t}" }
}
on room() { work(); for i in 1 .. 9 { send wait(i) to me } }
on sends() { work(); for i in 1 .. 5_000 { send wait(i) to me } }
on key(t: text) { work(); named put Named { name: t } }
on entry(t: text) { work(); let i = items[2] else return; i.kind = t }
on large(t: text) {
  work()
  let b = boxes[1] else return
  for i in 1 .. 400 { b.l add t }
}
view everything = {
  items, pairs, named, boxes, total, last, seen, count_seen, pairs_counter,
  by_kind: [i.id for i in items where i.kind == "a"], by_n: [n.name for n in named where n.n == 1],
  by_right: [p.left for p in pairs where p.right == 4], by_seen: [s.name for s in seen where s.n == 3]
}
on numbers() -> int { return next_id(items) }
"#;

fn post(app: &mut App, name: &str, arguments: &str, room: usize) -> Result<Applied, EventError> {
    let context = Context { now: 10, entropy: [1; 32], room };
    app.event(Event::Input { name, arguments: arguments.as_bytes(), by: "local" }, &context)
}

/// All that shows of an app, and what its next number would be.
fn all(app: &App) -> String {
    let view = app.snapshot().view("everything", &[], "", 10).unwrap();
    let mut next = app.clone();
    let numbers = post(&mut next, "numbers", "{}", 0).unwrap().answer;
    format!("{view} {numbers:?} {:?} {:?}", app.snapshot().rows(), app.next_due())
}

fn app() -> App {
    let module = weft::compile(SOURCE, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut app = App::new(Arc::new(module), ME);
    app.resume(&[], 0);
    post(&mut app, "fill", "{}", 0).unwrap();
    app
}

#[test]
fn a_refused_event_leaves_no_trace() {
    let long = format!(r#"{{"t":"{}"}}"#, "x".repeat(5_000));
    let larger = format!(r#"{{"t":"{}"}}"#, "x".repeat(50_000));
    for (name, arguments, said) in [
        ("say", "{}", "said"),
        ("required", "{}", "required"),
        ("overflow", "{}", "a number grew too large"),
        ("twice", "{}", "has a row of this key already"),
        ("gone", r#"{"id":2}"#, "has no such row"),
        ("operations", "{}", "operations"),
        ("memory", "{}", "over its budget"),
        ("room", "{}", "outbox"),
        ("sends", "{}", "sends"),
        ("key", &long, "a key of `named` is longer"),
        ("entry", &long, "an entry of the index `kind` of `items`"),
        ("large", &larger, "bytes of changed rows, sends and answer"),
        ("say", r#"{"no":1}"#, "no"),
    ] {
        let mut app = app();
        let before = all(&app);
        let snapshot = app.snapshot();
        let wrong = post(&mut app, name, arguments, 5).unwrap_err();
        assert!(wrong.to_string().contains(said), "{name}: {wrong}");
        assert_eq!(all(&app), before, "{name}");
        // And it goes on as one that was never refused.
        let mut other = self::app();
        let deltas = post(&mut app, "change", "{}", 5).unwrap();
        assert_eq!(deltas, post(&mut other, "change", "{}", 5).unwrap(), "{name}");
        assert_eq!(all(&app), all(&other), "{name}");
        assert_ne!(all(&app), before, "{name}");
        assert_eq!(snapshot.rows(), self::app().snapshot().rows(), "{name}");
        let view = snapshot.view("everything", &[], "", 10);
        assert_eq!(view, self::app().snapshot().view("everything", &[], "", 10), "{name}");
    }
}

#[test]
fn a_timer_that_fails_is_only_not_pending_any_more() {
    let mut app = app();
    let before = app.snapshot().rows();
    let context = Context { now: 1_500, entropy: [1; 32], room: 9 };
    let applied = app.event(Event::Due, &context).unwrap();
    assert!(applied.failed.is_some_and(|failed| failed.contains("later 1")));
    assert_eq!(applied.deltas.len(), 1);
    let after = app.snapshot().rows();
    assert_eq!(after.len(), before.len() - 1);
    assert!(after.iter().all(|row| before.contains(row)));
    assert_eq!(app.next_due(), Some(2_010));
}

#[test]
fn deltas_are_what_differs() {
    let mut app = app();
    let before = app.snapshot().rows();
    let mut replayed = App::new(Arc::new(weft::compile(SOURCE, "a.weft").unwrap()), ME);
    for row in &before {
        replayed.restore(row.list, &row.key, row.row.as_deref()).unwrap();
    }
    let deltas = post(&mut app, "change", "{}", 5).unwrap().deltas.to_vec();
    for delta in &deltas {
        let same = before.iter().find(|row| (row.list, &row.key) == (delta.list, &delta.key));
        assert_ne!(same.and_then(|row| row.row.clone()), delta.row, "{delta:?} is no change");
        replayed.restore(delta.list, &delta.key, delta.row.as_deref()).unwrap();
    }
    assert!(deltas.is_sorted_by_key(|delta| (delta.list, delta.key.clone())));
    assert_eq!(replayed.snapshot().rows(), app.snapshot().rows());
}
