//! An editor at the other end of a connection in memory.
#![allow(clippy::unwrap_used)]

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
    to_server: io::PipeWriter,
    from_server: io::BufReader<io::PipeReader>,
    asked: i32,
    server: std::thread::JoinHandle<anyhow::Result<bool>>,
}

impl Editor {
    fn new() -> Editor {
        let (server_input, to_server) = io::pipe().unwrap();
        let (from_server, mut server_output) = io::pipe().unwrap();
        let server = std::thread::spawn(move || serve(io::BufReader::new(server_input), &mut server_output));
        Editor { to_server, from_server: io::BufReader::new(from_server), asked: 0, server }
    }

    fn start() -> Editor {
        let mut editor = Editor::new();
        let answer = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        assert_eq!(answer["capabilities"]["textDocumentSync"], 1);
        editor.tell("initialized", json!({}));
        editor
    }

    fn write(&self, text: &str) {
        let mut writer = &self.to_server;
        writer.write_all(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes()).unwrap();
    }

    fn tell(&self, method: &str, parameters: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }).to_string());
    }

    /// What the server says next.
    fn read(&mut self) -> Value {
        let mut header = String::new();
        self.from_server.read_line(&mut header).unwrap();
        let length = header.strip_prefix("Content-Length: ").unwrap().trim().parse::<usize>().unwrap();
        let mut text = vec![0; length + 2];
        io::Read::read_exact(&mut self.from_server, &mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn respond(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.write(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }).to_string(),
        );
        let answer = self.read();
        assert_eq!(answer["id"], id, "{method}: {answer}");
        answer
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let response = self.respond(method, parameters);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// What is published next.
    fn published(&mut self) -> Value {
        let said = self.read();
        assert_eq!(said["method"], PublishDiagnostics::METHOD, "{said}");
        said["params"].clone()
    }

    fn open(&mut self, text: &str) -> Value {
        let document = json!({ "uri": URI, "languageId": "weft", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.published()
    }

    fn change(&mut self, version: i32, text: &str) -> Value {
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
        assert!(self.server.join().unwrap().unwrap());
    }
}

#[test]
fn what_is_wrong_is_published_as_one_types() {
    let mut editor = Editor::start();
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
    let mut editor = Editor::start();
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
    let code = |response: Value| response["error"]["code"].clone();
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
    let open = |editor: &mut Editor, text: &str, version: i32| {
        let document = json!({ "uri": "file:///lib/shapes.weft", "languageId": "weft", "version": version, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor.published()
    };
    let app = "app a\nuse \"lib/shapes.weft\" as s\nview v = s.area(1, 2)\n";
    let said = editor.open(app);
    assert_eq!(said["diagnostics"][0]["code"], "W0060");
    assert_eq!(open(&mut editor, library, 1)["diagnostics"], json!([]));
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
    assert_eq!(
        open(&mut editor, "library shapes\nfn area(a: int) = x\n", 2)["diagnostics"][0]["code"],
        "W0011"
    );
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

#[test]
fn warnings_are_told_from_errors() {
    let mut editor = Editor::start();
    let mut check = |source: &str, code: &str, severity: u32| {
        let said = editor.open(source);
        let found = (&said["diagnostics"][0]["code"], &said["diagnostics"][0]["severity"]);
        assert_eq!(found, (&json!(code), &json!(severity)), "{source}: {said}");
    };
    check("app a\nview v = x\n", "W0011", 1);
    check("app a\nfn f(n: int) = n\nview v = 1\n", "W0103", 2);
    check("app a\nview v = \n", "W0004", 1);
    editor.end();
}

#[test]
fn what_comes_at_a_wrong_time_is_refused() {
    let mut editor = Editor::new();
    let mut code =
        |method: &str| editor.respond(method, json!({ "capabilities": {} }))["error"]["code"].clone();
    assert_eq!(code("textDocument/hover"), -32002);
    assert_eq!(code("shutdown"), -32002);
    assert_eq!(code("initialize"), Value::Null);
    assert_eq!(code("initialize"), -32600);
    assert_eq!(code("shutdown"), Value::Null);
    assert_eq!(code("textDocument/hover"), -32600);
    editor.tell("exit", Value::Null);
    assert!(editor.server.join().unwrap().unwrap());
    // Without a shutdown before it is no good end.
    let editor = Editor::start();
    editor.tell("exit", Value::Null);
    assert!(!editor.server.join().unwrap().unwrap());
}

#[test]
fn a_bad_message_is_answered_and_the_server_goes_on() {
    let mut editor = Editor::start();
    for (text, code) in [("{", -32700), ("[]", -32600), (r#"{"id":null,"method":"m"}"#, -32600)] {
        editor.write(text);
        let said = editor.read();
        assert_eq!((&said["id"], &said["error"]["code"]), (&Value::Null, &json!(code)), "{text}");
    }
    assert_eq!(editor.open(SOURCE)["diagnostics"], json!([]));
    // Where the next message begins is not known.
    let mut writer = &editor.to_server;
    writer.write_all(b"Content-Length: some\r\n\r\n{}").unwrap();
    assert_eq!(editor.read()["error"]["code"], -32700);
    let why = editor.server.join().unwrap().unwrap_err().to_string();
    assert!(why.contains("\"some\" is no Content-Length"), "{why}");
}

#[test]
fn more_than_is_held_open_is_said() {
    let mut editor = Editor::start();
    let open = |editor: &mut Editor, number: usize, text: &str| {
        let uri = format!("file:///{number}.weft");
        let document = json!({ "uri": uri, "languageId": "weft", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor.published()["diagnostics"].clone()
    };
    // A source that is too large is told of without a look into it.
    let large = " ".repeat(7 << 20);
    let count = DOCUMENTS_BYTES_MAX / large.len();
    for number in 0..count {
        assert_eq!(open(&mut editor, number, &large)[0]["code"], "W0006");
    }
    let refused = open(&mut editor, count, &large);
    assert!(refused[0]["message"].as_str().unwrap().starts_with("this file is not looked at"), "{refused}");
    assert_eq!(open(&mut editor, count + 1, SOURCE), json!([]));
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": "file:///0.weft" } }));
    assert_eq!(editor.published()["diagnostics"], json!([]));
    assert_eq!(open(&mut editor, count, &large)[0]["code"], "W0006");
    editor.end();
}
