//! Code that puts what is not of its declared type where it is kept or sent: no source compiles to it, so each case is a
//! program whose text `"wrong"` is made a number afterwards. Such an event is refused and undone, whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use engine::{App, Context, Event};
use std::sync::Arc;
use support::{ME, arguments_of};
use weft::Value;

const DECLARED: &str = "app broken
record R { id: int, x: text, maybe: text? }
record Kept { id: int, r: R, many: list of text }
record Count { name: text, n: int }
state n: int = 0
state last: text = \"\"
state maybe: text?
state kept: R = R { id: 0, x: \"\" }
state many: list of text
transient state seen: text = \"\"
state rs: list of R by id index x
state plain: list of R by id
state named: list of Count by name
transient state gone: list of R by id
output tell(x: text) for other
transient output hint(x: text) for other
on timer late(x: text) { last = x }
on begin() { rs add R { id: 1, x: \"one\" }; plain add R { id: 1, x: \"one\" }; gone add R { id: 1, x: \"one\" } }
";

#[test]
fn what_is_not_of_its_type_is_neither_kept_nor_sent() {
    for body in [
        "last = \"wrong\"",
        "maybe = \"wrong\"",
        "kept.x = \"wrong\"",
        "kept = R { id: 1, x: \"wrong\" }",
        "many add \"wrong\"",
        "many = [\"wrong\"]",
        "seen = \"wrong\"",
        "rs add R { id: 2, x: \"wrong\" }",
        "rs put R { id: 1, x: \"wrong\" }",
        "plain add R { id: 2, x: \"wrong\" }",
        "plain put R { id: 1, x: \"\", maybe: \"wrong\" }",
        "gone add R { id: 2, x: \"wrong\" }",
        "gone put R { id: 2, x: \"\", maybe: \"wrong\" }",
        "named add Count { name: \"wrong\", n: 1 }",
        "let r = rs[1] else return\nr.x = \"wrong\"",
        "let r = plain[1] else return\nr.maybe = \"wrong\"",
        "let r = gone[1] else return\nr.x = \"wrong\"",
        "send tell(\"wrong\") to me",
        "send hint(\"wrong\") to me",
        "start late(\"wrong\") after 1 s",
    ] {
        let source = format!("{DECLARED}on break_it() {{\n  n += 1\n  {body}\n}}");
        refused(&source, body, "");
    }
    for (kind, value) in [("text", "\"wrong\""), ("text?", "\"wrong\""), ("list of text", "[\"wrong\"]")] {
        let source = format!("{DECLARED}on break_it() -> {kind} {{\n  n += 1\n  return {value}\n}}");
        refused(&source, kind, "");
        let source =
            format!("{DECLARED}on break_it() from peer -> {kind} {{\n  n += 1\n  return {value}\n}}");
        refused(&source, kind, "other");
    }
}

fn refused(source: &str, what: &str, from: &str) {
    let mut module = weft::compile(source, "broken.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let wrong = module.constants.iter_mut().find(|value| **value == Value::Text("wrong".into()));
    *wrong.unwrap() = Value::Word(7);
    let context = Context { now: 1_700_000_000_000, entropy: [7; 32], room: 100 };
    let mut app = App::new(Arc::new(module), ME);
    app.event(Event::Input { name: "begin", arguments: b"{}", by: "local" }, &context).unwrap();
    let before = (app.snapshot().rows(), app.next_due());
    let arguments = arguments_of("{}");
    let event = match from {
        "" => Event::Input { name: "break_it", arguments: b"{}", by: "local" },
        _ => Event::From { name: "break_it", arguments: &arguments, peer: support::PEER, app: "broken" },
    };
    let said = app.event(event, &context).map_err(|wrong| wrong.to_string()).unwrap_err();
    assert!(said.starts_with("the compiled code is broken ("), "{what}: {said}");
    assert_eq!((app.snapshot().rows(), app.next_due()), before, "{what}: undone");
}
