//! What the commands of `selvedge app run` do: one app in memory, with a clock that can be moved on.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::{App, Applied, Context, Due, Event};
use sealing::NodeId;
use serde_json::{Value, json};
use weft::module::{Door, Module, Type};

use super::difference;

/// How many views are watched: each is computed after every event.
const WATCHED_MAX: usize = 32;
/// How many of its own sends an app takes for one command: two handlers can send to each other for ever.
const ARRIVALS_MAX: usize = 1_000;
/// Sends of one event: as many as an event may make.
pub const ROOM: usize = 4_096;
/// Who posts, as on a node on loopback.
const BY: &str = "local";

/// Timers and `every` that fire for one command: more is a wait that was meant otherwise.
const FIRINGS_MAX: usize = 10_000;
/// Names that an error lists: more are a page, which `inputs` and `views` show.
const LISTED_MAX: usize = 12;

/// The commands, as help shows them.
pub const COMMANDS: &str =
    "  post INPUT field=value…    post to an input; the fields may be a JSON object, too
  from NODE INPUT field=value…  the same, as if that node had sent it
  view NAME argument=value…  show a view; quote a value with spaces
  watch NAME argument=value… show a view now, and whenever it has changed
  unwatch NAME               show it no more
  set SETTING JSON           give a setting its value; a duration as it is written: 15 min
  advance TIME               move the clock on, as by 15 min; timers fire
  inputs, views, settings    what there is, with types
  me                         this app's node
  help                       this list
  quit                       stop; nothing is kept";

const WORDS: &str = "post, from, view, watch, unwatch, set, advance, inputs, views, settings, me, help, quit";

/// What a command says, in both forms.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub people: String,
    pub programs: Value,
}

/// All that a command says, and whether it was the last one.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    pub lines: Vec<Line>,
    pub quit: bool,
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

/// An app in memory and what a person has asked of it.
#[derive(Debug)]
pub struct Session {
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
    /// Begins with an app that nothing has happened to.
    pub fn new(module: Module, me: NodeId) -> Session {
        let needed = module.settings.iter().filter(|setting| setting.default.is_none());
        let unset = needed.map(|setting| setting.name.clone()).collect();
        let app = App::new(Arc::new(module), me);
        Session { app, me, watched: Vec::new(), now: i64::MIN, ahead: 0, unset }
    }

    /// The app's name and whose node it runs on.
    pub fn about(&self) -> (String, String) {
        (self.app.module().name.clone(), self.me.to_string())
    }

