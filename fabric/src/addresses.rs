//! Which addresses to tell others of a socket: what goes into a ticket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::socket::source_towards;

/// Nobody's addresses, for documentation (RFC 5737, RFC 3849): a socket connected to them tells which way is out.
const OUTWARD: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];
/// Any port: nothing is sent.
const PORT: u16 = 9;

/// Where a socket bound to `local` can be reached, the best first. If it is bound to one address, that; if to all of a
/// family, the machine's outward address, and loopback as the last resort. No address behind a NAT's outside is found.
pub fn reachable(local: SocketAddr) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    let outward = OUTWARD
        .iter()
        .filter(|ip| local.is_ipv6() || ip.is_ipv4())
        .filter_map(|ip| source_towards(SocketAddr::new(*ip, PORT)).ok())
        .filter(|ip| !ip.is_loopback() && !ip.is_unspecified());
    let mut loopback = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    if local.is_ipv6() {
        loopback.push(IpAddr::V6(Ipv6Addr::LOCALHOST));
    }
    outward.chain(loopback).map(|ip| SocketAddr::new(ip, local.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_address_is_itself_and_an_open_one_ends_with_loopback() {
        let one: SocketAddr = ([127, 0, 0, 1], 4711).into();
        assert_eq!(reachable(one), [one]);
        let all = reachable(([0, 0, 0, 0], 4711).into());
        assert_eq!(all.last(), Some(&one));
        assert!(all.iter().all(|address| address.port() == 4711 && !address.ip().is_unspecified()));
        assert!(all.iter().all(SocketAddr::is_ipv4));
        let both = reachable("[::]:4711".parse().unwrap());
        assert_eq!(both[both.len() - 2..], [one, "[::1]:4711".parse().unwrap()]);
        let distinct: std::collections::BTreeSet<_> = both.iter().collect();
        assert_eq!(distinct.len(), both.len());
    }
}
