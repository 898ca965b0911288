//! What holds for every history: a refused event leaves no trace, deltas rebuild the state, the same history gives the
//! same bytes, and no bytes make the engine panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use engine::{App, Applied, Context, Delta, Event, EventError, ViewError};
use proptest::prelude::*;
use sealing::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{ME, PEER};

const SOURCE: &str = r#"
app model
enum Mood { calm, wild }
record Item { id: int, owner: text, mood: Mood = .calm, tags: list of text, note: text? }
record Pair { left: text, right: int, count: int = 0 }
state items: list of Item by id index owner index mood, owner
state pairs: list of Pair by left, right
state total: int = 0
state last: Item?
on make(owner: text, note: text?) -> int {
  let i = items add Item { id: next_id(items), owner, note, tags: [] }
  total += 1
  last = i
  return i.id
}
on tag(id: int, text: text) {
  let i = items[id] else refuse "no item {id}"
  i.tags add text
  i.mood = if i.mood == .calm then .wild else .calm
  require length(i.tags) < 4 else "enough tags"
}
on drop(id: int) { remove items[id]; total -= 1; require total >= 0 else "below nothing" }
on pair(left: text, right: int) {
  let p = pairs[left, right] else pairs add Pair { left, right }
  p.count += right
  pairs put Pair { left, right: right + 1, count: p.count }
}
on clean(owner: text) {
  for i in items where i.owner == owner and i.mood == .wild { i.mood = .calm; i.note = none }
  remove p for p in pairs where p.left == owner and p.right > 2
  last = none
}
on refuse_late(owner: text) {
  for i in items { i.owner = owner }
  remove p for p in pairs
  total = 1000
  let n = next_id(items)
  refuse "after {n}"
}
on overflow(id: int) { items put Item { id: 77, owner: "x", tags: [] }; total = 9223372036854775807; total += id }
on hear(number: int, item: Item) from peer { items put item; total = number; require peer != me else "myself" }
on tell(number: int) { let i = first(i for i in items order by i.owner, i.id desc) else return; send hear(number, i) to me }
record Mark { owner: text, count: int }
transient state marks: list of Mark by owner
every 20 ms { remove p for p in pairs where p.count == 0; if last is i { start later(i.id, i.owner) at now } }
on timer later(id: int, owner: text) {
  let i = items[id] else refuse "item {id} is gone"
  i.note = "late"
  marks put Mark { owner, count: random(1, 9) }
  if id % 2 == 0 { start later(id - 1, owner) after 3 ms }
}
on plan(id: int, wait: int) { start later(id, "o") after wait * 1 ms; if wait == 3 { cancel later(id - 1, "o") } }
view between(a: int, b: int) = {
  open: [i.id for i in items where i.id > a and i.id < b], closed: [i.id for i in items where b >= i.id and a <= i.id],
  within: [i.id for i in items where i.id in a .. b], above: [i.id for i in items where i.owner != "" and i.id >= b],
  pairs: [p.count for p in pairs where p.left == "a" and p.right > a and p.right <= b],
  texts: [p.right for p in pairs where p.left >= "a" and p.left < "b"],
  live: count(p for p in pairs where p.left == "a" and p.right in a .. b),
  newest: [i.id for i in items where i.owner == "a" and i.id >= a order by i.id desc take 2],
  oldest: first(i.id for i in items where i.mood == .wild order by i.id),
  last: [p for p in pairs where p.left == "a" and p.right < b order by p.right desc],
  most: [p.count for p in pairs order by p.left desc, p.right desc take b], least: [p.count for p in pairs order by p.left take b],
  alike: [p.right for p in pairs order by p.left desc]
}
view between_slow(a: int, b: int) = {
  open: [i.id for i in items where i.id + 0 > a and i.id + 0 < b],
  closed: [i.id for i in items where b >= i.id + 0 and a <= i.id + 0], within: [i.id for i in items where i.id + 0 in a .. b],
  above: [i.id for i in items where i.owner != "" and i.id + 0 >= b],
  pairs: [p.count for p in pairs where "{p.left}" == "a" and p.right + 0 > a and p.right + 0 <= b],
  texts: [p.right for p in pairs where "{p.left}" >= "a" and "{p.left}" < "b"],
  live: count(p for p in pairs where "{p.left}" == "a" and p.right + 0 in a .. b),
  newest: [i.id for i in items where "{i.owner}" == "a" and i.id + 0 >= a order by i.id + 0 desc take 2],
  oldest: first(i.id for i in items where not (i.mood != .wild) order by i.id + 0),
  last: [p for p in pairs where "{p.left}" == "a" and p.right + 0 < b order by p.right + 0 desc],
  most: [p.count for p in pairs order by "{p.left}" desc, p.right desc take b],
  least: [p.count for p in pairs order by "{p.left}" take b], alike: [p.right for p in pairs order by "{p.left}" desc]
}
view by_owner = [
  { g.key, ids: [i.id for i in g.rows], size: count(g.rows) }
  for i in items group by i.owner as g where g.key != "" order by count(g.rows) desc
]
view counted -> list of Mark {
  var seen: list of Mark by owner
  for i in items { let m = seen[i.owner] else seen add Mark { owner: i.owner, count: 0 }; m.count += 1 }
  return seen
}
view owners = [{ i.owner, i.id } for i in items order by i.owner, i.id]
view of(owner: text) = [i.id for i in items where i.owner == owner]
view of_slow(owner: text) = [i.id for i in items where contains(i.owner, owner) and i.owner == "{owner}"]
view mood(mood: Mood, owner: text) = [i.id for i in items where i.mood == mood and i.owner == owner]
view everything = { items, pairs, total, last }
"#;

