//! Queries: `for x in list where … group by … order by … take …`.

use super::lexer::Kind;
use super::parser::{Broken, Parsed, Parser};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic};

/// How many lists one query may run over: each is a loop inside of the one before.
const SOURCES_MAX: usize = 8;
impl Parser<'_> {
    /// query = source { source } [ group by ] [ order by ] [ take ]
    pub(crate) fn query(&mut self) -> Parsed<Query> {
        self.deeper(|parser| parser.query_here())
    }

    /// name in list, name in a .. b
    fn source(&mut self) -> Parsed<(Word, Expression, Option<Expression>)> {
        let open = self.peek().span;
        let brackets = self.is_sign("(");
        if brackets {
            self.advance();
            if !self.is_word("let") && !self.is_word("var") {
                self.foreign(open, "a `for` has no brackets", "write `for x in list { … }`");
            }
        }
        if self.is_word("let")
            || self.is_word("var")
            || self.is_word("each") && self.peek_after().kind == Kind::Name
        {
            let span = self.advance().span;
            let word = self.text_of(span).to_owned();
            let counts = self.peek_after().kind == Kind::Sign("=");
            let help = match counts {
                true => "a loop runs over a list or a range: `for i in 0 .. n - 1 { … }`",
                false => "write `for x in list { … }`",
            };
            self.foreign(span, &format!("a `for` has no `{word}`"), help);
            if counts {
                return Err(Broken);
            }
        }
        let name = self.new_name("a name for each element")?;
        if !self.take_word("in") {
            let of = self.is_word("of");
            return self.unexpected_with("`in`", |diagnostic| match of {
                true => diagnostic.help("write `for x in list`"),
                false => {
                    diagnostic.help("a loop runs over a list or a range: `for x in list`, `for i in 1 .. 10`")
                }
            });
        }
        let list = self.sum()?;
        let upto = if self.take_range() { Some(self.sum()?) } else { None };
        if brackets {
            self.need_close(open, ")", "`)`")?;
        }
        Ok((name, list, upto))
    }

    /// The `..` of a range.
    pub(super) fn take_range(&mut self) -> bool {
        let (kind, span) = (self.peek().kind, self.peek().span);
        if let Kind::Sign(sign @ ("..." | "..<" | "..=")) = kind {
            let help = match sign {
                "..<" => "write `a .. b - 1`: both ends are included",
                _ => "write `a .. b`: both ends are included",
            };
            self.foreign(span, &format!("there is no `{sign}` in Weft"), help);
            self.advance();
            return true;
        }
        self.take_sign("..")
    }

    fn query_here(&mut self) -> Parsed<Query> {
        let start = self.peek().span;
        let mut query =
            Query { sources: Vec::new(), group: None, order: Vec::new(), take: None, span: start, height: 0 };
        // A `for` that begins a line of its own is the next statement.
        while self.is_word("for") && (query.sources.is_empty() || !self.line_ends()) {
            if query.sources.len() >= SOURCES_MAX {
                let span = self.peek().span;
                let message = format!("more than {SOURCES_MAX} lists in one query");
                self.report.push(Diagnostic::new(Code::TooLarge, span, message));
                return Err(Broken);
            }
            self.advance();
            let (name, list, upto) = self.source()?;
            let condition = if self.take_word("where") { Some(self.condition()?) } else { None };
            for one in [Some(&list), upto.as_ref(), condition.as_ref()].into_iter().flatten() {
                query.height = query.height.max(one.height);
            }
            query.sources.push(QuerySource { name, list, upto, condition });
        }
        if self.is_word("group") && !self.line_ends() {
            self.advance();
            self.need_word("by")?;
            let key = self.sum()?;
            if !self.take_word("as") {
                return self.unexpected_with("`as`", |diagnostic| {
                    diagnostic.help("give each group a name: `group by … as g`; it has `g.key` and `g.rows`")
                });
            }
            let name = self.new_name("a name for each group")?;
            let condition = if self.take_word("where") { Some(self.condition()?) } else { None };
            for one in [Some(&key), condition.as_ref()].into_iter().flatten() {
                query.height = query.height.max(one.height);
            }
            query.group = Some(Group { key, name, condition });
        }
        if self.is_word("order") && !self.line_ends() {
            self.advance();
            self.need_word("by")?;
            loop {
                let key = self.sum()?;
                query.height = query.height.max(key.height);
                let descending = self.take_word("desc");
                query.order.push((key, descending));
                if !self.take_sign(",") {
                    break;
                }
            }
        }
        if self.is_word("take") && !self.line_ends() {
            self.advance();
            let count = self.sum()?;
            query.height = query.height.max(count.height);
            query.take = Some(count);
        }
        query.span = start.to(self.before());
        Ok(query)
    }
}
