//! What lies between ann and ben: two sockets, one that ann knows as ben's address and one that ben knows as ann's. Each
//! datagram is recorded and passed on from the other socket, so that neither ever sees the other's own address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use anyhow::Context;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::Who;
use super::recording::{Direction, Recorded, Recording};

/// No datagram is larger, in bytes: its length has 16 bits.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// The forwarder; it ends when dropped.
#[derive(Debug)]
pub struct Forwarder {
    shared: Arc<Shared>,
    task: JoinHandle<io::Result<()>>,
    facing_ann: SocketAddr,
    facing_ben: SocketAddr,
}

#[derive(Debug)]
struct Shared {
    ann: UdpSocket,
    ben: UdpSocket,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Where the nodes are now, as far as they said.
    ann: Option<SocketAddr>,
    ben: Option<SocketAddr>,
    recording: Recording,
}

impl Forwarder {
    /// Starts one on free ports of loopback.
    ///
    /// # Errors
    /// No free ports.
    pub async fn start(recording: Recording) -> anyhow::Result<Self> {
        let ann = bind().await?;
        let ben = bind().await?;
        let (facing_ann, facing_ben) = (local_address(&ann)?, local_address(&ben)?);
        let state = Mutex::new(State { ann: None, ben: None, recording });
        let shared = Arc::new(Shared { ann, ben, state });
        let task = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move { shared.forward().await }
        });
        Ok(Self { shared, task, facing_ann, facing_ben })
    }

    /// The address at which a node finds the other one.
    pub fn facing(&self, who: Who) -> SocketAddr {
        match who {
            Who::Ann => self.facing_ann,
            Who::Ben => self.facing_ben,
        }
    }

    /// Says where a node is now.
    pub fn follow(&self, who: Who, address: SocketAddr) {
        let mut state = self.shared.state();
        match who {
            Who::Ann => state.ann = Some(address),
            Who::Ben => state.ben = Some(address),
        }
    }

    /// How much was recorded.
    pub fn recorded(&self) -> Recorded {
        self.shared.state().recording.so_far
    }

    /// Returns when it can go on no more, with why.
    pub async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Ok(())) => anyhow::anyhow!("the forwarder ended"),
            Ok(Err(error)) => anyhow::Error::new(error).context("cannot forward and record datagrams"),
            Err(error) => anyhow::Error::new(error).context("the forwarder ended"),
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    async fn forward(&self) -> io::Result<()> {
        let (mut from_ann, mut from_ben) = (vec![0; DATAGRAM_BYTES_MAX], vec![0; DATAGRAM_BYTES_MAX]);
        loop {
            tokio::select! {
                received = self.ann.recv_from(&mut from_ann) => {
                    let (length, from) = received?;
                    self.pass_on(Direction::AnnToBen, from, &from_ann[..length]).await?;
                }
                received = self.ben.recv_from(&mut from_ben) => {
                    let (length, from) = received?;
                    self.pass_on(Direction::BenToAnn, from, &from_ben[..length]).await?;
                }
            }
        }
    }

    async fn pass_on(&self, direction: Direction, from: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let (through, to) = {
            let mut state = self.state();
            let (sender, receiver, through) = match direction {
                Direction::AnnToBen => (state.ann, state.ben, &self.ben),
                Direction::BenToAnn => (state.ben, state.ann, &self.ann),
            };
            if sender != Some(from) {
                // Not from the node: a port of loopback is open to everybody on this machine.
                return Ok(());
            }
            state.recording.datagram(SystemTime::now(), direction, bytes)?;
            (through, receiver)
        };
        if let Some(to) = to {
            // What cannot be passed on is lost, as on any path; the nodes live with that.
            let _ = through.send_to(bytes, to).await;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn bind() -> anyhow::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port on 127.0.0.1")
}

fn local_address(socket: &UdpSocket) -> anyhow::Result<SocketAddr> {
    socket.local_addr().context("a socket does not say its address")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::os::fd::OwnedFd;

    use super::super::recording::read;
    use super::*;

    async fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        buffer.truncate(length);
        (buffer, from)
    }

    #[tokio::test]
    async fn each_knows_the_other_only_by_the_forwarder_and_all_is_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recording");
        let forwarder = Forwarder::start(Recording::create(&path).unwrap()).await.unwrap();
        let (ann, ben, stranger) = (bind().await.unwrap(), bind().await.unwrap(), bind().await.unwrap());
        forwarder.follow(Who::Ann, ann.local_addr().unwrap());
        forwarder.follow(Who::Ben, ben.local_addr().unwrap());

        ann.send_to(b"from ann", forwarder.facing(Who::Ann)).await.unwrap();
        assert_eq!(receive(&ben).await, (b"from ann".to_vec(), forwarder.facing(Who::Ben)));
        ben.send_to(&[7; 9000], forwarder.facing(Who::Ben)).await.unwrap();
        assert_eq!(receive(&ann).await, (vec![7; 9000], forwarder.facing(Who::Ann)));

        // A stranger's datagram is neither passed on nor recorded; the one after it is.
        stranger.send_to(b"noise", forwarder.facing(Who::Ann)).await.unwrap();
        ann.send_to(b"again", forwarder.facing(Who::Ann)).await.unwrap();
        assert_eq!(receive(&ben).await.0, b"again");

        // Ben comes back on another port.
        let ben_again = bind().await.unwrap();
        forwarder.follow(Who::Ben, ben_again.local_addr().unwrap());
        ann.send_to(b"to the new port", forwarder.facing(Who::Ann)).await.unwrap();
        assert_eq!(receive(&ben_again).await.0, b"to the new port");

        let recorded = read(&std::fs::read(&path).unwrap()).unwrap();
        let seen: Vec<(u8, usize)> =
            recorded.iter().map(|(_, direction, bytes)| (*direction, bytes.len())).collect();
        assert_eq!(seen, [(0, 8), (1, 9000), (0, 5), (0, 15)]);
        assert_eq!(forwarder.recorded().datagrams, 4);
    }

    #[tokio::test]
    async fn a_recording_that_cannot_be_written_ends_it_with_why() {
        let (reader, writer) = io::pipe().unwrap();
        let recording = Recording::begin(File::from(OwnedFd::from(writer))).unwrap();
        drop(reader);
        let mut forwarder = Forwarder::start(recording).await.unwrap();
        let ann = bind().await.unwrap();
        forwarder.follow(Who::Ann, ann.local_addr().unwrap());
        ann.send_to(b"x", forwarder.facing(Who::Ann)).await.unwrap();
        assert!(format!("{:#}", forwarder.failed().await).contains("cannot forward and record"));
    }
}
