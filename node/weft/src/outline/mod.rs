//! What a source declares, told without checking it: for documents, and for editors while the source is being written.
//!
//! Must not know whether a source is right: it works on tokens, and sees what it can in a source that does not parse.
//! What it cannot tell it leaves out.
//!
//! `declarations` finds the declarations with their comments and members, `locals` the names in their bodies and, where
//! a name's value shows it, their types; `lookup` answers what stands at a place of the source.

mod declarations;
mod locals;
mod lookup;

#[cfg(test)]
mod tests;

pub use lookup::{Completion, CompletionKind, Hover, OfLibrary};

use crate::diagnostics::Span;
use std::collections::BTreeMap;

/// What a declaration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declares {
    /// `app`, `library`
    App,
    /// `use`
    Use,
    /// `enum`
    Enum,
    /// `record`
    Record,
    /// `state`
    State,
    /// `setting`
    Setting,
    /// `output`
    Output,
    /// `on name(…)`
    Input,
    /// `on name(…) from peer`
    FromInput,
    /// `on timer name(…)`
    Timer,
    /// `on delivered`, `on refused`: what the fabric says of the output of that name
    Word,
    /// `every`, which has no name
    Every,
    /// `do`
    Procedure,
    /// `fn`
    Function,
    /// `view`
    View,
    /// `test`, which has a title
    Test,
}

/// A name with what is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// The type as it is written; nothing for a case.
    pub kind: Option<String>,
    /// As it is written, in a line.
    pub text: String,
    /// The comment behind or above it.
    pub comment: String,
}

/// A name in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The name.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// Where the name can be seen.
    pub scope: Span,
    /// Its type, where that can be told.
    pub kind: Option<String>,
}

/// A declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// What it is.
    pub declares: Declares,
    /// Its name; a test's title; nothing for `every`.
    pub name: String,
    /// Where the name stands.
    pub name_span: Span,
    /// All of it.
    pub span: Span,
    /// What it says before its body, in a line.
    pub signature: String,
    /// The comment above it, without the `//`.
    pub comment: String,
    /// A record's fields, an enum's cases, the fields in its parentheses.
    pub members: Vec<Member>,
    /// The type: of a state or setting, or what is answered. The path of a `use`.
    pub kind: Option<String>,
    /// The names in it.
    pub locals: Vec<Local>,
}

/// What a source declares, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The comment above the first line.
    pub comment: String,
    /// The declarations.
    pub declarations: Vec<Declaration>,
    /// What the checker said, by where it begins.
    types: BTreeMap<u32, String>,
}

impl Outline {
    /// Of any text: it never fails, and finds what is there.
    pub fn new(source: &str) -> Outline {
        let mut outline = declarations::read(source);
        locals::read(source, &mut outline);
        outline
    }

    /// Takes over what the checker says that names and fields are: [`crate::types`].
    pub fn learn(&mut self, types: Vec<(Span, String)>) {
        let types: BTreeMap<u32, String> = types.into_iter().map(|(span, kind)| (span.start, kind)).collect();
        for declaration in &mut self.declarations {
            for local in &mut declaration.locals {
                if let Some(kind) = types.get(&local.span.start) {
                    local.kind = Some(kind.clone());
                }
            }
            let answer = types.get(&declaration.name_span.start).filter(|_| declaration.kind.is_none());
            if let (Declares::Function | Declares::View, Some(answer)) = (declaration.declares, answer) {
                declaration.signature = format!("{} -> {answer}", declaration.signature);
                declaration.kind = Some(answer.clone());
            }
        }
        self.types = types;
    }

    /// The first declaration of this kind and name.
    pub fn find(&self, declares: Declares, name: &str) -> Option<&Declaration> {
        self.declarations.iter().find(|one| one.declares == declares && one.name == name)
    }
}
