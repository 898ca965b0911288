//! What goes wrong around a link, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use sealing::NodeId;

/// Why a driver does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum FabricError {
    /// Another program has the port.
    #[error(
        "{address} is taken by another program (or another node): stop it, or choose another port; port 0 takes a free one"
    )]
    AddressTaken {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address is none of this machine's, or may not be had.
    #[error("cannot receive at {address}: {source}; choose an address of this machine and a port above 1023")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The socket, timer or waker does what it never should.
    #[error("the system's {part} fails: {source}; start the node again")]
    System {
        /// Which part.
        part: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file of memo places cannot be opened, read, written or synced.
    #[error("cannot {action} {}: {source}; free or repair the disk, then start the node again: nothing is lost", path.display())]
    Memo {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others than its owner may read or write the file of memo places, which holds secrets.
    #[error("{} may be used by others (mode {mode:o}): remove it, it is made again; its links say hello anew", path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A bug of this program: a record that the window has no room for, or that does not follow.
    #[error("record {number} to {peer} was handed over wrongly: {why}; this is a fault of the program")]
    Record {
        /// To whom.
        peer: NodeId,
        /// Which record.
        number: u64,
        /// What is wrong.
        why: link::NotTaken,
    },
    /// A bug of this program: more commands than all windows together allow.
    #[error("{} commands wait for the links; this is a fault of the program", crate::COMMANDS_MAX)]
    Overrun,
    /// A bug of this program.
    #[error("the thread of the links ended by a fault of the program: {0}")]
    Panicked(String),
}
