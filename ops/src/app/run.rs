//! `selvedge app run`: an app in memory, a command a line.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use engine::{App, Applied, Context, Event};
use sealing::{Identity, NodeId};
use serde_json::{Value, json};

use crate::output::Output;

/// No command is longer, in bytes: as much as a post to a node may have.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// How many views are watched: each is computed after every event.
const WATCHED_MAX: usize = 32;
/// How many of its own sends an app takes for one command: two handlers can send to each other for ever.
const ARRIVALS_MAX: usize = 1_000;
/// Sends of one event: as many as an event may make.
const ROOM: usize = 4_096;
/// Who posts, as on a node on loopback.
const BY: &str = "local";

/// Timers and `every` that fire for one command: more is a wait that was meant otherwise.
const FIRINGS_MAX: usize = 10_000;
/// What the words for time mean, in milliseconds.
const UNITS: [(&str, i64); 5] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const HELP: &str = "commands: post INPUT JSON, view NAME argument=value…, watch NAME argument=value…, set SETTING JSON, \
advance TIME, inputs, views, help, quit";

/// Runs the app until `quit` or the end of standard input.
///
/// # Errors
/// The app is not right, or nobody reads any more.
pub fn run(file: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    let (module, _) = super::compile(file)?;
    let mut entropy = [0; 64];
    getrandom::fill(&mut entropy).context("the system gives no random bytes")?;
    let mut session = Session::new(module, Identity::from_seed(&entropy).id());
    let (name, node) = (session.app.module().name.clone(), session.me.to_string());
    output.say(|| format!("{name} runs in memory; {HELP}"), || json!({ "ready": name, "node": node }))?;
    let people = std::io::stdin().is_terminal();
    let mut input = std::io::stdin().lock();
    let mut failed = false;
    loop {
        if people && !output.is_json() {
            output.prompt()?;
        }
        let Some(line) = read_line(&mut input)? else { break };
        let said =
            line.and_then(|line| session.command(&line, &context()?).map_err(|why| anyhow::anyhow!(why)));
        match said {
            Ok(said) => {
                for one in said.lines {
                    output.say(|| one.people, || one.programs)?;
                }
                if said.quit {
                    break;
                }
            }
            Err(why) => {
                failed = true;
                output.error(&why.to_string());
            }
        }
    }
    Ok(if failed && !people { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn context() -> anyhow::Result<Context> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).context("the system gives no random bytes")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    Ok(Context { now: i64::try_from(now.as_millis())?, entropy, room: ROOM })
}

/// A line, none at the end; a line that is too long or no text is an error of its own.
fn read_line(input: &mut impl BufRead) -> anyhow::Result<Option<anyhow::Result<String>>> {
    let mut line = Vec::new();
    if input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("cannot read standard input")? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        // The rest of it is passed over, piece by piece.
        loop {
            let piece = input.fill_buf().context("cannot read standard input")?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(piece.len(), |end| end + 1);
            input.consume(length);
            if end.is_some() || length == 0 {
                break;
            }
        }
        return Ok(Some(Err(anyhow::anyhow!("a command has at most {LINE_BYTES_MAX} bytes"))));
    }
    Ok(Some(String::from_utf8(line).map_err(|_| anyhow::anyhow!("a command is text in UTF-8"))))
}

/// What a command says, in both forms.
#[derive(Debug, PartialEq)]
struct Line {
    people: String,
    programs: Value,
}

#[derive(Debug, Default, PartialEq)]
struct Said {
    lines: Vec<Line>,
    quit: bool,
}

impl Said {
    fn line(&mut self, people: impl Into<String>, programs: Value) {
        self.lines.push(Line { people: people.into(), programs });
    }
}

/// A view that is shown again when it has changed.
#[derive(Debug)]
struct Watched {
    name: String,
    query: Vec<(String, String)>,
    last: String,
}

#[derive(Debug)]
struct Session {
    app: App,
    me: NodeId,
    watched: Vec<Watched>,
    /// Never runs backward.
    now: i64,
    /// How far `advance` moved the clock.
    ahead: i64,
    /// Settings that still need a value.
    unset: Vec<String>,
}

