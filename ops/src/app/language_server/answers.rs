//! What `weft` says of a source, in the protocol's forms.

use lsp_types::{
    CompletionItem, CompletionItemKind, Diagnostic, DiagnosticSeverity, DiagnosticTag, Documentation, Hover,
    HoverContents, Location, MarkupContent, MarkupKind, NumberOrString, Position, Range, TextEdit, Uri,
};
use weft::diagnostics::{Code, Severity, Span};
use weft::outline::{Completion, CompletionKind, Declaration, Declares, OfLibrary, Outline};

use crate::app::position::Lines;

fn range(lines: &Lines<'_>, span: Span) -> Range {
    let position = |offset| {
        let (line, character) = lines.position(offset);
        Position { line, character }
    };
    Range { start: position(span.start), end: position(span.end.max(span.start)) }
}

fn offset(source: &str, position: Position) -> usize {
    Lines::new(source).offset(position.line, position.character)
}

/// All that is wrong with a source, or what is likely not meant in one that is right; what is wrong in a library stands
/// at the first `use`.
pub fn diagnostics(source: &str, name: &str, libraries: &mut weft::Loader<'_>) -> Vec<Diagnostic> {
    let found = weft::check_with(source, name, libraries)
        .map_or_else(|wrong| wrong, |module| weft::warnings(&module, source, name));
    let lines = Lines::new(source);
    let outline = Outline::new(source);
    let first_use = outline.declarations.iter().find(|one| one.declares == Declares::Use);
    let first_use = first_use.map_or_else(Span::default, |one| one.span);
    let diagnostic = |one: &weft::diagnostics::Diagnostic| {
        let file = &found.files()[one.file];
        let (span, message) = if one.file == 0 {
            (one.span, one.message.clone())
        } else {
            let line = Lines::new(&file.text).place(one.span.start).line;
            (first_use, format!("{}:{line}: {}", file.name, one.message))
        };
        let label = Some(&one.label).filter(|label| !label.is_empty());
        let help = one.help.as_ref().map(|help| format!("help: {help}"));
        let said = std::iter::once(message).chain(label.cloned()).chain(one.notes.clone()).chain(help);
        Diagnostic {
            range: range(&lines, span),
            severity: Some(match one.code.severity() {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            tags: is_needless(one.code).then(|| vec![DiagnosticTag::UNNECESSARY]),
            code: Some(NumberOrString::String(one.code.text().into())),
            source: Some("weft".into()),
            message: said.collect::<Vec<_>>().join("\n"),
            ..Diagnostic::default()
        }
    };
    found.iter().map(diagnostic).collect()
}

/// Whether an editor may show what a warning is about as if it were not there.
fn is_needless(code: Code) -> bool {
    matches!(code, Code::Unread | Code::NeverRun | Code::Unused)
}

/// The library that a position is in the words of: its path, its text, and the word.
fn library(
    source: &str,
    at: Position,
    libraries: &mut weft::Loader<'_>,
) -> Option<(String, String, OfLibrary)> {
    let word = Outline::new(source).of_library(source, offset(source, at))?;
    let path = weft::library_path("", &word.path).ok()?;
    let text = libraries(&path).ok()?;
    Some((path, text, word))
}

/// What a source declares, with the types that the checker finds as far as it is right.
fn outline(source: &str, libraries: &mut weft::Loader<'_>) -> Outline {
    let mut outline = Outline::new(source);
    outline.learn(weft::types(source, "", libraries));
    outline
}

/// What the word at a position is.
pub fn hover(source: &str, at: Position, libraries: &mut weft::Loader<'_>) -> Option<Hover> {
    let (code, comment, span) = match library(source, at, libraries) {
        Some((_, text, word)) => {
            let outline = Outline::new(&text);
            let found = outline.exported(&word.word)?;
            (found.signature.clone(), found.comment.clone(), word.span)
        }
        None => {
            let hover = outline(source, libraries).hover(source, offset(source, at))?;
            (hover.code, hover.comment, hover.span)
        }
    };
    let mut value = format!("```weft\n{code}\n```");
    if !comment.is_empty() {
        value = format!("{value}\n\n{comment}");
    }
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(range(&Lines::new(source), span)) })
}

/// Where the word at a position is declared; `beside` makes the address of a library's path.
pub fn definitions(
    source: &str,
    at: Position,
    uri: &Uri,
    beside: impl Fn(&str) -> Option<Uri>,
    libraries: &mut weft::Loader<'_>,
) -> Vec<Location> {
    if let Some((path, text, word)) = library(source, at, libraries) {
        let outline = Outline::new(&text);
        let found = outline.exported(&word.word).zip(beside(&path));
        let location = |(found, uri): (&Declaration, Uri)| Location {
            uri,
            range: range(&Lines::new(&text), found.name_span),
        };
        return found.map(location).into_iter().collect();
    }
    let lines = Lines::new(source);
    let spans = Outline::new(source).definitions(source, offset(source, at));
    spans.into_iter().map(|span| Location { uri: uri.clone(), range: range(&lines, span) }).collect()
}

/// What could stand at a position.
pub fn completions(source: &str, at: Position, libraries: &mut weft::Loader<'_>) -> Vec<CompletionItem> {
    let found = match library(source, at, libraries) {
        Some((_, text, _)) => Outline::new(&text).export_completions(),
        None => outline(source, libraries).completions(source, offset(source, at)),
    };
    found.into_iter().map(completion).collect()
}

fn completion(one: Completion) -> CompletionItem {
    let kind = match one.kind {
        CompletionKind::Word => CompletionItemKind::KEYWORD,
        CompletionKind::Type => CompletionItemKind::STRUCT,
        CompletionKind::Case => CompletionItemKind::ENUM_MEMBER,
        CompletionKind::Field => CompletionItemKind::FIELD,
        CompletionKind::Function => CompletionItemKind::FUNCTION,
        CompletionKind::Value => CompletionItemKind::VARIABLE,
    };
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    CompletionItem {
        label: one.label,
        kind: Some(kind),
        detail: filled(one.detail),
        documentation: filled(one.comment).map(Documentation::String),
        ..CompletionItem::default()
    }
}

/// The change that lays a source out; none where it has the layout or does not parse, of which its diagnostics tell.
pub fn formatted(source: &str) -> Option<Vec<TextEdit>> {
    let new_text = weft::format::format(source, "").ok()?;
    if new_text == source {
        return Some(Vec::new());
    }
    let whole = Span { start: 0, end: u32::try_from(source.len()).ok()? };
    Some(vec![TextEdit { range: range(&Lines::new(source), whole), new_text }])
}
