//! `selvedge app lsp`: an editor's server, after the Language Server Protocol 3.17.
//!
//! One loop: a message comes, what it changes is remembered, what it asks is answered. What is wrong with a source and
//! how it is laid out `weft` says whole; what a word is and where it is declared `weft::outline` tells from the text, so
//! that it also helps in a source that is not right yet. `answers` turns that into the protocol's forms.

mod answers;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{Completion, Formatting, GotoDefinition, HoverRequest, Request as _};
use lsp_types::{
    CompletionOptions, HoverProviderCapability, OneOf, PublishDiagnosticsParams, ServerCapabilities,
    TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How many documents an editor may hold open: each is kept in memory.
const DOCUMENTS_MAX: usize = 1_000;

/// Serves the editor on standard input and output until it says `exit`.
///
/// # Errors
/// The editor does not keep to the protocol, or went away.
pub fn run() -> anyhow::Result<ExitCode> {
    let (connection, threads) = Connection::stdio();
    serve(&connection)?;
    // The writer ends when nothing can be sent any more.
    drop(connection);
    threads.join().context("standard input or output failed")?;
    Ok(ExitCode::SUCCESS)
}

/// Serves one editor.
fn serve(connection: &Connection) -> anyhow::Result<()> {
    let capabilities = serde_json::to_value(capabilities())?;
    connection.initialize(capabilities).context("the editor did not begin as the protocol says")?;
    let mut server = Server { documents: HashMap::new() };
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection
                    .handle_shutdown(&request)
                    .context("the editor did not end as the protocol says")?
                {
                    return Ok(());
                }
                connection.sender.send(server.answer(request).into()).context("the editor went away")?;
            }
            Message::Notification(notification) => {
                for diagnostics in server.hear(notification) {
                    let method = PublishDiagnostics::METHOD.to_owned();
                    let said = Notification::new(method, diagnostics);
                    connection.sender.send(said.into()).context("the editor went away")?;
                }
            }
            // Nothing is ever asked of the editor.
            Message::Response(_) => {}
        }
    }
    Ok(())
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
}

impl Server {
    /// Remembers what the editor tells of its documents; what is wrong with the one that changed and with those that use
    /// it.
    fn hear(&mut self, told: Notification) -> Vec<PublishDiagnosticsParams> {
        let Some((uri, changed)) = changed(told) else { return Vec::new() };
        let mut said = Vec::new();
        match changed {
            Some((version, text)) => {
                if self.documents.len() >= DOCUMENTS_MAX && !self.documents.contains_key(&uri) {
                    return Vec::new();
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

    fn answer(&self, request: Request) -> Response {
        let id = request.id.clone();
        match self.asked(request) {
            Ok(answer) => Response::new_ok(id, answer),
            Err((code, why)) => Response::new_err(id, code as i32, why),
        }
    }

    fn asked(&self, request: Request) -> Result<Value, (ErrorCode, String)> {
        let unread = |error: serde_json::Error| (ErrorCode::InvalidParams, error.to_string());
        let answer = match request.method.as_str() {
            HoverRequest::METHOD => {
                let asked = parameters::<HoverRequest>(request).map_err(unread)?;
                let at = asked.text_document_position_params;
                let uri = at.text_document.uri;
                let libraries = &mut self.libraries(&uri);
                serde_json::to_value(answers::hover(self.text(&uri)?, at.position, libraries))
            }
            GotoDefinition::METHOD => {
                let asked = parameters::<GotoDefinition>(request).map_err(unread)?;
                let at = asked.text_document_position_params;
                let uri = at.text_document.uri;
                let libraries = &mut self.libraries(&uri);
                let beside = |path: &str| beside(&uri, path);
                let text = self.text(&uri)?;
                serde_json::to_value(answers::definitions(text, at.position, &uri, beside, libraries))
            }
            Completion::METHOD => {
                let asked = parameters::<Completion>(request).map_err(unread)?;
                let at = asked.text_document_position;
                let uri = at.text_document.uri;
                let libraries = &mut self.libraries(&uri);
                serde_json::to_value(answers::completions(self.text(&uri)?, at.position, libraries))
            }
            Formatting::METHOD => {
                let asked = parameters::<Formatting>(request).map_err(unread)?;
                serde_json::to_value(answers::formatted(self.text(&asked.text_document.uri)?))
            }
            other => return Err((ErrorCode::MethodNotFound, format!("{other} is not served"))),
        };
        answer.map_err(|error| (ErrorCode::InternalError, error.to_string()))
    }

    fn text(&self, uri: &Uri) -> Result<&str, (ErrorCode, String)> {
        let none = || (ErrorCode::InvalidParams, format!("{} is not open", uri.as_str()));
        self.documents.get(uri).map(|document| document.text.as_str()).ok_or_else(none)
    }
}

/// The document that the editor tells of, with its version and text; without them it was closed.
fn changed(told: Notification) -> Option<(Uri, Option<(i32, String)>)> {
    match told.method.as_str() {
        DidOpenTextDocument::METHOD => {
            let opened: <DidOpenTextDocument as lsp_types::notification::Notification>::Params = read(told)?;
            let document = opened.text_document;
            Some((document.uri, Some((document.version, document.text))))
        }
        DidChangeTextDocument::METHOD => {
            let changed: <DidChangeTextDocument as lsp_types::notification::Notification>::Params =
                read(told)?;
            // Whole texts are asked for: the last one is how it is.
            let text = changed.content_changes.into_iter().next_back()?.text;
            Some((changed.text_document.uri, Some((changed.text_document.version, text))))
        }
        DidCloseTextDocument::METHOD => {
            let closed: <DidCloseTextDocument as lsp_types::notification::Notification>::Params = read(told)?;
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

fn read<T: DeserializeOwned>(told: Notification) -> Option<T> {
    // Whoever tells something malformed gets no answer: a notification has none.
    serde_json::from_value(told.params).ok()
}

fn parameters<R: lsp_types::request::Request>(request: Request) -> serde_json::Result<R::Params> {
    serde_json::from_value(request.params)
}
