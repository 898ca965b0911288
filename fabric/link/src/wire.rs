//! Reading and writing bytes: numbers of variable length (RFC 9000, section 16), and slices that are never out of range.

/// The end of the bytes came before the end of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truncated;

/// The largest number of variable length.
pub(crate) const VARINT_MAX: u64 = (1 << 62) - 1;

/// Appends a number; larger ones than [`VARINT_MAX`] cannot be said and become it.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, value: u64) {
    let value = value.min(VARINT_MAX);
    let be = value.to_be_bytes();
    match value {
        0..=0x3f => bytes.push(be[7]),
        0x40..=0x3fff => bytes.extend_from_slice(&[be[6] | 0x40, be[7]]),
        0x4000..=0x3fff_ffff => bytes.extend_from_slice(&[be[4] | 0x80, be[5], be[6], be[7]]),
        _ => {
            bytes.push(be[0] | 0xc0);
            bytes.extend_from_slice(&be[1..]);
        }
    }
}

/// Appends bytes behind their length.
pub(crate) fn put_slice(bytes: &mut Vec<u8>, slice: &[u8]) {
    put_varint(bytes, slice.len() as u64);
    bytes.extend_from_slice(slice);
}

/// What is left to read.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// As [`Reader::array`], without a copy.
    pub(crate) fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Truncated> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Truncated> {
        let first = *self.0.first().ok_or(Truncated)?;
        let taken = self.take(1 << (first >> 6))?;
        let start = u64::from(first & 0x3f);
        Ok(taken[1..].iter().fold(start, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(crate) fn slice(&mut self) -> Result<&'a [u8], Truncated> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| Truncated)?)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Truncated> {
        std::str::from_utf8(self.slice()?).map_err(|_| Truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_rfc_9000_a1() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            let mut written = Vec::new();
            put_varint(&mut written, value);
            assert_eq!(written.as_slice(), bytes);
            assert_eq!(Reader(bytes).varint(), Ok(value));
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).varint(), Err(Truncated));
        }
    }
}
