//! Declarations and statements.
//!
//! Recovery: a broken statement is skipped to the next line of its block, a broken declaration to the next line at the
//! file's own level that begins with a declaring word.

use super::NESTING_MAX;
use super::lexer::{self, Kind, Token};
use super::tree::*;
use crate::diagnostics::{Code, Diagnostic, Report, Span};

/// The words that may not be names.
pub(crate) const RESERVED: &[&str] = &[
    "and", "break", "continue", "else", "expect", "false", "for", "if", "in", "is", "let", "me", "none",
    "not", "now", "or", "refuse", "require", "return", "then", "true", "var", "where",
];
/// Words with which a line goes on with the one before.
const CONTINUING: &[&str] = &["and", "else", "in", "is", "or", "then", "where"];
const DECLARING: &[&str] = &[
    "use",
    "enum",
    "record",
    "setting",
    "state",
    "transient",
    "output",
    "on",
    "every",
    "do",
    "fn",
    "view",
    "test",
];

/// Something did not fit and is reported: the caller recovers.
#[derive(Debug)]
pub(crate) struct Broken;
pub(crate) type Parsed<T> = Result<T, Broken>;

pub(crate) struct Parser<'a> {
    pub(crate) source: &'a str,
    pub(crate) report: &'a mut Report,
    tokens: Vec<Token>,
    at: usize,
    /// Open ( and [ since the innermost block: inside of them layout means nothing.
    pub(crate) inside: u32,
    pub(crate) depth: u16,
}

pub(crate) fn parse(source: &str, report: &mut Report) -> File {
    let tokens = lexer::tokens(source, 0, source.len(), report);
    let mut parser = Parser::new(source, tokens, report);
    parser.file()
}

