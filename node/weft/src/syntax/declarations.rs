//! Declarations. A broken one is skipped to the next line at the file's own level that begins with a declaring word.

use super::lexer::{Kind, Token};
use super::parser::{Broken, Parsed, Parser, RESERVED};
use super::tree::*;
use super::{DECLARATIONS_MAX, INDEXES_MAX, MEMBERS_MAX};
use crate::diagnostics::{Code, Diagnostic};

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

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut file = File::default();
        let mut declarations = 0;
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
            declarations += 1;
            if self.bounded(declarations, DECLARATIONS_MAX, "declarations in one file").is_err() {
                break;
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
    pub(super) fn note_lost(&self, start: usize, file: &mut File) {
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

    pub(super) fn at_declaration(&self) -> bool {
        let token = self.peek();
        token.kind == Kind::Name && DECLARING.contains(&self.text_of(token.span))
    }

    pub(super) fn skip_declaration(&mut self) {
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

    pub(super) fn begins_line(&self, token: Token) -> bool {
        let start = token.span.start as usize;
        start == 0 || self.source.as_bytes()[start - 1] == b'\n'
    }

    /// Skips to the end of the braces that begin next on this line, or to the line's end.
    pub(super) fn skip_unsupported(&mut self) {
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

    pub(super) fn declaration(&mut self, file: &mut File) -> Parsed<()> {
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
            "setting" => {
                self.advance();
                let read = self.field("the name of the setting")?;
                file.settings.push(read);
            }
            "state" => {
                self.advance();
                let read = self.state(false)?;
                file.states.push(read);
            }
            "transient" => {
                let transient = self.advance().span;
                if self.take_word("state") {
                    let read = self.state(true)?;
                    file.states.push(read);
                } else if self.is_word("output") {
                    self.not_yet(transient, "a `transient output`");
                    self.skip_unsupported();
                } else {
                    return self.unexpected("`state` or `output`");
                }
            }
            "output" => {
                self.advance();
                let name = self.need_name("the name of the output")?;
                let fields = self.fields()?;
                let app = if self.is_word("for") && !self.line_ends() {
                    self.advance();
                    Some(self.need_name("the name of the receiving app")?)
                } else {
                    None
                };
                file.outputs.push(Output { name, fields, app });
            }
            "every" => {
                self.advance();
                let token = self.peek();
                if token.kind != Kind::Duration {
                    return self.unexpected("a duration: `every 5 min { … }`");
                }
                self.advance();
                let period = (self.duration(token.span, self.text_of(token.span)), token.span);
                let body = self.block()?;
                file.everies.push(Every { period, body });
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
            "test" => {
                let read = self.test()?;
                file.tests.push(read);
            }
            "use" => {
                self.not_yet(start.span, "`use` of a library");
                self.advance();
                self.skip_unsupported();
            }
            _ => {
                if start.kind != Kind::Bad {
                    let message = format!("expected a declaration, found {}", self.found());
                    self.report.push(
                        Diagnostic::new(Code::Unexpected, start.span, message)
                            .note("declarations begin with enum, record, setting, state, output, on, every, do, fn, view or test"),
                    );
                }
                self.advance();
                return Err(Broken);
            }
        }
        Ok(())
    }

    fn test(&mut self) -> Parsed<Test> {
        self.advance();
        let span = self.peek().span;
        if self.peek().kind != Kind::Text {
            return self.unexpected("the test's title, a text");
        }
        let title = match *self.text()?.kind {
            ExpressionKind::Text(pieces) => match pieces.as_slice() {
                [] => String::new(),
                [Piece::Literal(title)] => title.clone(),
                _ => {
                    let message = "a test's title is a text without values in it";
                    self.report.push(Diagnostic::new(Code::NotConstant, span, message));
                    String::new()
                }
            },
            _ => String::new(),
        };
        let body = self.block()?;
        Ok(Test { title, span, body })
    }

    pub(super) fn was(&mut self) {
        if self.is_word("was") {
            let span = self.advance().span;
            self.not_yet(span, "`was`");
            if matches!(self.peek().kind, Kind::Name | Kind::Type) {
                self.advance();
            }
        }
    }

    pub(super) fn enumeration(&mut self) -> Parsed<Enum> {
        let name = self.need_type_name("the name of the enum")?;
        self.was();
        self.need_sign("{")?;
        let mut cases = Vec::new();
        while !self.is_sign("}") {
            self.bounded(cases.len(), MEMBERS_MAX, "cases")?;
            cases.push(self.need_name("a case")?);
            self.was();
            if !self.take_sign(",") {
                break;
            }
        }
        self.need_sign("}")?;
        Ok(Enum { name, cases })
    }

    pub(super) fn record(&mut self) -> Parsed<Record> {
        let name = self.need_type_name("the name of the record")?;
        self.was();
        self.need_sign("{")?;
        let fields = self.field_list("}")?;
        Ok(Record { name, fields })
    }

    pub(super) fn fields(&mut self) -> Parsed<Vec<Field>> {
        self.need_sign("(")?;
        self.inside += 1;
        let fields = self.field_list(")");
        self.inside = self.inside.saturating_sub(1);
        fields
    }

    pub(super) fn field_list(&mut self, close: &str) -> Parsed<Vec<Field>> {
        let mut fields = Vec::new();
        while !self.is_sign(close) {
            self.bounded(fields.len(), MEMBERS_MAX, "fields")?;
            let field = self.field("the name of a field")?;
            fields.push(field);
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

    fn field(&mut self, what: &str) -> Parsed<Field> {
        let name = self.need_name(what)?;
        self.was();
        self.need_sign(":")?;
        let kind = self.type_tree()?;
        let default = if self.take_sign("=") { Some(self.expression()?) } else { None };
        Ok(Field { name, kind, default })
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

    pub(super) fn state(&mut self, transient: bool) -> Parsed<State> {
        let name = self.need_name("the name of the state")?;
        self.was();
        self.need_sign(":")?;
        let kind = self.keyed_or_type()?;
        let initial = if self.take_sign("=") { Some(self.expression()?) } else { None };
        Ok(State { transient, name, kind, initial })
    }

    pub(super) fn on(&mut self, file: &mut File) -> Parsed<()> {
        self.advance();
        let follows_name = self.peek_after().kind == Kind::Name;
        if follows_name && self.take_word("timer") {
            let name = self.need_name("the name of the timer")?;
            let fields = self.fields()?;
            let body = self.block()?;
            file.handlers.push(Handler { name, kind: HandlerKind::Timer { fields }, body });
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
            let peer = self.need_name("a name for the sending node")?;
            let of = if self.take_word("of") { Some(self.need_name("the app's name")?) } else { None };
            source = Source::Peer { peer, of };
        }
        let answer = self.answer()?;
        let body = self.block()?;
        file.handlers.push(Handler { name, kind: HandlerKind::On { fields, source, answer }, body });
        Ok(())
    }

    pub(super) fn answer(&mut self) -> Parsed<Option<TypeTree>> {
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

    pub(super) fn blanks(&mut self) -> Parsed<Vec<Option<Word>>> {
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

    pub(super) fn blank(&mut self) -> Parsed<Option<Word>> {
        if self.take_word("_") { Ok(None) } else { Ok(Some(self.need_name("a name or `_`")?)) }
    }

    pub(super) fn function(&mut self, is_view: bool) -> Parsed<Function> {
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
}
