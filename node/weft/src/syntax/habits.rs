//! What people write who come from other languages, and what it is here.
//!
//! Must not know where a word stands: who asks does, and says the rest. All of it is data, words and what to write.

use crate::diagnostics::{Code, Diagnostic, Span};

/// Words, with spaces between, and what to write instead.
type Habits = &'static [(&'static str, &'static str)];

/// Words that begin a statement elsewhere.
const STATEMENTS: Habits = &[
    ("while until loop forever repeat", "a loop runs over a list or a range: `for i in 1 .. 10 { … }`"),
    ("foreach", "write `for x in list { … }`"),
    ("switch match case when", "write `if x == .waiting { … } else if x == .done { … }`"),
    ("elif elsif elseif", "write `else if`, on the line of the `}` before it"),
    ("unless", "write `if not …`"),
    (
        "try catch finally rescue",
        "what fails refuses the whole event and undoes it: test before, with `if` or `require … else \"why\"`",
    ),
    ("throw raise fail panic abort reject", "write `refuse \"why\"`"),
    ("assert ensure guard check", "write `require … else \"why\"`, or `expect …` in a test"),
    ("const final val auto", "write `let name = …`"),
    ("mut", "write `var name = …`"),
    ("set", "write `name = …`, without `set`"),
    ("delete del drop erase", "write `remove list[key]`, or `remove x for x in list where …`"),
    ("insert append push store save", "write `list add …`, or `list put …` to replace"),
    ("add put", "the list comes first: `list add …`"),
    ("update modify", "write `for x in list where … { x.field = … }`"),
    ("select query", "write `[x for x in list where …]`"),
    ("function func def fun fn do", "a function is declared outside of others, at the beginning of a line"),
    ("emit publish dispatch notify", "write `send name(…) to node`"),
    ("send", "write `send name(…) to node`, with the name of an `on … from` or an `output`"),
    ("start", "write `start name(…) after 5 min`, with the name of an `on timer`"),
    ("cancel", "write `cancel name(…)`, with the name of an `on timer`"),
    ("remove", "write `remove list[key]`, or `remove x for x in list where …`"),
    ("print echo console", "nothing is printed: what people want to see is a `view`"),
    (
        "await async yield",
        "nothing waits: an `on` ends, and what comes later is an `on` or a timer of its own",
    ),
    ("sleep wait delay", "an event never waits: `start name(…) after 5 min`, and an `on timer name(…)`"),
    ("call invoke perform", "write `name(…)`"),
    ("import include using", "an app is one file"),
];

/// Of these words those that have a condition or a value in brackets and then a block.
const BLOCKS: &str =
    "while until loop forever repeat foreach switch match case when elif elsif elseif unless catch";

/// Words that begin a declaration elsewhere.
const DECLARATIONS: Habits = &[
    (
        "function func def fun sub proc procedure method lambda",
        "write `fn` for what reads and gives a value, `do` for what changes, `on` for what is posted from outside",
    ),
    (
        "class struct type interface model entity table object data schema",
        "write `record Name { field: type }`, and `state name: list of Name by field` for what is kept",
    ),
    ("union variant", "write `enum Name { one, other }`"),
    ("let var const val global static", "write `state name: type = …`, or `setting name: type = …`"),
    (
        "input command action event handler route endpoint post receive when",
        "write `on name(field: type) { … }`",
    ),
    ("get select query page show", "write `view name = …`"),
    ("timer", "write `on timer name(field: type) { … }`"),
    ("cron schedule interval job", "write `every 5 min { … }`"),
    (
        "import include require from package module namespace",
        "an app is one file, and its first line is `app name`",
    ),
    (
        "export public pub private protected async extern",
        "leave it out: what is posted to or read from outside are `on` and `view`",
    ),
    ("config option parameter env", "write `setting name: type = …`"),
    ("emit signal message", "write `output name(field: type) for app`"),
    ("index key", "an index stands with its list: `state name: list of R by key index field`"),
    (
        "init main setup constructor",
        "there is no beginning: state has its initial values, `state name: type = …`",
    ),
    (
        "if for return refuse break continue remove send start cancel add put",
        "statements stand in the `{ }` of an `on`, `do`, `fn`, `view` or `test`",
    ),
];

