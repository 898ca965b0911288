//! `selvedge app lsp`: an editor's server, after the Language Server Protocol 3.17.
//!
//! One loop: a message comes, what it changes is remembered, what it asks is answered. What is wrong with a source and
//! how it is laid out `weft` says whole; what a word is and where it is declared `weft::outline` tells from the text, so
//! that it also helps in a source that is not right yet. `answers` turns that into the protocol's forms.

mod answers;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
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
                if let Some(diagnostics) = server.hear(notification) {
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

struct Server {
    documents: HashMap<Uri, String>,
}

impl Server {
    /// Remembers what the editor tells of its documents; what is wrong with the one that changed.
    fn hear(&mut self, told: Notification) -> Option<PublishDiagnosticsParams> {
        let (uri, version, text) = match told.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let opened: <DidOpenTextDocument as lsp_types::notification::Notification>::Params =
                    read(told)?;
                let document = opened.text_document;
                (document.uri, document.version, document.text)
            }
            DidChangeTextDocument::METHOD => {
                let changed: <DidChangeTextDocument as lsp_types::notification::Notification>::Params =
                    read(told)?;
                // Whole texts are asked for: the last one is how it is.
                let text = changed.content_changes.into_iter().next_back()?.text;
                (changed.text_document.uri, changed.text_document.version, text)
            }
            DidCloseTextDocument::METHOD => {
                let closed: <DidCloseTextDocument as lsp_types::notification::Notification>::Params =
                    read(told)?;
                self.documents.remove(&closed.text_document.uri);
                return Some(PublishDiagnosticsParams::new(closed.text_document.uri, Vec::new(), None));
            }
            _ => return None,
        };
        if self.documents.len() >= DOCUMENTS_MAX && !self.documents.contains_key(&uri) {
            return None;
        }
        let diagnostics = answers::diagnostics(&text);
        self.documents.insert(uri.clone(), text);
        Some(PublishDiagnosticsParams::new(uri, diagnostics, Some(version)))
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
                serde_json::to_value(answers::hover(self.text(&at.text_document.uri)?, at.position))
            }
            GotoDefinition::METHOD => {
                let asked = parameters::<GotoDefinition>(request).map_err(unread)?;
                let at = asked.text_document_position_params;
                let uri = at.text_document.uri;
                serde_json::to_value(answers::definitions(self.text(&uri)?, at.position, &uri))
            }
            Completion::METHOD => {
                let asked = parameters::<Completion>(request).map_err(unread)?;
                let at = asked.text_document_position;
                serde_json::to_value(answers::completions(self.text(&at.text_document.uri)?, at.position))
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
        self.documents.get(uri).map(String::as_str).ok_or_else(none)
    }
}

fn read<T: DeserializeOwned>(told: Notification) -> Option<T> {
    // Whoever tells something malformed gets no answer: a notification has none.
    serde_json::from_value(told.params).ok()
}

fn parameters<R: lsp_types::request::Request>(request: Request) -> serde_json::Result<R::Params> {
    serde_json::from_value(request.params)
}
