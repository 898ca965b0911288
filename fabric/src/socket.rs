//! The UDP socket: bound, read and written so that nothing the network does stops the thread.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::FabricError;

/// The largest datagram there is: the length field of UDP has 16 bits.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Asked of the system for what arrives while the thread works: at 1 Gbit/s it lasts 30 ms. The system may give less.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// How long a datagram waits for a full send buffer before it counts as lost, in milliseconds. A gigabit interface
/// empties a buffer of 200 KB in 2.
const SEND_WAIT_MILLISECONDS: i64 = 5;

/// Failures to receive one after the other, with nothing received between, that are taken for a broken socket. The network
/// reports at most one failure for each datagram that was sent.
const RECEIVE_FAILURES_MAX: u32 = 1_000;

/// Binds a socket for datagrams. `[::]` also receives IPv4 where the system is set so, as Linux is by default.
///
/// # Errors
/// [`FabricError::AddressTaken`] or [`FabricError::Bind`], with the address and what to do.
pub fn bind(address: SocketAddr) -> Result<UdpSocket, FabricError> {
    UdpSocket::bind(address).map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => FabricError::AddressTaken { address },
        _ => FabricError::Bind { address, source },
    })
}

/// The address that a socket is bound to, with the port that it was given.
///
/// # Errors
/// [`FabricError::System`] if the system does not say.
pub fn local_address(socket: &UdpSocket) -> Result<SocketAddr, FabricError> {
    socket.local_addr().map_err(|source| FabricError::System { part: "socket", source })
}

/// A bound socket that never blocks, with a buffer for the largest datagram.
pub(crate) struct Socket {
    socket: UdpSocket,
    is_ipv6: bool,
    /// The system sends its datagrams whole or not at all.
    never_fragments: bool,
    buffer: Box<[u8]>,
    receive_failures: u32,
    /// Datagrams that the system did not take: lost, as far as the link can tell.
    not_sent: Arc<AtomicU64>,
}

/// What a try to receive came to.
pub(crate) enum Received<'a> {
    /// A datagram.
    Datagram(SocketAddr, &'a [u8]),
    /// Nothing is there.
    Nothing,
    /// The network reports a failure of something sent before; there may be more.
    Failure,
}

impl Socket {
    pub(crate) fn new(socket: UdpSocket) -> Result<Socket, FabricError> {
        let fault = |source| FabricError::System { part: "socket", source };
        socket.set_nonblocking(true).map_err(fault)?;
        let is_ipv6 = socket.local_addr().map_err(fault)?.is_ipv6();
        // A wish: a smaller buffer costs datagrams that are sent again.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES);
        let buffer = vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice();
        let never_fragments = forbid_fragments(&socket, is_ipv6);
        Ok(Socket { socket, is_ipv6, never_fragments, buffer, receive_failures: 0, not_sent: Arc::default() })
    }

    /// Whether a datagram that is too large for the path is lost, and not taken apart: then the link may find out what
    /// passes.
    pub(crate) fn never_fragments(&self) -> bool {
        self.never_fragments
    }

    pub(crate) fn local_address(&self) -> Result<SocketAddr, FabricError> {
        local_address(&self.socket)
    }

    /// The next datagram. Only a socket that fails on and on is an error.
    pub(crate) fn receive(&mut self) -> Result<Received<'_>, FabricError> {
        match self.socket.recv_from(&mut self.buffer) {
            Ok((length, from)) => {
                self.receive_failures = 0;
                Ok(Received::Datagram(canonical(from), &self.buffer[..length]))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.receive_failures = 0;
                Ok(Received::Nothing)
            }
            Err(source) if self.receive_failures == RECEIVE_FAILURES_MAX => {
                Err(FabricError::System { part: "socket", source })
            }
            Err(_) => {
                self.receive_failures += 1;
                Ok(Received::Failure)
            }
        }
    }

    /// Sends, or loses it: whatever the network says (no route, too large, no buffer, refused) is what the link is made
    /// for.
    pub(crate) fn send(&mut self, to: SocketAddr, bytes: &[u8]) {
        let to = if self.is_ipv6 { mapped(to) } else { to };
        let sent = match self.socket.send_to(bytes, to) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && self.wait_writable() => {
                self.socket.send_to(bytes, to)
            }
            sent => sent,
        };
        self.not_sent.fetch_add(u64::from(sent.is_err()), Ordering::Relaxed);
    }

    /// Counts the datagrams that the system did not take.
    pub(crate) fn not_sent(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.not_sent)
    }

    fn wait_writable(&self) -> bool {
        let wait = Timespec { tv_sec: 0, tv_nsec: SEND_WAIT_MILLISECONDS * 1_000_000 };
        let mut descriptors = [PollFd::new(&self.socket, PollFlags::OUT)];
        matches!(poll(&mut descriptors, Some(&wait)), Ok(1..))
    }
}

