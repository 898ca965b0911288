//! What a person or a program tells the demo: one command a line.

use std::io::{self, BufRead, Read};

use anyhow::Context;
use tokio::sync::mpsc;

use super::Who;

/// No command is longer, in bytes.
const LINE_BYTES_MAX: u64 = 1024;

/// Lines that wait while one is carried out; whoever writes faster waits.
const LINES_WAITING_MAX: usize = 16;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Kill(Who),
    Start(Who),
    Status,
    Help,
    Quit,
    /// An empty line.
    Nothing,
}

/// What `help` says.
pub const HELP: &str = "commands: kill ben, start ben, status, help, quit (and the same for ann)";

/// Understands a line.
///
/// # Errors
/// What is wrong with it, and what it could be.
pub fn parse(line: &str) -> Result<Command, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let who = |name: &str| {
        Who::BOTH
            .into_iter()
            .find(|who| who.name() == name)
            .ok_or_else(|| format!("who is {name:?}? There are ann and ben"))
    };
    match words[..] {
        [] => Ok(Command::Nothing),
        ["kill", name] => who(name).map(Command::Kill),
        ["start", name] => who(name).map(Command::Start),
        ["kill" | "start"] => Err(format!("{line}: whom? ann or ben")),
        ["status"] => Ok(Command::Status),
        ["help"] => Ok(Command::Help),
        ["quit" | "exit"] => Ok(Command::Quit),
        _ => Err(format!("{:?} is no command; {HELP}", line.trim())),
    }
}

/// Standard input, line by line; it ends when that does. Lines that are too long come in pieces, which are no commands.
///
/// # Errors
/// The system starts no more threads.
pub fn lines() -> anyhow::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::Builder::new()
        .name("standard input".to_owned())
        .spawn(move || read_lines(&mut io::stdin().lock(), |line| sender.blocking_send(line).is_ok()))
        .context("cannot start a thread")?;
    Ok(receiver)
}

fn read_lines(input: &mut impl BufRead, mut take: impl FnMut(String) -> bool) {
    loop {
        let mut line = Vec::new();
        match input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if take(String::from_utf8_lossy(&line).into_owned()) => {}
            Ok(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood_and_others_refused_with_what_there_is() {
        let check = |line: &str, expected: Result<Command, &str>| {
            assert_eq!(parse(line), expected.map_err(str::to_owned), "{line:?}");
        };
        check("kill ben\n", Ok(Command::Kill(Who::Ben)));
        check("  start   ben\r\n", Ok(Command::Start(Who::Ben)));
        check("kill ann", Ok(Command::Kill(Who::Ann)));
        check("status", Ok(Command::Status));
        check("help", Ok(Command::Help));
        check("quit", Ok(Command::Quit));
        check("\n", Ok(Command::Nothing));
        check("kill", Err("kill: whom? ann or ben"));
        check("kill eve", Err("who is \"eve\"? There are ann and ben"));
        check(
            "weave\n",
            Err(
                "\"weave\" is no command; commands: kill ben, start ben, status, help, quit (and the same for ann)",
            ),
        );
        check(
            "quit now",
            Err(
                "\"quit now\" is no command; commands: kill ben, start ben, status, help, quit (and the same for ann)",
            ),
        );
    }

    #[test]
    fn lines_end_with_the_input_and_a_long_one_comes_in_pieces() {
        let mut input = b"kill ben\n".to_vec();
        input.extend(std::iter::repeat_n(0xff, 1500));
        input.extend(b"\nquit");
        let mut lines = Vec::new();
        read_lines(&mut &input[..], |line| {
            lines.push(line);
            true
        });
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[0].as_str(), lines[3].as_str()), ("kill ben\n", "quit"));
        assert!(parse(&lines[1]).is_err() && parse(&lines[2]).is_err());
    }
}
