//! Fields and types: of records, of what is posted and sent, of state.

use super::habits;
use super::lexer::Kind;
use super::parser::{Broken, Parsed, Parser, RESERVED};
use super::tree::*;
use super::{INDEXES_MAX, MEMBERS_MAX};
use crate::diagnostics::{Code, Diagnostic, Span};

impl Parser<'_> {
    pub(super) fn fields(&mut self) -> Parsed<Vec<Field>> {
        if !self.is_sign("(") {
            return self.unexpected_with("`(`", |diagnostic| {
                diagnostic.help("fields stand in brackets behind the name, none as `()`")
            });
        }
        let open = self.advance().span;
        self.inside += 1;
        let fields = self.field_list(open, ")");
        self.inside = self.inside.saturating_sub(1);
        fields
    }

    pub(super) fn field_list(&mut self, open: Span, close: &str) -> Parsed<Vec<Field>> {
        let (mut fields, mut said) = (Vec::new(), false);
        while !self.is_sign(close) {
            self.bounded(fields.len(), MEMBERS_MAX, "fields")?;
            let field = self.field("the name of a field")?;
            fields.push(field);
            if !self.comma(close, &mut said) {
                break;
            }
        }
        self.need_close(open, close, &format!("`,` or `{close}`"))?;
        Ok(fields)
    }

    /// Takes the comma between two; one that is missing is reported the first time, and then taken for granted.
    pub(super) fn comma(&mut self, close: &str, said: &mut bool) -> bool {
        if self.take_sign(",") {
            return true;
        }
        let token = self.peek();
        let semicolon = self.is_sign(";");
        let begins_next = matches!(token.kind, Kind::Name | Kind::Type) && !self.declaration_at_margin();
        if !semicolon && !begins_next {
            return false;
        }
        if !std::mem::replace(said, true) {
            let before = self.before();
            let end = Span { start: before.end.saturating_sub(1), end: before.end };
            let span = if semicolon { token.span } else { end };
            self.report.push(
                Diagnostic::new(Code::Unexpected, span, "a comma is missing")
                    .label("here")
                    .help("fields and cases are separated with `,`, on lines of their own, too"),
            );
        }
        if semicolon {
            self.advance();
        }
        !self.is_sign(close)
    }

    /// Whether a declaration begins at the very beginning of a line here.
    fn declaration_at_margin(&self) -> bool {
        let token = self.peek();
        token.after_line && self.begins_line(token) && self.at_declaration()
    }

    pub(super) fn field(&mut self, what: &str) -> Parsed<Field> {
        let name = self.new_name(what)?;
        let was = self.was(false)?;
        self.need_colon(&name)?;
        let kind = self.type_tree()?;
        let default = if self.take_sign("=") { Some(self.expression()?) } else { None };
        Ok(Field { name, was, kind, default })
    }

    /// The `:` between a name and its type.
    pub(super) fn need_colon(&mut self, name: &Word) -> Parsed<()> {
        if self.take_sign(":") {
            return Ok(());
        }
        let next = self.text_of(self.peek().span).to_owned();
        let text = &name.text;
        let help = if self.peek().kind == Kind::Name && habits::kind(text).is_some() | is_type(text) {
            let kind = habits::kind(text).unwrap_or(text);
            format!("the name comes first: `{next}: {kind}`")
        } else if matches!(self.peek().kind, Kind::Name | Kind::Type) && !self.peek().after_line {
            format!("write `{text}: {next}`")
        } else {
            let example = match self.peek_after().kind {
                Kind::Text => "text",
                Kind::Real => "real",
                Kind::Duration => "duration",
                Kind::Sign("[") => "list of int",
                _ => "int",
            };
            format!("a name has a type: `{text}: {example}`")
        };
        self.unexpected_with("`:`", |diagnostic| diagnostic.help(help))
    }

    pub(crate) fn type_tree(&mut self) -> Parsed<TypeTree> {
        let start = self.peek().span;
        if self.is_word("list") {
            self.advance();
            if !self.take_word("of") {
                return self.unexpected_with("`of`", |diagnostic| diagnostic.help("write `list of int`"));
            }
            let element = self.deeper(|parser| parser.type_tree())?;
            return Ok(TypeTree::List { element: Box::new(element), span: start.to(self.before()) });
        }
        let token = self.peek();
        if !matches!(token.kind, Kind::Name | Kind::Type) || RESERVED.contains(&self.text_of(token.span)) {
            return self.expected("a type", |diagnostic| match token.kind {
                Kind::Sign("[") => diagnostic.help("write `list of int`"),
                Kind::Sign("{") => {
                    diagnostic.help("declare a `record` with these fields, and write its name")
                }
                Kind::Sign("?") => diagnostic.help("`?` stands behind the type: `int?`"),
                _ => diagnostic,
            });
        }
        let name = self.type_word()?;
        if self.is_sign("[") || self.is_sign("<") {
            let inner = if self.is_sign("[") {
                self.text_of(name.span)
            } else {
                self.text_of(self.peek_after().span)
            };
            let message = format!("a type has no `{}`", self.text_of(self.peek().span));
            self.report.push(
                Diagnostic::new(Code::Foreign, self.peek().span, message)
                    .help(format!("a list is `list of {inner}`, what may be none `{inner}?`")),
            );
            return Err(Broken);
        }
        Ok(TypeTree::Named { name, optional: self.take_sign("?") })
    }

    /// A type, or `list of R by key`.
    pub(super) fn keyed_or_type(&mut self) -> Parsed<TypeTree> {
        let kind = self.type_tree()?;
        let TypeTree::List { element, span } = kind else { return Ok(kind) };
        if !self.is_word("by") {
            return Ok(TypeTree::List { element, span });
        }
        let TypeTree::Named { name: element, optional: false } = *element else {
            return self.unexpected("a record's name before `by`");
        };
        self.advance();
        let keys = self.names()?;
        let mut indexes = Vec::new();
        while self.take_word("index") {
            self.bounded(indexes.len(), INDEXES_MAX, "indexes of one list")?;
            indexes.push(self.names()?);
        }
        Ok(TypeTree::Keyed { element, keys, indexes, span: span.to(self.before()) })
    }

    pub(super) fn names(&mut self) -> Parsed<Vec<Word>> {
        let mut names = vec![self.need_name("the name of a field")?];
        while self.take_sign(",") {
            self.bounded(names.len(), MEMBERS_MAX, "names")?;
            names.push(self.need_name("the name of a field")?);
        }
        Ok(names)
    }
}

fn is_type(word: &str) -> bool {
    matches!(
        word,
        "bool" | "int" | "real" | "text" | "bytes" | "time" | "duration" | "node" | "endpoint" | "list"
    )
}
