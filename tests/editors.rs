//! The TextMate grammar, read as an editor reads it: every expression compiles, every word of the language is coloured.

use fancy_regex::Regex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

const GRAMMAR: &str = include_str!("../editors/weft.tmLanguage.json");

/// A rule of the grammar with its includes left as names.
enum Rule {
    Include(String),
    Match { regex: Regex, name: Option<String>, captures: Vec<(usize, String)> },
    Span { begin: Regex, end: Regex, name: Option<String>, inner: Vec<Rule> },
    Group(Vec<Rule>),
}

fn regex(text: &Value) -> Regex {
    let text = text.as_str().expect("an expression is a text");
    Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn rules(list: &Value) -> Vec<Rule> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter().map(rule).collect()
}

fn rule(value: &Value) -> Rule {
    let known =
        ["include", "match", "name", "captures", "begin", "end", "beginCaptures", "endCaptures", "patterns"];
    let object = value.as_object().expect("a rule is an object");
    assert!(object.keys().all(|key| known.contains(&key.as_str())), "{:?}", object.keys());
    let name = value["name"].as_str().map(str::to_owned);
    if let Some(name) = &name {
        assert!(name.ends_with(".weft"), "{name}");
    }
    if let Some(included) = value["include"].as_str() {
        return Rule::Include(included.trim_start_matches('#').into());
    }
    if value.get("match").is_some() {
        let regex = regex(&value["match"]);
        let captures = value["captures"].as_object().into_iter().flatten().map(|(number, capture)| {
            let number: usize = number.parse().expect("captures are numbers");
            assert!(number < regex.captures_len(), "{value}");
            (number, capture["name"].as_str().expect("a capture has a name").to_owned())
        });
        return Rule::Match { captures: captures.collect(), regex, name };
    }
    if value.get("begin").is_some() {
        let inner = rules(&value["patterns"]);
        return Rule::Span { begin: regex(&value["begin"]), end: regex(&value["end"]), name, inner };
    }
    Rule::Group(rules(&value["patterns"]))
}

struct Grammar {
    top: Vec<Rule>,
    repository: HashMap<String, Rule>,
}

impl Grammar {
    fn read() -> Grammar {
        let grammar: Value = serde_json::from_str(GRAMMAR).expect("the grammar is JSON");
        assert_eq!(
            (&grammar["scopeName"], &grammar["fileTypes"][0]),
            (&"source.weft".into(), &"weft".into())
        );
        let repository = grammar["repository"].as_object().expect("a repository");
        Grammar {
            top: rules(&grammar["patterns"]),
            repository: repository.iter().map(|(name, value)| (name.clone(), rule(value))).collect(),
        }
    }

    /// The rule that matches first from `at`, the earlier one of those that match at the same place.
    fn first<'g>(&'g self, rules: &'g [Rule], line: &str, at: usize) -> Option<(usize, &'g Rule)> {
        let mut best: Option<(usize, &Rule)> = None;
        for rule in rules {
            let found = match rule {
                Rule::Include(name) => {
                    let included =
                        self.repository.get(name).unwrap_or_else(|| panic!("{name} is in the repository"));
                    self.first(std::slice::from_ref(included), line, at)
                }
                Rule::Group(inner) => self.first(inner, line, at),
                Rule::Match { regex, .. } | Rule::Span { begin: regex, .. } => {
                    let found = regex.find_from_pos(line, at).expect("no expression runs wild");
                    found.map(|found| (found.start(), rule))
                }
            };
            if let Some(found) = found
                && best.is_none_or(|best| found.0 < best.0)
            {
                best = Some(found);
            }
        }
        best
    }

    /// The innermost scope of each byte of a line.
    fn colours(&self, line: &str) -> Vec<String> {
        let mut colours = vec![String::new(); line.len()];
        self.colour(&self.top, None, line, 0, &mut colours);
        colours
    }

    /// Colours up to the end of a span; where it ended.
    fn colour(
        &self,
        rules: &[Rule],
        end: Option<&Regex>,
        line: &str,
        mut at: usize,
        colours: &mut [String],
    ) -> usize {
        loop {
            let ends = end.and_then(|end| end.find_from_pos(line, at).expect("no expression runs wild"));
            let Some((start, rule)) = self
                .first(rules, line, at)
                .filter(|(start, _)| ends.as_ref().is_none_or(|ends| *start < ends.start()))
            else {
                return ends.map_or(line.len(), |ends| ends.end());
            };
            match rule {
                Rule::Match { regex, name, captures } => {
                    let found =
                        regex.captures_from_pos(line, start).expect("it ran before").expect("it matched");
                    let whole = found.get(0).expect("there is a whole");
                    if let Some(name) = name {
                        colours[whole.start()..whole.end()].fill(name.clone());
                    }
                    for (number, name) in captures {
                        if let Some(part) = found.get(*number) {
                            colours[part.start()..part.end()].fill(name.clone());
                        }
                    }
                    assert!(whole.end() > at, "an expression matches nothing at {at} of {line}");
                    at = whole.end();
                }
                Rule::Span { begin, end, name, inner } => {
                    let found = begin.find_from_pos(line, start).expect("it ran before").expect("it matched");
                    let mut within = vec![String::new(); line.len()];
                    at = self.colour(inner, Some(end), line, found.end(), &mut within);
                    for (place, colour) in within.into_iter().enumerate().take(at).skip(start) {
                        let own = name.clone().unwrap_or_default();
                        colours[place] = if colour.is_empty() { own } else { colour };
                    }
                }
                Rule::Include(_) | Rule::Group(_) => panic!("these never match themselves"),
            }
        }
    }
}