impl<'a> Parser<'a> {
    pub(crate) fn new(source: &'a str, tokens: Vec<Token>, report: &'a mut Report) -> Parser<'a> {
        Parser { source, report, tokens, at: 0, inside: 0, depth: 0 }
    }

    // Tokens.

    pub(crate) fn peek(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }
    fn peek_after(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }
    pub(crate) fn before(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }
    pub(crate) fn text_of(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }
    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek().kind, Kind::Sign(found) if found == sign)
    }
    pub(crate) fn is_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Name && self.text_of(token.span) == word
    }
    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }
    /// Whether the statement ends before the next token because that begins a line of its own.
    pub(crate) fn line_ends(&self) -> bool {
        let token = self.peek();
        self.inside == 0
            && token.after_line
            && matches!(token.kind, Kind::Name | Kind::Type)
            && !CONTINUING.contains(&self.text_of(token.span))
    }
    fn found(&self) -> String {
        let token = self.peek();
        match token.kind {
            Kind::End => "the end of the file".into(),
            Kind::Text => "a text".into(),
            _ => {
                let text = self.text_of(token.span);
                if text.chars().count() > 40 { "a long word".into() } else { format!("`{text}`") }
            }
        }
    }
    pub(crate) fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = self.peek();
        if token.kind != Kind::Bad {
            let found = self.found();
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("expected {expected}, found {found}"))
                    .label(format!("expected {expected}")),
            );
        }
        Err(Broken)
    }
    pub(crate) fn need_sign(&mut self, sign: &str) -> Parsed<Span> {
        if self.is_sign(sign) { Ok(self.advance().span) } else { self.unexpected(&format!("`{sign}`")) }
    }
    pub(crate) fn need_word(&mut self, word: &str) -> Parsed<Span> {
        if self.is_word(word) { Ok(self.advance().span) } else { self.unexpected(&format!("`{word}`")) }
    }
    pub(crate) fn need_name(&mut self, what: &str) -> Parsed<Word> {
        let token = self.peek();
        let text = self.text_of(token.span);
        if token.kind == Kind::Type {
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("expected {what}, found `{text}`"))
                    .note("names begin with a small letter, types with a capital one")
                    .help(format!("write `{}`", text.to_ascii_lowercase())),
            );
            return Err(Broken);
        }
        if token.kind != Kind::Name {
            return self.unexpected(what);
        }
        if RESERVED.contains(&text) {
            self.report.push(
                Diagnostic::new(Code::Reserved, token.span, format!("`{text}` is a word of the language"))
                    .label(format!("expected {what}"))
                    .help(format!("choose another name, `the_{text}` for example")),
            );
            return Err(Broken);
        }
        self.advance();
        Ok(Word { text: text.into(), span: token.span })
    }
    fn need_type_name(&mut self, what: &str) -> Parsed<Word> {
        let token = self.peek();
        if token.kind == Kind::Type {
            self.advance();
            return Ok(Word { text: self.text_of(token.span).into(), span: token.span });
        }
        if token.kind == Kind::Name {
            let text = self.text_of(token.span);
            let mut capital = text.to_owned();
            capital[..1].make_ascii_uppercase();
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("expected {what}, found `{text}`"))
                    .note("types begin with a capital letter")
                    .help(format!("write `{capital}`")),
            );
            return Err(Broken);
        }
        self.unexpected(what)
    }
    /// Runs `read` one level deeper, or reports that this is too deep and gives up on the file.
    pub(crate) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_MAX {
            return self.too_deep(self.peek().span);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
    pub(crate) fn too_deep<T>(&mut self, span: Span) -> Parsed<T> {
        self.report.push(
            Diagnostic::new(Code::TooLarge, span, format!("nested deeper than {NESTING_MAX} levels"))
                .help("give the inner part a name with `let`, or a function of its own"),
        );
        self.at = self.tokens.len() - 1;
        Err(Broken)
    }
    /// Reports what the grammar has and this version does not do.
    pub(crate) fn not_yet(&mut self, span: Span, what: &str) {
        self.report.push(
            Diagnostic::new(Code::NotYet, span, format!("{what} is not in this version of Weft"))
                .note("docs/language.md lists what there is and what is to come"),
        );
    }

    // Declarations.

    fn file(&mut self) -> File {
        let mut file = File::default();
        let start = self.peek().span;
        if self.is_word("library") {
            self.not_yet(start, "a `library`");
            self.advance();
            let _ = self.need_name("the library's name");
        } else if self.take_word("app") {
            match self.need_name("the app's name") {
                Ok(name) => file.name = name.text,
                Err(Broken) => self.skip_declaration(),
            }
        } else {
            self.report.push(
                Diagnostic::new(Code::Header, start, "a file begins with `app` and a name")
                    .help("write `app notes` as the first line"),
            );
            if !self.at_declaration() {
                self.skip_declaration();
            }
        }
        while self.peek().kind != Kind::End {
            while self.take_sign(";") {}
            if self.peek().kind == Kind::End {
                break;
            }
            if !self.peek().after_line
                && !matches!(self.tokens[self.at - usize::from(self.at > 0)].kind, Kind::Sign(";"))
                && self.at > 0
            {
                self.same_line();
            }
            let (start, errors) = (self.at, self.report.count());
            if self.declaration(&mut file).is_err() {
                self.skip_declaration();
            }
            if self.report.count() > errors {
                self.note_lost(start, &mut file);
            }
        }
        file
    }

    /// Remembers what a declaration that was reported would have declared.
    fn note_lost(&self, start: usize, file: &mut File) {
        let words = self.tokens[start..self.at].iter().skip(1);
        let mut names = words.take_while(|token| matches!(token.kind, Kind::Name | Kind::Type));
        let state = self.text_of(self.tokens[start].span) == "transient";
        if let Some(name) = names.nth(usize::from(state)) {
            file.lost.push(self.text_of(name.span).into());
        }
    }

    /// Whether a declaration begins here: a declaring word at the very beginning of a line, and a word after it.
    pub(crate) fn declaration_begins(&self) -> bool {
        let token = self.peek();
        let follows = matches!(self.peek_after().kind, Kind::Name | Kind::Type);
        self.inside == 0 && token.after_line && self.begins_line(token) && self.at_declaration() && follows
    }

    fn at_declaration(&self) -> bool {
        let token = self.peek();
        token.kind == Kind::Name && DECLARING.contains(&self.text_of(token.span))
    }

    fn skip_declaration(&mut self) {
        self.inside = 0;
        let mut open = 0u32;
        loop {
            let token = self.peek();
            match token.kind {
                Kind::End => return,
                Kind::Sign("{") => open += 1,
                Kind::Sign("}") => open = open.saturating_sub(1),
                // A declaring word at the very beginning of a line ends whatever brace was left open.
                _ if token.after_line && self.at_declaration() && (open == 0 || self.begins_line(token)) => {
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    fn begins_line(&self, token: Token) -> bool {
        let start = token.span.start as usize;
        start == 0 || self.source.as_bytes()[start - 1] == b'\n'
    }

    /// Skips to the end of the braces that begin next on this line, or to the line's end.
    fn skip_unsupported(&mut self) {
        let mut open = 0u32;
        loop {
            let token = self.peek();
            match token.kind {
                Kind::End => return,
                Kind::Sign("{" | "(" | "[") => open += 1,
                Kind::Sign("}" | ")" | "]") => {
                    open = open.saturating_sub(1);
                    if open == 0 && token.kind == Kind::Sign("}") {
                        self.advance();
                        return;
                    }
                }
                _ if open == 0 && token.after_line => return,
                _ if token.after_line && self.at_declaration() && self.begins_line(token) => return,
                _ => {}
            }
            self.advance();
        }
    }

    fn declaration(&mut self, file: &mut File) -> Parsed<()> {
        let start = self.peek();
        let word = if start.kind == Kind::Name { self.text_of(start.span) } else { "" };
        match word {
            "enum" => {
                self.advance();
                let read = self.enumeration()?;
                file.enums.push(read);
            }
            "record" => {
                self.advance();
                let read = self.record()?;
                file.records.push(read);
            }
            "state" => {
                self.advance();
                let read = self.state()?;
                file.states.push(read);
            }
            "on" => self.on(file)?,
            "do" => {
                self.advance();
                let name = self.need_name("the name of the procedure")?;
                let fields = self.fields()?;
                let body = self.block()?;
                file.procedures.push(Procedure { name, fields, body });
            }
            "fn" | "view" => {
                self.advance();
                let read = self.function(word == "view")?;
                file.functions.push(read);
            }
            // Read past, not run: running them comes with `selvedge app test`.
            "test" => {
                self.advance();
                if self.peek().kind != Kind::Text {
                    return self.unexpected("the test's title, a text");
                }
                self.advance();
                if !self.is_sign("{") {
                    return self.unexpected("`{`");
                }
                self.skip_unsupported();
            }
            "use" | "setting" | "transient" | "output" | "every" => {
                let what = match word {
                    "use" => "`use` of a library",
                    "setting" => "a `setting`",
                    "transient" => "`transient`",
                    "output" => "an `output` declaration",
                    _ => "`every`",
                };
                self.not_yet(start.span, what);
                self.advance();
                self.skip_unsupported();
            }
            _ => {
                if start.kind != Kind::Bad {
                    let message = format!("expected a declaration, found {}", self.found());
                    self.report.push(
                        Diagnostic::new(Code::Unexpected, start.span, message)
                            .note("declarations begin with enum, record, state, on, do, fn, view or test"),
                    );
                }
                self.advance();
                return Err(Broken);
            }
        }
        Ok(())
    }

    fn was(&mut self) {
        if self.is_word("was") {
            let span = self.advance().span;
            self.not_yet(span, "`was`");
            if matches!(self.peek().kind, Kind::Name | Kind::Type) {
                self.advance();
            }
        }
    }

    fn enumeration(&mut self) -> Parsed<Enum> {
        let name = self.need_type_name("the name of the enum")?;
        self.was();
        self.need_sign("{")?;
        let mut cases = Vec::new();
        while !self.is_sign("}") {
            cases.push(self.need_name("a case")?);
            self.was();
            if !self.take_sign(",") {
                break;
            }
        }
        self.need_sign("}")?;
        Ok(Enum { name, cases })
    }

    fn record(&mut self) -> Parsed<Record> {
        let name = self.need_type_name("the name of the record")?;
        self.was();
        self.need_sign("{")?;
        let fields = self.field_list("}")?;
        Ok(Record { name, fields })
    }

    fn fields(&mut self) -> Parsed<Vec<Field>> {
        self.need_sign("(")?;
        self.inside += 1;
        let fields = self.field_list(")");
        self.inside = self.inside.saturating_sub(1);
        fields
    }

    fn field_list(&mut self, close: &str) -> Parsed<Vec<Field>> {
        let mut fields = Vec::new();
        while !self.is_sign(close) {
            let name = self.need_name("the name of a field")?;
            self.was();
            self.need_sign(":")?;
            let kind = self.type_tree()?;
            let default = if self.take_sign("=") { Some(self.expression()?) } else { None };
            fields.push(Field { name, kind, default });
            if !self.take_sign(",") {
                break;
            }
        }
        if !self.is_sign(close) {
            return self.unexpected(&format!("`,` or `{close}`"));
        }
        self.advance();
        Ok(fields)
    }

    pub(crate) fn type_tree(&mut self) -> Parsed<TypeTree> {
        let start = self.peek().span;
        if self.is_word("list") {
            self.advance();
            self.need_word("of")?;
            let element = self.deeper(|parser| parser.type_tree())?;
            return Ok(TypeTree::List { element: Box::new(element), span: start.to(self.before()) });
        }
        let token = self.peek();
        if !matches!(token.kind, Kind::Name | Kind::Type) || RESERVED.contains(&self.text_of(token.span)) {
            return self.unexpected("a type");
        }
        self.advance();
        let name = Word { text: self.text_of(token.span).into(), span: token.span };
        if self.is_sign(".") {
            self.not_yet(name.span, "a type of a library");
            return Err(Broken);
        }
        Ok(TypeTree::Named { name, optional: self.take_sign("?") })
    }

    /// A type, or `list of R by key`.
    fn keyed_or_type(&mut self) -> Parsed<TypeTree> {
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
            indexes.push(self.names()?);
        }
        Ok(TypeTree::Keyed { element, keys, indexes, span: span.to(self.before()) })
    }

    fn names(&mut self) -> Parsed<Vec<Word>> {
        let mut names = vec![self.need_name("the name of a field")?];
        while self.take_sign(",") {
            names.push(self.need_name("the name of a field")?);
        }
        Ok(names)
    }

    fn state(&mut self) -> Parsed<State> {
        let name = self.need_name("the name of the state")?;
        self.was();
        self.need_sign(":")?;
        let kind = self.keyed_or_type()?;
        let initial = if self.take_sign("=") { Some(self.expression()?) } else { None };
        Ok(State { name, kind, initial })
    }

    fn on(&mut self, file: &mut File) -> Parsed<()> {
        let start = self.advance().span;
        let follows_name = self.peek_after().kind == Kind::Name;
        if follows_name && self.is_word("timer") {
            self.not_yet(start.to(self.peek().span), "a timer");
            self.skip_unsupported();
            return Ok(());
        }
        let delivered = self.is_word("delivered");
        if follows_name && (delivered || self.is_word("refused")) {
            self.advance();
            let name = self.need_name("the name of what was sent")?;
            let blanks = self.blanks()?;
            self.need_word("to")?;
            let to = self.blank()?;
            let kind = if delivered {
                if self.is_word("with") {
                    let span = self.advance().span;
                    self.not_yet(span, "`with`, the answer of a delivered send,");
                    self.blank()?;
                }
                HandlerKind::Delivered { blanks, to }
            } else {
                self.need_word("because")?;
                HandlerKind::Refused { blanks, to, because: self.blank()? }
            };
            let body = self.block()?;
            file.handlers.push(Handler { name, kind, body });
            return Ok(());
        }
        let name = self.need_name("the name of the input")?;
        let fields = self.fields()?;
        let mut source = Source::Outside { by: None };
        if self.take_word("by") {
            source = Source::Outside { by: Some(self.need_name("a name for who posts")?) };
        } else if self.take_word("from") {
            source = Source::Peer { peer: self.need_name("a name for the sending node")? };
            if self.is_word("of") {
                let span = self.advance().span;
                self.not_yet(span, "`of`, a send of another app,");
                self.need_name("the app's name")?;
            }
        }
        let answer = self.answer()?;
        let body = self.block()?;
        file.handlers.push(Handler { name, kind: HandlerKind::On { fields, source, answer }, body });
        Ok(())
    }

    fn answer(&mut self) -> Parsed<Option<TypeTree>> {
        if self.is_sign(":") {
            let span = self.advance().span;
            let kind = self.type_tree()?;
            let text = self.text_of(kind.span());
            self.report.push(
                Diagnostic::new(Code::AnswerArrow, span, "an answer's type is written with an arrow")
                    .help(format!("write `-> {text}`")),
            );
            return Ok(Some(kind));
        }
        if self.take_sign("->") { Ok(Some(self.type_tree()?)) } else { Ok(None) }
    }

    fn blanks(&mut self) -> Parsed<Vec<Option<Word>>> {
        self.need_sign("(")?;
        let mut blanks = Vec::new();
        while !self.is_sign(")") {
            blanks.push(self.blank()?);
            if !self.take_sign(",") {
                break;
            }
        }
        self.need_sign(")")?;
        Ok(blanks)
    }

    fn blank(&mut self) -> Parsed<Option<Word>> {
        if self.take_word("_") { Ok(None) } else { Ok(Some(self.need_name("a name or `_`")?)) }
    }

    fn function(&mut self, is_view: bool) -> Parsed<Function> {
        let name =
            self.need_name(if is_view { "the name of the view" } else { "the name of the function" })?;
        let fields = if self.is_sign("(") { self.fields()? } else { Vec::new() };
        let by = if self.take_word("by") { Some(self.need_name("a name for who asks")?) } else { None };
        let answer = self.answer()?;
        let body = if self.take_sign("=") {
            let body = self.expression()?;
            FunctionBody::Expression(body)
        } else if self.is_sign("{") {
            FunctionBody::Block(self.block()?)
        } else {
            return self.unexpected("`=` or `{`");
        };
        Ok(Function { name, is_view, fields, by, answer, body })
    }

    // Statements.

    pub(crate) fn block(&mut self) -> Parsed<Block> {
        self.need_sign("{")?;
        let inside = std::mem::take(&mut self.inside);
        let read = self.deeper(|parser| Ok(parser.statements()));
        self.inside = inside;
        let statements = read?;
        self.need_sign("}")?;
        Ok(Block { statements })
    }

    fn statements(&mut self) -> Vec<Statement> {
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

    fn separator(&mut self) {
        let token = self.peek();
        if token.after_line || matches!(token.kind, Kind::End | Kind::Sign("}" | ";")) {
            return;
        }
        self.same_line();
    }

    fn same_line(&mut self) {
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

    fn skip_statement(&mut self) {
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

    fn statement(&mut self) -> Parsed<StatementKind> {
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
            "start" | "cancel" if before_name => {
                self.not_yet(token.span, "a timer");
                Err(Broken)
            }
            "expect" => {
                self.report.push(Diagnostic::new(Code::Unexpected, token.span, "`expect` stands in a test"));
                Err(Broken)
            }
            _ => self.place_statement(),
        }
    }

    fn let_statement(&mut self, fixed: bool) -> Parsed<StatementKind> {
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

    fn change_word(&mut self) -> Option<bool> {
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

    fn change(&mut self, place: Expression, replace: bool) -> Parsed<Change> {
        let value = self.expression()?;
        let span = place.span.to(value.span);
        Ok(Change { place, replace, value, span })
    }

    fn if_statement(&mut self) -> Parsed<StatementKind> {
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

    fn exit(&mut self) -> Parsed<Exit> {
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

    fn place_statement(&mut self) -> Parsed<StatementKind> {
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
