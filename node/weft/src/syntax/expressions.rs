//! Expressions and queries, by precedence climbing: one level of the stack for each level of nesting.

use super::lexer::{self, Kind};
use super::parser::{Broken, Parsed, Parser, RESERVED};
use super::tree::*;
use super::{MEMBERS_MAX, NESTING_MAX};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::value::Real;

const OPERATORS: &[(&str, Binary)] = &[
    ("or", Binary::Or),
    ("and", Binary::And),
    ("==", Binary::Equal),
    ("!=", Binary::NotEqual),
    ("<", Binary::Less),
    ("<=", Binary::LessEqual),
    (">", Binary::Greater),
    (">=", Binary::GreaterEqual),
    ("+", Binary::Add),
    ("-", Binary::Subtract),
    ("*", Binary::Multiply),
    ("/", Binary::Divide),
    ("%", Binary::Remainder),
];
const COMPARISON: u8 = 4;
const NEGATION: u8 = 3;
const SUM: u8 = 5;
/// How many lists one query may run over: each is a loop inside of the one before.
const SOURCES_MAX: usize = 8;
/// How high a tree may be: operators and calls in a row make it higher without nesting.
const HEIGHT_MAX: u16 = 2 * NESTING_MAX;

impl Parser<'_> {
    fn make(&mut self, kind: ExpressionKind, span: Span, below: u16) -> Parsed<Expression> {
        if below >= HEIGHT_MAX {
            return self.too_deep(span);
        }
        Ok(Expression { kind: Box::new(kind), span, height: below + 1 })
    }

    /// expression = choice | condition [ "else" expression ]
    pub(crate) fn expression(&mut self) -> Parsed<Expression> {
        self.deeper(|parser| parser.expression_here())
    }

    fn expression_here(&mut self) -> Parsed<Expression> {
        let start = self.peek().span;
        if self.take_word("if") {
            let condition = self.condition()?;
            self.need_word("then")?;
            let then = self.condition()?;
            self.need_word("else")?;
            let otherwise = self.expression()?;
            let below = condition.height.max(then.height).max(otherwise.height);
            let span = start.to(otherwise.span);
            return self.make(ExpressionKind::If { condition, then, otherwise }, span, below);
        }
        let value = self.condition()?;
        if !self.line_ends() && self.take_word("else") {
            if self.is_word("refuse") || self.is_word("return") {
                let span = self.peek().span;
                self.report.push(
                    Diagnostic::new(
                        Code::Unexpected,
                        span,
                        "a way out stands only in `let … else` and `var … else`",
                    )
                    .help("give the value a name first: `let x = … else refuse \"…\"`"),
                );
                return Err(Broken);
            }
            let otherwise = self.expression()?;
            let below = value.height.max(otherwise.height);
            let span = value.span.to(otherwise.span);
            return self.make(ExpressionKind::Else { value, otherwise }, span, below);
        }
        Ok(value)
    }

    /// Not a level of its own: whoever comes back here has gone through `expression`, a block, a query or a record.
    pub(crate) fn condition(&mut self) -> Parsed<Expression> {
        self.climb(1)
    }

    fn sum(&mut self) -> Parsed<Expression> {
        self.deeper(|parser| parser.climb(SUM))
    }

    fn operator(&self) -> Option<Binary> {
        let token = self.peek();
        let text = match token.kind {
            Kind::Name if !self.line_ends() => self.text_of(token.span),
            Kind::Sign(sign) => sign,
            _ => return None,
        };
        OPERATORS.iter().find(|(sign, _)| *sign == text).map(|(_, operator)| *operator)
    }

    fn climb(&mut self, least: u8) -> Parsed<Expression> {
        let start = self.peek().span;
        let mut left = if least <= NEGATION && self.is_word("not") {
            self.advance();
            let value = self.deeper(|parser| parser.climb(NEGATION))?;
            let (span, below) = (start.to(value.span), value.height);
            self.make(ExpressionKind::Not(value), span, below)?
        } else {
            self.prefix()?
        };
        loop {
            if least <= COMPARISON && !self.line_ends() && (self.is_word("in") || self.is_word("is")) {
                left = self.in_or_is(left)?;
                continue;
            }
            let Some(operator) = self.operator() else { return Ok(left) };
            let strength = operator.strength();
            if strength < least {
                return Ok(left);
            }
            self.advance();
            let right = self.deeper(|parser| parser.climb(strength + 1))?;
            let (span, below) = (left.span.to(right.span), left.height.max(right.height));
            left = self.make(ExpressionKind::Binary(operator, left, right), span, below)?;
            if strength == COMPARISON && self.operator().is_some_and(|next| next.strength() == COMPARISON) {
                return self.unexpected("`and` or `or`: comparisons do not chain");
            }
        }
    }

    fn in_or_is(&mut self, value: Expression) -> Parsed<Expression> {
        if self.take_word("is") {
            let name = self.need_name("a name for what is there")?;
            let (span, below) = (value.span.to(name.span), value.height);
            return self.make(ExpressionKind::Is { value, name }, span, below);
        }
        self.advance();
        let list = self.sum()?;
        let upto = if self.take_sign("..") { Some(self.sum()?) } else { None };
        let below = value.height.max(list.height).max(upto.as_ref().map_or(0, |upto| upto.height));
        let span = value.span.to(self.before());
        self.make(ExpressionKind::In { value, list, upto }, span, below)
    }

    fn prefix(&mut self) -> Parsed<Expression> {
        if !self.is_sign("-") {
            return self.place();
        }
        let start = self.advance().span;
        let value = self.deeper(|parser| parser.prefix())?;
        let (span, below) = (start.to(value.span), value.height);
        self.make(ExpressionKind::Negate(value), span, below)
    }

    pub(crate) fn place(&mut self) -> Parsed<Expression> {
        let mut place = self.atom()?;
        loop {
            let start = place.span;
            if self.take_sign(".") {
                let field = self.need_name("the name of a field")?;
                let (span, below) = (start.to(field.span), place.height);
                place = self.make(ExpressionKind::Field(place, field), span, below)?;
            } else if self.is_sign("[") {
                self.advance();
                self.inside += 1;
                let keys = self.expressions("]");
                self.inside = self.inside.saturating_sub(1);
                let keys = keys?;
                if keys.is_empty() {
                    return self.unexpected("a key");
                }
                let below = keys.iter().map(|key| key.height).max().unwrap_or(0).max(place.height);
                let span = start.to(self.before());
                place = self.make(ExpressionKind::Index(place, keys), span, below)?;
            } else if self.is_sign("(") {
                let (arguments, query) = self.arguments()?;
                let below = arguments.iter().map(|one| one.height).max().unwrap_or(0).max(place.height);
                let below = below.max(query.as_ref().map_or(0, |query| query.height));
                let who = self.who()?;
                let below = below.max(who.as_ref().map_or(0, |who| who.value.height));
                let span = start.to(self.before());
                let call = ExpressionKind::Call { callee: place, arguments, query, who };
                place = self.make(call, span, below)?;
            } else {
                return Ok(place);
            }
        }
    }

    /// Who does what was just called: `by` or `from`, and an atom.
    fn who(&mut self) -> Parsed<Option<Who>> {
        if self.line_ends() || !(self.is_word("by") || self.is_word("from")) {
            return Ok(None);
        }
        let from = self.is_word("from");
        self.advance();
        Ok(Some(Who { from, value: self.atom()? }))
    }

    /// Expressions with commas, up to and with `close`.
    fn expressions(&mut self, close: &str) -> Parsed<Vec<Expression>> {
        let mut list = Vec::new();
        while !self.is_sign(close) {
            list.push(self.expression()?);
            if !self.take_sign(",") {
                break;
            }
        }
        if !self.is_sign(close) {
            return self.unexpected(&format!("`,` or `{close}`"));
        }
        self.advance();
        Ok(list)
    }

    fn arguments(&mut self) -> Parsed<(Vec<Expression>, Option<Query>)> {
        self.need_sign("(")?;
        self.inside += 1;
        let read = self.arguments_inside(")");
        self.inside = self.inside.saturating_sub(1);
        read
    }

    fn arguments_inside(&mut self, close: &str) -> Parsed<(Vec<Expression>, Option<Query>)> {
        if self.take_sign(close) {
            return Ok((Vec::new(), None));
        }
        let first = self.expression()?;
        if self.is_word("for") {
            let query = self.query()?;
            self.need_sign(close)?;
            return Ok((vec![first], Some(query)));
        }
        let mut list = vec![first];
        if self.take_sign(",") {
            list.extend(self.expressions(close)?);
        } else if !self.take_sign(close) {
            return self.unexpected(&format!("`,`, `for` or `{close}`"));
        }
        Ok((list, None))
    }

    pub(crate) fn plain_arguments(&mut self) -> Parsed<Vec<Expression>> {
        let (arguments, query) = self.arguments()?;
        if let Some(query) = query {
            self.report.push(
                Diagnostic::new(Code::Unexpected, query.span, "a query stands in brackets here")
                    .help("write `[… for …]`"),
            );
        }
        Ok(arguments)
    }

    fn atom(&mut self) -> Parsed<Expression> {
        let token = self.peek();
        let text = self.text_of(token.span);
        let kind = match token.kind {
            Kind::Int => ExpressionKind::Int(self.number(token.span, text)),
            Kind::Real => ExpressionKind::Real(self.real(token.span, text)),
            Kind::Duration => ExpressionKind::Duration(self.duration(token.span, text)),
            Kind::Text => return self.text(),
            Kind::Type | Kind::Sign("{") => return self.deeper(|parser| parser.record_expression()),
            Kind::Sign("[") => return self.list_expression(),
            Kind::Sign("(") => return self.parenthesis(),
            Kind::Sign(".") => {
                self.advance();
                let case = self.need_name("a case")?;
                return self.make(ExpressionKind::Case(case.text), token.span.to(case.span), 0);
            }
            Kind::Name => match text {
                "true" | "false" => ExpressionKind::Bool(text == "true"),
                "none" => ExpressionKind::None,
                "now" => ExpressionKind::Now,
                "me" => ExpressionKind::Me,
                _ if RESERVED.contains(&text) || self.declaration_begins() => {
                    return self.unexpected("a value");
                }
                _ => ExpressionKind::Name(text.into()),
            },
            _ => return self.unexpected("a value"),
        };
        self.advance();
        self.make(kind, token.span, 0)
    }

    fn number(&mut self, span: Span, text: &str) -> i64 {
        text.replace('_', "").parse().unwrap_or_else(|_| {
            self.report.push(
                Diagnostic::new(Code::BadNumber, span, "this number is too large for an `int`")
                    .note(format!("the largest is {}", i64::MAX)),
            );
            0
        })
    }

    fn real(&mut self, span: Span, text: &str) -> Real {
        let found = text.replace('_', "").parse().ok().and_then(Real::new);
        found.unwrap_or_else(|| {
            self.report.push(Diagnostic::new(Code::BadNumber, span, "this number is too large for a `real`"));
            Real::ZERO
        })
    }

    pub(super) fn duration(&mut self, span: Span, text: &str) -> i64 {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == ' ');
        let digits = text[..text.len() - unit.len()].trim_end();
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "min" => 60_000,
            "h" => 3_600_000,
            _ => 86_400_000,
        };
        let count = self.number(span, digits);
        count.checked_mul(milliseconds).unwrap_or_else(|| {
            self.report.push(Diagnostic::new(Code::BadNumber, span, "this duration is too long"));
            0
        })
    }

    fn parenthesis(&mut self) -> Parsed<Expression> {
        let start = self.advance().span;
        self.inside += 1;
        let value = self.expression();
        self.inside = self.inside.saturating_sub(1);
        let mut value = value?;
        let end = self.need_sign(")")?;
        value.span = start.to(end);
        Ok(value)
    }

    fn list_expression(&mut self) -> Parsed<Expression> {
        let start = self.advance().span;
        self.inside += 1;
        let read = self.arguments_inside("]");
        self.inside = self.inside.saturating_sub(1);
        let (mut values, query) = read?;
        let below = values.iter().map(|one| one.height).max().unwrap_or(0);
        let below = below.max(query.as_ref().map_or(0, |query| query.height));
        let span = start.to(self.before());
        let kind = match query {
            Some(query) => match values.pop() {
                Some(body) => ExpressionKind::Comprehension(body, query),
                None => ExpressionKind::Broken,
            },
            None => ExpressionKind::List(values),
        };
        self.make(kind, span, below)
    }

    fn record_expression(&mut self) -> Parsed<Expression> {
        let token = self.peek();
        let mut name = None;
        if token.kind == Kind::Type {
            self.advance();
            name = Some(Word { text: self.text_of(token.span).into(), span: token.span });
            if !self.is_sign("{") {
                return self.unexpected("`{` and the record's fields");
            }
        }
        self.need_sign("{")?;
        let mut items = Vec::new();
        let mut below = 0;
        while !self.is_sign("}") {
            self.bounded(items.len(), MEMBERS_MAX, "fields")?;
            let place = self.place()?;
            let item = match (&*place.kind, self.is_sign(":")) {
                (ExpressionKind::Name(field), true) => {
                    let field = Word { text: field.clone(), span: place.span };
                    self.advance();
                    let value = self.expression()?;
                    below = below.max(value.height);
                    Item::Named(field, value)
                }
                _ => {
                    below = below.max(place.height);
                    Item::Place(place)
                }
            };
            items.push(item);
            if !self.take_sign(",") {
                break;
            }
        }
        if !self.is_sign("}") {
            return self.unexpected("`,` or `}`");
        }
        let end = self.advance().span;
        self.make(ExpressionKind::Record { name, items }, token.span.to(end), below)
    }

    /// A text with `{expressions}` in it.
    pub(super) fn text(&mut self) -> Parsed<Expression> {
        let span = self.advance().span;
        let (from, to) = (span.start as usize + 1, span.end as usize - 1);
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut below = 0;
        let mut at = from;
        while let Some(character) = self.source[at..to].chars().next() {
            match character {
                '\\' => at = self.escape(at, to, &mut literal),
                '{' => {
                    let Some(length) = self.source[at..to].find('}') else {
                        let open = Span { start: at as u32, end: span.end };
                        self.report.push(
                            Diagnostic::new(Code::OpenText, open, "this `{` is not closed")
                                .help("a brace as such is written `\\{`"),
                        );
                        return Err(Broken);
                    };
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    let value = self.interpolated(at + 1, at + length)?;
                    below = below.max(value.height);
                    pieces.push(Piece::Value(value));
                    at += length + 1;
                }
                _ => {
                    literal.push(character);
                    at += character.len_utf8();
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        self.make(ExpressionKind::Text(pieces), span, below)
    }

    fn escape(&mut self, at: usize, to: usize, literal: &mut String) -> usize {
        let Some(character) = self.source[at + 1..to].chars().next() else { return to };
        let end = at + 1 + character.len_utf8();
        match character {
            'n' => literal.push('\n'),
            't' => literal.push('\t'),
            '"' | '\\' | '{' | '}' => literal.push(character),
            _ => {
                let span = Span { start: at as u32, end: end as u32 };
                self.report.push(
                    Diagnostic::new(Code::OpenText, span, "there is no such escape")
                        .note("escapes are \\n \\t \\\" \\\\ \\{ and \\}"),
                );
            }
        }
        end
    }

    fn interpolated(&mut self, from: usize, to: usize) -> Parsed<Expression> {
        let tokens = lexer::tokens(self.source, from, to, self.report);
        let depth = self.depth;
        let mut inner = Parser::new(self.source, tokens, self.report);
        inner.depth = depth;
        inner.inside = 1;
        let value = inner.expression()?;
        if inner.peek().kind == Kind::End { Ok(value) } else { inner.unexpected("`}`") }
    }

    /// query = source { source } [ group by ] [ order by ] [ take ]
    pub(crate) fn query(&mut self) -> Parsed<Query> {
        self.deeper(|parser| parser.query_here())
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
            let name = self.need_name("a name for each element")?;
            self.need_word("in")?;
            let list = self.sum()?;
            let upto = if self.take_sign("..") { Some(self.sum()?) } else { None };
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
            self.need_word("as")?;
            let name = self.need_name("a name for each group")?;
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
