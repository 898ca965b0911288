//! Layouts as a table, and what holds for all of them.

use super::*;
use proptest::prelude::*;

/// The tree of a source without where its words stand.
fn tree(source: &str) -> String {
    let text = format!("{:?}", parse(source, &mut Report::default()));
    let mut without = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Span { ") {
        without.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').expect("a span is closed").1;
    }
    without + rest
}

fn comments(source: &str) -> Vec<String> {
    essence(source).into_iter().map(|(_, word)| word).filter(|word| word.starts_with("//")).collect()
}

/// What holds for every source that is laid out.
fn laid_out(source: &str) -> String {
    let once = format(source, "app.weft").unwrap_or_else(|error| panic!("{error}\n{source}"));
    let twice = format(&once, "app.weft").unwrap_or_else(|error| panic!("{error}\n{once}"));
    assert_eq!(twice, once, "laid out again it differs:\n{source}");
    assert_eq!(tree(&once), tree(source), "it means something else:\n{source}\n{once}");
    assert_eq!(comments(&once), comments(source));
    once
}

/// The table is `format.txt`: a case is a line `=== name`, the source, a line `---`, and its layout. `BLESS=1` writes
/// the layouts of now; read the difference.
#[test]
#[allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]
fn a_source_is_laid_out() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/format.txt");
    let table = std::fs::read_to_string(path).expect("the table is there");
    let cases: Vec<&str> = table.split("=== ").skip(1).collect();
    assert!(cases.len() >= 20, "the table has {} cases", cases.len());
    let bless = std::env::var_os("BLESS").is_some();
    let mut blessed = String::new();
    for case in cases {
        let (name, rest) = case.split_once('\n').expect("a case has a name");
        let (source, expected) = rest.split_once("---\n").expect("a case has a source and its layout");
        let now = laid_out(source);
        blessed.push_str(&format!("=== {name}\n{source}---\n{now}\n"));
        assert!(bless || now.trim_end() == expected.trim_end(), "{name}:\n{now}");
    }
    if bless {
        std::fs::write(path, blessed).expect("the table can be written");
    }
}

/// The apps: all of the grammar, as people write it.
const APPS: &[&str] = &[
    include_str!("../../../../apps/bank/bank.weft"),
    include_str!("../../../../apps/graph/graph.weft"),
    include_str!("../../../../apps/jobs/jobs.weft"),
    include_str!("../../../../apps/messenger/messenger.weft"),
    include_str!("../../../../apps/scores/scores.weft"),
    include_str!("../../../../apps/sensors/sensors.weft"),
    include_str!("../../../../apps/shop/shop.weft"),
    include_str!("../../../../apps/shopping/shopping.weft"),
];

fn same(laid_out: &str, source: &str) {
    let first = laid_out.lines().zip(source.lines()).position(|(left, right)| left != right);
    let from = |text: &str| text.lines().skip(first.unwrap_or(0)).take(12).collect::<Vec<_>>().join("\n");
    assert!(laid_out == source, "laid out:\n{}\nis not\n{}", from(laid_out), from(source));
}

#[test]
fn the_apps_are_laid_out_already() {
    for app in APPS {
        same(&laid_out(app), app);
    }
}

#[test]
fn the_examples_of_the_language_page_are_laid_out_already() {
    let page = include_str!("../../../../docs/language.md");
    for example in page.split("```weft\n").skip(1).filter_map(|rest| rest.split_once("```")) {
        same(&laid_out(example.0), example.0);
    }
}

#[test]
fn what_the_grammar_does_not_take_is_left_with_its_diagnostics() {
    for source in ["app a\nview = 1\n", "app a\non f( {\n}\n", "", "app a\nview v = \"open\n"] {
        let Err(FormatError::Syntax(said)) = format(source, "app.weft") else { panic!("{source}") };
        assert!(said.to_string().contains("app.weft:"), "{said}");
    }
}

#[test]
fn a_large_source_is_laid_out_in_time() {
    let mut source = String::from("app large\n");
    for number in 0..2_000 {
        source.push_str(&format!("view v{number} = [{{ a: 1, b: [1, 2, (3 + {number})] }}]\n"));
    }
    source.push_str(&format!("view last = {}1{}\n", "[".repeat(40), "]".repeat(40)));
    source.push_str(&format!("view wide = [{}]\n", vec!["12345"; 5_000].join(",")));
    laid_out(&source);
}

#[test]
fn what_stands_on_one_line_in_thousands_is_laid_out_in_a_few_rounds() {
    const ROUNDS_MAX: usize = 8;
    let on = |body: &str| format!("app a\nstate x: int\non f(b: int) {{ {body} }}\n");
    let many = |part: &str| part.repeat(500);
    for source in [
        on(&format!("if b == 0 {{ x = 0 }}{}", many(" else if b == 1 { x = 1 }"))),
        on(&format!("if b == 0 {{ x = 0 }}{}", many(" else if b == 1 { } else if b == 2 { x = 1; return }"))),
        on(&many("if b == 0 { x = 0 }; ")),
        on(&many("x = 1; ")),
        on(&many("x = [1, 2][0]; ")),
        format!("app a\nview v = [{}]\n", many("[1,], ")),
        format!("app a\nview v = [{}]\n", many("f(1, 2, 3), ")),
        format!("app a\n{}", many("view v = 1; ")),
        format!("app a\n{}", many("view v = f(1); ")),
        format!("app a\n{}", many("on f() { x = 1 }; ")),
        format!("app a\n{}", many("enum A { b, c }; ")),
        format!("app a\n{}", many("record A { b: int }; view v = [1, 2]; ")),
    ] {
        let mut pieces = pieces::Pieces::read(&source).expect("its brackets match");
        pieces.settle_lines();
        let rounds = breaking::break_long_lines(&mut pieces);
        assert!(rounds <= ROUNDS_MAX, "{rounds} rounds: {}", &source[..90]);
        let once = format(&source, "app.weft").unwrap_or_else(|error| panic!("{error}"));
        assert!(once.lines().count() > 400, "{}", &source[..90]);
    }
}

