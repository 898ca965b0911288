//! Every command in the documents is run as it stands there, in the order in which it stands there.
#![allow(clippy::print_stderr, reason = "a test says what it did")]

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Files that a person would read and type from.
const PAGES: [&str; 4] = ["README.md", "CONTRIBUTING.md", "docs/node.md", "docs/app.md"];

/// What `.ci/run` runs instead of this test: these build or test the whole workspace.
const RUN_BY_CI: [&str; 4] =
    ["cargo run --release -- demo", "cargo test --workspace", "bash .ci/run", "cargo install --path ops"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The indented lines of a page that are commands, without prompts and comments.
fn commands(page: &str) -> Vec<String> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    let typed = lines.map(|line| line.strip_prefix("ann$ ").or(line.strip_prefix("ben$ ")).unwrap_or(line));
    let typed = typed.map(|line| line.split("  ").next().unwrap_or_default().trim().to_owned());
    typed.filter(|line| ["selvedge", "curl", "cargo", "bash"].contains(&first_word(line))).collect()
}

fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// A person at a shell in an empty folder, with `selvedge` on the path.
struct Shell {
    folder: tempfile::TempDir,
    node: Option<(Child, Value)>,
    /// Of the node in `./ann`.
    ticket: String,
    id: String,
}

impl Shell {
    fn new() -> Shell {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink(root().join("apps"), folder.path().join("apps"))
            .expect("a link to the apps");
        let mut shell = Shell { folder, node: None, ticket: String::new(), id: String::new() };
        let about = shell.run("selvedge id --dir ./ann --json");
        let about: Value = serde_json::from_str(&about).expect("--json is JSON");
        shell.ticket = about["ticket"].as_str().expect("a ticket").to_owned();
        shell.id = about["node"].as_str().expect("a node id").to_owned();
        // The other device of a page that has two.
        shell.run("selvedge id --dir ./ben");
        shell
    }

    /// The command with the placeholders of the page filled in.
    fn filled(&self, command: &str) -> String {
        let port = self.node.as_ref().and_then(|(_, ready)| ready["http"].as_str());
        let command = command.replace("svt1…", &self.ticket).replace("sv1…", &self.id);
        port.map_or(command.clone(), |port| command.replace("127.0.0.1:8080", port))
    }

    fn shell(&self, command: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_selvedge"));
        let folder = binary.parent().expect("the binary is in a folder").display();
        let mut shell = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.args(["-c", command]).env("PATH", format!("{folder}:{path}")).current_dir(self.folder.path());
        shell
    }

    /// Runs a command that ends; what it printed.
    fn run(&self, command: &str) -> String {
        let output = self.shell(&self.filled(command)).output().expect("there is a shell");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {}\n{error}", output.status);
        String::from_utf8(output.stdout).expect("commands print text")
    }

    /// Starts a node as the page says, but on a free port; the one before is ended.
    fn start_node(&mut self, command: &str) {
        self.end_node();
        let command = format!("exec {command} --json").replace("127.0.0.1:8080", "127.0.0.1:0");
        let mut child = self.shell(&command).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let line = first_line(&mut child);
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{command}: {line}"));
        assert_eq!(ready["ready"], true, "{command}: {ready}");
        self.node = Some((child, ready));
    }

    fn end_node(&mut self) {
        if let Some((mut child, _)) = self.node.take() {
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
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end_node();
    }
}

fn first_line(child: &mut Child) -> String {
    let output = child.stdout.take().expect("its output is piped");
    let mut reader = BufReader::new(output);
    let mut line = String::new();
    reader.read_line(&mut line).expect("it prints text");
    line
}

#[test]
fn every_command_in_the_documents_runs() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("\n*** SKIPPED: the documents' commands were not run: there is no curl ***\n");
        return;
    }
    for name in PAGES {
        let page = page(name);
        let mut shell = Shell::new();
        if let Some((_, app)) = page.split_once("```weft\n") {
            let app = app.split("```").next().unwrap_or_default();
            std::fs::write(shell.folder.path().join("scores.weft"), app).expect("the app is written");
        }
        let commands = commands(&page);
        assert!(!commands.is_empty(), "{name} has commands");
        for command in commands {
            match command.as_str() {
                cargo if cargo.starts_with("cargo") || cargo.starts_with("bash") => {
                    assert!(RUN_BY_CI.contains(&cargo), "{name}: nobody runs `{cargo}`");
                }
                node if node.starts_with("selvedge node") => shell.start_node(node),
                watch if watch.contains("text/event-stream") => shell.watch(watch),
                other => drop(shell.run(other)),
            }
        }
    }
}

#[test]
fn what_ci_runs_is_what_the_documents_say() {
    let ci = [".ci/run", ".ci/demo"].map(page).concat();
    assert!(ci.contains("cargo test --workspace"), "the README's test command");
    assert!(ci.contains("cargo run --release"), "the README's main command");
}
