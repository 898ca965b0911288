//! The whole thread on real processes: two nodes, real sockets, kill -9, a browser.
#![allow(clippy::print_stderr, reason = "a test says what it did")]

mod browser;
mod demo;

use browser::Browser;
use demo::{Demo, NodeUnderTest, PATIENCE, wait_for};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Lines in each direction.
const LINES: usize = 100;

/// Kills of each node.
const KILLS: usize = 10;

/// A word that every line has and no recording may have.
const WORD: &str = "herring";

fn line(writer: &str, number: usize) -> String {
    format!("{writer} saw {WORD} number {number}")
}

/// Writes all lines in order, each until it is answered: a key makes that safe over kill -9. A few lines a round, so
/// that every kill falls among lines that are being written and sent.
fn write_lines(name: &'static str, from: &NodeUnderTest, to: &str, round: &AtomicUsize) {
    for number in 0..LINES {
        wait_for("the next round", || {
            let open = LINES / KILLS * (round.load(Ordering::SeqCst) + 1);
            if number < open { Ok(()) } else { Err(format!("{open} lines are open")) }
        });
        let body = json!({ "to": to, "text": line(name, number) });
        from.post_until_answered("/messenger/write", &body, &format!("{name}-{number}"));
    }
}

/// Texts of the lines in a conversation that are one's own, or the other's, oldest first.
fn texts(conversation: &Value, mine: bool) -> Vec<String> {
    let lines = conversation.as_array().expect("a conversation is a list");
    let own = lines.iter().rev().filter(|line| line["mine"] == mine);
    own.map(|line| line["text"].as_str().expect("a line has a text").to_owned()).collect()
}

#[test]
fn a_hundred_lines_both_ways_while_each_node_is_killed_ten_times() {
    let mut demo = Demo::start(&[]);
    let (ann, ben) = (demo.node("ann"), demo.node("ben"));
    let round = Arc::new(AtomicUsize::new(0));
    let writers = [("ann", ann.clone(), ben.id.clone()), ("ben", ben.clone(), ann.id.clone())];
    let writers: Vec<_> = writers
        .into_iter()
        .map(|(name, from, to)| {
            let round = Arc::clone(&round);
            std::thread::spawn(move || write_lines(name, &from, &to, &round))
        })
        .collect();
    for _ in 0..KILLS {
        for name in ["ann", "ben"] {
            let killed = demo.command(&format!("kill {name}"));
            assert_eq!(killed["killed"], name, "{killed}");
            let started = demo.command(&format!("start {name}"));
            assert_eq!(started["started"], name, "{started}");
        }
        round.fetch_add(1, Ordering::SeqCst);
    }
    for writer in writers {
        writer.join().expect("every line was answered");
    }
    for (name, own, other_name, other) in [("ann", &ann, "ben", &ben), ("ben", &ben, "ann", &ann)] {
        let path = format!("/messenger/conversation?peer={}&n=1000", other.id);
        let conversation = wait_for(&format!("all of {name}'s lines are settled"), || {
            let conversation = own.get(&path)?;
            let lines = conversation.as_array().map_or(&[][..], Vec::as_slice);
            let settled = lines.iter().filter(|line| line["progress"] == "delivered").count();
            if settled >= 2 * LINES { Ok(conversation) } else { Err(format!("{settled} of {}", 2 * LINES)) }
        });
        let expected = |name: &str| (0..LINES).map(|number| line(name, number)).collect::<Vec<_>>();
        assert_eq!(texts(&conversation, true), expected(name), "{name}'s own lines: each once, in order");
        assert_eq!(texts(&conversation, false), expected(other_name), "{other_name}'s lines at {name}'s");
        let progress = conversation.as_array().expect("a list").iter().map(|line| &line["progress"]);
        assert!(progress.into_iter().all(|progress| progress == "delivered"), "{conversation}");
    }
    let recording = std::fs::read(demo.recording()).expect("the recording is a file");
    assert!(recording.len() > LINES * 2 * WORD.len(), "the recording has what passed: {}", recording.len());
    for word in [WORD, "number", "messenger", "progress"] {
        let found = recording.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()));
        assert!(!found, "the recording has the word {word:?} in it");
    }
    assert!(demo.end().success(), "the demo ends well");
}