    /// Does what a line asks for.
    ///
    /// # Errors
    /// Why it was not done, or not all of it.
    pub fn command(&mut self, line: &str, context: &Context) -> Result<Said, String> {
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
            "from" => self.from(rest, &context, &mut said)?,
            "view" => {
                let (name, query) = asked(rest)?;
                let value = self.view(&name, &query)?;
                said.line(value.clone(), json!({ "view": name, "value": parsed(&value) }));
            }
            "watch" => self.watch(rest, &mut said)?,
            "unwatch" => self.unwatch(rest, &mut said)?,
            "set" => self.set(rest, &mut said)?,
            "advance" => {
                let time = duration(rest)?;
                self.ahead = self.ahead.saturating_add(time);
                let clock = self.now.saturating_add(time);
                self.fire_upto(clock, &context, &mut said)?;
                said.line(format!("it is {rest} later"), json!({ "advanced": time }));
            }
            "me" => said.line(self.me.to_string(), json!({ "node": self.me.to_string() })),
            "inputs" => {
                let module = self.app.module();
                doors(&module.inputs, module, &mut said);
                if !module.from_inputs.is_empty() {
                    said.line("from other nodes:", json!({ "from": "other nodes" }));
                    doors(&module.from_inputs, module, &mut said);
                }
            }
            "views" => doors(&self.app.module().views, self.app.module(), &mut said),
            "settings" => self.settings(&mut said),
            "help" => said.line(COMMANDS, json!({ "help": COMMANDS })),
            "quit" | "exit" => {
                said.quit = true;
                said.line("nothing is kept", json!({ "quit": true }));
            }
            _ => return Err(format!("{word:?} is no command; commands: {WORDS}")),
        }
        Ok(said)
    }

    fn post(&mut self, rest: &str, context: &Context, said: &mut Said) -> Result<(), String> {
        let (name, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        if name.is_empty() {
            return Err("post what? post INPUT field=value…".into());
        }
        let module = self.app.module();
        there(module, What::Input, name)?;
        self.all_set()?;
        let body = self.body(name, body.trim())?;
        let event = Event::Input { name, arguments: body.as_bytes(), by: BY };
        self.happens(event, json!({ "posted": name }), context, said)
    }

    /// Something arrives as if another node had sent it.
    fn from(&mut self, rest: &str, context: &Context, said: &mut Said) -> Result<(), String> {
        let (node, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let rest = rest.trim();
        let (name, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        if name.is_empty() {
            return Err("what arrives from whom? from NODE INPUT field=value…".into());
        }
        let peer = node.parse::<NodeId>().map_err(|why| why.to_string())?;
        let module = self.app.module();
        there(module, What::FromInput, name).map_err(|why| format!("from another node: {why}"))?;
        self.all_set()?;
        let door = module.from_inputs.iter().find(|door| door.name == name);
        let app = door.and_then(|door| door.of.as_ref()).unwrap_or(&module.name).clone();
        let body = self.body(name, body.trim())?;
        let arguments = self
            .app
            .encoded(name, &app, body.as_bytes())
            .map_err(|why| format!("from another node: {why}"))?;
        let event = Event::From { name, arguments: &arguments, peer, app: &app };
        self.happens(event, json!({ "received": name }), context, said)
    }

    /// Something happens, and what comes of it is said.
    fn happens(
        &mut self,
        event: Event<'_>,
        mut programs: Value,
        context: &Context,
        said: &mut Said,
    ) -> Result<(), String> {
        let applied = self.app.event(event, context).map_err(|why| why.to_string())?;
        let answer = applied.answer.as_deref();
        let people = answer.map_or_else(|| "done".to_owned(), str::to_owned);
        if let Some(answer) = answer {
            programs["answer"] = parsed(answer);
        }
        said.line(people, programs);
        self.arrive(applied, context, said)?;
        self.show_changes(said)
    }

    /// A post's fields as JSON, also where they were typed as `player="ann b" points=3`.
    fn body(&self, input: &str, typed: &str) -> Result<String, String> {
        if !typed.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(typed.to_owned());
        }
        let module = self.app.module();
        let mut inputs = module.inputs.iter().chain(&module.from_inputs);
        let door = inputs.find(|door| door.name == input);
        let fields = door.map_or(&[][..], |door| &door.fields);
        let (_, given) = asked(&format!("{input} {typed}"))?;
        let given = given.into_iter().map(|(name, value)| {
            let field = fields.iter().find(|field| field.name == name);
            let is_text = field.is_none_or(|field| is_written_as_text(&field.kind));
            let is_none =
                value == "null" && matches!(field.map(|field| &field.kind), Some(Type::Optional(_)));
            let value = match field {
                _ if is_text && !is_none => Value::from(value).to_string(),
                Some(field) if is_duration(&field.kind) => in_milliseconds(value),
                _ => value,
            };
            // What is no JSON would be told of a place in it that nobody typed.
            match field {
                Some(field) if serde_json::from_str::<Value>(&value).is_err() => {
                    let kind = module.type_name(&field.kind);
                    Err(format!("field `{name}`: expected {kind}, found `{value}`"))
                }
                _ => Ok(format!("{}:{value}", Value::from(name))),
            }
        });
        let given: Result<Vec<String>, String> = given.collect();
        Ok(format!("{{{}}}", given?.join(",")))
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
        let mut shown = Fired::default();
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
            let next = self.app.next();
            let applied = self.app.event(Event::Due, &context).map_err(|why| why.to_string())?;
            if let Some((at, what)) = next {
                shown.show(what, at, said);
            }
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
                self.show_send(&sent, said);
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
            let answer = taken.as_ref().ok().and_then(|applied| applied.carried.clone());
            let word = match &reason {
                None => Event::Delivered { output: name, arguments, peer: me, answer: answer.as_deref() },
                Some(reason) => Event::Refused { output: name, arguments, peer: me, reason },
            };
            // Nobody hears what became of what is worth something now or never.
            let heard = (!sent.transient).then(|| self.app.event(word, context));
            for done in std::iter::once(taken).chain(heard).flatten() {
                show_endpoint_sends(&done, said);
                waiting.extend(done.sends);
            }
        }
        Ok(())
    }

    fn show_send(&self, sent: &engine::Send, said: &mut Said) {
        let arguments = self.app.carried(sent).unwrap_or_else(|| "…".to_owned());
        let (output, to, app) = (&sent.output, sent.to.to_string(), &sent.app);
        said.line(
            format!("sent {output} {arguments} to {app} of {to}"),
            json!({ "sent": output, "to": to, "app": app, "arguments": parsed(&arguments) }),
        );
    }

    fn settings(&self, said: &mut Said) {
        let module = self.app.module();
        let mut values = serde_json::Map::new();
        let mut shown = Vec::new();
        for setting in &module.settings {
            let value = self.app.setting(&setting.name).filter(|_| !self.unset.contains(&setting.name));
            let is = value.as_ref().map_or_else(
                || " (needs a value)".into(),
                |value| format!(" = {}", in_words(value, &setting.kind)),
            );
            shown.push(format!("{}: {}{is}", setting.name, module.type_name(&setting.kind)));
            values.extend(value.map(|value| (setting.name.clone(), parsed(&value))));
        }
        let names: Vec<&String> = module.settings.iter().map(|setting| &setting.name).collect();
        said.line(listed(&shown), json!({ "names": names, "values": values }));
    }

    fn view(&self, name: &str, query: &[(String, String)]) -> Result<String, String> {
        let module = self.app.module();
        there(module, What::View, name)?;
        self.all_set()?;
        let fields = module.views.iter().find(|door| door.name == name).map_or(&[][..], |door| &door.fields);
        let is_duration =
            |name: &str| fields.iter().any(|field| field.name == name && is_duration(&field.kind));
        let query = query.iter().cloned().map(|(name, value)| match is_duration(&name) {
            true => (name, in_milliseconds(value)),
            false => (name, value),
        });
        let query: Vec<(String, String)> = query.collect();
        self.app.snapshot().view(name, &query, BY, self.now).map_err(|why| why.to_string())
    }

    fn watch(&mut self, rest: &str, said: &mut Said) -> Result<(), String> {
        let (name, query) = asked(rest)?;
        let last = self.view(&name, &query)?;
        // Watched again, it is shown again, and each change once.
        self.watched.retain(|watched| (&watched.name, &watched.query) != (&name, &query));
        if self.watched.len() >= WATCHED_MAX {
            return Err(format!("{WATCHED_MAX} views are watched already: unwatch NAME ends one"));
        }
        said.line(format!("{name}: {last}"), json!({ "watched": name, "value": parsed(&last) }));
        self.watched.push(Watched { name, query, last });
        Ok(())
    }

    /// Ends the watching of a view, with these arguments or, without any, with whatever ones.
    fn unwatch(&mut self, rest: &str, said: &mut Said) -> Result<(), String> {
        let (name, query) = asked(rest)?;
        let before = self.watched.len();
        self.watched.retain(|watched| watched.name != name || !query.is_empty() && watched.query != query);
        if self.watched.len() == before {
            let mut names: Vec<&str> = self.watched.iter().map(|watched| watched.name.as_str()).collect();
            names.dedup();
            let there = if names.is_empty() {
                "none is".to_owned()
            } else {
                format!("what is: {}", names.join(", "))
            };
            return Err(format!("`{name}` is not watched; {there}"));
        }
        said.line("done", json!({ "unwatched": name }));
        Ok(())
    }

    fn show_changes(&mut self, said: &mut Said) -> Result<(), String> {
        for at in 0..self.watched.len() {
            let Watched { name, query, last } = &self.watched[at];
            let now = self.view(name, query).unwrap_or_else(|why| json!({ "error": why }).to_string());
            if now != *last {
                let people = match difference::of_rows(last, &now) {
                    Some(rows) => format!("{name}:\n{}", rows.join("\n")),
                    None => format!("{name}: {now}"),
                };
                said.line(people, json!({ "watched": name, "value": parsed(&now) }));
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
    engine::read_duration(text)
        .ok_or_else(|| format!("{text:?} is no time: write 15 min; there are ms, s, min, h and d"))
}

/// Inputs or views: to people with what they take and give.
fn doors(doors: &[Door], module: &Module, said: &mut Said) {
    let shown = doors.iter().map(|door| {
        let fields = door.fields.iter().map(|field| {
            let default = engine::default_of(field, module);
            let default = default.map(|value| format!(" = {}", in_words(&value, &field.kind)));
            let default = default.unwrap_or_default();
            format!("{}: {}{default}", field.name, module.type_name(&field.kind))
        });
        let fields: Vec<String> = fields.collect();
        let answer = door.answer.as_ref().map(|answer| format!(" -> {}", module.type_name(answer)));
        format!("{}({}){}", door.name, fields.join(", "), answer.unwrap_or_default())
    });
    let shown: Vec<String> = shown.collect();
    let names: Vec<&String> = doors.iter().map(|door| &door.name).collect();
    said.line(listed(&shown), json!({ "names": names }));
}

/// What a command asks for by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Input,
    FromInput,
    View,
}

impl What {
    fn doors(self, module: &Module) -> &[Door] {
        match self {
            What::Input => &module.inputs,
            What::FromInput => &module.from_inputs,
            What::View => &module.views,
        }
    }

    fn name(self) -> &'static str {
        if self == What::View { "view" } else { "input" }
    }
}

/// Whether there is an input or a view of a name; if not, what was likely meant, or which there are.
fn there(module: &Module, wanted: What, name: &str) -> Result<(), String> {
    let (app, what, doors) = (&module.name, wanted.name(), wanted.doors(module));
    let names = || doors.iter().map(|door| door.name.as_str());
    if names().any(|one| one == name) {
        return Ok(());
    }
    let is = |what: What| what.doors(module).iter().any(|door| door.name == name);
    if is(What::View) {
        return Err(format!("`{name}` is a view: view {name}"));
    }
    if is(What::Input) {
        return Err(format!("`{name}` is an input: post {name}"));
    }
    if is(What::FromInput) {
        return Err(format!("`{name}` comes from another node: from NODE {name}"));
    }
    let advice = match node::suggest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if doors.is_empty() => "it has none".to_owned(),
        None => {
            let more =
                if doors.len() > LISTED_MAX { format!(" and more: type {what}s") } else { String::new() };
            format!("it has {}{more}", names().take(LISTED_MAX).collect::<Vec<&str>>().join(", "))
        }
    };
    Err(format!("app `{app}` has no {what} `{name}`: {advice}"))
}

