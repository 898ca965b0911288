//! Addresses as statements carry them: at most eight, each in one form.
//!
//! Layout: number of addresses (1 byte), then 4 or 6 (1), the address (4 or 16), the port (2, big-endian) each. An address
//! that could be said in another way is not said in this one: IPv4 inside of IPv6 stands as IPv4, none stands twice, none
//! is unspecified or has port 0, scopes and flows of IPv6 are left out, as they mean nothing elsewhere.

use std::net::{IpAddr, SocketAddr};

/// A statement names at most so many addresses: more would not fit a line that people paste, and whoever tries them all
/// should not have to send more than a handful of datagrams.
pub const ADDRESSES_MAX: usize = 8;

/// Bytes of the longest list.
pub(crate) const ADDRESSES_BYTES_MAX: usize = 1 + ADDRESSES_MAX * (1 + 16 + 2);

/// The addresses that a statement can carry of these: in order, each once, the first [`ADDRESSES_MAX`].
pub(crate) fn canonical(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut kept: Vec<SocketAddr> = Vec::with_capacity(addresses.len().min(ADDRESSES_MAX));
    for address in addresses {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let can_be_reached = address.port() != 0 && !address.ip().is_unspecified();
        if can_be_reached && kept.len() < ADDRESSES_MAX && !kept.contains(&address) {
            kept.push(address);
        }
    }
    kept
}

/// Appends addresses that [`canonical`] gave.
pub(crate) fn encode(bytes: &mut Vec<u8>, addresses: &[SocketAddr]) {
    bytes.push(u8::try_from(addresses.len()).expect("canonical addresses are at most ADDRESSES_MAX"));
    for address in addresses {
        match address.ip() {
            IpAddr::V4(ip) => {
                bytes.push(4);
                bytes.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes.push(6);
                bytes.extend_from_slice(&ip.octets());
            }
        }
        bytes.extend_from_slice(&address.port().to_be_bytes());
    }
}

/// The addresses that are all of `bytes`; none if anything is not as [`encode`] writes it.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<SocketAddr>> {
    let (count, mut rest) = bytes.split_first()?;
    let mut addresses = Vec::with_capacity(usize::from(*count).min(ADDRESSES_MAX));
    for _ in 0..*count {
        if addresses.len() == ADDRESSES_MAX {
            return None;
        }
        let (address, after) = decode_one(rest)?;
        addresses.push(address);
        rest = after;
    }
    (rest.is_empty() && canonical(&addresses) == addresses).then_some(addresses)
}

fn decode_one(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (ip, rest) = match bytes.split_first()? {
        (4, rest) => {
            let (ip, rest) = rest.split_first_chunk::<4>()?;
            (IpAddr::from(*ip), rest)
        }
        (6, rest) => {
            let (ip, rest) = rest.split_first_chunk::<16>()?;
            (IpAddr::from(*ip), rest)
        }
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_of_addresses_has_one_encoding() {
        let listed: [u8; 8] = [1, 4, 127, 0, 0, 1, 0, 9];
        let mapped = {
            let mut bytes = vec![1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];
            bytes.extend_from_slice(&[0, 9]);
            bytes
        };
        let table: [(&str, Vec<u8>, bool); 10] = [
            ("none", vec![0], true),
            ("one", listed.to_vec(), true),
            ("nothing", vec![], false),
            ("cut", listed[..7].to_vec(), false),
            ("longer", [&listed[..], &[0]].concat(), false),
            ("a family that is none", vec![1, 5, 127, 0, 0, 1, 0, 9], false),
            ("port 0", vec![1, 4, 127, 0, 0, 1, 0, 0], false),
            ("unspecified", vec![1, 4, 0, 0, 0, 0, 0, 9], false),
            ("twice", [&[2][..], &listed[1..], &listed[1..]].concat(), false),
            ("IPv4 inside of IPv6", mapped, false),
        ];
        for (name, bytes, is_one) in table {
            let decoded = decode(&bytes);
            assert_eq!(decoded.is_some(), is_one, "{name}");
            if let Some(addresses) = decoded {
                let mut again = Vec::new();
                encode(&mut again, &addresses);
                assert_eq!(again, bytes, "{name}");
            }
        }
    }

    #[test]
    fn what_cannot_be_said_is_left_out() {
        let addresses: Vec<SocketAddr> =
            ["0.0.0.0:1", "192.0.2.1:0", "[::ffff:192.0.2.1]:7", "192.0.2.1:7", "[fe80::1%3]:7"]
                .map(|text| text.parse().unwrap())
                .to_vec();
        let expected: Vec<SocketAddr> =
            ["192.0.2.1:7", "[fe80::1]:7"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(canonical(&addresses), expected);
        let many: Vec<SocketAddr> = (1..20).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        assert_eq!(canonical(&many), many[..ADDRESSES_MAX]);
    }
}
