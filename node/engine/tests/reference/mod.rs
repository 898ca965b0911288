//! A second engine, as naive as can be: it walks the syntax tree over maps of rows, copies the whole state for each
//! event, and knows no bytecode, no index and no cursor. It is written from `docs/language.md`, so that where the two
//! engines differ, one of them is wrong by that page.
//!
//! `value` is what there is at run time and how it is written down, `kinds` what a declaration says of it, `state` the
//! rows, `app` takes events and views, `run` does statements, `place` what they change, `evaluate` expressions,
//! `functions` the language's own, `query` loops, and
//! `infer` tells the kind of what there is none of: a sum of no reals is 0.0.

#![allow(dead_code, unused_imports, reason = "the tests that share it use different parts")]

mod app;
mod evaluate;
mod functions;
mod infer;
mod kinds;
mod place;
mod query;
mod run;
mod state;
mod value;

pub use app::{App, Done, Happens, Wrong};
pub use kinds::{Kind, Program};
pub use state::List;
pub use value::{Value, encode_answer, encode_arguments, json, parameter};
