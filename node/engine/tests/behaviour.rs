//! Programs, what happens to them and what is then seen. The table is `behaviour.txt`: a case is a line `=== name`, a
//! source, a line `---`, and steps: a line `post name {json}`, `from name {json}` (of the same app's `on name` there),
//! `view name key=value …`, each followed by a line with what comes of it. A step's answer may end in ` >> name {…}`
//! for each send. `BLESS=1` writes what comes now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

mod support;

use engine::{App, Context, Event, Send};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use support::{ME, PEER, arguments_of};

fn context() -> Context {
    Context { now: 1_700_000_000_123, entropy: [7; 32], room: 100 }
}

fn sends(sends: &[Send]) -> String {
    sends
        .iter()
        .map(|send| format!(" >> {} to {}", send.output, if send.to == ME { "me" } else { "peer" }))
        .collect()
}

/// Does one step and says what came of it; a failed step must leave the state as it was.
fn step(app: &mut App, step: &str) -> String {
    let (verb, rest) = step.split_once(' ').expect("a step has a verb");
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    if verb == "view" {
        let query: Vec<(String, String)> = rest
            .split_whitespace()
            .map(|pair| {
                pair.split_once('=').map(|(key, value)| (key.into(), value.into())).expect("key=value")
            })
            .collect();
        return app
            .snapshot()
            .view(name, &query, "local", context().now)
            .unwrap_or_else(|wrong| format!("error: {wrong}"));
    }
    let before = app.snapshot().rows();
    let bytes;
    let event = match verb {
        "post" => Event::Input { name, arguments: rest.as_bytes(), by: "local" },
        "from" => {
            bytes = arguments_of(rest);
            Event::From { name, arguments: &bytes, peer: PEER, app: &app.module().name.clone() }
        }
        other => panic!("no verb `{other}`"),
    };
    match app.event(event, &context()) {
        Ok(applied) => format!("{}{}", applied.answer.unwrap_or_else(|| "ok".into()), sends(&applied.sends)),
        Err(wrong) => {
            assert_eq!(app.snapshot().rows(), before, "`{step}` was refused and left a trace");
            format!("error: {wrong}")
        }
    }
}

#[test]
fn each_program_does_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let bless = std::env::var_os("BLESS").is_some();
    let (mut blessed, mut wrong) = (String::new(), String::new());
    for case in table.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("a name");
        let (source, steps) = rest.split_once("\n---\n").expect("a source and steps");
        write!(blessed, "=== {name}\n{source}\n---\n").unwrap();
        let module = weft::compile(source, name).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let mut app = App::new(Arc::new(module), ME);
        let lines: Vec<&str> = steps.lines().filter(|line| !line.is_empty()).collect();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let said = step(&mut app, line);
            let expected = lines.get(at + 1).and_then(|next| next.strip_prefix("  "));
            at += 1 + usize::from(expected.is_some());
            writeln!(blessed, "{line}\n  {said}").unwrap();
            if expected != Some(said.as_str()) {
                writeln!(wrong, "{name}: {line}\n  expected {expected:?}\n  came     {said:?}").unwrap();
            }
        }
        blessed.push('\n');
    }
    if bless {
        std::fs::write(&path, blessed).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong}");
}