/// Takes every kind of value that JSON has.
const KINDS: &str = "
app kinds
enum Mood { calm, wild }
record Part { b: bool, n: int?, t: text?, x: real?, m: Mood?, l: list of bool }
on take(b: bool, o: bool?, r: Part, l: list of Part?) {}
view show(b: bool?, n: int?, t: text?, x: real?, m: Mood?, r: Part?, l: list of bool = []) = b
";
const BODY: &str = r#"{"b":true,"o":null,"r":{"b":false,"n":-17,"t":"é\u00e9\n","x":1.5e3,"m":"calm","l":[true,false]},"l":[null]}"#;

/// Not an input: what is due by [`LATE`] fires.
const DUE: &str = "due";
const LATE: i64 = 60;

fn app() -> App {
    let module = weft::compile(SOURCE, "model.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut app = App::new(Arc::new(module), ME);
    app.resume(&[], 0);
    app
}

fn post(app: &mut App, name: &str, arguments: &str) -> Result<Applied, EventError> {
    if name == DUE {
        return app.event(Event::Due, &Context { now: LATE, entropy: [1; 32], room: 8 });
    }
    let event = Event::Input { name, arguments: arguments.as_bytes(), by: "local" };
    app.event(event, &Context { now: 5, entropy: [0; 32], room: 8 })
}

/// A post: its name and its arguments.
fn posts() -> impl Strategy<Value = (&'static str, String)> {
    let owner = || prop::sample::select(vec!["a", "b", "a\\u0000", ""]);
    let number = || -1..5i64;
    prop_oneof![
        4 => (owner(), any::<bool>()).prop_map(|(owner, note)| {
            ("make", format!(r#"{{"owner":"{owner}","note":{}}}"#, if note { "\"n\"" } else { "null" }))
        }),
        4 => (number(), owner()).prop_map(|(id, text)| ("tag", format!(r#"{{"id":{id},"text":"{text}"}}"#))),
        2 => number().prop_map(|id| ("drop", format!(r#"{{"id":{id}}}"#))),
        3 => (owner(), number()).prop_map(|(left, right)| ("pair", format!(r#"{{"left":"{left}","right":{right}}}"#))),
        1 => owner().prop_map(|owner| ("clean", format!(r#"{{"owner":"{owner}"}}"#))),
        2 => owner().prop_map(|owner| ("refuse_late", format!(r#"{{"owner":"{owner}"}}"#))),
        2 => number().prop_map(|id| ("overflow", format!(r#"{{"id":{id}}}"#))),
        1 => number().prop_map(|number| ("tell", format!(r#"{{"number":{number}}}"#))),
        1 => Just(("make", "{}".to_owned())),
        3 => (number(), number()).prop_map(|(id, wait)| ("plan", format!(r#"{{"id":{id},"wait":{wait}}}"#))),
        3 => Just((DUE, String::new())),
    ]
}

type Rows = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

fn keep(rows: &mut Rows, deltas: &[Delta]) {
    for delta in deltas {
        let place = (delta.list, delta.key.clone());
        match &delta.row {
            Some(row) => drop(rows.insert(place, row.clone())),
            None => drop(rows.remove(&place)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn histories(history in prop::collection::vec(posts(), 0..60)) {
        let (mut first, mut second, mut restored) = (app(), app(), app());
        let mut logged = Rows::new();
        for (name, arguments) in &history {
            let before = first.snapshot();
            let outcome = post(&mut first, name, arguments);
            prop_assert_eq!(&outcome, &post(&mut second, name, arguments), "the same history, the same outcome");
            match outcome {
                Ok(applied) => {
                    for delta in &applied.deltas {
                        restored.restore(delta.list, delta.key, delta.row).unwrap();
                    }
                    keep(&mut logged, &applied.deltas.to_vec());
                }
                Err(_) => prop_assert_eq!(before.rows(), first.snapshot().rows(), "a refused event left a trace"),
            }
            prop_assert_eq!(first.snapshot().rows(), restored.snapshot().rows(), "deltas rebuild the state");
        }
        // The log replayed whole, in the order of its places, is the state too; and it goes on as if nothing had been.
        let mut replayed = app();
        for ((list, key), row) in &logged {
            replayed.restore(*list, key, Some(row)).unwrap();
        }
        prop_assert_eq!(replayed.snapshot().rows(), first.snapshot().rows());
        for owner in ["a", "b", "a\0", ""] {
            let query = [("owner".to_owned(), owner.to_owned())];
            let by_index = replayed.snapshot().view("of", &query, "", 0);
            prop_assert_eq!(&by_index, &first.snapshot().view("of", &query, "", 0));
            prop_assert_eq!(&by_index, &first.snapshot().view("of_slow", &query, "", 0), "an index misses a row");
        }
        for (a, b) in [(0, 3), (2, 2), (-1, 1), (3, 0), (1, 99), (i64::MIN, i64::MAX)] {
            let query = [("a".to_owned(), a.to_string()), ("b".to_owned(), b.to_string())];
            let ranged = first.snapshot().view("between", &query, "", 0);
            prop_assert!(ranged.is_ok(), "{:?}", ranged);
            prop_assert_eq!(ranged, first.snapshot().view("between_slow", &query, "", 0), "a range misses a row");
        }
        prop_assert_eq!(post(&mut replayed, "make", r#"{"owner":"z"}"#), post(&mut first, "make", r#"{"owner":"z"}"#));
    }

    #[test]
    fn a_snapshot_sees_what_was(history in prop::collection::vec(posts(), 1..40)) {
        let mut app = app();
        let mut kept = Vec::new();
        for (name, arguments) in &history {
            let snapshot = app.snapshot();
            let seen = snapshot.view("everything", &[], "", 0).unwrap();
            kept.push((snapshot, seen));
            let _ = post(&mut app, name, arguments);
        }
        for (snapshot, seen) in kept {
            prop_assert_eq!(snapshot.view("everything", &[], "", 0).unwrap(), seen);
        }
    }

    #[test]
    fn what_is_sent_is_heard_as_it_was(owner in "[a-z\u{0}é]{0,5}", note in prop::option::of("[a-z]{0,3}"), number in any::<i64>()) {
        let mut sender = app();
        let note = note.map_or("null".into(), |note| format!("{note:?}"));
        let owner = owner.replace('\0', "\\u0000");
        post(&mut sender, "make", &format!(r#"{{"owner":"{owner}","note":{note}}}"#)).unwrap();
        let sent = post(&mut sender, "tell", &format!(r#"{{"number":{number}}}"#)).unwrap().sends;
        let mut receiver = app();
        let event = Event::From { name: &sent[0].output, arguments: &sent[0].arguments, peer: PEER, app: &sent[0].app };
        receiver.event(event, &Context { now: 0, entropy: [0; 32], room: 0 }).unwrap();
        prop_assert_eq!(receiver.snapshot().view("owners", &[], "", 0), sender.snapshot().view("owners", &[], "", 0));
    }

    #[test]
    fn any_bytes_as_json(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[\\[\\]{}\":,\\\\a-z0-9. -]{0,40}") {
        let mut app = app();
        for arguments in [&bytes[..], text.as_bytes(), format!(r#"{{"owner":{text}}}"#).as_bytes()] {
            for name in ["make", "tag", "clean", "hear", "no"] {
                let event = Event::Input { name, arguments, by: &text };
                let _ = app.event(event, &Context { now: i64::MAX, entropy: [0; 32], room: 1 });
            }
        }
        let _ = app.snapshot().view("of", &[(text.clone(), text.clone())], &text, i64::MIN);
        let _ = app.snapshot().view("mood", &[("mood".into(), text.clone()), ("owner".into(), text)], "", 0);
    }

    /// Bodies near a right one, and the same as parameters of a query.
    #[test]
    fn any_text_as_json(
        at in 0..BODY.len(),
        gone in 0..3usize,
        put in prop_oneof![".{0,2}", "[\u{80}-\u{10ffff}]{1,2}", "[\u{80}-\u{7ff}]", "[\\[\\]{}\":,\\\\a-z0-9.-]"],
    ) {
        let module = weft::compile(KINDS, "kinds.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut app = App::new(Arc::new(module), ME);
        post(&mut app, "take", BODY).unwrap();
        let text: Vec<char> = BODY.chars().collect();
        let (before, after) = text.split_at(at % text.len());
        let after = &after[gone.min(after.len())..];
        let text: String = before.iter().copied().chain(put.chars()).chain(after.iter().copied()).collect();
        if let Err(wrong) = post(&mut app, "take", &text) {
            prop_assert!(matches!(wrong, EventError::Shape { .. }), "{}", wrong);
        }
        for part in text.split_inclusive([':', ',']).chain([text.as_str(), put.as_str()]) {
            let part = part.trim_end_matches([':', ',']);
            for name in ["b", "n", "t", "x", "m", "r", "l"] {
                let _ = app.snapshot().view("show", &[(name.to_owned(), part.to_owned())], "", 0);
            }
        }
    }

    #[test]
    fn any_bytes_as_arguments_and_rows(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        at in 0..80usize,
        byte in any::<u8>(),
        list in prop_oneof![0..6u32, Just(engine::COUNTERS), Just(engine::TIMERS)],
    ) {
        let mut app = app();
        post(&mut app, "make", r#"{"owner":"o","note":"n"}"#).unwrap();
        let mut sent = post(&mut app, "tell", r#"{"number":3}"#).unwrap().sends[0].arguments.clone();
        let length = sent.len();
        sent[at % length] = byte;
        let context = Context { now: 0, entropy: [0; 32], room: 1 };
        for arguments in [&bytes[..], &sent] {
            let _ = app.event(Event::From { name: "hear", arguments, peer: PEER, app: "model" }, &context);
            let _ = app.event(Event::Delivered { output: "hear", arguments, peer: PEER, answer: Some(arguments) }, &context);
            let _ = app.event(Event::Refused { output: "hear", arguments, peer: PEER, reason: "" }, &context);
        }
        for row in app.snapshot().rows() {
            let mut noisy = row.row.clone().unwrap_or_default();
            if let Some(place) = noisy.get_mut(at % row.key.len().max(1)) {
                *place = byte;
            }
            let _ = app.restore(row.list, &row.key, Some(&noisy));
        }
        let before = app.snapshot().rows();
        if app.restore(list, &bytes, Some(&bytes)).is_err() {
            prop_assert_eq!(app.snapshot().rows(), before);
        }
        let _ = app.restore(list, &bytes, None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Programs near a real one: what still compiles runs without a panic, and no register holds what the checker
    /// has not proven.
    #[test]
    fn a_program_with_a_part_moved(from in 0..SOURCE.len(), length in 0..25usize, to in 0..SOURCE.len(), history in prop::collection::vec(posts(), 0..12)) {
        let words: Vec<&str> = SOURCE.split_inclusive([' ', '\n']).collect();
        let (from, to) = (from % words.len(), to % words.len());
        let part = &words[from..(from + length % 4).min(words.len())];
        let moved = [&words[..to], part, &words[to + 1..]].concat().concat();
        let Ok(module) = weft::compile(&moved, "moved.weft") else { return Ok(()) };
        let mut app = App::new(Arc::new(module), ME);
        for (name, arguments) in &history {
            if let Err(wrong) = post(&mut app, name, arguments) {
                prop_assert!(!wrong.to_string().contains("compiled code is broken"), "{}", wrong);
            }
        }
        for (view, query) in [("owners", None), ("of", Some("owner")), ("everything", None)] {
            let query: Vec<_> = query.map(|name| (name.to_owned(), "a".to_owned())).into_iter().collect();
            if let Err(wrong) = app.snapshot().view(view, &query, "", 0) {
                prop_assert!(!wrong.to_string().contains("compiled code is broken"), "{}", wrong);
            }
        }
    }
}

#[test]
fn rows_of_no_durable_list_are_refused() {
    let mut app = app();
    let numbers =
        [0, 1, 5, 99, engine::COUNTERS, engine::TIMERS, weft::module::SCRATCH, weft::module::SCRATCH + 1];
    for list in numbers {
        let before = app.snapshot().rows();
        let is_there = app.restore(engine::COUNTERS, &u32::to_be_bytes(list), Some(&[2])).is_ok();
        assert_eq!(is_there, list < 2 || list == 4, "a counter of the list {list}");
        if list >= 4 {
            assert_eq!(app.snapshot().rows(), before, "a counter of the list {list} left a trace");
        }
        assert!(list < 5 || app.restore(list, &[], None).is_err(), "a row of the list {list}");
    }
}

#[test]
fn words_of_json_are_whole() {
    let module = weft::compile(KINDS, "kinds.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut app = App::new(Arc::new(module), ME);
    for (was, is, said) in [
        ("true", "tru\u{e9}", "field `b`: expected bool, found something that is no JSON"),
        ("true", "tru\u{20ac}", "field `b`: expected bool, found something that is no JSON"),
        ("true", "truest", "field `b`: expected bool, found something that is no JSON"),
        ("true", "true\u{e9}", "expected `,` or `}`, found something that is no JSON"),
        ("false", "fals\u{1f600}", "field `r.b`: expected bool, found something that is no JSON"),
        ("null", "nul\u{e9}", "field `o`: expected bool, found something that is no JSON"),
        (
            "[null]",
            "[nu\u{20ac}]",
            "field `l[0]`: expected Part (an object with b: bool, n: int? = null, t: text? = null, x: real? = null, \
             m: Mood? = null, l: list of bool), found something that is no JSON",
        ),
        ("-17", "-\u{e9}", "field `r.n`: expected int, a whole number, found -"),
    ] {
        let wrong = post(&mut app, "take", &BODY.replacen(was, is, 1)).unwrap_err();
        assert_eq!(wrong, EventError::Shape { message: said.into() }, "{is}");
    }
}

/// Two bytes of a body, or of a send, can stand for a record of many fields.
#[test]
fn what_arguments_make_is_charged() {
    let fields: String = (0..200).map(|at| format!(", f{at}: int?")).collect();
    let source = format!(
        "app wide\nrecord Wide {{ id: int = 0{fields} }}\nstate n: int = 0\n
        on take(l: list of Wide) {{ n = count(l) }}\non hear(l: list of Wide) from peer {{ n = count(l) }}\n
        view size(l: list of Wide) = count(l)"
    );
    let module = weft::compile(&source, "wide.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut app = App::new(Arc::new(module), ME);
    // A value takes more than sixteen bytes, which cost an operation.
    for (count, least) in [(100, Some(100 * 201)), (60_000, None)] {
        let list = format!("[{}{{}}]", "{},".repeat(count - 1));
        let mut sent = b"\x01\x01\x01l\x09".to_vec();
        let mut left = count;
        while left >= 128 {
            sent.push(left as u8 | 128);
            left >>= 7;
        }
        sent.push(left as u8);
        sent.extend(b"\x08\x00".repeat(count));
        let body = format!(r#"{{"l":{list}}}"#);
        let context = Context { now: 0, entropy: [0; 32], room: 8 };
        for event in [
            Event::Input { name: "take", arguments: body.as_bytes(), by: "local" },
            Event::From { name: "hear", arguments: &sent, peer: PEER, app: "wide" },
        ] {
            match (app.event(event, &context), least) {
                (Ok(applied), Some(least)) => assert!(applied.operations > least, "{}", applied.operations),
                (Err(EventError::Budget { .. }), None) => {}
                (other, _) => panic!("{count}: {other:?}"),
            }
        }
        let viewed = app.snapshot().view("size", &[("l".into(), list)], "", 0);
        match least {
            Some(_) => assert_eq!(viewed, Ok(count.to_string())),
            None => assert!(matches!(viewed, Err(ViewError::Budget { .. })), "{viewed:?}"),
        }
    }
}

#[test]
fn deep_json_is_an_error() {
    let mut app = app();
    for open in ["[", "{\"a\":", "{\"owner\":[", "{\"owner\":{\"owner\":"] {
        let deep = open.repeat(100_000);
        let wrong = post(&mut app, "make", &deep).unwrap_err();
        assert!(matches!(wrong, EventError::Shape { .. }), "{wrong}");
    }
}

#[test]
fn a_send_is_these_bytes() {
    let mut app = app();
    post(&mut app, "make", r#"{"owner":"o","note":null}"#).unwrap();
    let sent = post(&mut app, "tell", r#"{"number":-3}"#).unwrap();
    let mut golden =
        b"\x01\x02\x06number\x02\x05\x04item\x08\x05\x02id\x02\x02\x05owner\x03\x01o\x04mood\x07\x04calm"
            .to_vec();
    golden.extend_from_slice(b"\x04tags\x09\x00\x04note\x00");
    assert_eq!(sent.sends[0].arguments, golden);
    assert_eq!((sent.sends[0].to, sent.sends[0].app.as_str()), (ME, "model"));
}

#[test]
fn a_row_is_these_bytes() {
    let mut app = app();
    let applied = post(&mut app, "make", r#"{"owner":"o","note":"n"}"#).unwrap();
    let row = b"\x02\x01o\x00\x00\x01\x01n".to_vec();
    let key = vec![0x80, 0, 0, 0, 0, 0, 0, 1];
    let expected = vec![
        Delta { list: 0, key, row: Some(row.clone()) },
        Delta { list: 2, key: vec![], row: Some(vec![2]) },
        Delta { list: 3, key: vec![], row: Some([vec![1], row].concat()) },
        Delta { list: engine::COUNTERS, key: vec![0; 4], row: Some(vec![2]) },
    ];
    assert_eq!(applied.deltas.to_vec(), expected);
}

#[test]
fn a_row_that_is_what_it_was_is_no_delta() {
    let mut app = app();
    post(&mut app, "make", r#"{"owner":"o"}"#).unwrap();
    let same = post(&mut app, "clean", r#"{"owner":"nobody"}"#).unwrap().deltas;
    assert_eq!(same.len(), 1, "only `last` is another one");
    assert_eq!(post(&mut app, "clean", r#"{"owner":"nobody"}"#).unwrap().deltas.to_vec(), []);
}

#[test]
fn words_of_the_fabric_without_a_handler_do_nothing() {
    let mut app = app();
    let context = Context { now: 0, entropy: [0; 32], room: 1 };
    let event = Event::Delivered { output: "hear", arguments: b"noise", peer: NodeId([3; 32]), answer: None };
    assert_eq!(app.event(event, &context), Ok(Applied::default()));
}

#[test]
fn what_is_shared_between_threads_may_be() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    shared(&app().snapshot());
}
