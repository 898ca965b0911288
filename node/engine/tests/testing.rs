//! How tests end, as a table: `testing.txt` holds cases: a line `=== name`, a source, a line `---`, and what its tests
//! come to. `BLESS=1` writes what comes now; read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the table is a file, and BLESS rewrites it")]

use engine::testing::{Outcome, TestResult, run};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

fn said(result: &TestResult) -> String {
    let place = format!("{}: {}", result.line, result.name);
    match &result.outcome {
        Outcome::Passed => format!("{place}: passed"),
        Outcome::NotRun { why } => format!("{place}: not run: {why}"),
        Outcome::Failed(failure) => {
            let mut said = format!("{place}: failed at line {}: {}", failure.line, failure.message);
            if let Some(sides) = &failure.difference {
                write!(said, "\n  left  {}\n  right {}", sides.left, sides.right).unwrap();
            }
            said
        }
    }
}

#[test]
fn each_test_ends_as_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testing.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let mut blessed = String::new();
    for case in table.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("a name");
        let (source, _) = rest.split_once("\n---\n").expect("a source and results");
        let module = Arc::new(weft::compile(source, name).unwrap_or_else(|wrong| panic!("{name}: {wrong}")));
        let results = run(&module, &|_| true);
        assert_eq!(results, run(&module, &|_| true), "{name}: the same tests end in the same way");
        let lines: Vec<String> = results.iter().map(said).collect();
        write!(blessed, "=== {name}\n{source}\n---\n{}\n\n", lines.join("\n")).unwrap();
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, blessed).unwrap();
        return;
    }
    assert_eq!(table, blessed);
}

#[test]
fn only_what_is_wanted_is_run() {
    let source = "app a\ntest \"one\" { expect true }\ntest \"two\" { expect false }";
    let module = Arc::new(weft::compile(source, "a.weft").unwrap());
    let results = run(&module, &|title| title == "two");
    assert_eq!(results.iter().map(|result| result.name.as_str()).collect::<Vec<_>>(), ["two"]);
}
