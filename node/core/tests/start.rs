//! What a start refuses, and what it gives apps: settings, and what `every` missed.

#![allow(clippy::disallowed_types, reason = "a test has the log around the core")]

use engine::Snapshot;
use node_core::{Core, Effect, Input, Out, Post, Recovery, ReplyId, Source, Start, StartError};
use sealing::{NodeId, Run};
use store::{Log, Memory};

const HOUR: i64 = 3_600_000;

struct Disk {
    log: Log<Memory>,
    frames: u64,
    published: Option<Snapshot>,
    wake: Option<i64>,
}

fn start(
    storage: &Memory,
    now: i64,
    source: &str,
    settings: &[(&str, &str)],
) -> Result<(Core, Disk), StartError> {
    let module = weft::compile(source, "a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let apps = vec![Source { text: source.to_owned(), module, settings, allow_loss: false }];
    let mut recovery = Recovery::default();
    let (log, opened) = Log::open(storage.clone(), [5; 32], &mut |change| recovery.change(change))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    let run = Run { counter: opened.run, random: [1; 16] };
    let start = Start {
        me: NodeId([1; 32]),
        run,
        entropy: [2; 32],
        now,
        synced: opened.synced,
        apps,
        notices: Vec::new(),
    };
    let mut core = recovery.start(start)?;
    let mut disk = Disk { log, frames: 0, published: None, wake: None };
    disk.carry_out(&mut core, now);
    Ok((core, disk))
}

impl Disk {
    fn carry_out(&mut self, core: &mut Core, now: i64) {
        while let Some(effect) = core.poll_effect() {
            match effect {
                Effect::Append { sequence, changes } => {
                    self.frames += 1;
                    let appended =
                        self.log.append(sequence, &changes).unwrap_or_else(|wrong| panic!("{wrong}"));
                    let synced = self.log.sync(appended).unwrap_or_else(|wrong| panic!("{wrong}"));
                    core.handle(now, Input::Synced(synced));
                }
                Effect::WakeAt(wake) => self.wake = wake,
                Effect::Checkpoint { .. } => {}
                Effect::Out(released) => match released.into_inner() {
                    Out::Publish { snapshot, .. } => self.published = Some(snapshot),
                    Out::Outdate { .. } => self.published = None,
                    _ => {}
                },
            }
        }
    }

    fn tick(&mut self, core: &mut Core, now: i64) {
        core.handle(now, Input::Time);
        self.carry_out(core, now);
    }

    fn view(&self, name: &str) -> String {
        let snapshot = self.published.as_ref().unwrap_or_else(|| panic!("a start publishes"));
        snapshot.view(name, &[], "", 0).unwrap_or_else(|wrong| panic!("{wrong}"))
    }
}

#[test]
fn a_start_needs_every_setting_and_says_how_to_give_it() {
    const SOURCE: &str =
        "app a\nsetting pace: duration = 5 s\nsetting limit: int\nview both = { pace, limit }";
    let check = |settings: &[(&str, &str)], expected: &str| {
        match start(&Memory::new(1), 0, SOURCE, settings) {
            Ok((_, disk)) => assert_eq!(disk.view("both"), expected),
            Err(wrong) => assert_eq!(wrong.to_string(), expected),
        };
    };
    check(&[], "a needs a value for its setting `limit`: int. Give it with --set a.limit=JSON");
    check(&[("limit", "7")], r#"{"pace":5000,"limit":7}"#);
    check(&[("limit", "7"), ("pace", "1")], r#"{"pace":1,"limit":7}"#);
    check(&[("limit", "\"7\"")], "setting `a.limit`: expected int, found a text");
    check(&[("limit", "7"), ("no", "1")], "app `a` has no setting `no`: it has pace, limit");
}

#[test]
fn every_fires_once_for_what_it_missed_and_never_for_what_it_did() {
    const SOURCE: &str = "app a\nstate ticks: int = 0\nevery 1 h { ticks += 1 }\nview seen = ticks";
    let storage = Memory::new(1);
    let begins = 10 * HOUR + 5;
    let Ok((mut core, mut disk)) = start(&storage, begins, SOURCE, &[]) else { panic!("it starts") };
    assert_eq!((disk.view("seen").as_str(), disk.wake), ("0", Some(11 * HOUR)));
    disk.tick(&mut core, 11 * HOUR - 1);
    assert_eq!(disk.view("seen"), "0", "woken too early");
    disk.tick(&mut core, 11 * HOUR);
    assert_eq!((disk.view("seen").as_str(), disk.wake), ("1", Some(12 * HOUR)));
    // Restarted within the hour: nothing was missed.
    storage.restart();
    let Ok((mut core, mut disk)) = start(&storage, 11 * HOUR + 9, SOURCE, &[]) else { panic!("it starts") };
    disk.tick(&mut core, 11 * HOUR + 10);
    assert_eq!((disk.view("seen").as_str(), disk.wake), ("1", Some(12 * HOUR)));
    // Down for a day: once for all that it missed.
    storage.restart();
    let Ok((mut core, mut disk)) = start(&storage, 35 * HOUR + 9, SOURCE, &[]) else { panic!("it starts") };
    assert_eq!(disk.wake, Some(12 * HOUR));
    disk.tick(&mut core, 35 * HOUR + 10);
    assert_eq!((disk.view("seen").as_str(), disk.wake), ("2", Some(36 * HOUR)));
}

#[test]
fn a_tick_that_changes_nothing_writes_nothing() {
    let source = "app a\nstate ticks: int = 0\nevery 1 h { if ticks > 0 { ticks += 1 } }";
    let Ok((mut core, _)) = start(&Memory::new(1), 5, source, &[]) else { panic!("it starts") };
    core.handle(HOUR, Input::Time);
    while let Some(effect) = core.poll_effect() {
        assert!(
            matches!(effect, Effect::WakeAt(Some(_))),
            "an idle node writes and says nothing: {effect:?}"
        );
    }
}

#[test]
fn an_every_that_fired_does_not_fire_again_because_another_had_not() {
    const SOURCE: &str = "app a\nstate days: int = 0\nstate minutes: int = 0\n\
        every 1 d { days += 1 }\nevery 1 min { minutes += 1 }\nview both = { days, minutes }";
    let storage = Memory::new(1);
    let midnight = 24 * HOUR;
    {
        let (mut core, mut disk) =
            start(&storage, midnight - 1, SOURCE, &[]).unwrap_or_else(|w| panic!("{w}"));
        disk.tick(&mut core, midnight);
        assert_eq!(disk.view("both"), r#"{"days":1,"minutes":1}"#);
    }
    let (mut core, mut disk) = start(&storage, midnight, SOURCE, &[]).unwrap_or_else(|w| panic!("{w}"));
    disk.tick(&mut core, midnight);
    assert_eq!(disk.view("both"), r#"{"days":1,"minutes":1}"#, "nothing was missed");
    drop((core, disk));
    let (mut core, mut disk) =
        start(&storage, midnight + HOUR, SOURCE, &[]).unwrap_or_else(|w| panic!("{w}"));
    disk.tick(&mut core, midnight + HOUR);
    assert_eq!(disk.view("both"), r#"{"days":1,"minutes":2}"#, "an hour of minutes was missed: once");
}

#[test]
fn an_app_at_which_nobody_looks_is_published_once_somebody_does() {
    const SOURCE: &str = "app a\nstate n: int = 0\non add() { n += 1 }\nview seen = n\n";
    let (mut core, mut disk) =
        start(&Memory::new(1), 0, SOURCE, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    let watched = |is_watched| Input::Watched { app: "a".to_owned(), is_watched };
    core.handle(0, add());
    disk.carry_out(&mut core, 0);
    assert_eq!(disk.view("seen"), "1");
    core.handle(0, watched(false));
    disk.carry_out(&mut core, 0);
    assert_eq!(disk.view("seen"), "1", "what is as new as the state stays");
    for _ in 0..3 {
        core.handle(0, add());
        disk.carry_out(&mut core, 0);
        assert!(disk.published.is_none(), "what was published is older than what was answered");
    }
    core.handle(0, watched(true));
    disk.carry_out(&mut core, 0);
    assert_eq!(disk.view("seen"), "4", "nothing was under way");
    core.handle(0, watched(false));
    core.handle(0, add());
    core.handle(0, watched(true));
    core.handle(0, add());
    // The first of the two is being written, the second in the open batch: what is looked at waits for both.
    disk.carry_out(&mut core, 0);
    assert_eq!(disk.view("seen"), "6");
    core.handle(0, watched(true));
    core.handle(0, Input::Watched { app: "other".to_owned(), is_watched: true });
    disk.carry_out(&mut core, 0);
    assert_eq!(disk.view("seen"), "6");
}

#[test]
fn what_is_gathered_is_one_frame() {
    const SOURCE: &str = "app a\nstate n: int = 0\non add() { n += 1 }\nview seen = n\n";
    let (mut core, mut disk) =
        start(&Memory::new(1), 0, SOURCE, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    for _ in 0..3 {
        core.gather(0, add());
        assert!(core.poll_effect().is_none(), "more comes");
    }
    core.close();
    let frames = disk.frames;
    disk.carry_out(&mut core, 0);
    assert_eq!((disk.view("seen").as_str(), disk.frames), ("3", frames + 1));
}

fn add() -> Input {
    let (app, input, body, by) = ("a".to_owned(), "add".to_owned(), b"{}".to_vec(), String::new());
    Input::Post(Post { reply: ReplyId(1), app, input, body, by, idempotency_key: None })
}
