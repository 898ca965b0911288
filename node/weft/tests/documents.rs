//! The examples of the language's page compile, its grammar is the parser's, and the apps compile.

use std::collections::BTreeSet;

#[test]
fn every_example_compiles() {
    let page = include_str!("../../../docs/language.md");
    let examples: Vec<&str> = page
        .split("```weft\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("the example is closed").0)
        .collect();
    assert!(examples.len() >= 3, "the page has {} examples", examples.len());
    for example in examples {
        weft::check_with(example, "docs/language.md", &mut |path| library(page, path))
            .unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// The grammar of the language's page.
fn grammar() -> &'static str {
    let page = include_str!("../../../docs/language.md");
    let (_, rest) = page.split_once("```ebnf\n").expect("the page has the grammar");
    rest.split_once("```").expect("the grammar is closed").0
}

/// Words that the parser knows from other languages, to say what to write instead.
const FOREIGN: &[&str] = &["each", "mut", "returns"];

/// The words that the parser asks for, as its source has them: those that are reserved, those that begin a declaration, and
/// those that it looks for where it stands.
fn words_of_the_parser() -> BTreeSet<&'static str> {
    let sources = [
        include_str!("../src/syntax/parser.rs"),
        include_str!("../src/syntax/declarations.rs"),
        include_str!("../src/syntax/statements.rs"),
        include_str!("../src/syntax/expressions.rs"),
        include_str!("../src/syntax/fields.rs"),
        include_str!("../src/syntax/queries.rs"),
        include_str!("../src/syntax/texts.rs"),
    ];
    let is_word =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let mut words = BTreeSet::new();
    for source in sources {
        for asked in source.split("_word(\"").skip(1) {
            words.extend(asked.split('"').next().filter(is_word));
        }
        for list in ["const RESERVED: &[&str] = &[", "const DECLARING: &[&str] = &["] {
            let list = source.split_once(list).and_then(|(_, rest)| rest.split_once(']'));
            words.extend(list.into_iter().flat_map(|(list, _)| list.split('"')).filter(is_word));
        }
        for (before, _) in source.match_indices("\" if before_name =>") {
            words.extend(source[..before].rsplit('"').next().filter(is_word));
        }
    }
    words.retain(|word| !FOREIGN.contains(word));
    words
}

#[test]
fn the_grammar_has_the_words_of_the_parser() {
    let without_examples: String = grammar().lines().filter_map(|line| line.split("(*").next()).collect();
    let quoted = without_examples.split('"').skip(1).step_by(2);
    let is_word = |text: &&str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let words: BTreeSet<&str> = quoted.filter(is_word).collect();
    assert_eq!(
        words,
        words_of_the_parser(),
        "docs/language.md's grammar (left) and the parser's words (right)"
    );
}

#[test]
fn the_examples_of_the_grammar_fit_it() {
    let (mut rule, mut seen) = ("", 0);
    for line in grammar().lines() {
        if !line.starts_with(' ')
            && let Some((name, _)) = line.split_once(" =")
        {
            rule = name.trim();
        }
        let Some((_, example)) = line.split_once("(* e.g. ") else { continue };
        let (example, _) = example.rsplit_once(" *)").expect("the example is closed");
        let source = match rule {
            "file" => format!("{example}\n"),
            "statement" | "exit" => format!("app a\ntest \"t\" {{ {example} }}\n"),
            "type" | "keyed" => format!("app a\nstate s: {example}\n"),
            "arguments" => format!("app a\nview v = {example}\n"),
            "query" | "source" => format!("app a\nview v = [x {example}]\n"),
            "expression" | "choice" | "negation" | "comparison" | "product" | "place" | "atom" | "item" => {
                format!("app a\nview v = {example}\n")
            }
            _ => format!("app a\n{example}\n"),
        };
        if let Err(wrong) = weft::syntax::parse(&source, "docs/language.md") {
            panic!("{rule}: {example}\n{wrong}");
        }
        seen += 1;
    }
    assert!(seen >= 40, "only {seen} examples");
}

#[test]
fn the_messenger_has_a_shape() {
    let source = include_str!("../../../apps/messenger/messenger.weft");
    let module = weft::compile(source, "messenger.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(
        module.shape(),
        "state contacts: list of Contact by node\n\
         state lines: list of Line by id\n\
         record Contact { node: node, name: text, verified: bool }\n\
         record Line { id: int, peer: node, mine: bool, number: int, text: text, at: time, progress: Progress, why: text }\n\
         enum Progress { waiting, delivered, read, refused }\n"
    );
    // What no row holds is not part of it.
    let more =
        format!("{source}\nenum Unused {{ a }}\nview more = [{{ l.id, twice: l.id * 2 }} for l in lines]\n");
    let more = weft::compile(&more, "more.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(more.shape(), module.shape());
    let other = source.replace("why: text = \"\"", "why: text?");
    let other = weft::compile(&other, "other.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_ne!(other.shape(), module.shape());
}

/// The library that the page has as an example.
fn library(page: &str, path: &str) -> Result<String, String> {
    let header = format!("library {}\n", path.trim_end_matches(".weft"));
    let found = page.split("```weft\n").find(|example| example.starts_with(&header));
    let text = found.and_then(|rest| rest.split_once("```")).map(|(text, _)| text.to_owned());
    text.ok_or_else(|| "the page has no such library".to_owned())
}

#[test]
fn an_app_is_compiled_again_from_what_is_kept_of_it() {
    let app = "app a\nuse \"lib/b.weft\" as b\nstate p: b.Place?\n";
    let library = "library b\nrecord Place { name: text }\n";
    let module = weft::compile_with(app, "a.weft", &mut |_| Ok(library.to_owned()))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    let kept = module.sources.to_text();
    let sources = weft::Sources::from_text(&kept);
    assert_eq!(sources, module.sources);
    let again = sources.compile("a.weft").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!((again.shape(), again.sources), (module.shape(), sources));
    assert_eq!(module.shape(), "state p: b.Place?\nrecord b.Place { name: text }\n");
    // Another name for the library is no other shape.
    let renamed = app.replace("as b", "as other").replace("b.Place", "other.Place");
    let renamed = weft::compile_with(&renamed, "a.weft", &mut |_| Ok(library.to_owned()))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(renamed.shape(), module.shape());
    for text in ["app a\n", "", "{", "{}", "{\"app\": 1, \"libraries\": {}}", "// {\napp a"] {
        assert_eq!(weft::Sources::from_text(text).to_text(), text);
    }
    let missing = weft::Sources { app: app.to_owned(), ..weft::Sources::default() };
    assert!(missing.compile("a.weft").is_err_and(|wrong| wrong.to_string().contains("it was not kept")));
}
