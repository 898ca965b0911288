//! Well-typed programs from a seed, and histories of what happens to them.
//!
//! `program` declares, `expressions` and `statements` fill bodies along the types of what is in scope, `history` makes
//! inputs, `versions` gives things other names under way, and `shrink` makes a failing program small. Values come from
//! small sets, so that keys meet; some are as long as a key may be.

#![allow(dead_code, unused_imports, reason = "the tests that share it use different parts")]

mod dice;
mod expressions;
mod history;
mod program;
mod shrink;
mod statements;
mod versions;

pub use dice::Dice;
pub use history::{Step, history, settings};
pub use program::{Called, Declared, program};
pub use shrink::shrunken;
pub use versions::{LIBRARY, Turn, split};
