//! Any bytes to an app with a value of every type: as JSON to an input, as parameters of a view, as the arguments of a
//! send and of what came of one, as rows of the log, as settings. Nothing panics, what is refused leaves no trace, and
//! what is taken goes in again as it came out.

#![no_main]

use engine::{App, Context, Event};
use libfuzzer_sys::fuzz_target;
use sealing::NodeId;
use std::sync::{Arc, LazyLock};
use weft::Module;

const SOURCE: &str = include_str!("every_type.weft");
const ME: NodeId = NodeId([9; 32]);
const PEER: NodeId = NodeId([8; 32]);

static MODULE: LazyLock<Arc<Module>> = LazyLock::new(|| {
    let module = weft::compile(SOURCE, "every_type.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    Arc::new(module)
});

fuzz_target!(|bytes: &[u8]| {
    let Some((door, bytes)) = bytes.split_first() else { return };
    let mut app = App::new(Arc::clone(&MODULE), ME);
    app.resume(&[], 0);
    match door % 6 {
        0 => post(&mut app, bytes),
        1 => {
            event(
                &mut app,
                Event::From { name: "take_all", arguments: bytes, peer: PEER, app: "every_type" },
            );
        }
        2 => {
            event(
                &mut app,
                Event::Delivered { output: "take_all", arguments: bytes, peer: PEER, answer: Some(bytes) },
            );
            event(
                &mut app,
                Event::Refused { output: "take_all", arguments: bytes, peer: PEER, reason: "no" },
            );
        }
        3 => view(&app, bytes),
        4 => {
            let text = String::from_utf8_lossy(bytes);
            for setting in &MODULE.settings {
                let _ = app.set(&setting.name, &text);
            }
        }
        _ => restore(&mut app, bytes),
    }
});

fn event(app: &mut App, event: Event<'_>) -> bool {
    let context = Context { now: 1_700_000_000_000, entropy: [7; 32], room: 4 };
    let before = app.snapshot().rows();
    match app.event(event, &context) {
        Ok(applied) => {
            // What was sent to oneself is taken as it was.
            for send in applied.sends {
                let from =
                    Event::From { name: &send.output, arguments: &send.arguments, peer: ME, app: &send.app };
                assert!(app.event(from, &context).is_ok(), "what was sent is not heard");
            }
            true
        }
        Err(_) => {
            assert_eq!(app.snapshot().rows(), before, "a refused event left a trace");
            false
        }
    }
}

/// What is taken is shown, and what is shown is taken again.
fn post(app: &mut App, bytes: &[u8]) {
    if !event(app, Event::Input { name: "put_all", arguments: bytes, by: "fuzz" }) {
        return;
    }
    let shown = app.snapshot().view("shown", &[], "fuzz", 0).expect("it was put");
    let arguments = format!("{{\"all\":{shown}}}");
    let again = event(app, Event::Input { name: "put_all", arguments: arguments.as_bytes(), by: "fuzz" });
    assert!(again, "{arguments} is not taken");
    assert_eq!(app.snapshot().view("shown", &[], "fuzz", 0), Ok(shown), "it comes out as another");
}

/// Parameters are lines `name=text`.
fn view(app: &App, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let pairs = text.lines().map(|line| line.split_once('=').unwrap_or((line, "")));
    let query: Vec<(String, String)> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let _ = app.snapshot().view("show", &query, &text, i64::MIN);
}

/// Its list, the length of its key, the key and the row.
fn restore(app: &mut App, bytes: &[u8]) {
    let Some((list, rest)) = bytes.split_first_chunk::<2>() else { return };
    let list = match list[0] {
        255 => engine::COUNTERS,
        254 => engine::TIMERS,
        list => u32::from(list),
    };
    let (key, row) = rest.split_at(usize::from(bytes[1]).min(rest.len()));
    if app.restore(list, key, Some(row)).is_ok() {
        let rows = app.snapshot().rows();
        let mut again = App::new(Arc::clone(&MODULE), ME);
        for row in &rows {
            again.restore(row.list, &row.key, row.row.as_deref()).expect("what is kept is taken");
        }
        assert_eq!(again.snapshot().rows(), rows, "restored it is another");
    }
    let _ = app.restore(list, key, None);
    event(app, Event::Due);
}
