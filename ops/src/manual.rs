//! `selvedge completions` and `selvedge man`: made from the command line's own description.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::output::Output;

/// Prints what a shell reads to complete commands.
///
/// # Errors
/// Nobody reads any more.
pub fn completions(shell: Shell, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "selvedge", &mut script);
    let script = String::from_utf8(script).context("a completion script is text")?;
    output.say(|| script.trim_end().to_owned(), || Value::Null)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a manual page for each command into a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn pages(dir: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(Arguments::command(), dir)
        .with_context(|| format!("cannot write manual pages into {}", dir.display()))?;
    output.say(|| format!("manual pages are in {}", dir.display()), || json!({ "dir": dir }))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_command_says_its_exit_codes_and_json_where_it_has_it() {
        fn check(command: &clap::Command) {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Exit codes: 0 "), "{}", command.get_name());
            let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
            let inner: Vec<&clap::Command> = command.get_subcommands().collect();
            let told = help.contains("With --json");
            assert!(told == has_json || (told && !inner.is_empty()), "{}", command.get_name());
            inner.into_iter().for_each(check);
        }
        check(&Arguments::command());
    }

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "selvedge", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in Arguments::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_a_page() {
        fn names(command: &clap::Command, prefix: &str, found: &mut Vec<String>) {
            found.push(format!("{prefix}{}.1", command.get_name()));
            for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
                names(inner, &format!("{prefix}{}-", command.get_name()), found);
            }
        }
        let dir = tempfile::tempdir().unwrap();
        pages(dir.path(), &mut Output::new(true)).unwrap();
        let mut expected = Vec::new();
        names(&Arguments::command(), "", &mut expected);
        for name in expected {
            let page = std::fs::read_to_string(dir.path().join(&name))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(page.contains(".TH") && page.contains("SYNOPSIS"), "{name}");
        }
    }
}
