//! Processes of this suite: this binary again, which does one thing, says numbers, and ends or is killed.

use super::{device, opening};
use crate::BenchError;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// What they are asked to do begins so.
pub const PREFIX: &str = "store-";

/// What such a process does: what it is asked, and its arguments.
pub fn run(arguments: &[String], output: &mut impl Write) -> Result<(), BenchError> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let numbers = match arguments.as_slice() {
        ["store-device", who, folder, rows, short] => {
            device::written(who, folder.as_ref(), number(rows)?, *short == "short")?
        }
        ["store-transient", source, folder, seconds] => {
            device::written_by_machine(source, folder.as_ref(), number(seconds)?)?
        }
        ["store-fill", folder, rows, share] => {
            let share = share.parse().map_err(|_| wrong(share))?;
            return opening::fill(folder.as_ref(), number(rows)?, share, output);
        }
        ["store-open", folder, rows] => opening::open(folder.as_ref(), number(rows)?)?,
        _ => return Err(wrong(&arguments.join(" "))),
    };
    let words: Vec<String> = numbers.iter().map(f64::to_string).collect();
    Ok(writeln!(output, "{}", words.join(" "))?)
}

fn number(text: &str) -> Result<usize, BenchError> {
    text.parse().map_err(|_| wrong(text))
}

fn wrong(what: &str) -> BenchError {
    BenchError::Process(format!("{what} is not what a process of this suite does"))
}

fn start(arguments: &[&str]) -> Result<Child, BenchError> {
    let own = std::env::current_exe().map_err(BenchError::Disk)?;
    let mut command = Command::new(own);
    command.arg("alone").args(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.spawn().map_err(|error| failed(arguments, &error.to_string()))
}

fn failed(arguments: &[&str], why: &str) -> BenchError {
    BenchError::Process(format!("the process of `{}` {why}", arguments.join(" ")))
}

/// Runs one to its end; the numbers that it says.
pub fn numbers(arguments: &[&str]) -> Result<Vec<f64>, BenchError> {
    let output = start(arguments)?.wait_with_output().map_err(BenchError::Disk)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let read: Result<Vec<f64>, _> = said.split_whitespace().map(str::parse).collect();
    match read {
        Ok(read) if output.status.success() => Ok(read),
        _ => Err(failed(arguments, &format!("ended with {} and said `{}`", output.status, said.trim()))),
    }
}

/// Runs one until it says a line, then kills it (SIGKILL) in whatever it does.
pub fn killed(arguments: &[&str]) -> Result<(), BenchError> {
    let mut child = start(arguments)?;
    let mut line = String::new();
    let said = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    let killed = child.kill().and_then(|()| child.wait());
    match (said, killed) {
        (Some(Ok(1..)), Ok(_)) => Ok(()),
        (said, killed) => {
            Err(failed(arguments, &format!("was not killed as it should: {said:?}, {killed:?}")))
        }
    }
}
