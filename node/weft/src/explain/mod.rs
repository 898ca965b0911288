//! A page for each diagnostic code: what it means, and a source before and after.
//!
//! Must not know how a page is shown. The pages are text, `pages.md`; a test proves that every code has one, and that
//! what a page calls wrong gives that code and what it calls right compiles.

use crate::diagnostics::{Code, suggest};
use std::fmt;

const PAGES: &str = include_str!("pages.md");

/// What is to be said about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The code.
    pub code: Code,
    /// What it means and what to do, in Markdown.
    pub text: &'static str,
    /// A source that gives it.
    pub wrong: &'static str,
    /// A source of the same purpose that is right.
    pub right: &'static str,
}

/// A text that is no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchCode {
    /// What was asked for.
    pub asked: String,
    /// What was likely meant.
    pub near: Option<Code>,
}

impl std::error::Error for NoSuchCode {}

impl fmt::Display for NoSuchCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no code `{}`", self.asked)?;
        match self.near {
            Some(near) => write!(formatter, "; did you mean {} ({})?", near.text(), near.title()),
            None => Ok(()),
        }
    }
}

/// The code that is written `W0023`, `w0023`, `W23` or `23`.
///
/// # Errors
/// There is none; perhaps another is near.
pub fn code(asked: &str) -> Result<Code, NoSuchCode> {
    let digits = asked.strip_prefix(['W', 'w']).unwrap_or(asked);
    let full = format!("W{digits:0>4}");
    let found = Code::ALL.iter().copied().find(|code| code.text() == full);
    found.ok_or_else(|| {
        let near = suggest(&full, Code::ALL.iter().map(|code| code.text()));
        let near = Code::ALL.iter().copied().find(|code| Some(code.text()) == near);
        NoSuchCode { asked: asked.into(), near }
    })
}

/// The page of a code; none only where one was not written, which no released version has.
pub fn page(code: Code) -> Option<Page> {
    let heading = format!("\n# {}\n\n", code.text());
    let (_, rest) = PAGES.split_once(&heading)?;
    let rest = rest.split("\n# ").next()?;
    let (text, rest) = rest.split_once("\n\n```weft wrong\n")?;
    let (wrong, rest) = rest.split_once("```\n")?;
    let (_, right) = rest.split_once("```weft right\n")?;
    let (right, _) = right.split_once("```\n")?;
    Some(Page { code, text, wrong, right })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Severity;

    /// Some pages are about libraries.
    fn compile(source: &str, file: &str) -> Result<crate::Module, crate::Diagnostics> {
        crate::check_with(source, file, &mut |_| Err("there is no such file".into()))
    }

    #[test]
    fn every_code_has_a_page_and_its_examples_are_what_they_say() {
        let mut wrong = String::new();
        for code in Code::ALL {
            let Some(page) = page(*code) else {
                wrong.push_str(&format!("{} has no page in src/explain/pages.md\n", code.text()));
                continue;
            };
            let said = compile(page.wrong, "wrong.weft");
            let said =
                said.map_or_else(|said| said, |module| crate::warnings(&module, page.wrong, "wrong.weft"));
            let said: Vec<&str> = said.iter().map(|one| one.code.text()).collect();
            if said.is_empty() || said.iter().any(|one| *one != code.text()) {
                wrong.push_str(&format!("{}: what is wrong gives {said:?}\n{}\n", code.text(), page.wrong));
            }
            match compile(page.right, "right.weft") {
                Err(said) => wrong.push_str(&format!("{}: what is right is not\n{said}", code.text())),
                Ok(module) if code.severity() == Severity::Warning => {
                    let said = crate::warnings(&module, page.right, "right.weft");
                    if !said.is_empty() {
                        wrong.push_str(&format!("{}: what is right has warnings\n{said}", code.text()));
                    }
                }
                Ok(_) => {}
            }
            if page.text.lines().any(|line| line.chars().count() > 125) || page.text.is_empty() {
                wrong.push_str(&format!("{}: the page does not fit\n", code.text()));
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
        assert_eq!(PAGES.matches("\n# W").count(), Code::ALL.len(), "a page for what is no code");
    }

    #[test]
    fn a_code_is_found_as_people_write_it() {
        for asked in ["W0023", "w0023", "W23", "23"] {
            assert_eq!(code(asked), Ok(Code::Fixed), "{asked}");
        }
        let check = |asked: &str, expected: &str| {
            assert_eq!(code(asked).expect_err(asked).to_string(), expected);
        };
        check("W0203", "there is no code `W0203`; did you mean W0003 (a number that is too large)?");
        check("hello", "there is no code `hello`");
        check(
            "",
            "there is no code ``; did you mean W0001 (a character that no word of the language begins with)?",
        );
    }

    #[test]
    fn examples_are_laid_out() {
        for page in Code::ALL.iter().filter_map(|code| page(*code)) {
            if let Ok(laid_out) = crate::format::format(page.right, "right.weft") {
                assert_eq!(laid_out, page.right, "{}", page.code.text());
            }
        }
    }
}
