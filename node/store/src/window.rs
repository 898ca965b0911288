//! A segment's bytes, some at a time: what is held of it does not grow with its size, only with its largest frame.

use crate::segment::{Header, PAGE, file_name};
use crate::{Storage, StoreError};

/// Bytes that are read at once: some hundred frames of a small node, and a disk is asked for them in one go.
const WINDOW_BYTES: usize = 1 << 20;

/// What stands for a page that cannot be read: nothing that was ever written by a log.
const UNREADABLE: u8 = 0xa5;

/// The bytes of one file. A segment's cache was dropped when its header was read (`contents`), so what is read here is what
/// the medium has.
pub(crate) struct Window<'s, S> {
    storage: &'s mut S,
    file: String,
    bytes: usize,
    /// Where what is held begins.
    from: usize,
    held: Vec<u8>,
    /// Whether other bytes stand for pages that cannot be read.
    reads_on: bool,
}

impl<'s, S: Storage> Window<'s, S> {
    /// Of a segment; an error of the medium is one.
    pub fn new(storage: &'s mut S, header: &Header) -> Self {
        let file = file_name(header.number);
        // A header with more than `SEGMENT_BYTES_MAX` is none.
        Self { storage, file, bytes: header.bytes as usize, from: 0, held: Vec::new(), reads_on: false }
    }

    /// Of a segment; where the medium gives no page, there are others.
    pub fn reading_on(storage: &'s mut S, header: &Header) -> Self {
        Self { reads_on: true, ..Self::new(storage, header) }
    }

    /// The bytes of the whole segment.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// So many bytes from an offset on; fewer at the segment's end.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn at(&mut self, offset: usize, bytes: usize) -> Result<&[u8], StoreError> {
        let end = offset.saturating_add(bytes).min(self.bytes);
        let offset = offset.min(end);
        if offset < self.from || end > self.from + self.held.len() {
            self.read(offset, end.max(offset.saturating_add(WINDOW_BYTES).min(self.bytes)))?;
        }
        Ok(&self.held[offset - self.from..end - self.from])
    }

    fn read(&mut self, from: usize, to: usize) -> Result<(), StoreError> {
        self.from = from;
        self.held.resize(to - from, 0);
        match self.storage.read(&self.file, from as u64, &mut self.held) {
            Ok(()) => return Ok(()),
            Err(_) if self.reads_on => {}
            Err(source) => {
                self.held.clear();
                return Err(StoreError::io("read", &self.file)(source));
            }
        }
        for (at, page) in (from..).step_by(PAGE).zip(self.held.chunks_mut(PAGE)) {
            if self.storage.read(&self.file, at as u64, page).is_err() {
                page.fill(UNREADABLE);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn any_part_is_read_as_it_is() -> Result<(), StoreError> {
        const BYTES: usize = 3 * WINDOW_BYTES + 5 * PAGE;
        let whole: Vec<u8> = (0..BYTES).map(|at| (at / 7 % 251) as u8).collect();
        let header = Header {
            log_id: [1; 16],
            number: 1,
            bytes: BYTES as u64,
            secret: 1,
            first_sequence: 1,
            before: [0; 16],
            run: 0,
            used_before: false,
        };
        let mut storage = Memory::new(1);
        let file = file_name(1);
        storage
            .create(&file)
            .and_then(|()| storage.write_at(&file, 0, &whole))
            .map_err(StoreError::io("write", &file))?;
        let mut window = Window::new(&mut storage, &header);
        let (mut random, mut largest) = (1u64, WINDOW_BYTES);
        for _ in 0..200 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (random >> 33) as usize % (BYTES + PAGE);
            let bytes = (random >> 13) as usize % (2 * WINDOW_BYTES);
            let expected = whole.get(offset..).map_or(&[][..], |rest| &rest[..bytes.min(rest.len())]);
            assert!(window.at(offset, bytes)? == expected, "{bytes} bytes at {offset}");
            largest = largest.max(bytes);
            assert!(window.held.len() <= largest);
        }
        Ok(())
    }
}
