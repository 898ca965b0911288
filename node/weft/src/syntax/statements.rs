//! Statements. A broken one is skipped to the next line of its block.

use super::lexer::Kind;
use super::parser::{Broken, Parsed, Parser};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic};

impl Parser<'_> {
    pub(crate) fn block(&mut self) -> Parsed<Block> {
        self.need_sign("{")?;
        let inside = std::mem::take(&mut self.inside);
        let read = self.deeper(|parser| Ok(parser.statements()));
        self.inside = inside;
        let statements = read?;
        self.need_sign("}")?;
        Ok(Block { statements })
    }

    pub(super) fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            while self.take_sign(";") {}
            let token = self.peek();
            if matches!(token.kind, Kind::End | Kind::Sign("}")) {
                return statements;
            }
            // A brace was left open: what begins here is a declaration.
            if token.after_line && self.begins_line(token) && self.at_declaration() {
                return statements;
            }
            let start = token.span;
            match self.statement() {
                Ok(kind) => {
                    statements.push(Statement { kind, span: start.to(self.before()) });
                    self.separator();
                }
                Err(Broken) => {
                    statements.push(Statement { kind: StatementKind::Broken, span: start });
                    self.skip_statement();
                }
            }
        }
    }

    pub(super) fn separator(&mut self) {
        let token = self.peek();
        if token.after_line || matches!(token.kind, Kind::End | Kind::Sign("}" | ";")) {
            return;
        }
        self.same_line();
    }

    pub(super) fn same_line(&mut self) {
        let span = self.peek().span;
        if self.peek().kind == Kind::Bad {
            self.advance();
            return;
        }
        self.report.push(
            Diagnostic::new(
                Code::SameLine,
                span,
                "a statement ended before this, and another begins on the same line",
            )
            .label("begins here")
            .help("separate them with `;` or a new line"),
        );
        if !matches!(self.peek().kind, Kind::Name | Kind::Type) {
            self.skip_statement();
        }
    }

    pub(super) fn skip_statement(&mut self) {
        self.inside = 0;
        let mut open = 0u32;
        loop {
            let token = self.peek();
            match token.kind {
                Kind::End => return,
                Kind::Sign("}") if open == 0 => return,
                Kind::Sign("}") => open -= 1,
                Kind::Sign("{") => open += 1,
                Kind::Sign(";") if open == 0 => return,
                _ if token.after_line && self.begins_line(token) && self.at_declaration() => return,
                _ => {}
            }
            self.advance();
            if open == 0 && self.peek().after_line {
                return;
            }
        }
    }

    pub(super) fn statement(&mut self) -> Parsed<StatementKind> {
        let token = self.peek();
        let word = if token.kind == Kind::Name { self.text_of(token.span) } else { "" };
        let before_name = self.peek_after().kind == Kind::Name && !self.peek_after().after_line;
        match word {
            "let" | "var" => self.let_statement(word == "let"),
            "if" => self.if_statement(),
            "for" => {
                let query = self.query()?;
                let body = self.block()?;
                Ok(StatementKind::For { query, body })
            }
            "require" => {
                self.advance();
                let condition = self.condition()?;
                self.need_word("else")?;
                let otherwise = self.expression()?;
                Ok(StatementKind::Require { condition, otherwise })
            }
            "return" | "refuse" | "break" | "continue" => Ok(StatementKind::Exit(self.exit()?)),
            "remove" if before_name => {
                self.advance();
                let place = self.place()?;
                let query = if self.is_word("for") && !self.line_ends() { Some(self.query()?) } else { None };
                Ok(StatementKind::Remove { place, query })
            }
            "send" if before_name => {
                self.advance();
                let name = self.need_name("the name of the receiving `on`")?;
                let arguments = self.plain_arguments()?;
                self.need_word("to")?;
                let to = self.expression()?;
                Ok(StatementKind::Send { name, arguments, to })
            }
            "start" if before_name => self.start_statement(),
            "cancel" if before_name => {
                self.advance();
                let name = self.need_name("the name of the timer")?;
                let arguments = self.plain_arguments()?;
                Ok(StatementKind::Cancel { name, arguments })
            }
            "expect" => Ok(StatementKind::Expect(self.expectation()?)),
            _ => self.place_statement(),
        }
    }

    /// start name(args) after duration | at time
    fn start_statement(&mut self) -> Parsed<StatementKind> {
        self.advance();
        let name = self.need_name("the name of the timer")?;
        let arguments = self.plain_arguments()?;
        let at = self.take_word("at");
        if !at && !self.take_word("after") {
            return self.unexpected("`after` and a duration, or `at` and a time");
        }
        let time = self.expression()?;
        Ok(StatementKind::Start { name, arguments, at, time })
    }

    /// What follows `expect`.
    fn expectation(&mut self) -> Parsed<Expectation> {
        self.advance();
        let before_name = self.peek_after().kind == Kind::Name && !self.peek_after().after_line;
        if before_name && self.take_word("refused") {
            let place = self.place()?;
            let because =
                if !self.line_ends() && self.take_word("because") { Some(self.expression()?) } else { None };
            return Ok(Expectation::Refused { place, because });
        }
        if before_name && self.take_word("sent") {
            let name = self.need_name("the name of what was sent")?;
            let arguments = self.plain_arguments()?;
            self.need_word("to")?;
            return Ok(Expectation::Sent { name, arguments, to: self.expression()? });
        }
        Ok(Expectation::Holds(self.expression()?))
    }

    pub(super) fn let_statement(&mut self, fixed: bool) -> Parsed<StatementKind> {
        self.advance();
        let name = self.need_name("a name")?;
        let kind = if self.take_sign(":") { Some(self.keyed_or_type()?) } else { None };
        if !self.take_sign("=") {
            return Ok(StatementKind::Let { fixed, name, kind, value: None });
        }
        let condition = if self.is_word("if") { self.expression()? } else { self.condition()? };
        let value = if let Some(replace) = self.change_word() {
            LetValue::Change(self.change(condition, replace)?)
        } else if self.is_word("else") && !self.line_ends() {
            self.advance();
            let start = self.peek().span;
            let otherwise = if ["return", "refuse", "break", "continue"].iter().any(|word| self.is_word(word))
            {
                let exit = self.exit()?;
                Otherwise::Exit(exit, start.to(self.before()))
            } else {
                let expression = self.expression()?;
                match self.change_word() {
                    Some(replace) => Otherwise::Change(self.change(expression, replace)?),
                    None => Otherwise::Expression(expression),
                }
            };
            LetValue::Else(condition, otherwise)
        } else {
            LetValue::Expression(condition)
        };
        Ok(StatementKind::Let { fixed, name, kind, value: Some(value) })
    }

    pub(super) fn change_word(&mut self) -> Option<bool> {
        if self.peek().after_line && self.inside == 0 {
            return None;
        }
        let replace = self.is_word("put");
        if replace || self.is_word("add") {
            self.advance();
            return Some(replace);
        }
        None
    }

    pub(super) fn change(&mut self, place: Expression, replace: bool) -> Parsed<Change> {
        let value = self.expression()?;
        let span = place.span.to(value.span);
        Ok(Change { place, replace, value, span })
    }

    pub(super) fn if_statement(&mut self) -> Parsed<StatementKind> {
        self.advance();
        let condition = self.condition()?;
        let mut arms = vec![(condition, self.block()?)];
        let mut otherwise = None;
        while self.take_word("else") {
            if self.take_word("if") {
                let condition = self.condition()?;
                arms.push((condition, self.block()?));
            } else {
                otherwise = Some(self.block()?);
                break;
            }
        }
        Ok(StatementKind::If { arms, otherwise })
    }

    pub(super) fn exit(&mut self) -> Parsed<Exit> {
        let word = self.advance();
        Ok(match self.text_of(word.span) {
            "return" => {
                let token = self.peek();
                let ends = token.after_line || matches!(token.kind, Kind::End | Kind::Sign("}" | ";"));
                Exit::Return(if ends { None } else { Some(self.expression()?) })
            }
            "refuse" => Exit::Refuse(self.expression()?),
            "break" => Exit::Break,
            _ => Exit::Continue,
        })
    }

    pub(super) fn place_statement(&mut self) -> Parsed<StatementKind> {
        let place = self.place()?;
        if let Some(replace) = self.change_word() {
            return Ok(StatementKind::Change(self.change(place, replace)?));
        }
        for (sign, operator) in [
            ("=", Assignment::Set),
            ("+=", Assignment::Add),
            ("-=", Assignment::Subtract),
            ("*=", Assignment::Multiply),
        ] {
            if self.take_sign(sign) {
                let value = self.expression()?;
                return Ok(StatementKind::Assign { place, operator, value });
            }
        }
        Ok(StatementKind::Place(place))
    }
}