fn listed(lines: &[String]) -> String {
    if lines.is_empty() { "there are none".to_owned() } else { lines.join("\n") }
}

/// What fired last, and how often in a row: an `every` that does nothing else is told in one line.
#[derive(Debug, Default)]
struct Fired {
    what: Option<Due>,
    times: usize,
    /// Lines that had been said when it was shown.
    lines: usize,
}

impl Fired {
    fn show(&mut self, what: Due, at: i64, said: &mut Said) {
        let again = matches!(what, Due::Every { .. }) && self.what.as_ref() == Some(&what);
        if again && self.lines == said.lines.len() {
            self.times += 1;
            said.lines.pop();
        } else {
            self.times = 1;
        }
        let (people, mut programs) = match &what {
            Due::Timer { name, arguments } => (
                format!("timer {name} {arguments} fires"),
                json!({ "fired": name, "arguments": parsed(arguments) }),
            ),
            Due::Every { period } => {
                let times = if self.times > 1 { format!(" {} times", self.times) } else { String::new() };
                let name = format!("every {period}");
                (format!("{name} fires{times}"), json!({ "fired": name, "times": self.times }))
            }
        };
        programs["at"] = at.into();
        said.line(people, programs);
        self.lines = said.lines.len();
        self.what = Some(what);
    }
}

