//! `selvedge app` as a person or an editor runs it: the real command, its output and its exit codes.

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCORES: &str = "\
// Who won how often.

app scores

enum Stage { open, done }

record Score {
  player: text, // as they sign
  points: int = 0,
  stage: Stage = .open,
  since: time?,
}

state board: list of Score by player

on add(player: text, points: int = 1) -> int {
  require points > 0 else \"more than nothing\"
  let s = board[player] else board add Score { player }
  s.points += points
  return s.points
}

on take(scores: list of Score, by_whom: node?) {
  for s in scores { board put s }
}

view top(n: int = 10) = [{ s.player, s.stage, s.since } for s in board order by s.points desc take n]
view of(player: text) = board[player]
view total = sum(s.points for s in board)
";

/// A folder with apps in it, and the command.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn with(files: &[(&str, &str)]) -> Desk {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("it can be written");
        }
        Desk { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs `selvedge app …` with this on its standard input.
    fn app(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_selvedge"))
            .arg("app")
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // A command that does not read its input may be gone already.
        let _ = child.stdin.take().expect("its input is piped").write_all(input.as_bytes());
        child.wait_with_output().expect("the command ends")
    }

    /// What it says on standard output and on standard error; its exit code is as expected.
    fn says(&self, code: i32, arguments: &[&str], input: &str) -> (String, String) {
        let output = self.app(arguments, input);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it says text");
        let (said, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}\n{error}");
        (said, error)
    }

    fn lines(&self, code: i32, arguments: &[&str], input: &str) -> Vec<Value> {
        let (said, _) = self.says(code, arguments, input);
        said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }
}

#[test]
fn check_says_all_that_is_wrong_in_all_files() {
    let wrong = "app a\nview v = totl\nview é = 1\n";
    let desk = Desk::with(&[("scores.weft", SCORES), ("wrong.weft", wrong), ("fine.weft", "app fine\n")]);
    let (said, _) = desk.says(0, &["check", "scores.weft", "fine.weft"], "");
    assert_eq!(said, "scores.weft: nothing is wrong\nfine.weft: nothing is wrong\n");
    let (said, _) = desk.says(1, &["check", "wrong.weft", "fine.weft"], "");
    assert!(said.contains("error[W0011]") && said.contains("fine.weft: nothing"), "{said}");
    let said = desk.lines(1, &["check", "--json", "scores.weft", "wrong.weft", "missing.weft"], "");
    let keys =
        ["code", "severity", "file", "line", "column", "end_line", "end_column", "message", "why", "help"];
    assert_eq!(said[0].as_object().expect("an object").keys().collect::<Vec<_>>(), keys);
    assert_eq!(
        said[0],
        json!({
            "code": "W0011", "severity": "error", "file": "wrong.weft", "line": 2, "column": 10, "end_line": 2,
            "end_column": 14, "message": "there is no value `totl`", "why": said[0]["why"], "help": said[0]["help"],
        })
    );
    assert_eq!(
        (&said[1]["line"], &said[1]["column"], &said[1]["end_column"]),
        (&json!(3), &json!(6), &json!(7))
    );
    let last = said.last().and_then(|said| said["error"].as_str()).expect("the missing file is told");
    assert!(last.contains("cannot read missing.weft"), "{last}");
    desk.says(2, &["check"], "");
}

