//! Programs, what happens to them and what is then seen. The table is `behaviour.txt`: a case is a line `=== name`, a
//! source, a line `---`, and steps: a line `post name {json}`, `from name {json}` (of the same app's `on name` there),
//! `view name key=value …`, `set name json` (a setting), `wait milliseconds` (what is due fires), `restart` (only durable
//! rows are kept), each followed by a line with what comes of it. A step's answer may end in ` >> name {…}`
//! for each send. `BLESS=1` writes what comes now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

mod support;

use engine::{App, Context, Event, Send};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use support::{ME, PEER, arguments_of};

/// Tuesday, 14 November 2023, 22:13:20.123 UTC.
const BEGINS: i64 = 1_700_000_000_123;

fn context(now: i64) -> Context {
    Context { now, entropy: [7; 32], room: 100 }
}

/// Lets time pass: each event that is due, at the time when it is.
fn wait(app: &mut App, now: &mut i64, milliseconds: i64) -> String {
    let end = *now + milliseconds;
    let mut said = Vec::new();
    while let Some(due) = app.next_due().filter(|due| *due <= end) {
        *now = due.max(*now);
        let applied = app.event(Event::Due, &context(*now)).unwrap();
        let failed = applied.failed.map(|failed| format!(" failed: {failed}")).unwrap_or_default();
        let rows = applied.deltas.len();
        said.push(format!("+{} {rows} rows{failed}{}", *now - BEGINS, sends(&applied.sends)));
    }
    *now = end;
    if said.is_empty() { "nothing".into() } else { said.join(", ") }
}

/// The app as the log has it.
fn restart(app: &mut App, now: i64) -> String {
    let rows = app.snapshot().rows();
    let (ticks, module) = (app.ticks(), app.snapshot().module().clone());
    let mut again = App::new(Arc::new(module), ME);
    for row in &rows {
        again.restore(row.list, &row.key, row.row.as_deref()).unwrap();
    }
    again.resume(&ticks, now);
    assert_eq!(again.snapshot().rows(), rows, "what was restored is what was kept");
    *app = again;
    format!("{} rows", rows.len())
}

fn sends(sends: &[Send]) -> String {
    sends
        .iter()
        .map(|send| format!(" >> {} to {}", send.output, if send.to == ME { "me" } else { "peer" }))
        .collect()
}

/// Does one step and says what came of it; a failed step must leave the state as it was.
fn step(app: &mut App, now: &mut i64, step: &str) -> String {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    match verb {
        "wait" => return wait(app, now, rest.parse().expect("milliseconds")),
        "restart" => return restart(app, *now),
        _ => {}
    }
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
            .view(name, &query, "local", *now)
            .unwrap_or_else(|wrong| format!("error: {wrong}"));
    }
    if verb == "set" {
        return app.set(name, rest).map_or_else(|wrong| format!("error: {wrong}"), |()| "ok".into());
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
    match app.event(event, &context(*now)) {
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
        let mut now = BEGINS;
        app.resume(&[], now);
        let lines: Vec<&str> = steps.lines().filter(|line| !line.is_empty()).collect();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let said = step(&mut app, &mut now, line);
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