#[test]
fn words_are_coloured_where_they_are_words() {
    let grammar = Grammar::read();
    let check = |line: &str, word: &str, expected: &str| {
        let at = line.find(word).unwrap_or_else(|| panic!("{word} is in {line}"));
        let colours = grammar.colours(line);
        let found = &colours[at..at + word.len()];
        assert!(found.iter().all(|colour| colour == expected), "{line}: {word} is {found:?}");
    };
    check("app notes", "app", "keyword.declaration.weft");
    check("app notes", "notes", "entity.name.section.weft");
    check("record Note was Line {", "Note", "entity.name.type.weft");
    check("record Note was Line {", "was", "keyword.other.weft");
    check("transient state writing: list of Writing by peer index at", "transient", "storage.modifier.weft");
    check("transient state writing: list of Writing by peer index at", "list", "support.type.weft");
    check("transient state writing: list of Writing by peer index at", "by", "keyword.other.weft");
    check("transient state writing: list of Writing by peer index at", "index", "keyword.other.weft");
    check("  id: int,", "int", "support.type.weft");
    check("  text: bytes,", "text", "");
    check("  text: bytes,", "bytes", "support.type.weft");
    check("on say(n: int) from peer of shop -> int {", "from", "keyword.other.weft");
    check("on say(n: int) from peer of shop -> int {", "say", "entity.name.function.weft");
    check("on timer idle(peer: node) {", "timer", "keyword.declaration.weft");
    check("on refused say(id, _) to _ because reason {", "because", "keyword.other.weft");
    check("every 5 min { x = 1 }", "every", "keyword.declaration.weft");
    check("every 5 min { x = 1 }", "5 min", "constant.numeric.duration.weft");
    check("  let c = contacts[node] else contacts add Contact { node }", "let", "storage.type.weft");
    check("  let c = contacts[node] else contacts add Contact { node }", "else", "keyword.control.weft");
    check("  let c = contacts[node] else contacts add Contact { node }", "add", "keyword.control.verb.weft");
    check("  send say(id, text) to to", "send", "keyword.control.verb.weft");
    check("  send say(id, text) to to", "say", "entity.name.function.weft");
    check("  start idle(peer) after 6 s // moved", "after", "keyword.other.weft");
    check("  start idle(peer) after 6 s // moved", "// moved", "comment.line.double-slash.weft");
    check("  remove r for r in readings where r.at < now - 30 d", "remove", "keyword.control.verb.weft");
    check("  remove r for r in readings where r.at < now - 30 d", "now", "constant.language.weft");
    check("  remove r for r in readings where r.at < now - 30 d", "at", "");
    check("view v = [l for l in lines order by l.id desc take 100]", "order", "keyword.control.query.weft");
    check("view v = [l for l in lines order by l.id desc take 100]", "desc", "keyword.control.query.weft");
    check("view v = [l for l in lines order by l.id desc take 100]", "take", "keyword.control.query.weft");
    check("view v = count(l for l in lines)", "count", "support.function.weft");
    check("  x = .waiting", ".waiting", "variable.other.enummember.weft");
    check("  x = a.waiting", "waiting", "");
    check("  refuse \"no {count(a)} \\n\"", "refuse", "keyword.control.weft");
    check("  refuse \"no {count(a)} \\n\"", "no", "string.quoted.double.weft");
    check("  refuse \"no {count(a)} \\n\"", "count", "support.function.weft");
    check("  refuse \"no {count(a)} \\n\"", "\\n", "constant.character.escape.weft");
    check("view v = \"a {shown(Amount { cents: 1 })} count\"", "1", "constant.numeric.int.weft");
    check("view v = \"a {shown(Amount { cents: 1 })} count\"", "count", "string.quoted.double.weft");
    check("view v = \"a {f(A { b: B { c: 1 } }, 2)} count\"", "2", "constant.numeric.int.weft");
    check("view v = \"a {f(A { b: B { c: 1 } }, 2)} count\"", "count", "string.quoted.double.weft");
    check("view v = \"a {f(A { b\" + count(l)", "count", "support.function.weft");
    check("  expect refused add(\"x\", -1) because \"no\"", "refused", "keyword.control.verb.weft");
    check("  x = 1_000 + 2.5", "1_000", "constant.numeric.int.weft");
    check("  x = 1_000 + 2.5", "2.5", "constant.numeric.real.weft");
}

