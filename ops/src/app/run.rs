//! `selvedge app run`: an app in memory, a command a line. What commands do is the `session`'s.

use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use engine::Context;
use sealing::Identity;
use serde_json::json;

use super::session::{ROOM, Session};
use crate::output::Output;

/// No command is longer, in bytes: as much as a post to a node may have.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Runs the app until `quit` or the end of standard input.
///
/// # Errors
/// The app is not right, or nobody reads any more.
pub fn run(file: &Path, output: &mut Output) -> anyhow::Result<ExitCode> {
    let (module, _) = super::checked(file)?;
    if module.is_library {
        anyhow::bail!("{} is a library: what runs is an app that uses it", file.display());
    }
    let mut entropy = [0; 64];
    getrandom::fill(&mut entropy).context("the system gives no random bytes")?;
    let mut session = Session::new(module, Identity::from_seed(&entropy).id());
    let (name, node) = session.about();
    output.say(
        || format!("{name} runs in memory; `help` lists what can be done"),
        || json!({ "ready": name, "node": node }),
    )?;
    let people = std::io::stdin().is_terminal();
    let mut input = std::io::stdin().lock();
    let mut failed = false;
    loop {
        if people && !output.is_json() {
            output.prompt()?;
        }
        let Some(line) = read_line(&mut input)? else { break };
        let said =
            line.and_then(|line| session.command(&line, &context()?).map_err(|why| anyhow::anyhow!(why)));
        match said {
            Ok(said) => {
                for one in said.lines {
                    output.say(|| one.people, || one.programs)?;
                }
                if said.quit {
                    break;
                }
            }
            Err(why) => {
                failed = true;
                output.error(&why.to_string());
            }
        }
    }
    Ok(if failed && !people { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn context() -> anyhow::Result<Context> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).context("the system gives no random bytes")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    Ok(Context { now: i64::try_from(now.as_millis())?, entropy, room: ROOM })
}

/// A line, none at the end; a line that is too long or no text is an error of its own.
fn read_line(input: &mut impl BufRead) -> anyhow::Result<Option<anyhow::Result<String>>> {
    let mut line = Vec::new();
    if input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("cannot read standard input")? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        // The rest of it is passed over, piece by piece.
        loop {
            let piece = input.fill_buf().context("cannot read standard input")?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(piece.len(), |end| end + 1);
            input.consume(length);
            if end.is_some() || length == 0 {
                break;
            }
        }
        return Ok(Some(Err(anyhow::anyhow!("a command has at most {LINE_BYTES_MAX} bytes"))));
    }
    Ok(Some(String::from_utf8(line).map_err(|_| anyhow::anyhow!("a command is text in UTF-8"))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lines_are_read_whole_and_long_ones_passed_over() {
        let mut input = b"view total\n".to_vec();
        input.extend(std::iter::repeat_n(b'x', (LINE_BYTES_MAX + 10) as usize));
        input.extend(b"\n\xff\nquit");
        let mut input = &input[..];
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input).unwrap() {
            lines.push(line.map_err(|why| why.to_string()));
        }
        let expected = [
            Ok("view total\n".to_owned()),
            Err("a command has at most 1048576 bytes".to_owned()),
            Err("a command is text in UTF-8".to_owned()),
            Ok("quit".to_owned()),
        ];
        assert_eq!(lines, expected);
    }
}
