//! Every command in the documents is run as it stands there, in the order in which it stands there; where what it prints
//! stands under it, it prints that. Apps on a page are saved under their names before what comes behind them.
//!
//! `…` stands for what is another each time: in a line for any text, as a line for any lines. What is typed at the
//! prompt of `selvedge app run` stands behind `>`.
#![allow(clippy::print_stderr, reason = "a test says what it did")]

use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Files that a person would read and type from.
const PAGES: [&str; 5] = ["README.md", "CONTRIBUTING.md", "docs/language.md", "docs/node.md", "docs/app.md"];

/// What `.ci/run` runs instead of this test: these build or test the whole workspace.
const RUN_BY_CI: [&str; 7] = [
    "cargo run --release -- demo",
    "cargo build --release -p selvedge",
    "cargo test --workspace",
    "bash .ci/run",
    "bash .ci/planted",
    "bash .ci/fuzz",
    "cargo install --path ops",
];

/// How long a view may take to show what another node sent.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a reader of a page does.
enum Step {
    /// Saves an app.
    Save { file: String, text: String },
    /// Types a command, and reads these lines under it.
    Command { line: String, shown: Vec<String> },
}

/// The apps and the indented commands of a page, without prompts and comments.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut lines, mut in_block) = (page.lines(), false);
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            steps.extend(app(language, &text));
        }
        let Some(line) = line.strip_prefix("    ") else {
            in_block = false;
            continue;
        };
        let typed = line.strip_prefix("ann$ ").or(line.strip_prefix("ben$ ")).unwrap_or(line);
        let typed = typed.split("  ").next().unwrap_or_default().trim();
        if ["selvedge", "curl", "sed", "cargo", "bash"].contains(&first_word(typed)) {
            steps.push(Step::Command { line: typed.to_owned(), shown: Vec::new() });
            in_block = true;
        } else if let (true, Some(Step::Command { shown, .. })) = (in_block, steps.last_mut()) {
            shown.push(line.to_owned());
        }
    }
    steps
}

/// A fenced app or library, under its name.
fn app(language: &str, text: &[&str]) -> Option<Step> {
    let first = text.iter().find_map(|line| line.strip_prefix("app ").or(line.strip_prefix("library ")))?;
    let file = format!("{first}.weft");
    (language == "weft").then(|| Step::Save { file, text: text.join("\n") + "\n" })
}

fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Whether lines are the shown ones.
fn fits(shown: &[&str], said: &[&str]) -> bool {
    match (shown.split_first(), said.split_first()) {
        (Some((&"…", rest)), _) => (0..=said.len()).any(|passed| fits(rest, &said[passed..])),
        (Some((shown, rest)), Some((line, behind))) => fits_line(shown, line) && fits(rest, behind),
        (None, None) => true,
        _ => false,
    }
}

fn fits_line(shown: &str, line: &str) -> bool {
    let Some((first, rest)) = shown.split_once('…') else { return shown == line };
    let Some(mut line) = line.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('…').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = line.find(piece) else { return false };
        line = &line[at + piece.len()..];
    }
    line.ends_with(last)
}

/// A person at a shell in an empty folder, with `selvedge` on the path.
struct Shell {
    folder: tempfile::TempDir,
    /// By the port that the page says.
    nodes: HashMap<&'static str, (Child, Value)>,
}

/// The ports on which pages let nodes serve.
const PORTS: [&str; 2] = ["127.0.0.1:8080", "127.0.0.1:8081"];

impl Shell {
    fn new() -> Shell {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink(root().join("apps"), folder.path().join("apps"))
            .expect("a link to the apps");
        let shell = Shell { folder, nodes: HashMap::new() };
        // Who a page that names no folder means, and the other device of a page that has two.
        shell.run("selvedge id --dir ./ann", &[]);
        shell.run("selvedge id --dir ./ben", &[]);
        shell
    }

