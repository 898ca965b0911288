//! Statements. A broken one is skipped to the next line of its block.

use super::habits;
use super::lexer::Kind;
use super::parser::{Broken, Parsed, Parser};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic, Span, line_of};

impl Parser<'_> {
    pub(crate) fn block(&mut self) -> Parsed<Block> {
        if !self.is_sign("{") {
            return self
                .unexpected_with("`{`", |diagnostic| diagnostic.help("statements stand in braces: `{ … }`"));
        }
        let open = self.advance().span;
        let inside = std::mem::take(&mut self.inside);
        let indentation = self.indentation;
        let read = self.deeper(|parser| Ok(parser.statements()));
        self.inside = inside;
        self.indentation = indentation;
        let statements = read?;
        let close = self.peek();
        if !self.is_sign("}") {
            return self.block_left_open(open);
        }
        if close.after_line && self.column(close) < indentation && self.suspect.is_none() {
            self.suspect = Some((open, close.span));
        }
        self.advance();
        Ok(Block { statements })
    }

    /// Says which block is not closed: the one at hand or, where one in it closes too far left, likely that.
    fn block_left_open(&mut self, open: Span) -> Parsed<Block> {
        if self.report.is_full() {
            return Err(Broken);
        }
        let found = self.found();
        let line = line_of(self.source, self.peek().span.start);
        let message = "the block that begins here is not closed";
        let suspect = self.suspect.take().filter(|(inner, _)| inner.start > open.start);
        let (open, why) = match suspect {
            Some((inner, close)) => {
                let closed = line_of(self.source, close.start);
                (inner, format!("the `}}` on line {closed} stands where an outer block would end"))
            }
            None if self.peek().kind == Kind::End => (open, "the file ends before its `}`".into()),
            None => (open, format!("{found} on line {line} begins a declaration, before its `}}`")),
        };
        self.report.push(
            Diagnostic::new(Code::Unclosed, open, message)
                .label("this `{`")
                .note(why)
                .help("write `}` where the block ends"),
        );
        Err(Broken)
    }

    pub(super) fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            while self.take_sign(";") {}
            let token = self.peek();
            if self.gives_up() || matches!(token.kind, Kind::End | Kind::Sign("}")) {
                return statements;
            }
            // A brace was left open: what begins here is a declaration.
            if token.after_line && self.begins_line(token) && self.at_declaration() {
                return statements;
            }
            if token.after_line {
                self.indentation = self.column(token);
            }
            let (start, begins) = (token.span, self.at);
            match self.statement() {
                Ok(kind) => {
                    let span = start.to(self.before());
                    if self.separator() {
                        statements.push(Statement { kind, span });
                    } else {
                        // More belonged to it, and it is not known what.
                        statements.push(Statement { kind: StatementKind::Broken, span });
                        self.note_lost_names(begins);
                    }
                }
                Err(Broken) => {
                    statements.push(Statement { kind: StatementKind::Broken, span: start });
                    self.skip_statement(begins);
                    self.note_lost_names(begins);
                }
            }
        }
    }

    /// What stands between statements; whether the one before is whole.
    fn separator(&mut self) -> bool {
        let token = self.peek();
        if token.after_line || matches!(token.kind, Kind::End | Kind::Sign("}" | ";")) {
            return true;
        }
        let begins = self.at;
        if token.kind == Kind::Bad {
            self.skip_statement(begins);
            return false;
        }
        let before_name = self.peek_after().kind == Kind::Name && !self.peek_after().after_line;
        if self.foreign_statement(self.text_of(token.span), before_name).is_some() {
            // Said where it begins.
            return true;
        }
        if let Some(habit) = self.habit() {
            self.report.push(habit);
            self.skip_statement(begins);
            return false;
        }
        if !matches!(token.kind, Kind::Name | Kind::Type) {
            let message = format!("a statement ended before this, and {} begins none", self.found());
            self.report.push(
                Diagnostic::new(Code::SameLine, token.span, message)
                    .help("statements are separated with `;` or a new line"),
            );
            self.skip_statement(begins);
            return false;
        }
        let message = "a statement ended before this, and another begins on the same line";
        self.report.push(
            Diagnostic::new(Code::SameLine, token.span, message)
                .label("begins here")
                .help("separate them with `;` or a new line"),
        );
        true
    }

    /// Skips what is broken: up to a line that is not further in than the statement, past the brackets in it.
    pub(super) fn skip_statement(&mut self, begins: usize) {
        self.inside = 0;
        let (mut braces, mut brackets) = (0u32, 0u32);
        for token in &self.tokens[begins..self.at] {
            count_open(token.kind, &mut braces, &mut brackets);
        }
        loop {
            let token = self.peek();
            let next_line = token.after_line && self.at > begins && !self.is_word("else");
            match token.kind {
                Kind::End => return,
                Kind::Sign("}") if braces == 0 => return,
                Kind::Sign(";") if braces == 0 && brackets == 0 => return,
                _ if token.after_line && self.begins_line(token) && self.at_declaration() => return,
                _ if next_line && braces == 0 && self.column(token) <= self.indentation => return,
                kind => count_open(kind, &mut braces, &mut brackets),
            }
            self.advance();
        }
    }

    /// Remembers the names that a broken statement would have given.
    fn note_lost_names(&mut self, begins: usize) {
        /// `let mut name`, `for (let name`, `int name`
        const WORDS_BEFORE: usize = 4;
        let words = self.tokens[begins..self.at].iter().take(WORDS_BEFORE);
        let names: Vec<String> = words
            .filter(|token| token.kind == Kind::Name)
            .map(|token| self.text_of(token.span).into())
            .collect();
        self.lost.extend(names);
    }

    pub(super) fn statement(&mut self) -> Parsed<StatementKind> {
        let token = self.peek();
        let word = if token.kind == Kind::Name { self.text_of(token.span) } else { "" };
        let before_name = self.peek_after().kind == Kind::Name && !self.peek_after().after_line;
        if let Some(instead) = self.foreign_statement(word, before_name) {
            self.foreign(token.span, &format!("there is no `{word}` in Weft"), instead);
            return Err(Broken);
        }
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
                if !self.take_word("else") {
                    return self.unexpected_with("`else`", |diagnostic| {
                        diagnostic.help("say why it is refused otherwise: `require … else \"why\"`")
                    });
                }
                let otherwise = self.reason()?;
                Ok(StatementKind::Require { condition, otherwise })
            }
            "return" | "refuse" | "break" | "continue" => Ok(StatementKind::Exit(self.exit()?)),
            "remove" if before_name => {
                self.advance();
                let place = self.place()?;
                if self.is_word("from") && !self.peek().after_line {
                    let span = self.advance().span;
                    let (row, list) = (self.short_text(place.span), self.short_text(self.peek().span));
                    let help = format!("write `remove {list}[{row}]`, with the row's key");
                    self.foreign(span, "a row is named by its list and key", help);
                    return Err(Broken);
                }
                let query = if self.is_word("for") && !self.line_ends() { Some(self.query()?) } else { None };
                Ok(StatementKind::Remove { place, query })
            }
            "send" if before_name => {
                self.advance();
                let name = self.need_name("the name of the receiving `on`")?;
                let arguments = self.plain_arguments()?;
                self.need_to()?;
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

    /// What to write instead, where a statement begins as in another language.
    fn foreign_statement(&self, word: &str, before_name: bool) -> Option<&'static str> {
        let instead = habits::statement(word)?;
        let is_verb = matches!(word, "send" | "start" | "cancel" | "remove");
        let next = self.peek_after();
        let follows = match next.kind {
            Kind::Name => {
                let text = self.text_of(next.span);
                before_name && !is_verb && !matches!(text, "add" | "put" | "is" | "in" | "else")
            }
            Kind::Type | Kind::Text | Kind::Int | Kind::Real | Kind::Duration => !next.after_line,
            Kind::Sign("{") => !next.after_line,
            Kind::Sign("*") => word == "select",
            Kind::Sign("(") => habits::begins_block(word) && self.block_follows_brackets(),
            _ => false,
        };
        follows.then_some(instead)
    }

    /// Whether on this line `{` stands behind the brackets that open after the next token.
    fn block_follows_brackets(&self) -> bool {
        let mut open = 0u32;
        for token in self.tokens.iter().skip(self.at + 1).take_while(|token| !token.after_line) {
            match token.kind {
                Kind::Sign("(") => open += 1,
                Kind::Sign(")") => open = open.saturating_sub(1),
                Kind::Sign("{") if open == 0 => return true,
                _ if open == 0 => return false,
                _ => {}
            }
        }
        false
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

    fn need_to(&mut self) -> Parsed<()> {
        if self.take_word("to") {
            return Ok(());
        }
        self.unexpected_with("`to`", |diagnostic| {
            diagnostic.help("say who receives it: `send name(…) to node`")
        })
    }

    /// Why a `require` refuses. Who writes `else refuse "why"` or braces has said what is meant.
    fn reason(&mut self) -> Parsed<Expression> {
        let span = self.peek().span;
        let braces = self.is_sign("{") && self.text_of(self.peek_after().span) == "refuse";
        if !braces && !self.is_word("refuse") {
            return self.expression();
        }
        self.report.push(
            Diagnostic::new(Code::Unexpected, span, "`require` refuses by itself")
                .label("the reason alone stands here")
                .help("write `require … else \"why\"`"),
        );
        self.take_sign("{");
        self.advance();
        let reason = self.expression()?;
        if braces {
            self.need_sign("}")?;
        }
        Ok(reason)
    }

    /// A way out behind `else`, in braces as elsewhere.
    fn exit_in_braces(&mut self) -> Parsed<Option<Exit>> {
        let open = self.peek().span;
        let after = self.text_of(self.peek_after().span);
        if !self.is_sign("{") || !["return", "refuse", "break", "continue"].contains(&after) {
            return Ok(None);
        }
        self.advance();
        let start = self.peek().span;
        let exit = self.exit()?;
        let text = self.text_of(start.to(self.before()));
        let text =
            if text.len() > 40 || text.contains('\n') { format!("{after} …") } else { text.to_owned() };
        self.report.push(
            Diagnostic::new(Code::Unexpected, open, "a way out stands without braces here")
                .help(format!("write `else {text}`")),
        );
        self.take_sign(";");
        self.need_close(open, "}", "`}`")?;
        Ok(Some(exit))
    }

    /// What stands behind the `else` of a `let` or a `var`, which is no choice: a way out does not come behind it.
    fn second_value(&mut self, fixed: bool, name: &str, begins: Span) -> Parsed<Expression> {
        let second = self.condition()?;
        let after = self.text_of(self.peek_after().span);
        if self.line_ends()
            || !self.is_word("else")
            || !["return", "refuse", "break", "continue"].contains(&after)
        {
            return self.with_otherwise(second);
        }
        let values = self.text_of(begins.to(second.span));
        let values = if values.len() > 60 || values.contains('\n') { "… else …" } else { values };
        let word = if fixed { "let" } else { "var" };
        let help = format!(
            "write `{word} {name} = ({values}) else {after}{}`",
            match after {
                "refuse" => " \"…\"",
                _ => "",
            }
        );
        let message = format!("a way out stands behind the first `else` of a `{word}`");
        let span = self.peek_after().span;
        self.report.push(Diagnostic::new(Code::Unexpected, span, message).help(help));
        Err(Broken)
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
            self.need_to()?;
            return Ok(Expectation::Sent { name, arguments, to: self.expression()? });
        }
        Ok(Expectation::Holds(self.expression()?))
    }

    pub(super) fn let_statement(&mut self, fixed: bool) -> Parsed<StatementKind> {
        self.advance();
        let mut fixed = fixed;
        if self.is_word("mut") && self.peek_after().kind == Kind::Name && !self.peek_after().after_line {
            let span = self.advance().span;
            let name = self.text_of(self.peek().span).to_owned();
            self.foreign(span, "there is no `mut` in Weft", format!("write `var {name} = …`"));
            fixed = false;
        }
        let name = self.new_name("a name")?;
        let kind = if self.take_sign(":") { Some(self.keyed_or_type()?) } else { None };
        if self.is_sign(":=") {
            let span = self.advance().span;
            self.foreign(span, "there is no `:=` in Weft", "write `=`");
        } else if self.is_sign("==") {
            let span = self.advance().span;
            self.report.push(
                Diagnostic::new(Code::Unexpected, span, "`==` compares")
                    .help(format!("a name is given its value with `=`: `let {} = …`", name.text)),
            );
        } else if !self.take_sign("=") {
            return Ok(StatementKind::Let { fixed, name, kind, value: None });
        }
        self.line_does_not_end()?;
        let condition = if self.is_word("if") { self.expression()? } else { self.condition()? };
        let begins = condition.span;
        let value = if let Some(replace) = self.change_word() {
            LetValue::Change(self.change(condition, replace)?)
        } else if self.is_word("else") && !self.line_ends() {
            self.advance();
            let start = self.peek().span;
            let otherwise = if ["return", "refuse", "break", "continue"].iter().any(|word| self.is_word(word))
            {
                let exit = self.exit()?;
                Otherwise::Exit(exit, start.to(self.before()))
            } else if let Some(exit) = self.exit_in_braces()? {
                Otherwise::Exit(exit, start.to(self.before()))
            } else {
                let expression = match self.is_word("if") {
                    true => self.expression()?,
                    false => self.second_value(fixed, &name.text, begins)?,
                };
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
        let start = self.peek().span;
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
                self.line_does_not_end()?;
                let value = self.expression()?;
                return Ok(StatementKind::Assign { place, operator, value });
            }
        }
        self.assigned_otherwise(&place)?;
        // A value that nobody takes, which is said when it is checked.
        let value = self.climb_on(start, place, 1)?;
        Ok(StatementKind::Place(value))
    }

    /// Behind `=` a value may stand on the next line, but an assignment there is a statement of its own.
    fn line_does_not_end(&mut self) -> Parsed<()> {
        let assigns = matches!(self.peek_after().kind, Kind::Sign("=" | "+=" | "-=" | "*="));
        let begins = self.peek().kind == Kind::Name && assigns || self.is_word("let") || self.is_word("var");
        if !self.peek().after_line || !begins {
            return Ok(());
        }
        self.report.push(
            Diagnostic::new(Code::Unexpected, self.before(), "a value is missing behind this")
                .label("the line ends here"),
        );
        Err(Broken)
    }

    /// Assignments and declarations as other languages have them.
    fn assigned_otherwise(&mut self, place: &Expression) -> Parsed<()> {
        let token = self.peek();
        let name = self.text_of(place.span);
        let name = if name.len() <= 40 && !name.contains('\n') { name } else { "…" }.to_owned();
        let (sign, instead) = match token.kind {
            Kind::Sign("++") => ("++", format!("write `{name} += 1`")),
            Kind::Sign("-") if self.peek_after().kind == Kind::Sign("-") => {
                let ends = matches!(self.peek_at(2).kind, Kind::End | Kind::Sign("}" | ";"));
                if !ends && !self.peek_at(2).after_line {
                    return Ok(());
                }
                ("--", format!("write `{name} -= 1`"))
            }
            Kind::Sign("/=") => ("/=", format!("write `{name} = {name} / …`")),
            Kind::Sign("%=") => ("%=", format!("write `{name} = {name} % …`")),
            Kind::Sign(":=") => {
                (":=", format!("write `let {name} = …`, or `{name} = …` where it is there already"))
            }
            Kind::Sign(":") => {
                let message = format!("a new name begins with `let` or `var`: `let {name}: …`");
                self.report.push(
                    Diagnostic::new(Code::Unexpected, place.span, "a new name without `let` or `var`")
                        .help(message),
                );
                return Err(Broken);
            }
            Kind::Name if !token.after_line && self.peek_after().kind == Kind::Sign("=") => {
                let new = self.text_of(token.span).to_owned();
                if !matches!(&*place.kind, ExpressionKind::Name(_)) || habits::behind(&new).is_some() {
                    return Ok(());
                }
                let kind = habits::kind(&name).unwrap_or(&name);
                self.report.push(
                    Diagnostic::new(Code::Unexpected, place.span, "a new name without `let` or `var`")
                        .label("here stands `let`; a type stands behind the name")
                        .help(format!("write `let {new} = …`, `var {new}: {kind} = …` to change it later")),
                );
                return Err(Broken);
            }
            _ => return Ok(()),
        };
        self.foreign(token.span, &format!("there is no `{sign}` in Weft"), instead);
        Err(Broken)
    }
}

fn count_open(kind: Kind, braces: &mut u32, brackets: &mut u32) {
    match kind {
        Kind::Sign("{") => *braces += 1,
        Kind::Sign("}") => *braces = braces.saturating_sub(1),
        Kind::Sign("(" | "[") => *brackets += 1,
        Kind::Sign(")" | "]") => *brackets = brackets.saturating_sub(1),
        _ => {}
    }
}
