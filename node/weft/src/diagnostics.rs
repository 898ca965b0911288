//! What is wrong with a source, said so that a person can mend it: the line, the span, what, why, what to write instead.

use std::fmt;
use unicode_width::UnicodeWidthChar;

/// How many diagnostics of a file are kept: nobody mends more in one go, and it bounds the work for noise as source.
pub const DIAGNOSTICS_MAX: usize = 100;
/// How many columns of a source line are shown around what is wrong.
const COLUMNS_MAX: usize = 120;
/// Longer names are not compared for "did you mean": the comparison costs the product of both lengths.
const SUGGESTION_CHARACTERS_MAX: usize = 40;

/// How many names are compared for one suggestion.
const SUGGESTION_CANDIDATES_MAX: usize = 1_000;

/// A range of bytes of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// From the beginning of this to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end.max(self.end) }
    }
}

macro_rules! codes {
    ($($code:ident $name:ident $title:literal,)*) => {
        /// A stable code: its number never means anything else in a later version.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];
            /// The stable text, `W0001` and so on.
            pub fn text(self) -> &'static str {
                match self { $(Code::$name => stringify!($code),)* }
            }
            /// What the code stands for, in a line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

// W0007 was what an earlier version did not do yet; it stands for nothing else.
codes! {
    W0001 StrayCharacter "a character that no word of the language begins with",
    W0002 OpenText "a text that is not closed on its line, or an escape that is none",
    W0003 BadNumber "a number that is too large",
    W0004 Unexpected "something else was expected here",
    W0005 SameLine "two statements on one line",
    W0006 TooLarge "nested too deep, or too large",
    W0008 Reserved "a reserved word as a name",
    W0009 AnswerArrow "an answer's type is written with an arrow",
    W0010 Twice "a name stands twice in its space",
    W0011 UnknownValue "a value that is not there",
    W0012 UnknownType "a type that is not there",
    W0013 UnknownField "a field that its record does not have",
    W0014 UnknownFunction "a function that is not there",
    W0015 UnknownAction "a `do` or a receiving `on` that is not there",
    W0016 UnknownCase "a case that its enum does not have",
    W0017 WrongType "a value of another type was expected",
    W0018 CaseWithoutDot "a case of an enum is written with a dot",
    W0019 Method "lists have no methods",
    W0020 TextPlus "texts are put together by interpolation",
    W0021 IntAndReal "int and real do not mix",
    W0022 ChangeInView "a view or a function changes state",
    W0023 Fixed "a name that is fixed is assigned",
    W0024 MaybeNone "a value that may be none is used as if it were there",
    W0025 CannotTell "the type cannot be told",
    W0026 MissingField "a record without one of its fields",
    W0027 WrongCount "too many or too few arguments or keys",
    W0028 Circle "calls in a circle",
    W0029 KeyAssigned "a key is assigned",
    W0030 HoldsItself "a record that holds itself",
    W0031 KeyType "a type that cannot be a key or cannot be ordered",
    W0032 NotConstant "a default or an initial value that is not constant",
    W0033 Return "a missing return, or one that gives something else",
    W0034 OutsideLoop "break or continue outside of a loop",
    W0035 Operator "an operator on types that it does not work on",
    W0036 NotAList "a loop or a query over something that is no list",
    W0037 NoEffect "a statement that does nothing",
    W0038 NothingToElse "`else` or `is` on a value that is always there",
    W0039 NoFields "a field of something that has none",
    W0040 NotAPlace "something that cannot be assigned or changed",
    W0041 Header "the first line is not `app name`",
    W0042 WordOfFabric "the fabric's word on something that is never sent",
    W0043 Foreign "a word or a sign of another language",
    W0044 Unclosed "a block that is not closed",
    W0050 WrongWas "a `was` that cannot be",
    W0060 Library "a library that cannot be used",
    W0061 OfAnApp "something that only an app has, in a library",
    W0062 Transient "a transient output that nothing takes, or of which nothing is heard",
    W0063 NoAnswer "an answer of what answers nothing",
    W0101 Unread "a local that is never read",
    W0102 NeverRun "a statement that never runs",
    W0103 Unused "something that is declared and never used",
    W0104 AlwaysSame "a condition that is always the same, or a range with nothing in it",
    W0105 ScanInScan "a list is run over whole for each row of another",
}

/// How bad a diagnostic is: an app with errors does not run, one with warnings does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// It must be mended.
    Error,
    /// It is likely not meant.
    Warning,
}

impl Severity {
    /// As diagnostics show it: `error`, `warning`.
    pub fn text(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Code {
    /// Whether it is an error or a warning; warnings have their numbers from 101 on.
    pub fn severity(self) -> Severity {
        if self.text() > "W0100" { Severity::Warning } else { Severity::Error }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// The file: a number in [`Diagnostics::files`], 0 being the one that was compiled.
    pub file: usize,
    /// Where in it.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// Said under the span.
    pub label: String,
    /// Why: each a line.
    pub notes: Vec<String>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic that says only what is wrong, and where.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            file: 0,
            span,
            message: message.into(),
            label: String::new(),
            notes: Vec::new(),
            help: None,
        }
    }
    /// With words under the span.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }
    /// With a reason.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
    /// With what to write instead.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Collects the diagnostics of a file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Diagnostic>,
}

impl Report {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.found.push(diagnostic);
        }
    }
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= DIAGNOSTICS_MAX
    }
    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
    /// What another report found is found here.
    pub(crate) fn take(&mut self, other: Report) {
        other.found.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
    pub(crate) fn finish(self, source: &str, file: &str) -> Diagnostics {
        let files = vec![SourceFile { name: file.into(), text: source.into() }];
        self.finish_files(files)
    }
    /// Of a text that was put together of these files, a line's end behind each.
    pub(crate) fn finish_files(mut self, files: Vec<SourceFile>) -> Diagnostics {
        self.found.sort_by_key(|d| (d.span, d.code));
        self.found.dedup();
        let (mut file, mut start) = (0, 0);
        for one in &mut self.found {
            while file + 1 < files.len() && one.span.start as usize > start + files[file].text.len() {
                start += files[file].text.len() + 1;
                file += 1;
            }
            one.file = file;
            one.span.start -= start as u32;
            one.span.end = one.span.end.saturating_sub(start as u32).max(one.span.start);
        }
        Diagnostics::new(self.found, files)
    }
}