/// What stands behind a value elsewhere.
const BEHIND: Habits = &[
    ("limit top", "write `take 10`"),
    ("offset skip", "only the first are taken: `take 10`; pages begin behind a key: `where x.id > last`"),
    ("asc ascending", "ascending is how `order by` orders: leave it out"),
    ("descending", "write `desc`"),
    ("orderby sort sorted sortby", "write `order by x.field`"),
    ("groupby", "write `group by x.field as g`"),
    ("having", "write `group by … as g where …`"),
    ("distinct unique", "write `[g.key for x in list group by x.field as g]`"),
    ("join", "write a `for` for each list: `[… for a in as for b in bs where b.id == a.id]`"),
    ("if when unless", "a condition of a query stands behind `where`; a choice is `if … then … else …`"),
    ("between", "write `x in 1 .. 10`"),
    ("like matches includes contains", "write `contains(text, part)`, or `x in list`"),
    ("equals eq is_equal", "write `==`"),
    ("xor", "write `a != b`"),
    ("mod rem", "write `%`"),
    ("div", "write `/`, which rounds ints towards minus infinity"),
    ("step", "a range goes up by one"),
    ("downto until upto", "write `a .. b`, which goes up and includes both ends"),
    ("plus minus times", "write `+`, `-` or `*`"),
    ("=== =~", "write `==`"),
    ("!== <>", "write `!=`"),
    ("=<", "write `<=`"),
    ("=>", "a function is not a value: write `[x.field for x in list where …]`; greater or equal is `>=`"),
    ("++", "write `n += 1`"),
    ("**", "there is no power: multiply"),
    ("??", "write `value else other`"),
    ("?.", "write `if value is x { … }`, or `let x = value else …` before"),
    ("?", "write `if condition then one else other`"),
    ("::", "a case is written `.waiting`"),
    (":=", "write `let name = …` for a new name, `name = …` for a `var` or a `state`"),
    ("/= %=", "write `n = n / …` or `n = n % …`"),
    ("...", "write `a .. b`, which includes both ends"),
    ("..< ..=", "write `a .. b`, which includes both ends: up to before n it is `0 .. n - 1`"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("!", "write `not`"),
];

/// Names of values elsewhere.
const VALUES: Habits = &[
    ("null nil undefined nothing None NULL Nil Null", "write `none`"),
    ("True TRUE yes", "write `true`"),
    ("False FALSE no off", "write `false`"),
    ("this self", "a value of the app is called by its name alone; this node is `me`"),
    ("today date", "the time is `now`; a day of UTC begins at `floor(now, 1 d)`"),
    (
        "user caller sender username",
        "who posts is named by `by`: `on f() by user { … }`, who sends by `from`",
    ),
    ("pass noop", "leave it out: a block may be empty, `{ }`"),
    ("infinity inf nan", "a `real` is always a finite number"),
];

/// Names of functions elsewhere.
const FUNCTIONS: Habits = &[
    (
        "print println printf echo log debug console puts write",
        "nothing is printed: what people want to see is a `view`",
    ),
    ("len size size_of count_of strlen", "write `count(list)`, or `length(text)`"),
    ("map transform collect", "write `[x.field for x in list]`"),
    ("filter find_all", "write `[x for x in list where …]`"),
    ("find find_first get_first", "write `first(x for x in list where …)`"),
    ("some exists has_any", "write `any(… for x in list)`"),
    ("every for_all", "write `all(… for x in list)`"),
    ("reduce fold", "write `sum(…)`, `min(…)`, `max(…)`, or a `for` with a `var`"),
    ("sort sorted sort_by order", "write `[x for x in list order by x.field]`"),
    ("reverse reversed", "write `order by … desc`"),
    ("average avg", "write `mean(…)`"),
    ("total", "write `sum(…)`"),
    ("range", "write `0 .. n - 1`, in `for i in 0 .. n - 1`"),
    ("push append insert", "write `list add …`"),
    ("update upsert replace save", "write `list put …`, or change a row's fields"),
    ("select get fetch query lookup", "write `list[key]`, or `[x for x in list where …]`"),
    ("delete erase del", "write `remove list[key]`"),
    ("str string to_string format tostring", "write it into a text: `\"{value}\"`"),
    (
        "int integer to_int parse_int",
        "write `round(…)`, `floor(…)` or `ceiling(…)` of a real; texts are not parsed",
    ),
    ("float double to_float number decimal", "write `real(…)` of an int"),
    ("ceil", "write `ceiling(…)`"),
    ("trunc truncate", "write `floor(…)` or `ceiling(…)`"),
    ("sqrt pow power exp sin cos tan ln", "there is no such function: `+ - * / %` is what there is"),
    ("concat join", "write `\"{a}{b}\"`"),
    ("substring substr left mid", "write `slice(text, from, count)`; the first character is 0"),
    ("starts_with", "write `slice(text, 0, length(start)) == start`"),
    ("split index_of replace ends_with", "there is `contains(text, part)` and `slice(text, from, count)`"),
    ("lowercase to_lower lcase tolower", "write `lower(text)`"),
    ("uppercase to_upper ucase toupper", "write `upper(text)`"),
    ("strip", "write `trim(text)`"),
    ("time timestamp current_time get_time today date", "write `now`"),
    ("uuid guid new_uuid generate_id", "write `new_id()`"),
    ("auto_increment next_number sequence nextval", "write `next_id(list)`"),
    ("rand randint random_int dice", "write `random(1, 6)`"),
    ("throw raise error fail panic abort reject", "write `refuse \"why\"`, as a statement of its own"),
    ("assert", "write `require … else \"why\"`, or `expect …` in a test"),
    (
        "sleep wait delay set_timeout after",
        "an event never waits: `start name(…) after 5 min`, and an `on timer name(…)`",
    ),
    ("is_null is_none isnull", "write `x == none`"),
    ("coalesce unwrap unwrap_or or_else", "write `value else other`"),
    ("send emit publish", "write `send name(…) to node`"),
    ("typeof type_of", "types are known when the file is loaded"),
    ("not", "write `not …`"),
    ("int_div", "write `/`, which rounds ints towards minus infinity"),
];

/// Names of types elsewhere.
const TYPES: Habits = &[
    ("string str String Str Text char Char varchar", "text"),
    (
        "integer number Integer Int Number i8 i16 i32 i64 u8 u16 u32 u64 usize isize uint long short bigint byte",
        "int",
    ),
    ("boolean Bool Boolean", "bool"),
    ("float double Float Double Real f32 f64", "real"),
    ("datetime date timestamp Date DateTime Time Instant instant", "time"),
    ("timespan interval Duration TimeSpan seconds", "duration"),
    ("blob buffer binary Bytes Blob", "bytes"),
    ("peer Node address device", "node"),
    ("url uri Url", "endpoint"),
];

/// Other types elsewhere, which are not one word here.
const OTHER_TYPES: Habits = &[
    ("decimal money currency Decimal", "count in the smallest part, cents for example, as an `int`"),
    ("array vector vec List Array Vec Vector sequence", "write `list of T`"),
    (
        "map dict Map Dict HashMap hash dictionary table set Set",
        "write `list of R by field`, R being a record",
    ),
    ("object any json Object Json Any struct tuple", "declare a `record` with its fields"),
    ("optional option Option Optional maybe Maybe", "write `T?`"),
    ("void unit nothing never", "leave the type out: what gives nothing has none"),
    ("uuid id guid Uuid", "write `int`, with `next_id(list)`, or `text`, with `new_id()`"),
    ("user User identity", "write `text`, which `by` gives, or `node`, which `from` gives"),
];

const OTHER_UNITS: Habits = &[
    ("millisecond milliseconds millis msec msecs", "ms"),
    ("sec secs second seconds", "s"),
    ("m mins minute minutes", "min"),
    ("hr hrs hour hours", "h"),
    ("day days", "d"),
];
const LONG_UNITS: Habits = &[
    ("w week weeks", "a week is `7 d`"),
    ("month months year years", "months and years have no one length: count in days, `30 d`"),
    ("us ns microseconds nanoseconds", "time is counted in milliseconds, `ms`"),
];
/// Quotes that are none here, with those that may close them.
const OTHER_QUOTES: &[&[char]] = &[&['\''], &['`'], &['“', '”', '„', '‘', '’', '«', '»']];
/// Single signs, and signs that are copied out of texts.
const OTHER_SIGNS: &[(char, &str)] = &[
    ('&', "and"),
    ('|', "or"),
    ('~', "not"),
    ('¬', "not"),
    ('∧', "and"),
    ('∨', "or"),
    ('≤', "<="),
    ('≥', ">="),
    ('≠', "!="),
    ('→', "->"),
    ('×', "*"),
    ('·', "*"),
    ('÷', "/"),
    ('−', "-"),
    ('–', "-"),
    ('—', "-"),
    ('…', ".."),
];

fn find(habits: Habits, word: &str) -> Option<&'static str> {
    habits.iter().find(|(words, _)| words.split(' ').any(|one| one == word)).map(|(_, instead)| *instead)
}