/// Has each datagram sent whole, however small the system thinks the path is (RFC 8899, 3: the probes find that out).
/// A socket for both families needs both.
#[cfg(target_os = "linux")]
fn forbid_fragments(socket: &UdpSocket, is_ipv6: bool) -> bool {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    let ipv4 = set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE);
    let ipv6 = if is_ipv6 { set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE) } else { Ok(()) };
    ipv4.is_ok() && ipv6.is_ok()
}

/// Elsewhere nobody asked how: datagrams stay as small as every path takes them.
#[cfg(not(target_os = "linux"))]
fn forbid_fragments(_: &UdpSocket, _: bool) -> bool {
    false
}

impl AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An IPv4 address as such, also when a socket for both families saw it as `::ffff:a.b.c.d`.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            SocketAddr::new(address.ip().to_canonical(), address.port())
        }
        _ => address,
    }
}

/// An address as an IPv6 socket takes it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The local address that the system would send from to `to`; nothing is sent.
pub(crate) fn source_towards(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> Socket {
        Socket::new(bind(([127, 0, 0, 1], 0).into()).unwrap()).unwrap()
    }

    #[test]
    fn a_taken_port_is_named_with_what_to_do() {
        let first = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = local_address(&first).unwrap();
        let text = bind(address).unwrap_err().to_string();
        assert!(text.contains(&address.to_string()) && text.contains("port 0"), "{text}");
        // 192.0.2.0/24 is nobody's (RFC 5737).
        let text = bind(([192, 0, 2, 1], 0).into()).unwrap_err().to_string();
        assert!(text.contains("192.0.2.1:0") && text.contains("of this machine"), "{text}");
    }

    #[test]
    fn what_cannot_be_sent_is_lost_and_counted() {
        let mut socket = loopback();
        socket.send(([127, 0, 0, 1], 9).into(), &[0; DATAGRAM_BYTES_MAX + 1]);
        socket.send("[::1]:9".parse().unwrap(), b"to a family that the socket has not");
        assert_eq!(socket.not_sent().load(Ordering::Relaxed), 2);
        socket.send(([127, 0, 0, 1], 9).into(), b"to nobody");
        assert!(matches!(socket.receive(), Ok(Received::Nothing | Received::Failure)));
    }

    #[test]
    fn the_largest_datagram_is_received_whole() {
        let mut socket = loopback();
        let other = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let bytes = vec![7; 65_507];
        other.send_to(&bytes, socket.local_address().unwrap()).unwrap();
        let Received::Datagram(from, received) = socket.receive().unwrap() else {
            panic!("a datagram on loopback is there at once");
        };
        assert_eq!((from, received), (local_address(&other).unwrap(), bytes.as_slice()));
    }

    #[test]
    fn a_socket_for_both_families_shows_ipv4_as_such() {
        let Ok(socket) = bind("[::]:0".parse().unwrap()) else {
            return; // No IPv6 on this machine.
        };
        let mut socket = Socket::new(socket).unwrap();
        let mut other = loopback();
        let (port, to) = (socket.local_address().unwrap().port(), other.local_address().unwrap());
        socket.send(to, b"there");
        assert_eq!(socket.not_sent().load(Ordering::Relaxed), 0);
        assert!(
            matches!(other.receive().unwrap(), Received::Datagram(from, b"there") if from.port() == port)
        );
        other.send(([127, 0, 0, 1], port).into(), b"back");
        assert!(matches!(socket.receive().unwrap(), Received::Datagram(from, b"back") if from == to));
    }
}