impl Session {
    fn new(module: weft::Module, me: NodeId) -> Session {
        let needed = module.settings.iter().filter(|setting| setting.default.is_none());
        let unset = needed.map(|setting| setting.name.clone()).collect();
        let app = App::new(Arc::new(module), me);
        Session { app, me, watched: Vec::new(), now: i64::MIN, ahead: 0, unset }
    }

    fn command(&mut self, line: &str, context: &Context) -> Result<Said, String> {
        let mut said = Said::default();
        let clock = context.now.saturating_add(self.ahead);
        if self.now == i64::MIN {
            self.now = clock;
            self.app.resume(&[], clock);
        }
        self.fire_upto(clock, context, &mut said)?;
        let context = Context { now: self.now, ..*context };
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "" => {}
            "post" => self.post(rest, &context, &mut said)?,
            "view" => {
                let (name, query) = asked(rest)?;
                let value = self.view(&name, &query)?;
                said.line(value.clone(), json!({ "view": name, "value": parsed(&value) }));
            }
            "watch" => self.watch(rest, &mut said)?,
            "set" => self.set(rest, &mut said)?,
            "advance" => {
                let time = duration(rest)?;
                self.ahead = self.ahead.saturating_add(time);
                let clock = self.now.saturating_add(time);
                self.fire_upto(clock, &context, &mut said)?;
                said.line(format!("it is {time} ms later"), json!({ "advanced": time }));
            }
            "inputs" => names(self.app.module().inputs.iter().map(|input| &input.name), &mut said),
            "views" => names(self.app.module().views.iter().map(|view| &view.name), &mut said),
            "help" => said.line(HELP, json!({ "help": HELP })),
            "quit" | "exit" => {
                said.quit = true;
                said.line("nothing is kept", json!({ "quit": true }));
            }
            _ => return Err(format!("{word:?} is no command; {HELP}")),
        }
        Ok(said)
    }

    fn post(&mut self, rest: &str, context: &Context, said: &mut Said) -> Result<(), String> {
        let (name, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        if name.is_empty() {
            return Err("post what? post INPUT JSON".into());
        }
        self.all_set()?;
        let event = Event::Input { name, arguments: body.trim().as_bytes(), by: BY };
        let applied = self.app.event(event, context).map_err(|why| why.to_string())?;
        let answer = applied.answer.as_deref();
        let people = answer.map_or_else(|| "done".to_owned(), str::to_owned);
        let mut programs = json!({ "posted": name });
        if let Some(answer) = answer {
            programs["answer"] = parsed(answer);
        }
        said.line(people, programs);
        self.arrive(applied, context, said)?;
        self.show_changes(said)
    }

    /// As a node does, which does not start an app without them.
    fn all_set(&self) -> Result<(), String> {
        match self.unset.first() {
            Some(name) => Err(format!("setting `{name}` has no value: set {name} JSON")),
            None => Ok(()),
        }
    }

    fn set(&mut self, rest: &str, said: &mut Said) -> Result<(), String> {
        let (name, value) = rest.split_once(char::is_whitespace).ok_or("set what? set SETTING JSON")?;
        self.app.set(name, value.trim()).map_err(|why| why.to_string())?;
        self.unset.retain(|unset| unset != name);
        said.line("done", json!({ "set": name }));
        if self.unset.is_empty() { self.show_changes(said) } else { Ok(()) }
    }

    /// The clock goes on, and what is due on the way fires in its order.
    fn fire_upto(&mut self, clock: i64, context: &Context, said: &mut Said) -> Result<(), String> {
        let mut fired = 0;
        while let Some(due) = self.app.next_due().filter(|due| *due <= clock && self.unset.is_empty()) {
            fired += 1;
            if fired > FIRINGS_MAX {
                return Err(format!(
                    "more than {FIRINGS_MAX} timers fired; the rest fire with the next command"
                ));
            }
            self.now = self.now.max(due);
            // Chance comes from what is handed in: no two firings get the same.
            let mut entropy = context.entropy;
            entropy.iter_mut().zip(u64::to_le_bytes(fired as u64)).for_each(|(byte, count)| *byte ^= count);
            let context = Context { now: self.now, entropy, ..*context };
            let applied = self.app.event(Event::Due, &context).map_err(|why| why.to_string())?;
            if let Some(why) = &applied.failed {
                said.line(why.clone(), json!({ "failed": why }));
            }
            self.arrive(applied, &context, said)?;
        }
        self.now = self.now.max(clock);
        if fired > 0 { self.show_changes(said) } else { Ok(()) }
    }

    /// What the app sent to itself arrives; the rest is shown.
    fn arrive(&mut self, applied: Applied, context: &Context, said: &mut Said) -> Result<(), String> {
        show_endpoint_sends(&applied, said);
        let mut waiting: VecDeque<engine::Send> = applied.sends.into();
        let mut arrivals = 0;
        while let Some(sent) = waiting.pop_front() {
            if sent.to != self.me || sent.app != self.app.module().name {
                let (to, app) = (sent.to.to_string(), sent.app);
                said.line(
                    format!("sent {} to {app} of {to}", sent.output),
                    json!({ "sent": sent.output, "to": to, "app": app }),
                );
                continue;
            }
            arrivals += 1;
            if arrivals > ARRIVALS_MAX {
                return Err(format!(
                    "the app sent more than {ARRIVALS_MAX} times to itself; the rest is dropped"
                ));
            }
            let (name, arguments, me) = (sent.output.as_str(), &sent.arguments[..], self.me);
            let app = self.app.module().name.clone();
            let taken = self.app.event(Event::From { name, arguments, peer: me, app: &app }, context);
            let reason = taken.as_ref().err().map(ToString::to_string);
            let word = match &reason {
                None => Event::Delivered { output: name, arguments, peer: me, answer: None },
                Some(reason) => Event::Refused { output: name, arguments, peer: me, reason },
            };
            let heard = self.app.event(word, context);
            for done in [taken, heard].into_iter().flatten() {
                show_endpoint_sends(&done, said);
                waiting.extend(done.sends);
            }
        }
        Ok(())
    }

    fn view(&self, name: &str, query: &[(String, String)]) -> Result<String, String> {
        self.all_set()?;
        self.app.snapshot().view(name, query, BY, self.now).map_err(|why| why.to_string())
    }

    fn watch(&mut self, rest: &str, said: &mut Said) -> Result<(), String> {
        let (name, query) = asked(rest)?;
        let last = self.view(&name, &query)?;
        if self.watched.len() >= WATCHED_MAX {
            return Err(format!("{WATCHED_MAX} views are watched already"));
        }
        said.line(format!("{name}: {last}"), json!({ "watched": name, "value": parsed(&last) }));
        self.watched.push(Watched { name, query, last });
        Ok(())
    }

    fn show_changes(&mut self, said: &mut Said) -> Result<(), String> {
        for at in 0..self.watched.len() {
            let Watched { name, query, last } = &self.watched[at];
            let now = self.view(name, query).unwrap_or_else(|why| json!({ "error": why }).to_string());
            if now != *last {
                said.line(format!("{name}: {now}"), json!({ "watched": name, "value": parsed(&now) }));
                self.watched[at].last = now;
            }
        }
        Ok(())
    }
}

