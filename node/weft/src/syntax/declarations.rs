//! Declarations. A broken one is skipped to the next line at the file's own level that begins with a declaring word.

use super::habits;
use super::lexer::{Kind, Token};
use super::parser::{Broken, Parsed, Parser, RESERVED};
use super::tree::*;
use super::{DECLARATIONS_MAX, MEMBERS_MAX};
use crate::diagnostics::{Code, Diagnostic, Span, suggest};

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

/// What may stand in a library.
const OF_A_LIBRARY: &[&str] = &["use", "enum", "record", "fn", "test"];

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut file = File::default();
        let mut declarations = 0;
        let start = self.peek().span;
        if self.is_word("library") || self.is_word("app") {
            file.is_library = self.is_word("library");
            self.advance();
            let what = if file.is_library { "the library's name" } else { "the app's name" };
            match self.new_name(what) {
                Ok(name) => {
                    file.header = start.to(name.span);
                    file.name = name.text;
                }
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
        while self.peek().kind != Kind::End && !self.gives_up() {
            while self.take_sign(";") {}
            if self.peek().kind == Kind::End {
                break;
            }
            if !self.peek().after_line
                && !matches!(self.tokens[self.at - usize::from(self.at > 0)].kind, Kind::Sign(";"))
                && self.at > 0
            {
                self.behind_declaration();
                if !self.at_declaration() {
                    self.skip_declaration();
                    continue;
                }
            }
            self.suspect = None;
            self.indentation = 0;
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
        file.lost.append(&mut self.lost);
        file
    }

    /// Says what is wrong with something behind a declaration, on its line.
    fn behind_declaration(&mut self) {
        let token = self.peek();
        let text = self.text_of(token.span);
        if matches!(token.kind, Kind::Name) && ["where", "order", "group", "take", "for"].contains(&text) {
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, format!("`{text}` belongs to a query"))
                    .help("a query stands in brackets: `[x for x in list where … order by … take …]`"),
            );
        } else if self.is_sign("{") {
            self.report.push(
                Diagnostic::new(Code::Unexpected, token.span, "the declaration ended before this `{`")
                    .note("behind `=` stands one value; statements stand in `{ }`, and then there is no `=`"),
            );
        } else if let Some(habit) = self.habit() {
            self.report.push(habit);
        } else if token.kind != Kind::Bad {
            let message = format!("the declaration ended before {}", self.found());
            self.report.push(
                Diagnostic::new(Code::SameLine, token.span, message)
                    .help("each declaration begins on a line of its own"),
            );
        }
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
        let (begins, mut open) = (self.at, 0u32);
        loop {
            let token = self.peek();
            match token.kind {
                Kind::End => return,
                Kind::Sign("{") => open += 1,
                Kind::Sign("}") => open = open.saturating_sub(1),
                Kind::Name | Kind::Type if open == 0 && self.at > begins && self.begins_line(token) => return,
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

    pub(super) fn declaration(&mut self, file: &mut File) -> Parsed<()> {
        let start = self.peek();
        let word = if start.kind == Kind::Name { self.text_of(start.span) } else { "" };
        if file.is_library && self.at_declaration() && !OF_A_LIBRARY.contains(&word) {
            self.not_of_a_library(start.span, word);
        }
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
                self.advance();
                if self.take_word("state") {
                    let read = self.state(true)?;
                    file.states.push(read);
                } else if self.is_word("output") {
                    let read = self.output(true)?;
                    file.outputs.push(read);
                } else {
                    return self.unexpected_with("`state` or `output`", |diagnostic| {
                        diagnostic.help("what is transient is a `transient state`, or a `transient output`")
                    });
                }
            }
            "output" => {
                let read = self.output(false)?;
                file.outputs.push(read);
            }
            "every" => {
                self.advance();
                let token = self.peek();
                if token.kind != Kind::Duration {
                    return self.unexpected_with("a duration", |diagnostic| {
                        diagnostic.help("write `every 5 min { … }`; units are `ms`, `s`, `min`, `h` and `d`")
                    });
                }
                self.advance();
                let period = (self.duration(token.span, self.text_of(token.span)), token.span);
                let body = self.block()?;
                file.everies.push(Every { period, body });
            }
            "on" => self.on(file)?,
            "do" => {
                self.advance();
                let name = self.new_name("the name of the procedure")?;
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
                self.advance();
                let before = self.report.count();
                let what = "the path of the library, a text: `use \"shapes.weft\" as shapes`";
                let (path, span) = self.literal(what)?;
                if self.report.count() > before {
                    return Err(Broken);
                }
                self.need_word("as")?;
                let name = self.need_name("a name for the library")?;
                file.uses.push(Use { path: Word { text: path, span }, name });
            }
            _ => {
                if start.kind != Kind::Bad {
                    let diagnostic = self.no_declaration(word);
                    self.report.push(diagnostic);
                }
                self.advance();
                return Err(Broken);
            }
        }
        Ok(())
    }

    fn output(&mut self, transient: bool) -> Parsed<Output> {
        self.advance();
        let name = self.new_name("the name of the output")?;
        let fields = self.fields()?;
        let app = if self.is_word("for") && !self.line_ends() {
            self.advance();
            Some(self.need_name("the name of the receiving app")?)
        } else {
            None
        };
        let answer = self.answer()?;
        Ok(Output { transient, name, fields, app, answer })
    }

    /// What is said of something that begins no declaration.
    fn no_declaration(&self, word: &str) -> Diagnostic {
        let span = self.peek().span;
        if self.is_sign("}") {
            return Diagnostic::new(Code::Unexpected, span, "this `}` closes nothing")
                .note("all that was open before it is closed already");
        }
        if let Some(instead) = habits::declaration(word) {
            let is_statement = RESERVED.contains(&word) || habits::is_verb(word);
            let message = if is_statement {
                format!("`{word}` is a statement, and stands outside of all")
            } else {
                format!("no declaration begins with `{word}` in Weft")
            };
            return Diagnostic::new(Code::Foreign, span, message).help(instead);
        }
        let message = format!("expected a declaration, found {}", self.found());
        let diagnostic = Diagnostic::new(Code::Unexpected, span, message);
        let next = self.peek_after().kind;
        let near = suggest(word, DECLARING.iter().copied()).filter(|_| !word.is_empty());
        match near {
            Some(near) if matches!(next, Kind::Name | Kind::Type | Kind::Text | Kind::Duration) => {
                diagnostic.help(format!("did you mean `{near}`?"))
            }
            _ if matches!(next, Kind::Sign("=" | "+=" | "-=" | "*=" | "(" | "." | "[")) => {
                diagnostic.note("statements stand in the `{ }` of an `on`, `do`, `fn`, `view` or `test`")
            }
            _ => diagnostic.note(
                "declarations begin with enum, record, setting, state, output, on, every, do, fn, view or test",
            ),
        }
    }

    fn test(&mut self) -> Parsed<Test> {
        self.advance();
        let (title, span) = self.literal("the test's title, a text")?;
        let body = self.block()?;
        Ok(Test { title, span, body })
    }

    /// A text without values in it.
    fn literal(&mut self, what: &str) -> Parsed<(String, Span)> {
        let span = self.peek().span;
        if self.peek().kind != Kind::Text {
            return self.unexpected(what);
        }
        let ExpressionKind::Text(pieces) = *self.text()?.kind else { return Ok((String::new(), span)) };
        match pieces.as_slice() {
            [] => Ok((String::new(), span)),
            [Piece::Literal(text)] => Ok((text.clone(), span)),
            _ => {
                let (what, _) = what.split_once(", ").unwrap_or((what, ""));
                let message = format!("{what} is a text without values in it");
                self.report.push(Diagnostic::new(Code::NotConstant, span, message));
                Ok((String::new(), span))
            }
        }
    }

    fn not_of_a_library(&mut self, span: Span, word: &str) {
        let diagnostic = Diagnostic::new(Code::OfAnApp, span, format!("a library has no `{word}`"))
            .note("a library holds enums, records and `fn`, and tests of them; state, and what acts on it, are an app's");
        self.report.push(match word {
            "view" => diagnostic.help("write `fn`, and a `view` in the app that calls it"),
            _ => diagnostic.help("declare it in the app"),
        });
    }

    /// `was` and the name that something had before: a type's, or another's.
    pub(super) fn was(&mut self, of_type: bool) -> Parsed<Option<Word>> {
        if !self.take_word("was") {
            return Ok(None);
        }
        let what = "the name that it had before";
        if of_type { self.need_type_name(what) } else { self.need_name(what) }.map(Some)
    }

    pub(super) fn enumeration(&mut self) -> Parsed<Enum> {
        let name = self.need_type_name("the name of the enum")?;
        let was = self.was(true)?;
        let open = self.need_sign("{")?;
        let (mut cases, mut said) = (Vec::new(), false);
        while !self.is_sign("}") {
            self.bounded(cases.len(), MEMBERS_MAX, "cases")?;
            let name = self.new_name("a case")?;
            cases.push(Case { name, was: self.was(false)? });
            if self.is_sign("(") || self.is_sign("=") || self.is_sign(":") {
                return self.unexpected_with("`,` or `}`", |diagnostic| {
                    diagnostic.help("a case is a name alone; what goes with it are fields of a record, `T?`")
                });
            }
            if !self.comma("}", &mut said) {
                break;
            }
        }
        self.need_close(open, "}", "`,` or `}`")?;
        Ok(Enum { name, was, cases })
    }

    pub(super) fn record(&mut self) -> Parsed<Record> {
        let name = self.need_type_name("the name of the record")?;
        let was = self.was(true)?;
        let open = self.need_sign("{")?;
        let fields = self.field_list(open, "}")?;
        Ok(Record { name, was, fields })
    }

    pub(super) fn state(&mut self, transient: bool) -> Parsed<State> {
        let name = self.new_name("the name of the state")?;
        let was = self.was(false)?;
        self.need_colon(&name)?;
        let kind = self.keyed_or_type()?;
        let initial = if self.take_sign("=") { Some(self.expression()?) } else { None };
        Ok(State { transient, name, was, kind, initial })
    }

    pub(super) fn on(&mut self, file: &mut File) -> Parsed<()> {
        self.advance();
        let follows_name = self.peek_after().kind == Kind::Name;
        if follows_name && self.take_word("timer") {
            let name = self.new_name("the name of the timer")?;
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
                let with = match self.is_word("with") {
                    true => Some((self.advance().span, self.blank()?)),
                    false => None,
                };
                HandlerKind::Delivered { blanks, to, with }
            } else {
                self.need_word("because")?;
                HandlerKind::Refused { blanks, to, because: self.blank()? }
            };
            let body = self.block()?;
            file.handlers.push(Handler { name, kind, body });
            return Ok(());
        }
        let name = self.new_name("the name of the input")?;
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
        if self.is_sign("=") {
            return self.unexpected_with("`{`", |diagnostic| {
                diagnostic
                    .help("an `on` has a body: `on name(…) -> int { return … }`; what only reads is a `view`")
            });
        }
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
        if self.take_sign("->") {
            return Ok(Some(self.type_tree()?));
        }
        if (self.is_word("returns") || self.is_sign("=>")) && !self.peek().after_line {
            let span = self.advance().span;
            self.report.push(
                Diagnostic::new(Code::AnswerArrow, span, "an answer's type is written with an arrow")
                    .help("write `-> int`"),
            );
            return Ok(Some(self.type_tree()?));
        }
        Ok(None)
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
            self.new_name(if is_view { "the name of the view" } else { "the name of the function" })?;
        let fields = if self.is_sign("(") { self.fields()? } else { Vec::new() };
        let by = if self.take_word("by") { Some(self.need_name("a name for who asks")?) } else { None };
        let answer = self.answer()?;
        let body = if self.take_sign("=") {
            let body = self.expression()?;
            FunctionBody::Expression(body)
        } else if self.is_sign("{") {
            FunctionBody::Block(self.block()?)
        } else {
            let word = if is_view { "view" } else { "fn" };
            return self.unexpected_with("`=` or `{`", |diagnostic| {
                diagnostic
                    .help(format!("write `{word} name(…) = value`, or `{word} name(…) -> type {{ … }}`"))
            });
        };
        Ok(Function { name, is_view, fields, by, answer, body })
    }
}
