//! The next version of a program: other names, each with `was` behind it, and types in a library or not. What it means
//! stays the same.

use std::hash::{DefaultHasher, Hash, Hasher};

/// What becomes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which names become others: those that have a bit of it.
    pub renamed: u64,
    /// Whether records, enums and what needs only those stand in a library.
    pub library: bool,
}

pub const LIBRARY: &str = "shapes.weft";

/// Begins of the names of enums, records, cases, keys, fields, lists and variables: a number follows.
const NAMED: &[char] = &['E', 'R', 'c', 'k', 'f', 'l', 's'];
/// And those of fields of what is sent and of timers.
const PARAMETER: char = 'p';

impl Turn {
    /// What a field, a case or a list is called that was called so.
    pub fn name(self, word: &str) -> String {
        let numbered = word.trim_end_matches('z');
        let mut characters = numbered.chars();
        let is_named = characters.next().is_some_and(|first| NAMED.contains(&first) || first == PARAMETER)
            && !characters.as_str().is_empty()
            && characters.all(|character| character.is_ascii_digit());
        let mut hasher = DefaultHasher::new();
        numbered.hash(&mut hasher);
        let turns = (self.renamed >> (hasher.finish() % 64)) & 1 == 1;
        if is_named && turns { format!("{word}z") } else { word.into() }
    }

    /// The source of the next version as one file.
    pub fn source(self, source: &str) -> String {
        let (mut out, mut has_parameters) = (String::new(), false);
        for line in source.lines() {
            let line = without_was(line);
            let is_sent = ["on hear", "on ping", "on timer"].iter().any(|head| line.starts_with(head));
            let is_output = line.starts_with("output ") || line.starts_with("transient output ");
            has_parameters = is_sent || is_output || has_parameters && line != "}";
            self.line(&line, has_parameters, &mut out);
            out.push('\n');
            has_parameters &= !is_output;
        }
        out
    }

    fn line(self, line: &str, has_parameters: bool, out: &mut String) {
        let is_declared = Declares::of(line);
        let (mut braces, mut parentheses, mut words) = (0, 0, 0);
        for (at, word) in pieces(line) {
            match word {
                "{" => braces += 1,
                "}" => braces -= 1,
                "(" => parentheses += 1,
                ")" => parentheses -= 1,
                _ => {}
            }
            let is_parameter = word.starts_with(PARAMETER);
            let name = if is_parameter && !has_parameters { word.into() } else { self.name(word) };
            out.push_str(&name);
            words +=
                usize::from(word.chars().all(|character| character.is_alphanumeric() || character == '_'));
            let is_field = line[at + word.len()..].starts_with(':');
            let is_new = match is_declared {
                Declares::Enum => words > 1,
                Declares::Record => words == 2 || braces == 1 && is_field,
                Declares::State(place) => words == place,
                Declares::Fields => parentheses == 1 && braces == 0 && is_field && is_parameter,
                Declares::Nothing => false,
            };
            if is_new && name != word {
                out.push_str(&format!(" was {word}"));
            }
        }
    }
}

enum Declares {
    Enum,
    Record,
    /// Its name is the so-many-th word.
    State(usize),
    Fields,
    Nothing,
}

impl Declares {
    fn of(line: &str) -> Declares {
        let begins = |head: &str| line.starts_with(head);
        if begins("enum ") {
            return Declares::Enum;
        }
        if begins("record ") {
            return Declares::Record;
        }
        if begins("state ") {
            return Declares::State(2);
        }
        if begins("transient state ") {
            return Declares::State(3);
        }
        let heads = ["output ", "transient output ", "on hear", "on ping", "on timer"];
        if heads.into_iter().any(begins) { Declares::Fields } else { Declares::Nothing }
    }
}

/// Words, and each character between them, with the places where they stand.
fn pieces(line: &str) -> Vec<(usize, &str)> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(first) = line[at..].chars().next() {
        let length = match is_word(first) {
            true => line[at..].find(|character| !is_word(character)).unwrap_or(line.len() - at),
            false => first.len_utf8(),
        };
        pieces.push((at, &line[at..at + length]));
        at += length;
    }
    pieces
}

fn without_was(line: &str) -> String {
    let mut parts = line.split(" was ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(
            part.trim_start_matches(|character: char| character.is_alphanumeric() || character == '_'),
        );
    }
    out
}

/// A program of one file as an app and its library.
pub fn split(source: &str) -> (String, String) {
    let is_shared = |line: &&str| ["enum ", "record ", "fn as_"].iter().any(|head| line.starts_with(head));
    let mut library = String::from("library shapes\n");
    let mut app = String::new();
    for (number, line) in source.lines().enumerate() {
        if is_shared(&line) {
            library.push_str(line);
            library.push('\n');
            continue;
        }
        for (_, word) in pieces(line) {
            let is_type = matches!(word.chars().next(), Some('E' | 'R'))
                && word[1..].starts_with(|character: char| character.is_ascii_digit());
            if is_type || word.starts_with("as_") {
                app.push_str("u.");
            }
            app.push_str(word);
        }
        app.push('\n');
        if number == 0 {
            app.push_str(&format!("use \"{LIBRARY}\" as u\n"));
        }
    }
    (app, library)
}