/// A file that was compiled, or a library of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The name that diagnostics show.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// All errors, or all warnings, of one file, in the order of the text; `Display` renders them as rustc does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    files: Vec<SourceFile>,
    rendered: String,
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.rendered)
    }
}

impl Diagnostics {
    fn new(found: Vec<Diagnostic>, files: Vec<SourceFile>) -> Diagnostics {
        let lines: Vec<Lines<'_>> = files.iter().map(|file| Lines::new(&file.text)).collect();
        let mut rendered = String::new();
        for diagnostic in &found {
            let file = diagnostic.file;
            render(diagnostic, &lines[file], &files[file].name, &mut rendered);
        }
        let file = &files[0].name;
        let count = found.len();
        let more = if count >= DIAGNOSTICS_MAX { " or more" } else { "" };
        let plural = if count == 1 { "" } else { "s" };
        let severity = found.iter().map(|one| one.code.severity()).min().unwrap_or(Severity::Error).text();
        rendered.push_str(&format!("{file}: {count}{more} {severity}{plural}\n"));
        Diagnostics { found, files, rendered }
    }
    /// The files that they stand in: first the one that was compiled, then its libraries.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
    /// Each of them, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }
}

/// Where lines begin.
struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { source, starts }
    }
    /// The line's number from 0, the line without its end, and the byte in it.
    fn find(&self, offset: usize) -> (usize, &'a str, usize) {
        let mut offset = offset.min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let number = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts[number];
        let end = self.starts.get(number + 1).map_or(self.source.len(), |next| next - 1);
        let line = self.source[start..end.max(start)].trim_end_matches('\r');
        (number, line, (offset - start).min(line.len()))
    }
}

/// The line that a byte of the source is in, from 1.
pub(crate) fn line_of(source: &str, offset: u32) -> usize {
    source.bytes().take(offset as usize).filter(|byte| *byte == b'\n').count() + 1
}

fn render(diagnostic: &Diagnostic, lines: &Lines<'_>, file: &str, out: &mut String) {
    let (number, line, at) = lines.find(diagnostic.span.start as usize);
    let length = (diagnostic.span.end.saturating_sub(diagnostic.span.start) as usize).min(line.len() - at);
    let column = line[..at].chars().count() + 1;
    let margin = " ".repeat((number + 1).to_string().len());
    let (before, marked, shown) = excerpt(line, at, length);
    let (severity, code) = (diagnostic.code.severity().text(), diagnostic.code.text());
    out.push_str(&format!("{severity}[{code}]: {}\n", diagnostic.message));
    out.push_str(&format!("{margin}--> {file}:{}:{column}\n{margin} |\n", number + 1));
    out.push_str(&format!("{} | {shown}\n", number + 1));
    let carets = format!("{}{}", " ".repeat(before), "^".repeat(marked.max(1)));
    out.push_str(format!("{margin} | {carets} {}", diagnostic.label).trim_end());
    out.push('\n');
    if !diagnostic.notes.is_empty() || diagnostic.help.is_some() {
        out.push_str(&format!("{margin} |\n"));
    }
    for note in &diagnostic.notes {
        out.push_str(&format!("{margin} = note: {note}\n"));
    }
    if let Some(help) = &diagnostic.help {
        out.push_str(&format!("{margin} = help: {help}\n"));
    }
    out.push('\n');
}

/// Columns before the span, columns of it, and the line made fit to show (no tabs, no control characters, not too long).
fn excerpt(line: &str, at: usize, length: usize) -> (usize, usize, String) {
    let skipped = line[..at].chars().count().saturating_sub(COLUMNS_MAX / 2);
    let (mut before, mut marked, mut shown) = (0, 0, String::new());
    if skipped > 0 {
        shown.push('…');
        before += 1;
    }
    for (offset, character) in line.char_indices().skip(skipped).take(COLUMNS_MAX) {
        let character = if character.is_control() { ' ' } else { character };
        let width = character.width().unwrap_or(0);
        shown.push(character);
        if offset < at {
            before += width;
        } else if offset < at.saturating_add(length) {
            marked += width;
        }
    }
    (before, marked, shown)
}

/// The name among `candidates` that was likely meant.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    // Of one letter any other would be near.
    if !(2..=SUGGESTION_CHARACTERS_MAX).contains(&length) {
        return None;
    }
    let bound = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= bound * 4 && *candidate != name)
        .filter(|candidate| candidate.len() <= SUGGESTION_CHARACTERS_MAX)
        .take(SUGGESTION_CANDIDATES_MAX)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![vec![0usize; right.len() + 1]; left.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=left.len() {
        for j in 1..=right.len() {
            let same = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[left.len()][right.len()]
}
