//! Expressions, by precedence climbing: one level of the stack for each level of nesting.

use super::habits;
use super::lexer::Kind;
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
    // As other languages write them: reported, and taken as what they are here.
    ("||", Binary::Or),
    ("&&", Binary::And),
    ("===", Binary::Equal),
    ("=", Binary::Equal),
    ("!==", Binary::NotEqual),
    ("<>", Binary::NotEqual),
    ("=<", Binary::LessEqual),
];
const COMPARISON: u8 = 4;
const NEGATION: u8 = 3;
const SUM: u8 = 5;
/// How high a tree may be: operators and calls in a row make it higher without nesting.
const HEIGHT_MAX: u16 = 2 * NESTING_MAX;

impl Parser<'_> {
    pub(super) fn make(&mut self, kind: ExpressionKind, span: Span, below: u16) -> Parsed<Expression> {
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
            if !self.take_word("then") {
                return self.unexpected_with("`then`", |diagnostic| {
                    diagnostic.help("a choice between values is `if … then … else …`")
                });
            }
            let then = self.condition()?;
            if !self.take_word("else") {
                return self.unexpected_with("`else`", |diagnostic| {
                    diagnostic.help("a choice gives a value in both cases: `if … then … else …`")
                });
            }
            let otherwise = self.expression()?;
            let below = condition.height.max(then.height).max(otherwise.height);
            let span = start.to(otherwise.span);
            return self.make(ExpressionKind::If { condition, then, otherwise }, span, below);
        }
        let value = self.condition()?;
        self.with_otherwise(value)
    }

    /// `[ "else" expression ]`, behind a condition.
    pub(super) fn with_otherwise(&mut self, value: Expression) -> Parsed<Expression> {
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

    pub(super) fn sum(&mut self) -> Parsed<Expression> {
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
        let left = if least <= NEGATION && (self.is_word("not") || self.is_sign("!")) {
            if self.is_sign("!") {
                self.foreign(start, "there is no `!` in Weft", "write `not`");
            }
            self.advance();
            let value = self.deeper(|parser| parser.climb(NEGATION))?;
            let (span, below) = (start.to(value.span), value.height);
            self.make(ExpressionKind::Not(value), span, below)?
        } else {
            self.prefix()?
        };
        self.climb_on(start, left, least)
    }

    /// What goes on behind a value.
    pub(super) fn climb_on(&mut self, start: Span, left: Expression, least: u8) -> Parsed<Expression> {
        let mut left = left;
        loop {
            if least <= COMPARISON && !self.line_ends() && (self.is_word("in") || self.is_word("is")) {
                left = self.in_or_is(left)?;
                continue;
            }
            if least <= COMPARISON && self.is_word("not") && !self.line_ends() {
                left = self.not_in(left)?;
                continue;
            }
            let Some(operator) = self.operator() else { return Ok(left) };
            let strength = operator.strength();
            if strength < least {
                return Ok(left);
            }
            self.foreign_operator(operator);
            self.advance();
            let right = self.deeper(|parser| parser.climb(strength + 1))?;
            let (span, below) = (start.to(right.span), left.height.max(right.height));
            left = self.make(ExpressionKind::Binary(operator, left, right), span, below)?;
            if strength == COMPARISON && self.operator().is_some_and(|next| next.strength() == COMPARISON) {
                return self.chained(&left);
            }
        }
    }

    /// `a < b < c`
    fn chained(&mut self, left: &Expression) -> Parsed<Expression> {
        let span = self.peek().span;
        let mut help = "write `a < b and b < c`".to_owned();
        if let ExpressionKind::Binary(_, _, middle) = &*left.kind {
            let (first, middle) = (self.text_of(left.span), self.text_of(middle.span));
            if first.len() <= 40 && !first.contains('\n') {
                help = format!("write `{first} and {middle} {} …`", self.text_of(span));
            }
        }
        self.report.push(
            Diagnostic::new(Code::Unexpected, span, "comparisons do not chain")
                .label("expected `and` or `or`")
                .help(help),
        );
        Err(Broken)
    }

    /// Reports an operator as another language writes it; it goes on as what it is here.
    fn foreign_operator(&mut self, operator: Binary) {
        let span = self.peek().span;
        match self.text_of(span) {
            "=" => self.report.push(
                Diagnostic::new(Code::Unexpected, span, "`=` assigns, and gives no value")
                    .help("to compare, write `==`"),
            ),
            text if text != operator.sign() => {
                let message = format!("there is no `{text}` in Weft");
                self.foreign(span, &message, format!("write `{}`", operator.sign()));
            }
            _ => {}
        }
    }

    /// `a not in list`, which is `not a in list` here.
    fn not_in(&mut self, value: Expression) -> Parsed<Expression> {
        let span = self.peek().span;
        if self.text_of(self.peek_after().span) != "in" {
            return self.unexpected("an operator");
        }
        self.advance();
        let text = self.short_text(value.span);
        self.foreign(span, "`not` stands before what it turns round", format!("write `not {text} in …`"));
        let value = self.in_or_is(value)?;
        let (span, below) = (value.span, value.height);
        self.make(ExpressionKind::Not(value), span, below)
    }

    fn in_or_is(&mut self, value: Expression) -> Parsed<Expression> {
        if self.take_word("is") {
            if let Some(compared) = self.is_none(&value) {
                return compared;
            }
            let name = self.need_name("a name for what is there")?;
            let (span, below) = (value.span.to(name.span), value.height);
            return self.make(ExpressionKind::Is { value, name }, span, below);
        }
        self.advance();
        let list = self.sum()?;
        let upto = if self.take_range() { Some(self.sum()?) } else { None };
        let below = value.height.max(list.height).max(upto.as_ref().map_or(0, |upto| upto.height));
        let span = value.span.to(self.before());
        self.make(ExpressionKind::In { value, list, upto }, span, below)
    }

    /// `is none`, `is not none`, `is true`: comparisons elsewhere.
    fn is_none(&mut self, value: &Expression) -> Option<Parsed<Expression>> {
        let start = self.before();
        let negated = self.is_word("not");
        let constant = if negated { self.peek_after() } else { self.peek() };
        let text = self.text_of(constant.span);
        if !["none", "true", "false", "null", "nil"].contains(&text) || constant.kind != Kind::Name {
            return None;
        }
        let span = start.to(constant.span);
        let shown = self.short_text(value.span);
        let sign = if negated { "!=" } else { "==" };
        let right = if matches!(text, "null" | "nil") { "none" } else { text };
        self.report.push(
            Diagnostic::new(Code::Unexpected, span, "`is` gives what is there a name, and compares nothing")
                .help(format!("write `{shown} {sign} {right}`")),
        );
        if negated {
            self.advance();
        }
        self.advance();
        // Said: a condition that nothing more is said about.
        Some(self.make(ExpressionKind::Broken, value.span.to(self.before()), value.height))
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
                let open = self.advance().span;
                self.inside += 1;
                let keys = self.expressions(open, "]");
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
    fn expressions(&mut self, open: Span, close: &str) -> Parsed<Vec<Expression>> {
        let mut list = Vec::new();
        while !self.is_sign(close) {
            self.argument_name()?;
            list.push(self.expression()?);
            if !self.take_sign(",") {
                break;
            }
        }
        self.need_close(open, close, &format!("`,` or `{close}`"))?;
        Ok(list)
    }

    fn arguments(&mut self) -> Parsed<(Vec<Expression>, Option<Query>)> {
        let open = self.need_sign("(")?;
        self.inside += 1;
        let read = self.arguments_inside(open, ")");
        self.inside = self.inside.saturating_sub(1);
        read
    }

    fn arguments_inside(&mut self, open: Span, close: &str) -> Parsed<(Vec<Expression>, Option<Query>)> {
        if self.take_sign(close) {
            return Ok((Vec::new(), None));
        }
        self.argument_name()?;
        let first = self.expression()?;
        if self.is_word("for") {
            let query = self.query()?;
            self.need_close(open, close, &format!("`{close}`"))?;
            return Ok((vec![first], Some(query)));
        }
        let mut list = vec![first];
        if self.take_sign(",") {
            list.extend(self.expressions(open, close)?);
            return Ok((list, None));
        }
        if self.is_word("where") || self.is_word("order") || self.is_word("take") {
            let (word, list) = (self.text_of(self.peek().span).to_owned(), self.text_of(list[0].span));
            let list = if list.len() <= 40 && !list.contains('\n') { list } else { "list" };
            let help = format!("write `x for x in {list} {word} …`");
            return self.unexpected_with("`for`", |diagnostic| {
                diagnostic.note("a query gives each element a name").help(help)
            });
        }
        self.need_close(open, close, &format!("`,`, `for` or `{close}`"))?;
        Ok((list, None))
    }

    /// `f(name: value)`, `f(name = value)`
    fn argument_name(&mut self) -> Parsed<()> {
        let after = self.peek_after().kind;
        if self.peek().kind != Kind::Name || !matches!(after, Kind::Sign(":" | "=")) {
            return Ok(());
        }
        let span = self.advance().span.to(self.peek().span);
        self.advance();
        self.report.push(
            Diagnostic::new(Code::Unexpected, span, "arguments have no names")
                .note("they stand in the order of the fields; in a record, `R { name: value }`, they have names")
                .help("leave the name out"),
        );
        Ok(())
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
            Kind::Name if self.type_of_library() => {
                return self.deeper(|parser| parser.record_expression());
            }
            Kind::Type | Kind::Sign("{") => return self.deeper(|parser| parser.record_expression()),
            Kind::Sign("[") => return self.list_expression(),
            Kind::Sign("(") => return self.parenthesis(),
            Kind::Sign(".") => {
                self.advance();
                if self.peek().kind == Kind::Int {
                    let digits = self.text_of(self.peek().span);
                    let span = token.span.to(self.peek().span);
                    self.report.push(
                        Diagnostic::new(Code::BadNumber, span, "a `real` has digits before its point")
                            .help(format!("write `0.{digits}`")),
                    );
                    return Err(Broken);
                }
                let case = self.need_name("a case")?;
                return self.make(ExpressionKind::Case(case.text), token.span.to(case.span), 0);
            }
            Kind::Name => match text {
                "true" | "false" => ExpressionKind::Bool(text == "true"),
                "none" => ExpressionKind::None,
                "now" => ExpressionKind::Now,
                "me" => ExpressionKind::Me,
                _ if RESERVED.contains(&text) || self.declaration_begins() => {
                    return self.no_value();
                }
                _ => ExpressionKind::Name(text.into()),
            },
            _ => return self.no_value(),
        };
        self.advance();
        self.make(kind, token.span, 0)
    }

    /// Says that a value was expected, and what people mean who write this instead.
    fn no_value(&mut self) -> Parsed<Expression> {
        let token = self.peek();
        let before = self.text_of(self.before());
        let text = if token.kind == Kind::End { "" } else { self.text_of(token.span) };
        let (expected, help) = match text {
            _ if token.after_line && self.inside == 0 => {
                ("a value", format!("something is missing behind `{before}`"))
            }
            "return" | "refuse" | "break" | "continue" => (
                "a value",
                "a way out is a statement of its own, or stands behind the `else` of a `let`".into(),
            ),
            "let" | "var" => ("a value", "`let` and `var` begin a statement of their own".into()),
            "if" => (
                "a value",
                "in the middle of an expression a choice stands in brackets: `(if … then … else …)`".into(),
            ),
            "for" => ("a value", "what is wanted of each comes first: `[x.field for x in list]`".into()),
            "where" => ("a value", "give each element a name: `x for x in list where …`".into()),
            "else" => {
                ("a value", "an `else` stands behind the value that may be none, or behind an `if`".into())
            }
            "+" => ("a value", "there is no `+` before a value".into()),
            "=" if before == "=" => ("a value", "to compare, write `==` without a space".into()),
            "*" if before == "*" => ("a value", "there is no power: multiply".into()),
            "}" => ("a value", format!("something is missing behind `{before}`")),
            _ => return self.unexpected("a value"),
        };
        let help = if before.len() > 40 { "something is missing before this".to_owned() } else { help };
        self.expected(expected, |diagnostic| diagnostic.help(help))
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
        let end = self.need_close(start, ")", "`)`")?;
        value.span = start.to(end);
        Ok(value)
    }

    fn list_expression(&mut self) -> Parsed<Expression> {
        let start = self.advance().span;
        self.inside += 1;
        let read = self.arguments_inside(start, "]");
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

    /// Whether `name.Type` stands here.
    fn type_of_library(&self) -> bool {
        let after = |by: usize| self.tokens[(self.at + by).min(self.tokens.len() - 1)].kind;
        after(1) == Kind::Sign(".") && after(2) == Kind::Type
    }

    fn record_expression(&mut self) -> Parsed<Expression> {
        let token = self.peek();
        let mut name = None;
        if token.kind != Kind::Sign("{") {
            name = Some(self.type_word()?);
            if !self.is_sign("{") {
                return self.type_as_value(token.span);
            }
        }
        let open = self.need_sign("{")?;
        let mut items = Vec::new();
        let mut below = 0;
        while !self.is_sign("}") {
            self.bounded(items.len(), MEMBERS_MAX, "fields")?;
            let place = self.place()?;
            if let (ExpressionKind::Text(_), true) = (&*place.kind, self.is_sign(":")) {
                let name = self.text_of(place.span).trim_matches('"');
                let name = if name.len() <= 40 { name } else { "name" };
                self.report.push(
                    Diagnostic::new(Code::Unexpected, place.span, "a field's name stands without quotes")
                        .help(format!("write `{name}: …`")),
                );
                return Err(Broken);
            }
            let item = match (&*place.kind, self.is_sign(":")) {
                (ExpressionKind::Name(field), true) => {
                    let field = Word { text: field.clone(), span: place.span };
                    self.advance();
                    let value = self.expression()?;
                    below = below.max(value.height);
                    Item::Named(field, value)
                }
                (ExpressionKind::Name(field), false) if self.is_sign("=") => {
                    let field = Word { text: field.clone(), span: place.span };
                    let span = self.advance().span;
                    self.report.push(
                        Diagnostic::new(Code::Unexpected, span, "a field is given its value with `:`")
                            .help(format!("write `{}: …`", field.text)),
                    );
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
        let end = self.need_close(open, "}", "`,` or `}`")?;
        self.make(ExpressionKind::Record { name, items }, token.span.to(end), below)
    }

    /// A type's name where a value is wanted: a case or a record as other languages write them.
    fn type_as_value(&mut self, name: Span) -> Parsed<Expression> {
        let owner = self.text_of(name).to_owned();
        if (self.is_sign(".") || self.is_sign("::")) && self.peek_after().kind == Kind::Name {
            self.advance();
            let case = self.advance().span;
            let case_name = self.text_of(case).to_owned();
            self.report.push(
                Diagnostic::new(Code::CaseWithoutDot, name.to(case), "a case stands without its enum")
                    .note(format!("that it is of `{owner}` is told by what is expected here"))
                    .help(format!("write `.{case_name}`")),
            );
            return self.make(ExpressionKind::Case(case_name), name.to(case), 0);
        }
        let diagnostic = if self.is_sign("(") {
            let message = format!("`{owner}` is a type, and is not called");
            Diagnostic::new(Code::Unexpected, name, message)
                .help(format!("a record is written with its fields' names: `{owner} {{ name: … }}`"))
        } else if let Some(instead) = habits::value(&owner) {
            Diagnostic::new(Code::Foreign, name, format!("there is no `{owner}` in Weft")).help(instead)
        } else {
            Diagnostic::new(Code::Unexpected, name, format!("`{owner}` is a type, and here stands a value"))
                .note("types begin with a capital letter, values with a small one")
                .help(format!("a record is `{owner} {{ name: … }}`, a case of an enum `.name`"))
        };
        self.report.push(diagnostic);
        Err(Broken)
    }
}
