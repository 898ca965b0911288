//! An editor at the other end of a connection in memory.
#![allow(clippy::unwrap_used)]

use lsp_server::RequestId;
use serde_json::json;

use super::*;

const URI: &str = "file:///app.weft";
const SOURCE: &str = "\
app scores
// One player's.
record Score { player: text, points: int = 0 }
state board: list of Score by player
on add(player: text, points: int) {
  let s = board[player] else board add Score { player }
  s.points += points
}
";

struct Editor {
    connection: Connection,
    asked: i32,
    server: std::thread::JoinHandle<anyhow::Result<()>>,
}

impl Editor {
    fn start() -> Editor {
        let (server, connection) = Connection::memory();
        let server = std::thread::spawn(move || serve(&server));
        let mut editor = Editor { connection, asked: 0, server };
        let answer = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        assert_eq!(answer["capabilities"]["textDocumentSync"], 1);
        editor.tell("initialized", json!({}));
        editor
    }

    fn tell(&self, method: &str, parameters: Value) {
        self.connection.sender.send(Notification::new(method.into(), parameters).into()).unwrap();
    }

    fn respond(&mut self, method: &str, parameters: Value) -> Response {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        self.connection.sender.send(Request::new(id.clone(), method.into(), parameters).into()).unwrap();
        match self.connection.receiver.recv().unwrap() {
            Message::Response(response) if response.id == id => response,
            other => panic!("{method}: {other:?}"),
        }
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let response = serde_json::to_value(self.respond(method, parameters)).unwrap();
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// What is published next.
    fn published(&self) -> Value {
        match self.connection.receiver.recv().unwrap() {
            Message::Notification(said) if said.method == PublishDiagnostics::METHOD => said.params,
            other => panic!("{other:?}"),
        }
    }

    fn open(&self, text: &str) -> Value {
        let document = json!({ "uri": URI, "languageId": "weft", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.published()
    }

    fn change(&self, version: i32, text: &str) -> Value {
        let document = json!({ "uri": URI, "version": version });
        let parameters = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.tell("textDocument/didChange", parameters);
        self.published()
    }

    /// A place by what stands there.
    fn at(&self, source: &str, mark: &str) -> Value {
        let offset = source.find(mark).unwrap();
        let (line, column) = crate::app::position::Lines::new(source).position(offset as u32);
        json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": column } })
    }

    fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.tell("exit", Value::Null);
        self.server.join().unwrap().unwrap();
    }
}

#[test]
fn what_is_wrong_is_published_as_one_types() {
    let editor = Editor::start();
    let said = editor.open(SOURCE);
    assert_eq!((&said["uri"], &said["diagnostics"]), (&json!(URI), &json!([])));
    let said = editor.change(2, &SOURCE.replace("s.points +=", "s.pionts +="));
    let diagnostic = &said["diagnostics"][0];
    assert_eq!(said["version"], 2);
    assert_eq!((&diagnostic["code"], &diagnostic["severity"]), (&json!("W0013"), &json!(1)));
    assert_eq!(diagnostic["range"]["start"], json!({ "line": 6, "character": 4 }));
    assert_eq!(diagnostic["range"]["end"], json!({ "line": 6, "character": 10 }));
    assert!(diagnostic["message"].as_str().unwrap().contains("did you mean `points`?"));
    assert_eq!(editor.change(3, SOURCE)["diagnostics"], json!([]));
    editor.change(4, "app a\nview v = 'x'\n");
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(editor.published()["diagnostics"], json!([]));
    editor.end();
}

#[test]
fn columns_are_counted_as_the_protocol_does() {
    let editor = Editor::start();
    let said = editor.open("app a\nview v = \"é😀{x}\"\n");
    assert_eq!(said["diagnostics"][0]["range"]["start"], json!({ "line": 1, "character": 14 }));
    editor.end();
}

#[test]
fn a_word_is_explained_found_and_completed() {
    let mut editor = Editor::start();
    editor.open(SOURCE);
    let at = editor.at(SOURCE, "Score by");
    let hover = editor.ask("textDocument/hover", at.clone());
    let text = "```weft\nrecord Score { player: text, points: int = 0 }\n```\n\nOne player's.";
    assert_eq!(hover["contents"]["value"], text);
    let found = editor.ask("textDocument/definition", at);
    assert_eq!(found[0]["range"]["start"], json!({ "line": 2, "character": 7 }));
    let at = editor.at(SOURCE, "points += points");
    let offered = editor.ask("textDocument/completion", at);
    let labels: Vec<&str> =
        offered.as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["player", "points"]);
    let at = editor.at(SOURCE, "\n");
    assert_eq!(editor.ask("textDocument/hover", at)["contents"]["value"], "```weft\napp scores\n```");
    editor.end();
}

#[test]
fn a_document_is_laid_out_unless_it_does_not_parse() {
    let mut editor = Editor::start();
    let parameters =
        json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 4, "insertSpaces": true } });
    editor.open("app   a\nstate x:int=1\n");
    let edits = editor.ask("textDocument/formatting", parameters.clone());
    assert_eq!(edits[0]["newText"], "app a\nstate x: int = 1\n");
    assert_eq!(edits[0]["range"]["end"], json!({ "line": 2, "character": 0 }));
    editor.change(2, "app a\nstate x: int = 1\n");
    assert_eq!(editor.ask("textDocument/formatting", parameters.clone()), json!([]));
    editor.change(3, "app a\nstate = 1\n");
    assert_eq!(editor.ask("textDocument/formatting", parameters), Value::Null);
    editor.end();
}

