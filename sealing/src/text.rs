//! Bytes as text that people copy: lower-case base32 (RFC 4648, no padding) of the bytes and a CRC-32 of them.
//!
//! A CRC finds every burst of up to 32 bits, so any one changed character, and any two neighbours swapped, are found for
//! certain, not just most likely. It guards against slips, not against malice: what must not be forged is signed or hashed.

use data_encoding::{Encoding, Specification};

const CHECKSUM_BYTES: usize = 4;

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFault {
    /// It does not begin with the prefix of its kind.
    Prefix,
    /// A character that base32 does not have, or a length that it does not have.
    Character,
    /// The checksum is another.
    Checksum,
}

/// `prefix` and then the bytes with their checksum in base32.
pub(crate) fn encode(prefix: &str, bytes: &[u8]) -> String {
    let mut checked = bytes.to_vec();
    checked.extend_from_slice(&checksum(prefix, bytes).to_be_bytes());
    format!("{prefix}{}", base32().encode(&checked))
}

/// The bytes that [`encode`] was given.
pub(crate) fn decode(prefix: &str, text: &str) -> Result<Vec<u8>, TextFault> {
    let body = text.strip_prefix(prefix).ok_or(TextFault::Prefix)?;
    let mut bytes = base32().decode(body.as_bytes()).map_err(|_| TextFault::Character)?;
    let end = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(TextFault::Checksum)?;
    let found = bytes.split_off(end);
    if found != checksum(prefix, &bytes).to_be_bytes() {
        return Err(TextFault::Checksum);
    }
    Ok(bytes)
}

fn base32() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification.encoding().expect("32 distinct characters are a base32 alphabet")
}

/// CRC-32 (ISO-HDLC, as in Ethernet and gzip) of the prefix and the bytes.
fn checksum(prefix: &str, bytes: &[u8]) -> u32 {
    let crc = prefix.as_bytes().iter().chain(bytes).fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    !crc
}

/// Bytes of lower-case hexadecimal, for known answers.
#[cfg(test)]
pub(crate) fn hex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER
        .decode(text.as_bytes())
        .expect("known answers are written in lower-case hexadecimal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32() {
        assert_eq!(checksum("", b"123456789"), 0xcbf4_3926);
    }
}
