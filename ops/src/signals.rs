//! Being asked to stop: SIGTERM, SIGINT (Ctrl-C), SIGHUP (the terminal is gone).

use std::io::{self, Read};

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// From when this is made on, the signals no longer end the process by themselves.
#[derive(Debug)]
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    stdin_ended: Option<watch::Receiver<bool>>,
}

impl Stop {
    /// Listens for the signals.
    ///
    /// # Errors
    /// The system takes no more listeners.
    pub fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
            stdin_ended: None,
        })
    }

    /// The end of standard input asks to stop, too.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn with_stdin(mut self) -> anyhow::Result<Self> {
        let (ended, receiver) = watch::channel(false);
        std::thread::Builder::new()
            .name("standard input".to_owned())
            .spawn(move || {
                let mut buffer = [0; 256];
                let mut stdin = io::stdin().lock();
                while !matches!(stdin.read(&mut buffer), Ok(0) | Err(_)) {}
                // A closed channel means that the process is stopping anyway.
                let _ = ended.send(true);
            })
            .context("cannot start a thread")?;
        self.stdin_ended = Some(receiver);
        Ok(self)
    }

    /// Returns when somebody asks to stop; again when somebody asks again.
    pub async fn asked(&mut self) {
        let stdin_ended = async {
            match &mut self.stdin_ended {
                // The sender never goes before it told.
                Some(ended) => drop(ended.wait_for(|ended| *ended).await),
                None => std::future::pending().await,
            }
        };
        let by_stdin = tokio::select! {
            _ = self.terminate.recv() => false,
            _ = self.interrupt.recv() => false,
            _ = self.hang_up.recv() => false,
            () = stdin_ended => true,
        };
        if by_stdin {
            // It ends once.
            self.stdin_ended = None;
        }
    }
}
