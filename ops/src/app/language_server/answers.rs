//! What `weft` says of a source, in the protocol's forms.

use lsp_types::{
    CompletionItem, CompletionItemKind, Diagnostic, DiagnosticSeverity, DiagnosticTag, Documentation, Hover,
    HoverContents, Location, MarkupContent, MarkupKind, NumberOrString, Position, Range, TextEdit, Uri,
};
use weft::diagnostics::{Code, Severity, Span};
use weft::outline::{Completion, CompletionKind, Outline};

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

/// All that is wrong with a source, or what is likely not meant in one that is right.
pub fn diagnostics(source: &str) -> Vec<Diagnostic> {
    let found = weft::compile(source, "").map_or_else(|wrong| wrong, |_| weft::warnings(source, ""));
    let lines = Lines::new(source);
    let diagnostic = |one: &weft::diagnostics::Diagnostic| {
        let label = Some(&one.label).filter(|label| !label.is_empty());
        let help = one.help.as_ref().map(|help| format!("help: {help}"));
        let said =
            std::iter::once(one.message.clone()).chain(label.cloned()).chain(one.notes.clone()).chain(help);
        Diagnostic {
            range: range(&lines, one.span),
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

/// What the word at a position is.
pub fn hover(source: &str, at: Position) -> Option<Hover> {
    let hover = Outline::new(source).hover(source, offset(source, at))?;
    let mut value = format!("```weft\n{}\n```", hover.code);
    if !hover.comment.is_empty() {
        value = format!("{value}\n\n{}", hover.comment);
    }
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(range(&Lines::new(source), hover.span)) })
}

/// Where the word at a position is declared.
pub fn definitions(source: &str, at: Position, uri: &Uri) -> Vec<Location> {
    let lines = Lines::new(source);
    let spans = Outline::new(source).definitions(source, offset(source, at));
    spans.into_iter().map(|span| Location { uri: uri.clone(), range: range(&lines, span) }).collect()
}

/// What could stand at a position.
pub fn completions(source: &str, at: Position) -> Vec<CompletionItem> {
    let found = Outline::new(source).completions(source, offset(source, at));
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