#[test]
fn only_files_are_read_and_none_without_end() {
    let desk = Desk::with(&[("fine.weft", "app fine\n"), ("notes.weft", "app notes\n")]);
    let made = Command::new("mkfifo").arg(desk.path().join("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    std::fs::create_dir(desk.path().join("folder")).expect("a folder");
    std::fs::write(desk.path().join("large.weft"), vec![b' '; (1 << 20) + 1]).expect("a large file");
    let commands: &[&[&str]] = &[&["check"], &["fmt"], &["doc"], &["test"], &["run"], &["plan", "fine.weft"]];
    for command in commands {
        for (file, words) in [
            ("pipe", "it is a pipe, and a source is read from a file only"),
            ("/dev/zero", "it is a device or a socket"),
            ("/dev/stdin", "it is a pipe"),
            ("folder", "it is a folder"),
            ("large.weft", "it has more than 1048576 bytes, the most that a source may have"),
            ("fien.weft", "did you mean fine.weft?"),
        ] {
            let (_, said) = desk.says(1, &[*command, &[file]].concat(), "app fine\n");
            assert!(said.contains(words), "{command:?} {file}: {said}");
        }
    }
}

#[test]
fn check_warns_and_shows_how_queries_find_rows() {
    let source = "app a\nrecord Row { id: int, of: int }\nstate rows: list of Row by id index of\n\
        state idle: int = 0\nview v(n: int) = [r for r in rows where r.of == n]\n";
    let desk = Desk::with(&[("a.weft", source)]);
    let (said, _) = desk.says(0, &["check", "a.weft"], "");
    assert!(said.contains("warning[W0103]: the state `idle`") && said.ends_with("1 warning\n"), "{said}");
    desk.says(1, &["check", "--deny-warnings", "a.weft"], "");
    let said = desk.lines(0, &["check", "--json", "--queries", "a.weft"], "");
    assert_eq!((&said[0]["code"], &said[0]["severity"]), (&json!("W0103"), &json!("warning")));
    assert_eq!(
        (&said[1]["query"], &said[1]["line"], &said[1]["scan"]),
        (&json!("rows"), &json!(5), &json!(false))
    );
    assert!(said[1]["by"].as_str().is_some_and(|by| by.contains("index of")), "{}", said[1]);
    // Whether a text is a key is never refused, so what stands behind it is looked up all the same.
    let source = "app a\nrecord Row { id: int, of: int }\nrecord Name { name: text }\nstate rows: list of Row by id index of\n\
        state names: list of Name by name\nview v(n: int, t: text) = [r for r in rows where t in names and r.of == n]\n";
    let desk = Desk::with(&[("a.weft", source)]);
    let said = desk.lines(0, &["check", "--json", "--queries", "a.weft"], "");
    assert!(said[0]["by"].as_str().is_some_and(|by| by.contains("index of")), "{said:?}");
}

#[test]
fn fmt_writes_the_one_layout_or_nothing() {
    let desk = Desk::with(&[("a.weft", "app   a\nstate x:int=1\n"), ("wrong.weft", "app a\nstate = 1\n")]);
    assert_eq!(
        desk.says(1, &["fmt", "--check", "a.weft"], "").0,
        "a.weft:1: it has another layout from here; run `selvedge app fmt a.weft`\n"
    );
    assert_eq!(desk.read("a.weft"), "app   a\nstate x:int=1\n");
    assert_eq!(desk.says(0, &["fmt", "a.weft"], "").0, "a.weft: laid out\n");
    assert_eq!(desk.read("a.weft"), "app a\nstate x: int = 1\n");
    assert_eq!(desk.says(0, &["fmt", "--check", "a.weft"], "").0, "");
    assert_eq!(
        desk.lines(0, &["fmt", "--json", "a.weft"], ""),
        [json!({ "file": "a.weft", "changed": false })]
    );
    let (_, error) = desk.says(1, &["fmt", "wrong.weft", "missing.weft"], "");
    assert!(error.contains("error[W0004]") && error.contains("cannot read missing.weft"), "{error}");
    assert_eq!(desk.read("wrong.weft"), "app a\nstate = 1\n");
}

#[test]
fn explain_has_a_page_a_list_and_a_guess() {
    let desk = Desk::with(&[]);
    let (page, _) = desk.says(0, &["explain", "w23"], "");
    assert!(
        page.starts_with("W0023: ") && page.contains("This is wrong:") && page.contains("error[W0023]"),
        "{page}"
    );
    let page = &desk.lines(0, &["explain", "W0023", "--json"], "")[0];
    assert_eq!((&page["code"], page["wrong"].is_string()), (&json!("W0023"), true));
    assert!(desk.says(0, &["explain"], "").0.lines().count() >= 42);
    let (_, error) = desk.says(1, &["explain", "W0203"], "");
    assert!(error.contains("there is no code `W0203`; did you mean W0003"), "{error}");
}

#[test]
fn a_new_app_is_right_laid_out_and_runs() {
    let desk = Desk::with(&[]);
    let (said, _) = desk.says(0, &["new", "plans", "--dir", "."], "");
    assert!(said.contains("plans.weft is there"), "{said}");
    desk.says(0, &["check", "plans/plans.weft"], "");
    desk.says(0, &["fmt", "--check", "plans/plans.weft"], "");
    assert_eq!(desk.lines(0, &["test", "--json", "plans/plans.weft"], "")[0]["outcome"], "passed");
    let input = "post write {\"text\":\"milk\"}\npost finish {\"id\":1}\nview count_of stage=done\n";
    let (said, _) = desk.says(0, &["run", "plans/plans.weft"], input);
    assert!(said.ends_with("1\ndone\n1\n"), "{said}");
    assert!(desk.read("plans/README.md").starts_with("# plans\n"));
    let (_, error) = desk.says(1, &["new", "plans"], "");
    assert!(error.contains("is there already"), "{error}");
    assert!(desk.says(1, &["new", "My-App"], "").1.contains("is no name of an app"));
}

#[test]
fn run_is_a_conversation_through_a_pipe() {
    let desk = Desk::with(&[("scores.weft", SCORES), ("wrong.weft", "app a\nview v = totl\n")]);
    let input = "watch total\npost add {\"player\":\"ann\"}\nview of player=ann\nquit\nview total\n";
    let said = desk.lines(0, &["run", "scores.weft", "--json"], input);
    assert_eq!(said[0]["ready"], "scores");
    assert_eq!(
        said[1..],
        [
            json!({ "watched": "total", "value": 0 }),
            json!({ "posted": "add", "answer": 1 }),
            json!({ "watched": "total", "value": 1 }),
            json!({ "view": "of", "value": { "player": "ann", "points": 1, "stage": "open", "since": null } }),
            json!({ "quit": true }),
        ]
    );
    let said = desk.lines(
        1,
        &["run", "scores.weft", "--json"],
        "post add {\"player\":\"ann\",\"points\":0}\nview total\n",
    );
    assert_eq!(said[1..], [json!({ "error": "more than nothing" }), json!({ "view": "total", "value": 0 })]);
    let (_, error) = desk.says(1, &["run", "wrong.weft"], "");
    assert!(error.contains("error[W0011]"), "{error}");
}

#[test]
fn test_runs_what_stands_in_apps_and_shows_what_differs() {
    let tests = "\ntest \"points add up\" {\n  add(\"ann\", 3)\n  expect total == 3\n}\n\
                 test \"points are lost\" {\n  add(\"ann\", 3)\n  expect total == 4\n}\n";
    let source = format!("{SCORES}{tests}");
    let desk = Desk::with(&[("scores.weft", &source), ("wrong.weft", "app a\nview v = totl\n")]);
    let (said, _) = desk.says(1, &["test", "scores.weft"], "");
    assert!(said.contains("passed   scores.weft:") && said.contains("FAILED   scores.weft:"), "{said}");
    assert!(
        said.contains("         left:  3\n         right: 4\n") && said.contains("\n1 passed, 1 failed in "),
        "{said}"
    );
    let said = desk.lines(0, &["test", "scores.weft", "--json", "--filter", "add up"], "");
    assert_eq!((&said[0]["test"], &said[0]["outcome"]), (&json!("points add up"), &json!("passed")));
    assert_eq!(said[1], json!({ "passed": 1, "failed": 0, "not_run": 0 }));
    let said = desk.lines(1, &["test", "scores.weft", "--json", "--filter", "lost"], "");
    assert_eq!(said[0]["failure"]["left"], "3");
    assert_eq!(said[0]["failure"]["source"], "expect total == 4");
    let (_, error) = desk.says(1, &["test", "scores.weft", "--filter", "nothing"], "");
    assert!(error.contains("no test has \"nothing\" in its title"), "{error}");
    let said = desk.lines(1, &["test", "wrong.weft", "--json"], "");
    assert!(said[0]["error"].as_str().expect("an error").contains("W0011"), "{said:?}");
}

/// A validator of a part of a document that refers to other parts of it.
#[test]
fn plan_says_what_becomes_of_what_is_kept() {
    let renamed =
        SCORES.replace("points: int = 0", "score was points: int = 0").replace("s.points", "s.score");
    let poorer = SCORES.replace("  stage: Stage = .open,\n", "").replace("s.stage, ", "");
    let desk = Desk::with(&[
        ("old.weft", SCORES),
        ("renamed.weft", &renamed),
        ("poorer.weft", &poorer),
        ("other.weft", "app other\n"),
    ]);
    let (said, _) = desk.says(0, &["plan", "old.weft", "old.weft"], "");
    assert_eq!(said, "scores: what is kept stays as it is\n");
    let (said, _) = desk.says(0, &["plan", "old.weft", "renamed.weft"], "");
    assert_eq!(said, "scores: what changes\n  renamed   Score.score: it was `Score.points`\n");
    let said = desk.lines(1, &["plan", "--json", "old.weft", "poorer.weft"], "");
    let help = "if it only has another name, say so with `was`";
    let lost = json!({
        "change": "removed", "name": "Score.stage", "verdict": "loses", "what": "it goes",
        "why": "its value in each row", "help": help,
    });
    assert_eq!(said, [json!({ "app": "scores", "verdict": "loses", "changes": [lost] })]);
    let (_, error) = desk.says(1, &["plan", "old.weft", "other.weft"], "");
    assert!(error.contains("scores and other are two apps"), "{error}");
    desk.says(2, &["plan", "old.weft"], "");
}

fn validator(document: &Value, pointer: &str) -> jsonschema::Validator {
    assert!(document.pointer(pointer).is_some(), "{pointer}");
    let mut schema = document.clone();
    schema["$ref"] = format!("#{pointer}").into();
    jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{pointer}: {error}"))
}

#[test]
fn schemas_take_what_the_app_takes_and_fit_what_it_gives() {
    let desk = Desk::with(&[("scores.weft", SCORES)]);
    let schema: Value =
        serde_json::from_str(&desk.says(0, &["doc", "scores.weft", "--json-schema"], "").0).expect("JSON");
    let interface: Value =
        serde_json::from_str(&desk.says(0, &["doc", "scores.weft", "--openapi"], "").0).expect("JSON");
    // What each input takes and refuses for its shape.
    let bodies = [
        ("add", json!({ "player": "ann" }), true),
        ("add", json!({ "player": "ann", "points": 3 }), true),
        ("add", json!({}), false),
        ("add", json!({ "player": 1 }), false),
        ("add", json!({ "player": "ann", "points": "3" }), false),
        ("add", json!({ "player": "ann", "points": null }), false),
        ("add", json!({ "player": "ann", "points": 1.5 }), false),
        ("add", json!({ "player": "ann", "more": 1 }), false),
        ("take", json!({ "scores": [] }), true),
        ("take", json!({ "scores": [{ "player": "ben", "stage": "done", "since": 7 }] }), true),
        ("take", json!({ "scores": [{ "player": "ben", "since": null }], "by_whom": null }), true),
        ("take", json!({ "scores": [{ "points": 1 }] }), false),
        ("take", json!({ "scores": [{ "player": "ben", "stage": "lost" }] }), false),
        ("take", json!({ "scores": [], "by_whom": "ben" }), false),
        ("take", json!([]), false),
    ];
    let posts: String = bodies.iter().map(|(input, body, _)| format!("post {input} {body}\n")).collect();
    let said = desk.lines(1, &["run", "scores.weft", "--json"], &posts);
    for ((input, body, taken), said) in bodies.iter().zip(&said[1..]) {
        let fits = validator(&schema, &format!("/$defs/input.{input}")).is_valid(body);
        let route = format!("/paths/~1scores~1{input}/post/requestBody/content/application~1json/schema");
        let fits_interface = validator(&interface, &route).is_valid(body);
        let app = said.get("posted").is_some();
        assert_eq!((fits, fits_interface, app), (*taken, *taken, *taken), "{input} {body} {said}");
    }
    // What views and inputs give.
    let commands = "post add {\"player\":\"ann\",\"points\":2}\nview top\nview of player=ann\nview of player=eve\nview total\n";
    let said = desk.lines(0, &["run", "scores.weft", "--json"], commands);
    validator(&schema, "/$defs/input.add.answer").validate(&said[1]["answer"]).expect("the answer fits");
    for said in &said[2..] {
        let (view, value) = (said["view"].as_str().expect("a view"), &said["value"]);
        let fits = validator(&schema, &format!("/$defs/view.{view}"));
        fits.validate(value).unwrap_or_else(|error| panic!("{view} {value}: {error}"));
        let route = format!("/paths/~1scores~1{view}/get/responses/200/content/application~1json/schema");
        validator(&interface, &route)
            .validate(value)
            .unwrap_or_else(|error| panic!("{view} {value}: {error}"));
        assert!(!fits.is_valid(&json!({ "no": "view" })), "{view}");
    }
}

#[test]
fn every_part_of_the_interface_that_is_a_schema_is_one() {
    let desk = Desk::with(&[("scores.weft", SCORES)]);
    let (text, _) = desk.says(0, &["doc", "scores.weft", "--openapi"], "");
    let interface: Value = serde_json::from_str(&text).expect("JSON");
    for name in interface["components"]["schemas"].as_object().expect("schemas").keys() {
        let schema = &interface["components"]["schemas"][name];
        jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        validator(&interface, &format!("/components/schemas/{name}"));
    }
    let (page, _) = desk.says(0, &["doc", "scores.weft"], "");
    assert!(page.contains("`GET /scores/of` — `view of(player: text) -> Score?`"), "{page}");
    desk.says(2, &["doc", "scores.weft", "--openapi", "--json-schema"], "");
}

#[test]
fn the_apps_of_this_project_are_right_laid_out_and_documented() {
    let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps");
    let folders =
        std::fs::read_dir(apps).expect("there are apps").map(|folder| folder.expect("a folder").path());
    let desk = Desk::with(&[]);
    let mut seen = 0;
    for folder in folders.filter(|folder| folder.is_dir()) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let file = folder.join(format!("{name}.weft"));
        let file = file.to_str().expect("a path that is text");
        desk.says(0, &["check", file], "");
        desk.says(0, &["fmt", "--check", file], "");
        desk.says(0, &["test", file], "");
        desk.says(0, &["doc", file], "");
        for (form, at) in [("--json-schema", "/$defs"), ("--openapi", "/components/schemas")] {
            let (text, _) = desk.says(0, &["doc", file, form], "");
            let document: Value = serde_json::from_str(&text).expect("JSON");
            for schema in document.pointer(at).and_then(Value::as_object).expect("schemas").keys() {
                validator(&document, &format!("{at}/{schema}"));
            }
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen} apps");
}

#[test]
fn the_editors_server_speaks_on_standard_input_and_output() {
    let desk = Desk::with(&[]);
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } }),
        json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }),
        json!({ "jsonrpc": "2.0", "method": "exit" }),
    ];
    let input: String = messages
        .iter()
        .map(|message| {
            let text = message.to_string();
            format!("Content-Length: {}\r\n\r\n{text}", text.len())
        })
        .collect();
    let (said, _) = desk.says(0, &["lsp"], &input);
    assert!(
        said.contains("\"definitionProvider\":true") && said.matches("Content-Length").count() == 2,
        "{said}"
    );
}