/// JSON as the engine wrote it.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Whether values of a type are durations.
fn is_duration(kind: &Type) -> bool {
    match kind {
        Type::Optional(inner) => is_duration(inner),
        kind => *kind == Type::Duration,
    }
}

/// A duration that was typed as the language writes it, as JSON has it; anything else as it is.
fn in_milliseconds(typed: String) -> String {
    engine::read_duration(&typed).map_or(typed, |milliseconds| milliseconds.to_string())
}

/// A value for people: JSON, but for durations, which are shown as the language writes them.
fn in_words(value: &str, kind: &Type) -> String {
    match value.parse() {
        Ok(milliseconds) if is_duration(kind) => engine::written_duration(milliseconds),
        _ => value.to_owned(),
    }
}

/// Whether JSON has a text for values of a type.
fn is_written_as_text(kind: &Type) -> bool {
    match kind {
        Type::Optional(inner) => is_written_as_text(inner),
        Type::Text | Type::Bytes | Type::Node | Type::Endpoint | Type::Enum(_) => true,
        _ => false,
    }
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
    use sealing::Identity;

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
view latest(n: int = 3, within: duration = 5 min, who: text = \"ann\") =
  [h for h in heard where within > 5 min or h == who take n]
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
        check(
            session,
            "post add player=\"ann b\" points=1",
            "4\ntotal: 4",
            "{\"posted\":\"add\",\"answer\":4}\n{\"watched\":\"total\",\"value\":4}",
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
            "1\ntotal: 5",
            "{\"posted\":\"add\",\"answer\":1}\n{\"watched\":\"total\",\"value\":5}",
        );
        check(
            session,
            "view all_heard",
            r#"["ann b","ann b","eve: not eve"]"#,
            r#"{"view":"all_heard","value":["ann b","ann b","eve: not eve"]}"#,
        );
        check(
            session,
            "inputs",
            "add(player: text, points: int) -> int\nturn()\ntell(to: node)\nfrom other nodes:\nnote(player: text)\nloop()",
            "{\"names\":[\"add\",\"turn\",\"tell\"]}\n{\"from\":\"other nodes\"}\n{\"names\":[\"note\",\"loop\"]}",
        );
        check(session, "settings", "there are none", r#"{"names":[],"values":{}}"#);
        check(session, "", "", "");
        // Watched twice, a view's changes are shown once, and no more when it is watched no more.
        check(session, "watch total", "total: 5", r#"{"watched":"total","value":5}"#);
        check(
            session,
            "post add player=cat points=1",
            "1\ntotal: 6",
            "{\"posted\":\"add\",\"answer\":1}\n{\"watched\":\"total\",\"value\":6}",
        );
        check(session, "unwatch total", "done", r#"{"unwatched":"total"}"#);
        check(session, "post add player=cat points=1", "2", r#"{"posted":"add","answer":2}"#);
        check(
            session,
            "views",
            "total() -> int\nof(player: text) -> Score?\nlatest(n: int = 3, within: duration = 5 min, who: text = \"ann\") -> list of text\nall_heard() -> list of text",
            r#"{"names":["total","of","latest","all_heard"]}"#,
        );
        check(
            session,
            "view latest within=\"1 h\" n=1",
            "[\"ann b\"]",
            r#"{"view":"latest","value":["ann b"]}"#,
        );
    }

    #[test]
    fn what_is_sent_to_others_is_shown_and_what_never_ends_is_ended() {
        let mut session = session();
        let other = Identity::from_seed(&[2; 64]).id();
        check(
            &mut session,
            &format!(r#"post tell {{"to":"{other}"}}"#),
            &format!("done\nsent note {{\"player\":\"x\"}} to scores of {other}"),
            &format!(
                "{{\"posted\":\"tell\"}}\n{{\"sent\":\"note\",\"to\":\"{other}\",\"app\":\"scores\",\
                 \"arguments\":{{\"player\":\"x\"}}}}"
            ),
        );
        let why = "error: the app sent more than 1000 times to itself; the rest is dropped";
        check(&mut session, "post turn", why, why);
    }

    #[test]
    fn another_node_sends_by_hand() {
        let mut session = session();
        let me = session.me.to_string();
        check(&mut session, "me", &me, &format!("{{\"node\":\"{me}\"}}"));
        let other = Identity::from_seed(&[2; 64]).id();
        check(&mut session, &format!("from {other} note player=ben"), "done", r#"{"received":"note"}"#);
        check(&mut session, "view all_heard", r#"["ben"]"#, r#"{"view":"all_heard","value":["ben"]}"#);
        let why = "error: not eve";
        check(&mut session, &format!("from {other} note player=eve"), why, why);
        let sent = |programs: bool| match programs {
            false => format!("sent loop {{}} to scores of {other}"),
            true => format!("{{\"sent\":\"loop\",\"to\":\"{other}\",\"app\":\"scores\",\"arguments\":{{}}}}"),
        };
        check(
            &mut session,
            &format!("from {other} loop"),
            &format!("done\n{}", sent(false)),
            &format!("{{\"received\":\"loop\"}}\n{}", sent(true)),
        );
        let why = "error: from another node: `add` is an input: post add";
        check(&mut session, &format!("from {other} add player=ben"), why, why);
    }

    #[test]
    fn settings_are_asked_for_and_timers_fire_as_the_clock_goes_on() {
        let source = "\
app clock
setting most: int
setting pause: duration = 5 min
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
        check(
            session,
            "settings",
            "most: int (needs a value)\npause: duration = 5 min",
            r#"{"names":["most","pause"],"values":{"pause":300000}}"#,
        );
        check(session, "set most 2", "done", r#"{"set":"most"}"#);
        let values = r#"{"names":["most","pause"],"values":{"most":2,"pause":300000}}"#;
        check(session, "settings", "most: int = 2\npause: duration = 5 min", values);
        for (typed, shown) in [("90 s", "90 s"), ("90000", "90 s"), ("\"2 h\"", "2 h"), ("5min", "5 min")] {
            check(session, &format!("set pause {typed}"), "done", r#"{"set":"pause"}"#);
            let shown = format!("most: int = 2\npause: duration = {shown}");
            let context = Context { now: 0, entropy: [0; 32], room: ROOM };
            let said = session.command("settings", &context).unwrap();
            assert_eq!(said.lines[0].people, shown, "{typed}");
        }
        let wrong =
            "error: setting `clock.pause`: expected duration (milliseconds, or as in 5 min), found \"soon\"";
        check(session, "set pause soon", wrong, wrong);
        check(session, "watch all_late", "all_late: []", r#"{"watched":"all_late","value":[]}"#);
        check(session, r#"post remind {"text":"tea"}"#, "done", r#"{"posted":"remind"}"#);
        check(session, "advance 9 min", "it is 9 min later", r#"{"advanced":540000}"#);
        check(
            session,
            "advance 1min",
            "timer ring {\"text\":\"tea\"} fires\nall_late:\n+ \"tea\"\nit is 1min later",
            "{\"fired\":\"ring\",\"arguments\":{\"text\":\"tea\"},\"at\":600000}\n\
             {\"watched\":\"all_late\",\"value\":[\"tea\"]}\n{\"advanced\":60000}",
        );
        check(
            session,
            "advance 5 h",
            "every 1 h fires 5 times\nit is 5 h later",
            "{\"fired\":\"every 1 h\",\"times\":5,\"at\":18000000}\n{\"advanced\":18000000}",
        );
        check(session, "view count_of_ticks", "2", r#"{"view":"count_of_ticks","value":2}"#);
        check(session, r#"post remind {"text":"bad"}"#, "done", r#"{"posted":"remind"}"#);
        let failed = "timer `ring`: no bad ones";
        let people =
            format!("timer ring {{\"text\":\"bad\"}} fires\n{failed}\nevery 1 h fires\nit is 1 h later");
        let programs = format!(
            "{{\"fired\":\"ring\",\"arguments\":{{\"text\":\"bad\"}},\"at\":19200000}}\n{{\"failed\":\"{failed}\"}}\n\
             {{\"fired\":\"every 1 h\",\"times\":1,\"at\":21600000}}\n{{\"advanced\":3600000}}"
        );
        check(session, "advance 1 h", &people, &programs);
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
            ("from", "from whom?"),
            ("from ann note", "node"),
            ("post sing", "app `scores` has no input `sing`: it has add, turn, tell"),
            ("post adt", "app `scores` has no input `adt`: did you mean `add`?"),
            ("post add {", "expected"),
            ("post add ann", "\"ann\" is no argument"),
            ("post add player=ann points=many", "field `points`: expected int, found `many`"),
            ("post total", "`total` is a view: view total"),
            ("view add player=ann", "`add` is an input: post add"),
            ("watch add", "`add` is an input: post add"),
            ("post note player=ann", "`note` comes from another node: from NODE note"),
            ("view note", "`note` comes from another node: from NODE note"),
            ("unwatch total", "`total` is not watched; none is"),
            ("unwatch", "which view?"),
            ("post add player=ann points=1 more=1", "more"),
            ("post add []", "expected"),
            ("view", "which view?"),
            ("view sing", "app `scores` has no view `sing`: it has "),
            ("watch totl", "did you mean `total`?"),
            ("view of ann", "\"ann\" is no argument"),
            ("view of", "player"),
            ("watch of player=", "ok"),
        ] {
            let context = Context { now: 0, entropy: [0; 32], room: ROOM };
            let said = session.command(command, &context).map(|_| "ok".to_owned()).unwrap_or_else(|why| why);
            assert!(said.contains(says), "{command}: {said}");
        }
    }
}