fn show_endpoint_sends(applied: &Applied, said: &mut Said) {
    for sent in &applied.endpoint_sends {
        let (output, arguments, to) = (&sent.output, &sent.arguments, &sent.to);
        said.line(
            format!("sent {output} {arguments} to {to}"),
            json!({ "sent": output, "to": to, "arguments": parsed(arguments) }),
        );
    }
}

/// `15 min` in milliseconds.
fn duration(text: &str) -> Result<i64, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == ' ');
    let number = text[..text.len() - unit.len()].trim().replace('_', "");
    let length = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length);
    let number = number.parse::<i64>().ok();
    let time = length.zip(number).and_then(|(length, number)| number.checked_mul(length));
    time.ok_or_else(|| format!("{text:?} is no time: write 15 min; there are ms, s, min, h and d"))
}

fn names<'n>(names: impl Iterator<Item = &'n String>, said: &mut Said) {
    let names: Vec<&str> = names.map(String::as_str).collect();
    said.line(names.join(" "), json!({ "names": names }));
}

/// JSON as the engine wrote it.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// A view and its arguments: `top n=3 player="ann b"`.
fn asked(rest: &str) -> Result<(String, Vec<(String, String)>), String> {
    let mut words = words(rest).into_iter();
    let name = words.next().ok_or("which view? view NAME argument=value…")?;
    let query = words.map(|word| {
        let (argument, value) =
            word.split_once('=').ok_or_else(|| format!("{word:?} is no argument: write argument=value"))?;
        let quoted = value.starts_with('"').then(|| serde_json::from_str(value).ok()).flatten();
        Ok((argument.to_owned(), quoted.unwrap_or_else(|| value.to_owned())))
    });
    let query: Result<_, String> = query.collect();
    Ok((name, query?))
}