/// What to write for a word that a statement begins with.
pub(super) fn statement(word: &str) -> Option<&'static str> {
    find(STATEMENTS, word)
}

/// Whether a block follows such a word and its brackets.
pub(super) fn begins_block(word: &str) -> bool {
    BLOCKS.split(' ').any(|one| one == word)
}

/// Whether a word begins a statement here.
pub(super) fn is_verb(word: &str) -> bool {
    matches!(word, "remove" | "send" | "start" | "cancel" | "add" | "put")
}

/// What to write for a word that a declaration begins with.
pub(super) fn declaration(word: &str) -> Option<&'static str> {
    find(DECLARATIONS, word)
}

/// What to write for a word or sign behind a value.
pub(super) fn behind(word: &str) -> Option<&'static str> {
    find(BEHIND, word)
}

/// What to write for a value.
pub(crate) fn value(word: &str) -> Option<&'static str> {
    find(VALUES, word)
}

/// What to write for a function; names in capitals and small letters are those with `_`.
pub(crate) fn function(name: &str) -> Option<&'static str> {
    find(FUNCTIONS, &in_small_letters(name))
}

/// What a type is called here.
pub(crate) fn kind(name: &str) -> Option<&'static str> {
    find(TYPES, name)
}

/// What to write for a type that is no single word here.
pub(crate) fn other_kind(name: &str) -> Option<&'static str> {
    find(OTHER_TYPES, name)
}

