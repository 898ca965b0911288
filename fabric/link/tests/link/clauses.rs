//! The specification and the code: what the code cites is there, and what is there is cited.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const SPECIFICATION: &str = include_str!("../../../../docs/link.md");

/// Where clauses are cited.
const SOURCES: [&str; 2] = ["src", "tests"];

/// The number at the start of a text: two or three parts with points between.
fn number(text: &str) -> Option<&str> {
    let end = text.find(|at: char| !at.is_ascii_digit() && at != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    let parts: Vec<&str> = number.split('.').collect();
    let right = (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty());
    right.then_some(number)
}

/// The clauses of the specification in their order: each begins a line.
fn clauses() -> Vec<&'static str> {
    let begins = |line: &'static str| number(line).filter(|clause| line[clause.len()..].starts_with(' '));
    SPECIFICATION.lines().filter_map(begins).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[allow(clippy::disallowed_methods, reason = "the test reads the code; the link reads nothing")]
fn cited() -> Vec<(PathBuf, String)> {
    let mut cited = Vec::new();
    for file in SOURCES.iter().flat_map(|folder| files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))) {
        let text = std::fs::read_to_string(&file).unwrap();
        let clauses = text.split('\u{a7}').skip(1).filter_map(|rest| number(rest).map(str::to_owned));
        cited.extend(clauses.map(|clause| (file.clone(), clause)));
    }
    cited
}

#[test]
fn citations_and_clauses_fit() {
    let clauses = clauses();
    let known: BTreeSet<&str> = clauses.iter().copied().collect();
    assert!(clauses.len() > 40, "the specification is not read rightly: {clauses:?}");
    assert_eq!(clauses.len(), known.len(), "a clause is there twice: {clauses:?}");
    let cited = cited();
    let missing: Vec<_> = cited.iter().filter(|(_, clause)| !known.contains(clause.as_str())).collect();
    assert!(missing.is_empty(), "the code cites clauses that docs/link.md does not have: {missing:?}");
    let used: BTreeSet<&str> = cited.iter().map(|(_, clause)| clause.as_str()).collect();
    let unused: Vec<_> = known.difference(&used).collect();
    assert!(unused.is_empty(), "nothing cites these clauses of docs/link.md: {unused:?}");
}

/// Each test that the table of threats names is there.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test reads the code; the link reads nothing")]
fn tests_of_threats_exist() {
    let (_, table) = SPECIFICATION.split_once("## 11 Threats").unwrap();
    let (table, _) = table.split_once("## 12").unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code: String = ["src", "tests", "../src", "../../sealing/src"]
        .iter()
        .flat_map(|place| files(&folder.join(place)))
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let quoted = table.split('`').skip(1).step_by(2).map(|name| name.rsplit("::").next().unwrap());
    let names: Vec<&str> = quoted.filter(|name| name.len() > 12 && name.contains('_')).collect();
    assert!(names.len() > 20, "the table is not read rightly: {names:?}");
    let begins = |name: &str| code.contains(&format!("fn {}", name.trim_end_matches('*')));
    let missing: Vec<_> = names.into_iter().filter(|name| !begins(name)).collect();
    assert!(missing.is_empty(), "the table of threats names tests that are not there: {missing:?}");
}

#[test]
fn numbers_are_read() {
    for (text, expected) in [
        ("1.1 A", Some("1.1")),
        ("4.1.1 A", Some("4.1.1")),
        ("7.5.", Some("7.5")),
        ("2.2), so", Some("2.2")),
        ("10 A", None),
        ("1..2", None),
        ("A", None),
    ] {
        assert_eq!(number(text), expected, "{text}");
    }
}
