//! From text to a tree, after the grammar in `docs/language.md`.
//!
//! Must not know names, types or what anything means. Reports what does not fit the grammar and goes on at the next
//! statement or declaration, so that one reading finds all errors.
//!
//! `lexer` makes tokens, `parser` holds them while `declarations`, `statements` and `expressions` read; `habits` knows what
//! people write who come from other languages; `tree` is the result, `walk` looks through it.

mod declarations;
pub(crate) mod expressions;
mod fields;
pub(crate) mod habits;
pub(crate) mod lexer;
pub(crate) mod parser;
mod queries;
mod statements;
mod texts;
pub mod tree;
pub(crate) mod walk;

use crate::diagnostics::{Diagnostics, Report};

/// The tree of a source that fits the grammar: for programs that look at a source without compiling it.
///
/// # Errors
/// Every place that does not fit the grammar, in the order of the text.
pub fn parse(source: &str, file: &str) -> Result<tree::File, Diagnostics> {
    let mut report = Report::default();
    let tree = parser::parse(source, &mut report);
    if report.is_empty() { Ok(tree) } else { Err(report.finish(source, file)) }
}

/// How deep expressions and blocks may stand in each other: bounds the stack that parser and checker need.
pub(crate) const NESTING_MAX: u16 = 64;
/// Declarations of a file, and cases of an enum, fields of a record and items of a record expression: far more than a
/// person writes, and few enough that looking one up among them may take them in turn.
pub(crate) const DECLARATIONS_MAX: usize = 10_000;
pub(crate) const MEMBERS_MAX: usize = 1_000;
/// Indexes of one list: each is kept at every change of a row.
pub(crate) const INDEXES_MAX: usize = 16;