/// `someName` as `some_name`.
pub(crate) fn in_small_letters(name: &str) -> String {
    let mut small = String::new();
    let mut after_small = false;
    for character in name.chars() {
        if character.is_ascii_uppercase() && after_small {
            small.push('_');
        }
        after_small = character.is_ascii_lowercase() || character.is_ascii_digit();
        small.push(character.to_ascii_lowercase());
    }
    small
}

/// A character that looks like a space.
pub(super) fn is_other_space(character: char) -> bool {
    let is_layout = matches!(character, ' ' | '\t' | '\r' | '\n');
    let is_thin = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    !is_layout && (character.is_whitespace() || is_thin)
}

/// What may close a quote that is none here.
pub(super) fn closing_quotes(first: char) -> Option<&'static [char]> {
    OTHER_QUOTES.iter().copied().find(|quotes| quotes.contains(&first))
}

/// The sign or word for a sign that is none here.
pub(super) fn sign(first: char) -> Option<&'static str> {
    OTHER_SIGNS.iter().find(|(sign, _)| *sign == first).map(|(_, instead)| *instead)
}

/// What is said of a unit that is none here, behind a number.
pub(super) fn unit(number: &str, unit: &str, is_apart: bool) -> Option<Diagnostic> {
    // `1 m` may be a number and a name, whatever is wrong with them.
    if is_apart && unit.len() < 2 {
        return None;
    }
    let help = match (find(OTHER_UNITS, unit), find(LONG_UNITS, unit)) {
        (Some(here), _) => format!("write `{number} {here}`"),
        (None, Some(here)) => here.into(),
        (None, None) => return None,
    };
    let message = format!("there is no unit `{unit}`");
    let diagnostic = Diagnostic::new(Code::BadNumber, Span::default(), message);
    Some(diagnostic.note("units are `ms`, `s`, `min`, `h` and `d`").help(help))
}

/// What is said of a number with letters behind it.
pub(super) fn number(number: &str, letters: &str) -> Diagnostic {
    let new = |message: String| Diagnostic::new(Code::BadNumber, Span::default(), message);
    let plain = number.replace('_', "");
    let digits = &letters[1..];
    let in_radix = |radix| i64::from_str_radix(&digits.replace('_', ""), radix).ok();
    let other = match (plain.as_str(), &letters[..1]) {
        ("0", "x" | "X") => in_radix(16),
        ("0", "o" | "O") => in_radix(8),
        ("0", "b" | "B") => in_radix(2),
        _ => None,
    };
    if let Some(value) = other {
        return new("numbers are written in tens".into()).help(format!("write `{value}`"));
    }
    let exponent = letters.strip_prefix(['e', 'E']).filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    if exponent.is_some() {
        let diagnostic = new("numbers have no exponent".into());
        let value = format!("{plain}{letters}").parse::<f64>().ok().filter(|value| value.abs() < 1e15);
        return match value {
            Some(value) if !plain.contains('.') => {
                diagnostic.help(format!("write `{value}` or `{value:.1}`"))
            }
            Some(value) => diagnostic.help(format!("write `{value:.1}`")),
            None => diagnostic.help("write all of its digits"),
        };
    }
    let diagnostic = new(format!("`{letters}` right behind a number"));
    match letters {
        "f" | "F" => diagnostic
            .help(format!("a `real` has a point: `{number}{}`", if plain.contains('.') { "" } else { ".0" })),
        "L" | "l" | "i64" | "u64" | "i32" | "u32" | "n" | "u" | "U" => {
            diagnostic.help(format!("an `int` has always 64 bits: `{number}`"))
        }
        _ => diagnostic
            .label("a name does not begin with a digit")
            .help("units are `ms`, `s`, `min`, `h` and `d`"),
    }
}