    fn save(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).expect("the app is written");
    }

    /// The command with the placeholders of the page filled in: to ann's node ben's, else ann's.
    fn filled(&self, command: &str) -> String {
        let mut filled = command.to_owned();
        let other = if command.contains("./ann") || command.contains(PORTS[0]) { "./ben" } else { "./ann" };
        for (placeholder, key) in [("svt2…", "ticket"), ("sv1…", "node")] {
            if filled.contains(placeholder) {
                let about = self.run(&format!("selvedge id --dir {other} --json"), &[]);
                let about: Value = serde_json::from_str(&about).expect("--json is JSON");
                filled = filled.replace(placeholder, about[key].as_str().expect("it is in there"));
            }
        }
        for (port, (_, ready)) in &self.nodes {
            filled = filled.replace(port, ready["http"].as_str().expect("the line has it"));
        }
        filled
    }

    fn shell(&self, command: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_selvedge"));
        let folder = binary.parent().expect("the binary is in a folder").display();
        let mut shell = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.args(["-c", command]).env("PATH", format!("{folder}:{path}")).current_dir(self.folder.path());
        shell
    }

    /// Runs a command that ends and prints what is shown; what it printed. It fails where what is shown says so.
    fn run(&self, command: &str, shown: &[String]) -> String {
        let both = if shown.is_empty() { "" } else { " 2>&1" };
        let filled = self.filled(command);
        let mut child = self.shell(&format!("{filled}{both}"));
        let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("there is a shell");
        let mut input = child.stdin.take().expect("its input is piped");
        for line in shown.iter().filter_map(|line| line.strip_prefix("> ")) {
            // A command that does not read its input may be gone already.
            let _ = writeln!(input, "{}", self.filled(line));
        }
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        let (said, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let fails = ["error", "selvedge: ", "FAILED"];
        let fails = shown.iter().any(|line| fails.iter().any(|word| line.starts_with(word)));
        assert_eq!(output.status.success(), !fails, "{filled}: {}\n{said}\n{error}", output.status);
        said.into_owned()
    }

    /// Runs a command until it prints what is shown: at once, but for what has to come from another node.
    fn shows(&self, command: &str, shown: &[String]) {
        let expected: Vec<&str> =
            shown.iter().map(String::as_str).filter(|line| !line.starts_with("> ")).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.run(command, shown);
            let lines: Vec<&str> = said.lines().collect();
            if shown.is_empty() || fits(&expected, &lines) {
                return;
            }
            let comes = command.starts_with("curl") && !command.contains(" -d ") && Instant::now() < deadline;
            assert!(comes, "{command} prints\n{said}and the page says\n{}", expected.join("\n"));
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Starts a node as the page says, but on a free port; the one that was there before is ended.
    fn start_node(&mut self, command: &str) {
        let port = PORTS.into_iter().find(|port| command.contains(port)).expect("a port that pages have");
        self.end_node(port);
        let command = format!("exec {} --json", self.filled(command)).replace(port, "127.0.0.1:0");
        let mut child = self.shell(&command).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let line = first_line(&mut child);
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{command}: {line}"));
        assert_eq!(ready["ready"], true, "{command}: {ready}");
        self.nodes.insert(port, (child, ready));
    }

    fn end_node(&mut self, port: &str) {
        if let Some((mut child, _)) = self.nodes.remove(port) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Reads what is pushed first, then goes away.
    fn watch(&self, command: &str) {
        let mut child = self.shell(&format!("exec {}", self.filled(command)));
        let mut child = child.stdout(Stdio::piped()).spawn().expect("there is a shell");
        let line = first_line(&mut child);
        let _ = child.kill();
        let _ = child.wait();
        assert!(line.starts_with("data: "), "{command}: {line}");
    }

    fn take(&mut self, name: &str, step: &Step) {
        let (command, shown) = match step {
            Step::Save { file, text } => return self.save(file, text),
            Step::Command { line, shown } => (line.as_str(), shown),
        };
        if ["cargo", "bash"].contains(&first_word(command)) {
            assert!(RUN_BY_CI.contains(&command), "{name}: nobody runs `{command}`");
        } else if command.starts_with("selvedge node") {
            self.start_node(command);
        } else if command.contains("text/event-stream") {
            self.watch(command);
        } else {
            self.shows(command, shown);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for port in PORTS {
            self.end_node(port);
        }
    }
}

fn first_line(child: &mut Child) -> String {
    let output = child.stdout.take().expect("its output is piped");
    let mut reader = BufReader::new(output);
    let mut line = String::new();
    reader.read_line(&mut line).expect("it prints text");
    line
}

fn commands(steps: &[Step]) -> Vec<&str> {
    let commands = steps.iter().filter_map(|step| match step {
        Step::Command { line, .. } => Some(line.as_str()),
        Step::Save { .. } => None,
    });
    commands.collect()
}

fn read(name: &str) {
    let steps = steps(&page(name));
    assert!(!commands(&steps).is_empty(), "{name} has commands");
    let mut shell = Shell::new();
    for step in &steps {
        shell.take(name, step);
    }
}

#[test]
fn every_command_in_the_documents_runs() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("\n*** SKIPPED: the documents' commands were not run: there is no curl ***\n");
        return;
    }
    PAGES.iter().for_each(|name| read(name));
}

#[test]
fn every_app_has_a_page_that_runs_posts_and_views() {
    let apps = std::fs::read_dir(root().join("apps")).expect("there are apps");
    for app in apps.map(|app| app.expect("a folder").path()).filter(|app| app.is_dir()) {
        let name = app.file_name().and_then(|name| name.to_str()).expect("a name");
        let (readme, file) = (format!("apps/{name}/README.md"), format!("apps/{name}/{name}.weft"));
        let steps = steps(&page(&readme));
        let commands = commands(&steps);
        for wanted in [format!("selvedge app test {file}"), format!("selvedge app run {file}")] {
            assert!(commands.contains(&wanted.as_str()), "{readme} has `{wanted}`");
        }
        let typed = steps.iter().flat_map(|step| match step {
            Step::Command { shown, .. } => shown.as_slice(),
            Step::Save { .. } => &[],
        });
        let typed: Vec<&String> = typed.collect();
        for word in ["> post ", "> view "] {
            assert!(typed.iter().any(|line| line.starts_with(word)), "{readme} has `{word}`");
        }
        read(&readme);
    }
}

#[test]
fn what_is_shown_is_compared() {
    let check = |shown: &str, said: &str, expected: bool| {
        let (shown_lines, said_lines): (Vec<&str>, Vec<&str>) =
            (shown.lines().collect(), said.lines().collect());
        assert_eq!(fits(&shown_lines, &said_lines), expected, "{shown} / {said}");
    };
    check("a\nb", "a\nb", true);
    check("a\nb", "a", false);
    check("a", "a\nb", false);
    check("a…", "abc", true);
    check("a…c…e", "abcde", true);
    check("a…c…e", "abde", false);
    check("…b", "ab", true);
    check("a…", "b", false);
    check("a\n…\nd", "a\nb\nc\nd", true);
    check("…\nd", "d", true);
    check("…\nd", "d\ne", false);
}

#[test]
fn what_ci_runs_is_what_the_documents_say() {
    let ci = [".ci/run", ".ci/demo"].map(page).concat();
    assert!(ci.contains("cargo test --workspace"), "the README's test command");
    assert!(ci.contains("cargo run --release"), "the README's main command");
}
