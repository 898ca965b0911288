//! What whoever asked gets to read: lines for people, or one JSON object a line for programs.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use tokio::sync::oneshot;

const UNWRITTEN: &str = "cannot write to standard output";

/// Standard output and standard error.
#[derive(Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// An output for programs, or for people.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether programs read this.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Says something in both forms; only the one that is wanted is made.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn say(
        &mut self,
        people: impl FnOnce() -> String,
        json: impl FnOnce() -> Value,
    ) -> anyhow::Result<()> {
        let text = if self.json { json().to_string() } else { people() };
        write(&(text + "\n"))
    }

    /// Shows the prompt.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn prompt(&mut self) -> anyhow::Result<()> {
        write("> ")
    }

    /// Tells something that is worth knowing beside what was asked for, on standard error.
    pub fn note(&mut self, what: &str) {
        // Where nobody reads, there is nobody left to tell.
        let _ = writeln!(io::stderr().lock(), "selvedge: {what}");
    }

    /// Tells why something was not done: to people on standard error, to programs as an object.
    pub fn error(&mut self, why: &str) {
        if self.json {
            let _ = write(&format!("{}\n", json!({ "error": why })));
        } else {
            self.note(why);
        }
    }
}

/// An error and its causes, without those whose words the error before them has already.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

/// Whether an error is that nobody reads standard output any more.
pub fn is_abandoned(error: &anyhow::Error) -> bool {
    error.to_string() == UNWRITTEN
        && error
            .root_cause()
            .downcast_ref::<io::Error>()
            .is_some_and(|why| why.kind() == ErrorKind::BrokenPipe)
}

/// Tells when nobody reads standard output any more; never where that cannot be known, as of a file.
///
/// # Errors
/// The system starts no more threads.
pub fn abandoned() -> anyhow::Result<oneshot::Receiver<()>> {
    let (teller, told) = oneshot::channel();
    let watch = move || {
        let stdout = io::stdout();
        // No event is asked for: errors and hang-ups are always told.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        while let Ok(0) | Err(Errno::INTR) = poll(&mut watched, None) {}
        // Where nobody waits for this, the command ends already.
        let _ = teller.send(());
    };
    std::thread::Builder::new()
        .name("standard output".to_owned())
        .spawn(watch)
        .context("cannot start a thread")?;
    Ok(told)
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context(UNWRITTEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_told_twice() {
        let error =
            anyhow::anyhow!("port taken").context("cannot listen: port taken").context("ben does not start");
        assert_eq!(in_words(&error), "ben does not start: cannot listen: port taken");
    }
}
