//! `selvedge app lsp`: an editor's server, after the Language Server Protocol 3.17.
//!
//! One loop: a message comes, what it changes is remembered, what it asks is answered. What is wrong with a source and
//! how it is laid out `weft` says whole; what a word is and where it is declared `weft::outline` tells from the text, so
//! that it also helps in a source that is not right yet. `answers` turns that into the protocol's forms; `messages` is how
//! they come and go.

mod answers;
mod messages;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Exit, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    Completion, Formatting, GotoDefinition, HoverRequest, Initialize, Request as _, Shutdown,
};
use lsp_types::{
    CompletionOptions, Diagnostic, DiagnosticSeverity, HoverProviderCapability, OneOf,
    PublishDiagnosticsParams, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::messages::{ErrorCode, Heard, Reader, Refusal};

/// How many documents an editor may hold open: each is kept in memory.
const DOCUMENTS_MAX: usize = 1_000;
/// Bytes of all documents that an editor holds open: sixty-four of the largest sources.
const DOCUMENTS_BYTES_MAX: usize = 64 << 20;

/// Serves the editor on standard input and output until it says `exit`.
///
/// # Errors
/// The editor does not keep to the protocol, or went away.
pub fn run() -> anyhow::Result<ExitCode> {
    let ended = serve(io::stdin().lock(), &mut io::stdout().lock())?;
    // "The server should exit with success code 0 if the shutdown request has been received before; otherwise with
    // error code 1" (LSP 3.17, exit).
    Ok(if ended { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How far editor and server are with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is served before `initialize`.
    Before,
    Serving,
    /// Nothing is served after `shutdown`.
    Ending,
}

/// Serves one editor; whether it ended as the protocol has it.
fn serve(input: impl BufRead, output: &mut impl Write) -> anyhow::Result<bool> {
    let mut reader = Reader::new(input);
    let mut server = Server { documents: HashMap::new(), stage: Stage::Before };
    while let Some(heard) = reader.next()? {
        match heard {
            Heard::Request { id, method, params } => {
                let answer = server.respond(&method, params);
                messages::answer(output, &id, answer)?;
            }
            Heard::Notification { method, .. } if method == Exit::METHOD => {
                return Ok(server.stage == Stage::Ending);
            }
            Heard::Notification { method, params } => {
                for diagnostics in server.hear(&method, params) {
                    messages::tell(output, PublishDiagnostics::METHOD, &serde_json::to_value(diagnostics)?)?;
                }
            }
            Heard::Response => {}
            Heard::Wrong { id, refusal } => messages::answer(output, &id, Err(refusal))?,
            Heard::Lost(why) => {
                let refusal = Refusal::new(ErrorCode::ParseError, why.clone());
                messages::answer(output, &Value::Null, Err(refusal))?;
                anyhow::bail!("where the editor's next message begins is not known: {why}");
            }
        }
    }
    Ok(server.stage == Stage::Ending)
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".to_owned()]),
            ..CompletionOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}

/// A document that the editor holds open.
struct Document {
    version: i32,
    text: String,
    /// The addresses of the libraries that it was checked with.
    uses: HashSet<String>,
}

struct Server {
    documents: HashMap<Uri, Document>,
    stage: Stage,
}

impl Server {
    fn respond(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        match (self.stage, method) {
            (Stage::Before, Initialize::METHOD) => {
                self.stage = Stage::Serving;
                Ok(json!({ "capabilities": capabilities() }))
            }
            (Stage::Before, _) => {
                let why = format!("{method} comes before initialize");
                Err(Refusal::new(ErrorCode::ServerNotInitialized, why))
            }
            (Stage::Ending, _) => {
                Err(Refusal::new(ErrorCode::InvalidRequest, format!("{method} comes after shutdown")))
            }
            (Stage::Serving, Initialize::METHOD) => {
                Err(Refusal::new(ErrorCode::InvalidRequest, "initialize came before"))
            }
            (Stage::Serving, Shutdown::METHOD) => {
                self.stage = Stage::Ending;
                Ok(Value::Null)
            }
            (Stage::Serving, _) => self.asked(method, params),
        }
    }

    /// Remembers what the editor tells of its documents; what is wrong with the one that changed and with those that use
    /// it.
    fn hear(&mut self, method: &str, params: Value) -> Vec<PublishDiagnosticsParams> {
        if self.stage != Stage::Serving {
            return Vec::new();
        }
        let Some((uri, changed)) = changed(method, params) else { return Vec::new() };
        let mut said = Vec::new();
        match changed {
            Some((version, text)) => {
                if let Some(why) = self.no_room(&uri, &text) {
                    self.documents.remove(&uri);
                    return vec![PublishDiagnosticsParams::new(uri, vec![why], Some(version))];
                }
                self.documents.insert(uri.clone(), Document { version, text, uses: HashSet::new() });
                said.extend(self.check(&uri));
            }
            None => {
                self.documents.remove(&uri);
                said.push(PublishDiagnosticsParams::new(uri.clone(), Vec::new(), None));
            }
        }
        let uses = |one: &(&Uri, &Document)| one.1.uses.contains(uri.as_str());
        let users: Vec<Uri> = self.documents.iter().filter(uses).map(|(uri, _)| uri.clone()).collect();
        said.extend(users.iter().filter_map(|user| self.check(user)));
        said
    }

    fn check(&mut self, uri: &Uri) -> Option<PublishDiagnosticsParams> {
        let document = self.documents.get(uri)?;
        let mut uses = HashSet::new();
        let diagnostics = {
            let mut read = self.libraries(uri);
            let mut noted = |path: &str| {
                uses.extend(beside(uri, path).map(|uri| uri.as_str().to_owned()));
                read(path)
            };
            let name = uri.as_str().rsplit('/').next().unwrap_or_default();
            answers::diagnostics(&document.text, name, &mut noted)
        };
        let document = self.documents.get_mut(uri)?;
        document.uses = uses;
        Some(PublishDiagnosticsParams::new(uri.clone(), diagnostics, Some(document.version)))
    }

    /// The libraries of a document: those that are open as they are being written, the others from their files.
    fn libraries(&self, uri: &Uri) -> impl FnMut(&str) -> Result<String, String> {
        let mut files = file_of(uri).map(|file| node::libraries::beside(&file));
        move |path: &str| match beside(uri, path).and_then(|uri| self.documents.get(&uri)) {
            Some(document) => Ok(document.text.clone()),
            None => match &mut files {
                Some(files) => files(path),
                None => Err("only a file has libraries beside it".to_owned()),
            },
        }
    }

    fn asked(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let unread = |error: serde_json::Error| Refusal::new(ErrorCode::InvalidParams, error.to_string());
        let answer = match method {
            HoverRequest::METHOD => {
                let asked = parameters::<HoverRequest>(params).map_err(unread)?;
                let at = asked.text_document_position_params;
                let uri = at.text_document.uri;
                let libraries = &mut self.libraries(&uri);
                serde_json::to_value(answers::hover(self.text(&uri)?, at.position, libraries))
            }
            GotoDefinition::METHOD => {
                let asked = parameters::<GotoDefinition>(params).map_err(unread)?;
                let at = asked.text_document_position_params;
                let uri = at.text_document.uri;
                let libraries = &mut self.libraries(&uri);
                let beside = |path: &str| beside(&uri, path);
                let text = self.text(&uri)?;
                serde_json::to_value(answers::definitions(text, at.position, &uri, beside, libraries))
            }
            Completion::METHOD => {
                let asked = parameters::<Completion>(params).map_err(unread)?;
                let at = asked.text_document_position;
                let uri = at.text_document.uri;
                let libraries = &mut self.libraries(&uri);
                serde_json::to_value(answers::completions(self.text(&uri)?, at.position, libraries))
            }
            Formatting::METHOD => {
                let asked = parameters::<Formatting>(params).map_err(unread)?;
                serde_json::to_value(answers::formatted(self.text(&asked.text_document.uri)?))
            }
            _ => return Err(Refusal::new(ErrorCode::MethodNotFound, format!("{method} is not served"))),
        };
        answer.map_err(|error| Refusal::new(ErrorCode::InternalError, error.to_string()))
    }

    fn text(&self, uri: &Uri) -> Result<&str, Refusal> {
        let none = || Refusal::new(ErrorCode::InvalidParams, format!("{} is not open", uri.as_str()));
        self.documents.get(uri).map(|document| document.text.as_str()).ok_or_else(none)
    }

    /// Why a document is not kept with those that are, as what is shown in it; none if there is room.
    fn no_room(&self, uri: &Uri, text: &str) -> Option<Diagnostic> {
        let others = self.documents.iter().filter(|(other, _)| *other != uri);
        let bytes = |uri: &Uri, text: &str| uri.as_str().len() + text.len();
        let (count, bytes) = others.fold((0, bytes(uri, text)), |(count, sum), (other, one)| {
            (count + 1, sum + bytes(other, &one.text))
        });
        (count >= DOCUMENTS_MAX || bytes > DOCUMENTS_BYTES_MAX).then(|| Diagnostic {
            severity: Some(DiagnosticSeverity::ERROR),
            source: Some("weft".to_owned()),
            message: format!(
                "this file is not looked at: at most {DOCUMENTS_MAX} files are held open, with \
                 {DOCUMENTS_BYTES_MAX} bytes together. Close some, and change this one"
            ),
            ..Diagnostic::default()
        })
    }
}

/// The document that the editor tells of, with its version and text; without them it was closed.
fn changed(method: &str, params: Value) -> Option<(Uri, Option<(i32, String)>)> {
    match method {
        DidOpenTextDocument::METHOD => {
            let opened: <DidOpenTextDocument as lsp_types::notification::Notification>::Params =
                read(params)?;
            let document = opened.text_document;
            Some((document.uri, Some((document.version, document.text))))
        }
        DidChangeTextDocument::METHOD => {
            let changed: <DidChangeTextDocument as lsp_types::notification::Notification>::Params =
                read(params)?;
            // Whole texts are asked for: the last one is how it is.
            let text = changed.content_changes.into_iter().next_back()?.text;
            Some((changed.text_document.uri, Some((changed.text_document.version, text))))
        }
        DidCloseTextDocument::METHOD => {
            let closed: <DidCloseTextDocument as lsp_types::notification::Notification>::Params =
                read(params)?;
            Some((closed.text_document.uri, None))
        }
        _ => None,
    }
}

/// The address of a library's path from a document's folder. Such a path has no character that an address escapes.
fn beside(uri: &Uri, path: &str) -> Option<Uri> {
    let (folder, _) = uri.as_str().rsplit_once('/')?;
    format!("{folder}/{path}").parse().ok()
}

/// The file of a `file:` address on this machine.
fn file_of(uri: &Uri) -> Option<PathBuf> {
    let path = uri.as_str().strip_prefix("file://")?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

fn read<T: DeserializeOwned>(params: Value) -> Option<T> {
    // Whoever tells something malformed gets no answer: a notification has none.
    serde_json::from_value(params).ok()
}

fn parameters<R: lsp_types::request::Request>(params: Value) -> serde_json::Result<R::Params> {
    serde_json::from_value(params)
}
