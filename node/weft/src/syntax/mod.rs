//! From text to a tree, after the grammar in `docs/language.md`.
//!
//! Must not know names, types or what anything means. Reports what does not fit the grammar and goes on at the next
//! statement or declaration, so that one reading finds all errors.
//!
//! `lexer` makes tokens, `parser` reads declarations and statements, `expressions` expressions; `tree` is the result.

pub(crate) mod expressions;
pub(crate) mod lexer;
pub(crate) mod parser;
pub(crate) mod tree;
pub(crate) mod walk;

/// How deep expressions and blocks may stand in each other: bounds the stack that parser and checker need.
pub(crate) const NESTING_MAX: u16 = 64;
