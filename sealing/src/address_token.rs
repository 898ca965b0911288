//! Address tokens: what a node says to an address, so that who sends it back shows that it gets what goes there.
//!
//! Nothing is kept of who was told one: the secret makes it again. What it leaves to the link: how time is counted.

use std::net::{IpAddr, SocketAddr};

use zeroize::Zeroizing;

use crate::labels;
use crate::schedule::{Secret, expand};

/// Bytes of an address token: one that is guessed is worth a place in a table.
pub const ADDRESS_TOKEN_BYTES: usize = 8;

/// Makes and knows the tokens of one process.
pub struct AddressTokens(Secret);

impl AddressTokens {
    /// Of fresh entropy.
    pub fn new(entropy: [u8; 32]) -> AddressTokens {
        AddressTokens(Zeroizing::new(entropy))
    }

    /// The token for hellos that begin with `hello` and come from this address, in this span of time.
    pub fn token(&self, address: SocketAddr, hello: &[u8; 8], span: u64) -> [u8; ADDRESS_TOKEN_BYTES] {
        let port = address.port().to_be_bytes();
        let span = span.to_be_bytes();
        match address.ip() {
            IpAddr::V4(ip) => *expand(&self.0, labels::ADDRESS_TOKEN, &[&ip.octets(), &port, hello, &span]),
            IpAddr::V6(ip) => *expand(&self.0, labels::ADDRESS_TOKEN, &[&ip.octets(), &port, hello, &span]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_in_a_token_counts() {
        let token = |secret, address: &str, hello, span| {
            AddressTokens::new([secret; 32]).token(address.parse().unwrap(), &[hello; 8], span)
        };
        let first = token(1, "10.0.0.1:7", 1, 1);
        assert_eq!(first, token(1, "10.0.0.1:7", 1, 1));
        let others = [
            token(2, "10.0.0.1:7", 1, 1),
            token(1, "10.0.0.2:7", 1, 1),
            token(1, "10.0.0.1:8", 1, 1),
            token(1, "[::1]:7", 1, 1),
            token(1, "10.0.0.1:7", 2, 1),
            token(1, "10.0.0.1:7", 1, 2),
        ];
        assert!(others.iter().all(|other| *other != first));
    }
}