#[test]
fn what_cannot_be_answered_is_an_error_and_the_server_goes_on() {
    let mut editor = Editor::start();
    let code = |response: Response| serde_json::to_value(response).unwrap()["error"]["code"].clone();
    assert_eq!(code(editor.respond("textDocument/rename", json!({}))), -32601);
    assert_eq!(code(editor.respond("textDocument/hover", json!({ "no": 1 }))), -32602);
    let closed = json!({ "textDocument": { "uri": URI }, "position": { "line": 0, "character": 0 } });
    assert_eq!(code(editor.respond("textDocument/hover", closed)), -32602);
    editor.tell("textDocument/didOpen", json!({ "no": 1 }));
    editor.open(SOURCE);
    let far = json!({ "textDocument": { "uri": URI }, "position": { "line": 900, "character": 900 } });
    assert_eq!(editor.ask("textDocument/hover", far), Value::Null);
    editor.end();
}

#[test]
fn libraries_that_are_open_are_read_as_they_are_being_written() {
    let mut editor = Editor::start();
    let library = "library shapes\n// Both sides.\nfn area(a: int, b: int) = a * b\n";
    let open = |editor: &Editor, text: &str, version: i32| {
        let document = json!({ "uri": "file:///lib/shapes.weft", "languageId": "weft", "version": version, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor.published()
    };
    let app = "app a\nuse \"lib/shapes.weft\" as s\nview v = s.area(1, 2)\n";
    let said = editor.open(app);
    assert_eq!(said["diagnostics"][0]["code"], "W0060");
    assert_eq!(open(&editor, library, 1)["diagnostics"], json!([]));
    // The app that uses it is told of anew.
    let said = editor.published();
    assert_eq!((&said["uri"], &said["diagnostics"]), (&json!(URI), &json!([])));
    let at = editor.at(app, "area");
    let hover = editor.ask("textDocument/hover", at.clone());
    assert_eq!(hover["contents"]["value"], "```weft\nfn area(a: int, b: int)\n```\n\nBoth sides.");
    let found = editor.ask("textDocument/definition", at.clone());
    assert_eq!(found[0]["uri"], "file:///lib/shapes.weft");
    assert_eq!(found[0]["range"]["start"], json!({ "line": 2, "character": 3 }));
    assert_eq!(editor.ask("textDocument/completion", at)[0]["label"], "area");
    assert_eq!(open(&editor, "library shapes\nfn area(a: int) = x\n", 2)["diagnostics"][0]["code"], "W0011");
    let said = editor.published();
    let message = said["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("lib/shapes.weft:2: there is no value `x`"), "{message}");
    assert_eq!(said["diagnostics"][0]["range"]["start"]["line"], 1);
    editor.end();
}

#[test]
fn addresses_of_files_are_paths() {
    let check = |uri: &str, expected: Option<&str>| {
        assert_eq!(file_of(&uri.parse().unwrap()), expected.map(PathBuf::from), "{uri}");
    };
    check("file:///a/b%20c/%C3%A4.weft", Some("/a/b c/ä.weft"));
    check("untitled:Untitled-1", None);
}
