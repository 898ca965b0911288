//! The messenger as an app: two of them talk by handing each other's sends over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use engine::{App, Context, Event, Send};
use sealing::NodeId;
use std::sync::Arc;

const SOURCE: &str = include_str!("../../../apps/messenger/messenger.weft");
const ANN: NodeId = NodeId([1; 32]);
const BEN: NodeId = NodeId([2; 32]);

fn messenger(me: NodeId) -> App {
    let module = weft::compile(SOURCE, "messenger.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    App::new(Arc::new(module), me)
}

fn post(app: &mut App, name: &str, arguments: String, now: i64) -> (Option<String>, Vec<Send>) {
    let event = Event::Input { name, arguments: arguments.as_bytes(), by: "local" };
    let applied = app.event(event, &Context { now, entropy: [0; 32], room: 100 }).unwrap();
    (applied.answer, applied.sends)
}

/// Hands a send over and tells the sender what became of it.
fn hand_over(from: (&mut App, NodeId), to: (&mut App, NodeId), send: &Send, now: i64) -> Vec<Send> {
    assert_eq!(send.to, to.1);
    let context = Context { now, entropy: [0; 32], room: 100 };
    let (output, arguments) = (send.output.as_str(), send.arguments.as_slice());
    let event = Event::From { name: output, arguments, peer: from.1, app: &send.app };
    match to.0.event(event, &context) {
        Ok(applied) => {
            let event =
                Event::Delivered { output, arguments, peer: to.1, answer: applied.carried.as_deref() };
            from.0.event(event, &context).unwrap();
            applied.sends
        }
        Err(refused) => {
            let reason = refused.to_string();
            let event = Event::Refused { output, arguments, peer: to.1, reason: &reason };
            from.0.event(event, &context).unwrap();
            Vec::new()
        }
    }
}

fn view(app: &App, name: &str, query: &[(&str, String)]) -> String {
    let query: Vec<(String, String)> =
        query.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
    app.snapshot().view(name, &query, "local", 0).unwrap()
}

#[test]
fn a_line_goes_over_and_is_read() {
    let (mut ann, mut ben) = (messenger(ANN), messenger(BEN));
    post(&mut ann, "befriend", format!(r#"{{"node":"{BEN}","name":"Ben"}}"#), 1);
    post(&mut ben, "befriend", format!(r#"{{"node":"{ANN}","name":"Ann"}}"#), 1);
    let (answer, sends) = post(&mut ann, "write", format!(r#"{{"to":"{BEN}","text":"hello"}}"#), 5);
    assert_eq!(answer.as_deref(), Some("1"));
    let waiting = r#"[{"id":1,"text":"hello","mine":true,"at":5,"progress":"waiting","why":""}]"#;
    assert_eq!(view(&ann, "conversation", &[("peer", BEN.to_string())]), waiting);

    hand_over((&mut ann, ANN), (&mut ben, BEN), &sends[0], 7);
    let delivered = waiting.replace("waiting", "delivered");
    assert_eq!(view(&ann, "conversation", &[("peer", BEN.to_string())]), delivered);
    let there = r#"[{"id":1,"text":"hello","mine":false,"at":7,"progress":"delivered","why":""}]"#;
    assert_eq!(view(&ben, "conversation", &[("peer", ANN.to_string())]), there);
    assert_eq!(
        view(&ben, "people", &[]),
        format!(r#"[{{"name":"Ann","node":"{ANN}","verified":false,"unread":1,"writing":false}}]"#)
    );
    assert_eq!(view(&ben, "unread", &[]), "1");

    let (_, seen) = post(&mut ben, "open", format!(r#"{{"peer":"{ANN}"}}"#), 9);
    assert_eq!(seen.len(), 1);
    hand_over((&mut ben, BEN), (&mut ann, ANN), &seen[0], 10);
    let read = waiting.replace("waiting", "read");
    assert_eq!(view(&ann, "conversation", &[("peer", BEN.to_string())]), read);
    assert_eq!(view(&ben, "unread", &[]), "0");
    let (_, again) = post(&mut ben, "open", format!(r#"{{"peer":"{ANN}"}}"#), 11);
    assert!(again.is_empty(), "what was seen is not sent twice");
}

#[test]
fn a_stranger_is_refused_and_the_writer_hears_why() {
    let (mut ann, mut ben) = (messenger(ANN), messenger(BEN));
    post(&mut ann, "befriend", format!(r#"{{"node":"{BEN}","name":"Ben"}}"#), 1);
    let (_, sends) = post(&mut ann, "write", format!(r#"{{"to":"{BEN}","text":"hello"}}"#), 5);
    hand_over((&mut ann, ANN), (&mut ben, BEN), &sends[0], 6);
    let refused =
        r#"[{"id":1,"text":"hello","mine":true,"at":5,"progress":"refused","why":"not a contact"}]"#;
    assert_eq!(view(&ann, "conversation", &[("peer", BEN.to_string())]), refused);
    assert_eq!(view(&ben, "people", &[]), "[]");
}

#[test]
fn a_conversation_shows_the_newest_hundred_first() {
    let mut ann = messenger(ANN);
    post(&mut ann, "befriend", format!(r#"{{"node":"{BEN}","name":"Ben"}}"#), 1);
    for number in 1..=120 {
        let (answer, _) =
            post(&mut ann, "write", format!(r#"{{"to":"{BEN}","text":"line {number}"}}"#), number);
        assert_eq!(answer, Some(number.to_string()));
    }
    let shown = view(&ann, "conversation", &[("peer", BEN.to_string())]);
    assert!(shown.starts_with(r#"[{"id":120,"text":"line 120""#), "{shown}");
    assert_eq!(shown.matches("\"id\"").count(), 100);
    assert!(shown.contains(r#""id":21,"#) && !shown.contains(r#""id":20,"#));
}