/// The command as a shell starts it where much is missing: a home, a terminal, a reader.
#[test]
fn it_works_where_little_is_there() {
    let desk = Desk::with(&[("my äpp.weft", SCORES)]);
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(desk.path()).env_clear().env("PATH", "/usr/bin:/bin");
        let output =
            shell.env("SELVEDGE", env!("CARGO_BIN_EXE_selvedge")).output().expect("there is a shell");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it says text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let nothing = String::new;
    let (code, said, error) = shell("\"$SELVEDGE\" app check 'my äpp.weft'");
    assert_eq!((code, said.as_str(), error), (Some(0), "my äpp.weft: nothing is wrong\n", nothing()));
    // Who has read enough is not told that it was not all.
    for (command, first) in [("explain", "W0001"), ("doc 'my äpp.weft'", "# scores"), ("--help", "Write")] {
        let (_, said, error) = shell(&format!("\"$SELVEDGE\" app {command} | head -n 1"));
        assert!(said.starts_with(first) && error.is_empty(), "{command}: {said}{error}");
    }
    let (code, said, error) = shell("\"$SELVEDGE\" app explain >&-");
    assert_eq!((code, said, error), (Some(0), nothing(), nothing()));
    let (code, said, error) = shell("\"$SELVEDGE\" app run 'my äpp.weft' <&- 2>&1");
    assert_eq!((code, error), (Some(0), nothing()), "{said}");
    let (code, _, error) = shell("\"$SELVEDGE\" app check 'my äpp.weft' > /dev/full");
    assert!(code == Some(1) && error.contains("cannot write to standard output"), "{error}");
}