/// The reserved words, as `docs/language.md` and the compiler have them.
#[test]
fn every_reserved_word_is_coloured() {
    let grammar = Grammar::read();
    let words = "and break continue else expect false for if in is let me none not now or refuse require return \
                 then true var where";
    for word in words.split_whitespace() {
        let said = weft::compile(&format!("app a\nview {word} = 1\n"), "a.weft").expect_err("it is reserved");
        assert_eq!(said.iter().next().map(|one| one.code.text()), Some("W0008"), "{word}");
        let line = format!("  {word} x");
        assert!(grammar.colours(&line)[2..2 + word.len()].iter().all(|colour| !colour.is_empty()), "{word}");
        let longer = format!("  {word}s x");
        assert!(grammar.colours(&longer)[2..3 + word.len()].iter().all(String::is_empty), "{word}s");
    }
}

/// Each quoted word of the grammar on the language's page is coloured in one of its examples.
#[test]
fn every_word_of_the_grammar_is_coloured_in_an_example() {
    let grammar = Grammar::read();
    let page = include_str!("../docs/language.md");
    let (_, rest) = page.split_once("```ebnf\n").expect("the page has the grammar");
    let (rules, _) = rest.split_once("```").expect("the grammar is closed");
    let is_word = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    let quoted = rules.lines().filter_map(|line| line.split("(*").next());
    let words: BTreeSet<&str> =
        quoted.flat_map(|line| line.split('"').skip(1).step_by(2)).filter(is_word).collect();
    let mut coloured: BTreeSet<&str> = BTreeSet::new();
    for line in rules.lines() {
        let Some((_, example)) = line.split_once("(* e.g. ") else { continue };
        let (example, _) = example.rsplit_once(" *)").expect("the example is closed");
        let colours = grammar.colours(example);
        for (at, word) in words_of(example) {
            if !colours[at].is_empty() {
                coloured.insert(word);
            }
        }
    }
    let missing: Vec<&&str> = words.difference(&coloured).collect();
    assert!(missing.is_empty(), "no example has these words coloured: {missing:?}");
}

/// The words of a line and where they begin.
fn words_of(line: &str) -> Vec<(usize, &str)> {
    let starts = line.match_indices(|c: char| c.is_ascii_alphabetic()).map(|(at, _)| at);
    let begins = |at: &usize| *at == 0 || !line.as_bytes()[at - 1].is_ascii_alphanumeric();
    let word = |at: usize| {
        let rest = &line[at..];
        &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())]
    };
    starts.filter(begins).map(|at| (at, word(at))).collect()
}

#[test]
fn the_apps_are_read_to_their_ends() {
    let grammar = Grammar::read();
    let app = include_str!("../apps/messenger/messenger.weft");
    for line in app.lines() {
        let colours = grammar.colours(line);
        let invalid = colours.iter().any(|colour| colour.starts_with("invalid"));
        assert!(
            !invalid && (line.trim().is_empty() || colours.iter().any(|colour| !colour.is_empty())),
            "{line}"
        );
    }
}