/// Words between spaces; space in quotes does not end one.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for character in text.chars() {
        if character.is_whitespace() && !quoted {
            words.push(String::new());
            continue;
        }
        quoted ^= character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SOURCE: &str = "\
app scores
record Score { player: text, points: int = 0 }
state board: list of Score by player
state heard: list of text
on add(player: text, points: int) -> int {
  require points > 0 else \"more than nothing\"
  let s = board[player] else board add Score { player }
  s.points += points
  send note(player) to me
  return s.points
}
on note(player: text) from peer {
  require player != \"eve\" else \"not eve\"
  heard add player
}
on refused note(player) to _ because reason { heard add \"{player}: {reason}\" }
on loop() from peer { send loop() to peer }
on turn() { send loop() to me }
on tell(to: node) { send note(\"x\") to to }
view total = sum(s.points for s in board)
view of(player: text) = board[player]
view all_heard = heard
";

    fn session() -> Session {
        let module = weft::compile(SOURCE, "scores.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
        Session::new(module, Identity::from_seed(&[1; 64]).id())
    }

    /// A conversation: commands, and what is said to each, to people and to programs.
    fn check(session: &mut Session, command: &str, people: &str, programs: &str) {
        let context = Context { now: 0, entropy: [0; 32], room: ROOM };
        let said = session.command(command, &context);
        let (said_people, said_programs) = match said {
            Ok(said) => said.lines.iter().fold((String::new(), String::new()), |(people, programs), line| {
                (people + &line.people + "\n", programs + &line.programs.to_string() + "\n")
            }),
            Err(why) => (format!("error: {why}"), format!("error: {why}")),
        };
        assert_eq!(said_people.trim_end(), people, "{command}");
        assert_eq!(said_programs.trim_end(), programs, "{command}");
    }

    #[test]
    fn a_conversation() {
        let mut session = session();
        let session = &mut session;
        check(session, "watch total", "total: 0", r#"{"watched":"total","value":0}"#);
        check(
            session,
            r#"post add {"player":"ann b","points":3}"#,
            "3\ntotal: 3",
            "{\"posted\":\"add\",\"answer\":3}\n{\"watched\":\"total\",\"value\":3}",
        );
        check(
            session,
            r#"view of player="ann b""#,
            r#"{"player":"ann b","points":3}"#,
            r#"{"view":"of","value":{"player":"ann b","points":3}}"#,
        );
        check(session, "view of player=ben", "null", r#"{"view":"of","value":null}"#);
        check(
            session,
            r#"post add {"player":"eve","points":0}"#,
            "error: more than nothing",
            "error: more than nothing",
        );
        check(
            session,
            r#"  post  add  {"player":"eve","points":1}  "#,
            "1\ntotal: 4",
            "{\"posted\":\"add\",\"answer\":1}\n{\"watched\":\"total\",\"value\":4}",
        );
        check(
            session,
            "view all_heard",
            r#"["ann b","eve: not eve"]"#,
            r#"{"view":"all_heard","value":["ann b","eve: not eve"]}"#,
        );
        check(session, "inputs", "add turn tell", r#"{"names":["add","turn","tell"]}"#);
        check(session, "", "", "");
    }

    #[test]
    fn what_is_sent_to_others_is_shown_and_what_never_ends_is_ended() {
        let mut session = session();
        let other = Identity::from_seed(&[2; 64]).id();
        check(
            &mut session,
            &format!(r#"post tell {{"to":"{other}"}}"#),
            &format!("done\nsent note to scores of {other}"),
            &format!("{{\"posted\":\"tell\"}}\n{{\"sent\":\"note\",\"to\":\"{other}\",\"app\":\"scores\"}}"),
        );
        let why = "error: the app sent more than 1000 times to itself; the rest is dropped";
        check(&mut session, "post turn", why, why);
    }

    #[test]
    fn settings_are_asked_for_and_timers_fire_as_the_clock_goes_on() {
        let source = "\
app clock
setting most: int
state ticks: int = 0
state late: list of text
on remind(text: text) { start ring(text) after 10 min }
on timer ring(text: text) {
  require text != \"bad\" else \"no bad ones\"
  late add text
}
every 1 h { if ticks < most { ticks += 1 } }
view all_late = late
view count_of_ticks = ticks
";
        let module = weft::compile(source, "clock.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut session = Session::new(module, Identity::from_seed(&[1; 64]).id());
        let session = &mut session;
        let none = "error: setting `most` has no value: set most JSON";
        check(session, "view all_late", none, none);
        let wrong = "error: setting `clock.most`: expected int, found a text";
        check(session, "set most \"many\"", wrong, wrong);
        check(session, "set most 2", "done", r#"{"set":"most"}"#);
        check(session, "watch all_late", "all_late: []", r#"{"watched":"all_late","value":[]}"#);
        check(session, r#"post remind {"text":"tea"}"#, "done", r#"{"posted":"remind"}"#);
        check(session, "advance 9 min", "it is 540000 ms later", r#"{"advanced":540000}"#);
        check(
            session,
            "advance 1min",
            "all_late: [\"tea\"]\nit is 60000 ms later",
            "{\"watched\":\"all_late\",\"value\":[\"tea\"]}\n{\"advanced\":60000}",
        );
        check(session, "advance 5 h", "it is 18000000 ms later", r#"{"advanced":18000000}"#);
        check(session, "view count_of_ticks", "2", r#"{"view":"count_of_ticks","value":2}"#);
        check(session, r#"post remind {"text":"bad"}"#, "done", r#"{"posted":"remind"}"#);
        let failed = "timer `ring`: no bad ones";
        let programs = format!("{{\"failed\":\"{failed}\"}}\n{{\"advanced\":3600000}}");
        check(session, "advance 1 h", &format!("{failed}\nit is 3600000 ms later"), &programs);
        for wrong in ["advance", "advance 5", "advance 5 weeks", "advance 99999999999999999999 d"] {
            assert!(
                session.command(wrong, &Context { now: 0, entropy: [0; 32], room: ROOM }).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut session = session();
        for (command, says) in [
            ("sing", "\"sing\" is no command; commands: post"),
            ("post", "post what?"),
            ("post sing", "app `scores` has no input `sing`"),
            ("post add {", "expected"),
            ("post add []", "expected"),
            ("view", "which view?"),
            ("view sing", "app `scores` has no view `sing`"),
            ("view of ann", "\"ann\" is no argument"),
            ("view of", "player"),
            ("watch of player=", "ok"),
        ] {
            let context = Context { now: 0, entropy: [0; 32], room: ROOM };
            let said = session.command(command, &context).map(|_| "ok".to_owned()).unwrap_or_else(|why| why);
            assert!(said.contains(says), "{command}: {said}");
        }
    }

    #[test]
    fn lines_are_read_whole_and_long_ones_passed_over() {
        let mut input = b"view total\n".to_vec();
        input.extend(std::iter::repeat_n(b'x', (LINE_BYTES_MAX + 10) as usize));
        input.extend(b"\n\xff\nquit");
        let mut input = &input[..];
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input).unwrap() {
            lines.push(line.map_err(|why| why.to_string()));
        }
        let expected = [
            Ok("view total\n".to_owned()),
            Err("a command has at most 1048576 bytes".to_owned()),
            Err("a command is text in UTF-8".to_owned()),
            Ok("quit".to_owned()),
        ];
        assert_eq!(lines, expected);
    }
}
