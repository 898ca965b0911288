//! From text to a tree, after the grammar in `docs/language.md`.
//!
//! Must not know names, types or what anything means. Reports what does not fit the grammar and goes on at the next
//! statement or declaration, so that one reading finds all errors.
//!
//! `lexer` makes tokens, `parser` holds them while `declarations`, `statements` and `expressions` read; `tree` is the
//! result, `walk` looks through it.

mod declarations;
pub(crate) mod expressions;
pub(crate) mod lexer;
pub(crate) mod parser;
mod statements;
pub(crate) mod tree;
pub(crate) mod walk;

/// How deep expressions and blocks may stand in each other: bounds the stack that parser and checker need.
pub(crate) const NESTING_MAX: u16 = 64;
/// Declarations of a file, and cases of an enum, fields of a record and items of a record expression: far more than a
/// person writes, and few enough that looking one up among them may take them in turn.
pub(crate) const DECLARATIONS_MAX: usize = 10_000;
pub(crate) const MEMBERS_MAX: usize = 1_000;
/// Indexes of one list: each is kept at every change of a row.
pub(crate) const INDEXES_MAX: usize = 16;