#[test]
fn an_app_is_worked_on_with_its_libraries() {
    let library = "library marks\n// Of one game.\nrecord Mark { player: text, points: int }\nfn best(marks: list of Mark) = first(m for m in marks order by m.points desc)\ntest \"the best\" { expect best([Mark { player: \"a\", points: 1 }]) is m and m.player == \"a\" }\n";
    let app = "app games\nuse \"lib/marks.weft\" as m\nstate marks: list of m.Mark by player\non add(player: text, points: int) { marks put m.Mark { player, points } }\nview best = m.best(marks)\ntest \"one\" { add(\"a\", 1); expect best is b and b.points == 1 }\n";
    let desk = Desk::with(&[("games.weft", app), ("marks.weft", library)]);
    let (said, _) = desk.says(1, &["check", "games.weft"], "");
    assert!(said.contains("error[W0060]: the library `lib/marks.weft` cannot be read"), "{said}");
    std::fs::create_dir(desk.path().join("lib")).expect("it can be made");
    std::fs::rename(desk.path().join("marks.weft"), desk.path().join("lib/marks.weft"))
        .expect("it can be moved");
    let (said, _) = desk.says(0, &["check", "games.weft", "lib/marks.weft"], "");
    assert_eq!(said, "games.weft: nothing is wrong\nlib/marks.weft: nothing is wrong\n");
    let (said, _) = desk.says(0, &["test", "games.weft", "lib/marks.weft"], "");
    assert!(said.contains("2 passed, 0 failed"), "{said}");
    let (said, _) = desk.says(0, &["doc", "games.weft"], "");
    assert!(said.contains("### marks.Mark\n\nOf one game."), "{said}");
    let said = desk.lines(
        0,
        &["run", "--json", "games.weft"],
        "post add {\"player\":\"a\",\"points\":2}\nview best\n",
    );
    assert_eq!(said[2]["value"], json!({ "player": "a", "points": 2 }), "{said:?}");
    let (_, error) = desk.says(1, &["run", "lib/marks.weft"], "");
    assert!(error.contains("lib/marks.weft is a library"), "{error}");
    std::fs::write(desk.path().join("lib/marks.weft"), library.replace("desc)", "desc) + 1"))
        .expect("it can be written");
    let said = desk.lines(1, &["check", "--json", "games.weft"], "");
    assert_eq!((&said[0]["file"], &said[0]["line"]), (&json!("lib/marks.weft"), &json!(4)), "{said:?}");
}
