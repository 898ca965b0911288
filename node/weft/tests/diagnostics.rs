//! Sources that are wrong, and what is said about them. In the tables a case is a line `=== name`, the source, a line
//! `---`, and the expected rendering. `BLESS=1` writes what is said now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// What the checker finds; habits of other languages; several errors in one file; what is right and likely not meant;
/// libraries.
const TABLES: &[&str] = &["diagnostics.txt", "habits.txt", "recovery.txt", "libraries.txt", WARNINGS];
/// Only here warnings are looked for: what other cases are about need not be used.
const WARNINGS: &str = "warnings.txt";
/// The reference language has 223 error cases, and this one has more.
const CASES_MIN: usize = 224;

struct Case<'t> {
    name: &'t str,
    source: &'t str,
    expected: &'t str,
}

fn cases(table: &str) -> Vec<Case<'_>> {
    let Some(rest) = table.strip_prefix("=== ") else { return Vec::new() };
    rest.split("\n=== ")
        .map(|block| {
            let (name, rest) = block.split_once('\n').expect("a case has a name");
            let (source, expected) =
                rest.split_once("\n---\n").expect("a case has a source and what is expected");
            Case { name, source, expected: expected.trim_end() }
        })
        .collect()
}

/// A case's source may have libraries behind it, each after a line `>>> path`.
fn said(table: &str, source: &str) -> String {
    let mut files = source.split("\n>>> ");
    let app = files.next().unwrap();
    let libraries: HashMap<&str, &str> = files.filter_map(|file| file.split_once('\n')).collect();
    let mut read = |path: &str| match libraries.get(path) {
        Some(text) => Ok((*text).to_owned()),
        None => Err("there is no such file".to_owned()),
    };
    match weft::compile_with(app, "app.weft", &mut read) {
        Ok(_) if table != WARNINGS => "nothing is wrong".into(),
        Ok(module) => {
            let warnings = weft::warnings(&module, app, "app.weft");
            if warnings.is_empty() {
                "nothing is wrong".into()
            } else {
                warnings.to_string().trim_end().to_owned()
            }
        }
        Err(wrong) => wrong.to_string().trim_end().to_owned(),
    }
}

fn read(table: &str) -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(table);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn each_mistake_is_said_as_the_tables_have_it() {
    let mut wrong = String::new();
    for table in TABLES {
        let (path, text) = read(table);
        let cases = cases(&text);
        if std::env::var_os("BLESS").is_some() {
            let mut blessed = String::new();
            for case in &cases {
                write!(blessed, "=== {}\n{}\n---\n{}\n\n", case.name, case.source, said(table, case.source))
                    .unwrap();
            }
            std::fs::write(&path, blessed).unwrap();
            continue;
        }
        for case in &cases {
            let said = said(table, case.source);
            if said != case.expected {
                write!(wrong, "{table}: {}:\nexpected\n{}\nsaid\n{}\n\n", case.name, case.expected, said)
                    .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn there_are_enough_cases_each_another_one_and_every_code_has_one() {
    let texts: Vec<String> = TABLES.iter().map(|table| read(table).1).collect();
    let cases: Vec<Case<'_>> = texts.iter().flat_map(|text| cases(text)).collect();
    let errors = cases.iter().filter(|case| case.expected.contains("error[")).count();
    assert!(errors >= CASES_MIN, "{errors} cases are errors");
    let mut names = std::collections::HashSet::new();
    let mut sources = std::collections::HashSet::new();
    for case in &cases {
        assert!(names.insert(case.name), "`{}` is there twice", case.name);
        assert!(sources.insert(case.source), "`{}` has the source of another", case.name);
    }
    for code in weft::diagnostics::Code::ALL {
        let text = format!("{}[{}]", code.severity().text(), code.text());
        let has_case = cases.iter().any(|case| case.expected.contains(&text));
        assert!(has_case, "no case for {} ({})", code.text(), code.title());
    }
}

#[test]
fn apps_and_examples_give_no_warnings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    for app in std::fs::read_dir(root.join("apps")).unwrap() {
        for file in std::fs::read_dir(app.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "weft") {
                sources.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(sources.len() >= 8, "{} apps", sources.len());
    for page in ["language.md", "app.md", "node.md"] {
        let text = std::fs::read_to_string(root.join("docs").join(page)).unwrap();
        for example in text.split("```weft\n").skip(1) {
            let (example, _) = example.split_once("```").unwrap();
            sources.push((page.to_owned(), example.to_owned()));
        }
    }
    let (mut said, mut looked_at) = (String::new(), 0);
    for (name, source) in &sources {
        // What needs other files, and what is shown because it is wrong, is compiled by the tests of the documents.
        if let Ok(module) = weft::check_with(source, name, &mut |_| Err("there is no such file".into())) {
            looked_at += 1;
            let warnings = weft::warnings(&module, source, name);
            if !warnings.is_empty() {
                said.push_str(&warnings.to_string());
            }
        }
    }
    assert!(looked_at >= 12, "only {looked_at} compile");
    assert!(said.is_empty(), "{said}");
}
