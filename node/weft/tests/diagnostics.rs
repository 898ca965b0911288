//! Sources that are wrong, and what is said about them. The table is `diagnostics.txt`: a case is a line `=== name`,
//! the source, a line `---`, and the expected rendering. `BLESS=1` writes what is said now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

use std::fmt::Write;
use std::path::Path;

struct Case<'t> {
    name: &'t str,
    source: &'t str,
    expected: &'t str,
}

fn cases(table: &str) -> Vec<Case<'_>> {
    let blocks = table.split("=== ").skip(1);
    blocks
        .map(|block| {
            let (name, rest) = block.split_once('\n').expect("a case has a name");
            let (source, expected) =
                rest.split_once("\n---\n").expect("a case has a source and what is expected");
            Case { name, source, expected: expected.trim_end() }
        })
        .collect()
}

fn said(source: &str) -> String {
    match weft::compile(source, "app.weft") {
        Ok(_) => "nothing is wrong".into(),
        Err(wrong) => wrong.to_string().trim_end().to_owned(),
    }
}

#[test]
fn each_mistake_is_said_as_the_table_has_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let cases = cases(&table);
    assert!(cases.len() >= 60, "the table has {} cases", cases.len());
    if std::env::var_os("BLESS").is_some() {
        let mut blessed = String::new();
        for case in &cases {
            write!(blessed, "=== {}\n{}\n---\n{}\n\n", case.name, case.source, said(case.source)).unwrap();
        }
        std::fs::write(&path, blessed).unwrap();
        return;
    }
    let mut wrong = String::new();
    for case in &cases {
        let said = said(case.source);
        if said != case.expected {
            write!(wrong, "{}:\nexpected\n{}\nsaid\n{}\n\n", case.name, case.expected, said).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_code_is_in_the_table() {
    let table = include_str!("diagnostics.txt");
    for code in weft::diagnostics::Code::ALL {
        assert!(
            table.contains(&format!("error[{}]", code.text())),
            "no case for {} ({})",
            code.text(),
            code.title()
        );
    }
}
