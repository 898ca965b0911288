//! Lines and columns of a source's bytes.

/// Where lines begin.
#[derive(Debug)]
pub struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

/// A place as people and programs count it, from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl<'a> Lines<'a> {
    /// Of a source.
    pub fn new(source: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { source, starts }
    }

    /// The line's number from 0, and what of it stands before the byte.
    fn find(&self, offset: u32) -> (usize, &'a str) {
        let mut offset = (offset as usize).min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let number = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (number, &self.source[self.starts[number]..offset])
    }

    /// Where a byte is.
    pub fn place(&self, offset: u32) -> Place {
        let (number, before) = self.find(offset);
        Place { line: number + 1, column: before.chars().count() + 1 }
    }

    /// Where a byte is, as editors count: from 0, columns in UTF-16 code units.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let (number, before) = self.find(offset);
        (number as u32, before.encode_utf16().count() as u32)
    }

    /// The byte at a position as editors count; what is behind a line's end is its end.
    pub fn offset(&self, line: u32, column: u32) -> usize {
        let Some(start) = self.starts.get(line as usize).copied() else { return self.source.len() };
        let end = self.starts.get(line as usize + 1).map_or(self.source.len(), |next| next - 1);
        let mut units = 0;
        for (offset, character) in self.source[start..end].char_indices() {
            if units >= column {
                return start + offset;
            }
            units += character.len_utf16() as u32;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_lines_and_columns() {
        let source = "a é😀b\n\nlast";
        let lines = Lines::new(source);
        let check = |mark: &str, place: (usize, usize), position: (u32, u32)| {
            let offset = source.find(mark).expect("it stands there") as u32;
            assert_eq!(lines.place(offset), Place { line: place.0, column: place.1 }, "{mark:?}");
            assert_eq!(lines.position(offset), position, "{mark:?}");
            assert_eq!(lines.offset(position.0, position.1), offset as usize, "{mark:?}");
        };
        check("a", (1, 1), (0, 0));
        check("é", (1, 3), (0, 2));
        check("b", (1, 5), (0, 5));
        check("last", (3, 1), (2, 0));
        assert_eq!(lines.place(1_000), Place { line: 3, column: 5 });
        assert_eq!(
            (lines.offset(9, 0), lines.offset(0, 99)),
            (source.len(), source.find('\n').expect("a line"))
        );
        assert_eq!(lines.offset(0, 4), source.find('b').expect("it stands there"), "inside of a pair");
    }
}
