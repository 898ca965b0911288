//! The apps of this project compile, and their own tests run: each passes, or says what it needs that is not there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the apps are files")]

use engine::testing::{Outcome, run};
use std::path::Path;
use std::sync::Arc;

#[test]
fn the_tests_of_all_apps_pass() {
    let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps");
    let (mut passed, mut seen) = (0, Vec::new());
    let mut folders: Vec<_> = std::fs::read_dir(apps).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let file = folder.join(format!("{name}.weft"));
        let source =
            std::fs::read_to_string(&file).unwrap_or_else(|wrong| panic!("{}: {wrong}", file.display()));
        assert!(folder.join("README.md").is_file(), "apps/{name} has no README.md");
        let module = weft::compile_with(&source, &format!("{name}.weft"), &mut |path| {
            std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
        })
        .unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(module.name, name, "an app's file and folder are named as it is");
        for result in run(&Arc::new(module), &|_| true) {
            match result.outcome {
                Outcome::Passed => passed += 1,
                Outcome::NotRun { why } => assert!(why.contains("simulator"), "{name}: {why}"),
                Outcome::Failed(failure) => panic!("{name}:{}: {}: {failure:#?}", result.line, result.name),
            }
        }
        seen.push(name.to_owned());
    }
    assert!(seen.len() >= 8, "only {seen:?}");
    assert!(passed >= 8, "only {passed} tests passed");
}

#[test]
fn the_tests_on_the_languages_page_pass() {
    let page = include_str!("../../../docs/language.md");
    let mut passed = 0;
    for rest in page.split("```weft\n").skip(1) {
        let example = rest.split_once("```").unwrap().0;
        let module = weft::check_with(example, "docs/language.md", &mut |path| library(page, path))
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        for result in run(&Arc::new(module), &|_| true) {
            assert_eq!(result.outcome, Outcome::Passed, "{}", result.name);
            passed += 1;
        }
    }
    assert!(passed > 0, "no example has a test");
}

/// The library that the page has as an example.
fn library(page: &str, path: &str) -> Result<String, String> {
    let header = format!("library {}\n", path.trim_end_matches(".weft"));
    let found = page.split("```weft\n").find(|example| example.starts_with(&header));
    let text = found.and_then(|rest| rest.split_once("```")).map(|(text, _)| text.to_owned());
    text.ok_or_else(|| "the page has no such library".to_owned())
}
