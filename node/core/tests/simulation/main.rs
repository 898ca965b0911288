//! Whole nodes in one process, from one seed: the core, the link's endpoint and the log that ship, over a network that
//! loses, doubles and reorders, a web that loses and fails, and a disk that loses power. What was answered is kept; what was
//! sent is applied once, in order; what an app or an address refused or an app answered is heard, once, of that send.
//!
//! More seeds: `SELVEDGE_SEEDS=5000 cargo test --release -p selvedge-core --test simulation`. One seed, traced:
//! `SELVEDGE_SEED=17`.
#![allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test says what it did, and is told which seeds"
)]

mod check;
mod crowd;
mod web;
mod world;

use world::{FAULTS, Reached, Story, World};

const APP: &str = r#"
app echo

enum How { waiting, delivered, refused }

record Got { id: int, peer: node, number: int }
record Sent {
  number: int, to: node, how: How, web: How = .waiting, reminded: int = 0, ticks: int = 0, answered: int = 0,
}
record Answer { number: int, words: text }

setting hook: endpoint

state got: list of Got by id
record Hint { peer: node, number: int, times: int = 0 }

state sent: list of Sent by number
state hints: list of Hint by peer, number

transient output hint(number: int)
output posted(number: int)

on write(to: node, number: int) {
  sent add Sent { number, to, how: .waiting }
  send say(number) to to
  send hint(number) to to
  send posted(number) to hook
  start remind(number) after 5 s
  start remind(number) after 700 ms
}

on timer remind(number: int) {
  let s = sent[number] else refuse "nothing was sent"
  s.reminded += 1
  require number % 5 != 0 else "a multiple of five is not reminded of"
}

every 3 s {
  for s in sent where s.ticks == 0 { s.ticks += 1 }
}

on say(number: int) from peer -> Answer {
  require number % 7 != 0 else "a multiple of seven"
  got add Got { id: next_id(got), peer, number }
  if number % 3 != 0 { return Answer { number, words: "" } }
  let w = "Two answers of this length do not fit one packet of a link, so that some wait for others. "
  return Answer { number, words: "{w}{w}{w}{w}{w}{w}{w}{w}" }
}

on hint(number: int) from peer {
  let h = hints[peer, number] else hints add Hint { peer, number }
  h.times += 1
}

on delivered say(number) to _ with answer {
  let s = sent[number] else refuse "nothing was sent"
  require s.how == .waiting else "heard twice"
  s.how = .delivered
  if answer is a { s.answered = a.number }
}

on refused say(number) to _ because _ {
  let s = sent[number] else refuse "nothing was sent"
  require s.how == .waiting else "heard twice"
  s.how = .refused
}

on delivered posted(number) to address {
  let s = sent[number] else refuse "nothing was sent"
  require s.web == .waiting and address == hook else "heard twice"
  s.web = .delivered
}

on refused posted(number) to address because why {
  let s = sent[number] else refuse "nothing was sent"
  require s.web == .waiting and address == hook and why == "404: no multiples of eleven" else "heard twice"
  s.web = .refused
}

view received(peer: node) = [g.number for g in got where g.peer == peer order by g.id]
view hinted(peer: node) = [{ h.number, h.times } for h in hints where h.peer == peer]
view outcomes(to: node) = [
  { s.number, s.how, s.web, s.reminded, s.ticks, s.answered } for s in sent where s.to == to order by s.number
]
"#;

/// Seeds of the short form.
const SEEDS: u64 = 120;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs seeds, and says which one failed and whether each fault was reached.
fn run_seeds(story: Story, faults: &[&str]) {
    let one = number_from("SELVEDGE_SEED");
    // A crowd's worlds are so many times as large.
    let part = if story == Story::Crowd { 6 } else { 1 };
    let seeds = number_from("SELVEDGE_SEEDS").unwrap_or(SEEDS) / part;
    let seeds = one.map_or(0..seeds, |seed| seed..seed + 1);
    let mut reached = Reached::new();
    for seed in seeds {
        let mut world = World::new(seed, story);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        if let Err(panic) = ran {
            eprintln!("again, with a trace: SELVEDGE_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
        for (what, times) in world.reached {
            *reached.entry(what).or_default() += times;
        }
    }
    if one.is_none() {
        for what in faults {
            assert!(reached.contains_key(what), "no seed reached: {what}");
        }
    }
}

#[test]
fn what_was_answered_is_kept_and_what_was_sent_is_applied_once() {
    run_seeds(Story::Faults, &FAULTS);
}

#[test]
fn a_node_set_back_in_time_applies_nothing_twice_and_names_what_is_missing() {
    run_seeds(Story::SetBack, &["set back", "killed", "lost"]);
}

#[test]
fn nodes_that_send_each_other_more_than_there_is_room_for_all_go_on() {
    run_seeds(Story::Crowd, &["full", "held", "refused for room", "killed", "power cut"]);
}