#[test]
fn a_chain_of_thousands_is_laid_out() {
    let chain = " else if b == 1 { x = 1 }".repeat(20_000);
    let source = format!("app a\nstate x: int\non f(b: int) {{ if b == 0 {{ x = 0 }}{chain} }}\n");
    let once = format(&source, "app.weft").unwrap_or_else(|error| panic!("{error}"));
    // The last ones fit a line.
    assert_eq!(once.matches("\n  } else if b == 1 {\n    x = 1").count(), 19_997);
}

/// A source with its layout changed: at some tokens a line is broken, joined, or a comment stands; with `long`, names are
/// too long for many lines.
fn shaken(source: &str, choices: &[u8], long: bool) -> String {
    let tokens = tokens(source, 0, source.len(), &mut Report::default());
    let (mut text, mut end, mut open) = (String::new(), 0, Vec::new());
    for (token, choice) in tokens.iter().zip(choices.iter().cycle()) {
        let gap = &source[end..token.span.start as usize];
        end = token.span.end as usize;
        let round = open.last().is_some_and(|bracket| *bracket != "{");
        match token.kind {
            Kind::Sign(sign @ ("(" | "[" | "{")) => open.push(sign),
            Kind::Sign(")" | "]" | "}") => drop(open.pop()),
            _ => {}
        }
        match choice {
            0 => text.push_str(&format!("{gap}\n\n\n  ")),
            1 => text.push_str(&format!("{gap} // why {choice}\n")),
            2 => text.push_str(&format!("{gap}\n      // own\n\n// lines\n ")),
            3 if !gap.contains('\n') => text.push_str(&format!("{gap}   ")),
            4 => text.push_str(&gap.replace("  ", "\t")),
            5..30 if round && !gap.contains("//") => text.push_str(&gap.replace('\n', " ")),
            _ => text.push_str(gap),
        }
        let word = &source[token.span.start as usize..end];
        text.push_str(word);
        if long && token.kind == Kind::Name && !WORDS_OF_THE_GRAMMAR.split(' ').any(|one| one == word) {
            text.push_str("_with_a_long_tail");
        }
    }
    text
}

const WORDS_OF_THE_GRAMMAR: &str = "app library use as enum was record setting transient state output for list of by index \
on from timer delivered to with refused because every do fn view test let var if else return refuse break continue add put \
remove send start after at cancel expect sent then or and not in is true false none now me group order take desc where require \
bool int real text bytes time duration node endpoint";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_layout_becomes_the_one(app in 0..APPS.len(), choices in proptest::collection::vec(0u8..60, 1..400), long: bool) {
        let source = shaken(APPS[app], &choices, long);
        // Where a line's end changes what is said, the grammar may refuse it.
        if syntax(&source, "app.weft").is_ok() {
            laid_out(&source);
        }
    }

    #[test]
    fn long_names_break_lines_where_they_can(app in 0..APPS.len(), choices in proptest::collection::vec(3u8..60, 1..40)) {
        let source = shaken(APPS[app], &choices, true);
        let once = laid_out(&source);
        let too_long = once.lines().filter(|line| line.split("//").next().unwrap_or_default().trim_end().len() > COLUMNS_MAX);
        // Calls and sums without brackets around them have no place to break.
        prop_assert!(too_long.count() * 10 < once.lines().count(), "{}", once);
    }

    #[test]
    fn noise_is_laid_out_or_refused(source in "(app a\n)?[ -~\n]{0,200}") {
        if let Ok(once) = format(&source, "app.weft") {
            prop_assert_eq!(format(&once, "app.weft").expect("what was laid out can be"), once);
        }
    }

    #[test]
    fn words_in_any_order_are_laid_out_or_refused(words in proptest::collection::vec(0..WORDS.len(), 0..60)) {
        let words: Vec<&str> = words.into_iter().map(|word| WORDS[word]).collect();
        let source = format!("app a\non f() {{\n{}\n}}\n", words.join(" "));
        if let Ok(once) = format(&source, "app.weft") {
            prop_assert_eq!(format(&once, "app.weft").expect("what was laid out can be"), once);
        }
    }
}

const WORDS: &[&str] = &[
    "a", "b", "R", "\n", ";", "{", "}", "(", ")", "[", "]", ",", ":", "=", "+=", "+", "-", ".", "..", "if",
    "else", "for", "in", "where", "order by", "take", "add", "put", "return", "refuse", "require", "let",
    "x", "1", "\"t\"", "is", "and", "not", "none", "remove", "send", "to", "// c\n", "?", "5 min", "{ }",
    "( )", "a = 1",
];
