//! One command, one call of the endpoint: what a driver and a simulator both do with [`Command`]s.

use crate::command::{Command, NotTaken};
use crate::endpoint::Endpoint;
use crate::time::Time;

impl Endpoint {
    /// Carries out a command.
    ///
    /// # Errors
    /// A record that was not taken. [`NotTaken::NoPeer`] and [`NotTaken::NotDeclared`] are no fault of the caller's
    /// if the peer or the stream ended while the command was on its way here: who sent the record is being told.
    pub fn command(&mut self, now: Time, command: Command) -> Result<(), NotTaken> {
        match command {
            Command::AddPeer(peer) => self.add_peer(now, *peer),
            Command::RemovePeer(node) => self.remove_peer(node),
            Command::Resume(node) => self.resume(now, node),
            Command::Declare { peer, declaration } => self.declare(now, peer, declaration),
            Command::Send { peer, record } => return self.send(now, peer, record),
            Command::Stored { peer, stream, upto, outcomes } => {
                self.stored(now, peer, stream, upto, outcomes);
            }
            Command::Taken { peer, stream, upto } => self.taken(now, peer, stream, upto),
            Command::Waiting { peer, stream, number, reason } => {
                self.waiting(now, peer, stream, number, reason);
            }
            Command::Ready { app } => self.ready(now, &app),
            Command::Restart { run } => self.restart(run),
            Command::Transient { peer, transient } => self.transient(now, peer, transient),
            Command::Forked { peer, stream } => self.forked(now, peer, stream),
            Command::Settled { peer, stream, upto } => self.settled(now, peer, stream, upto),
        }
        Ok(())
    }
}
