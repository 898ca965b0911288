//! stub
#![allow(missing_docs)]
#[derive(Debug, Clone)]
pub struct Memory;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Eio,
}