#[test]
fn ctrl_c_leaves_nothing_running_and_nothing_lying_about() {
    let demo = Demo::start(&[]);
    let nodes = ["ann", "ben"].map(|name| demo.node(name));
    let recording = demo.recording();
    let interrupted = Command::new("kill").args(["-INT", &demo.pid().to_string()]).status();
    assert!(interrupted.expect("there is kill").success());
    let status = demo.wait();
    assert!(status.code().is_some(), "it ends by itself, not by the signal: {status}");
    for node in nodes {
        assert!(std::net::TcpStream::connect(&node.http).is_err(), "{} is still served", node.http);
    }
    assert!(
        !recording.parent().expect("it is in the demo's folder").exists(),
        "the temporary folder is gone"
    );
}

#[test]
fn a_line_typed_at_anns_page_appears_at_bens() {
    let Some((at_ann, at_ben)) = browsers() else { return };
    let demo = Demo::start(&[]);
    let (ann, ben) = (demo.node("ann"), demo.node("ben"));
    let deadline = Instant::now() + PATIENCE;
    let text = "Shall we mend the net tomorrow?";
    for (browser, node) in [(&at_ann, &ann), (&at_ben, &ben)] {
        browser.open(&format!("http://{}/messenger/", node.http)).expect("the page opens");
        browser.wait_for_text("#node-id", &node.id, deadline).expect("the page shows whose it is");
    }
    at_ann.wait_for_text("#people .person", "ben", deadline).expect("ann knows ben");
    at_ann.click("#people .person").expect("ben can be chosen");
    at_ann.type_into("#line", text).expect("a line can be typed");
    at_ann.press_enter("#line").expect("Enter sends");
    at_ann.wait_for_text(".line.mine .text", text, deadline).expect("ann sees her line");
    at_ben.wait_for_text("#people .person", "ann", deadline).expect("ben knows ann");
    at_ben.click("#people .person").expect("ann can be chosen");
    at_ben.wait_for_text(".line:not(.mine) .text", text, deadline).expect("the line appears at ben's");
    at_ann.wait_for_text(".line.mine .progress", "✓✓", deadline).expect("ann sees that ben read it");
    // Ben begins to answer; ann sees it, until the answer is there.
    at_ben.type_into("#line", "With the new twine").expect("an answer can be begun");
    at_ann.wait_for_text("#typing", "is typing", deadline).expect("ann sees that ben is typing");
    at_ann.wait_for_text("#people .person .writing", "typing", deadline).expect("also among the contacts");
    at_ben.press_enter("#line").expect("Enter sends");
    at_ann.wait_for_text(".line:not(.mine) .text", "With the new twine", deadline).expect("the answer comes");
    at_ann.wait_until_gone("#typing", deadline).expect("nobody is typing any more");
    // Ann has compared ben's node id with the one at the bottom of ben's page.
    at_ann.wait_for_text("#compare-state", "Not verified", deadline).expect("nobody has compared anything");
    at_ann.click("#compare-state").expect("it opens");
    at_ann.wait_for_text("#compare-node", &ben.id, deadline).expect("what to compare is shown");
    at_ann.click("#verify").expect("ann says that it is the same");
    at_ann.wait_for_text("#compare-state", "Verified", deadline).expect("the page says so");
    at_ann.wait_for_text("#people .person .verified", "✓", deadline).expect("and so do the contacts");
    // What was said is found again, and leads to its line.
    at_ben.type_into("#words", "THE NET").expect("words can be typed");
    at_ben.wait_for_text("#found .finding", text, deadline).expect("the line is found");
    at_ben.click("#found .finding").expect("it can be chosen");
    at_ben.wait_for_text(".line.wanted .text", text, deadline).expect("the line is shown");
    assert!(demo.end().success(), "the demo ends well");
}

/// Two browsers, or none where Chromium is not installed: then the test says loudly that it tried nothing.
fn browsers() -> Option<(Browser, Browser)> {
    let start = || Browser::start().expect("an installed Chromium starts");
    match start().zip(start()) {
        Some(browsers) => Some(browsers),
        None => {
            let required = std::env::var_os("SELVEDGE_REQUIRE_BROWSER").is_some();
            assert!(!required, "SELVEDGE_REQUIRE_BROWSER is set, and there is no Chromium with its driver");
            eprintln!("\n*** SKIPPED: the page was not tried: install chromium and chromium-driver ***\n");
            None
        }
    }
}
