//! How large types and constants may be. A type that holds another one twice, which holds another one twice, and a default
//! that is made of such, are exponentially larger than their source; nothing that a module holds is, so that whatever
//! walks its types or writes its constants ends soon.

use super::Checker;
use crate::change::schema::CONSTANT_PARTS_MAX;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::Type;
use crate::value::Value;

/// How deep types may hold each other: bounds the stack of everything that walks a value.
pub(super) const TYPE_DEPTH_MAX: u16 = 48;
/// Plain values in a value of a record, those of its inner records too, a list or an optional one counted as one of its
/// elements: far more than a record has that a person wrote; a document writes them all.
pub(super) const TYPE_VALUES_MAX: u32 = 1 << 14;
/// The same of all that views give and settings take: a document has them side by side.
pub(super) const OUTSIDE_VALUES_MAX: u32 = 1 << 18;
/// Bytes of all defaults and initial values: four times what a source has, so that each may be written where it is used.
pub(super) const CONSTANT_BYTES_MAX: u32 = 4 << 20;

/// What is known of a record's values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// How deep they can be.
    pub(super) depth: u16,
    /// How many plain values each has, counted as [`TYPE_VALUES_MAX`] says.
    pub(super) values: u32,
}

impl Checker<'_> {
    /// How deep a type's values can be.
    pub(super) fn depth(&self, kind: &Type) -> u16 {
        match kind {
            Type::List(inner) | Type::Optional(inner) => 1 + self.depth(inner),
            Type::Record(number) => 1 + self.record_sizes[*number as usize].depth,
            _ => 1,
        }
    }

    fn values(&self, kind: &Type) -> u32 {
        match kind {
            Type::List(inner) | Type::Optional(inner) => self.values(inner),
            Type::Record(number) => self.record_sizes[*number as usize].values,
            _ => 1,
        }
    }

    /// The size of a record of these fields; what is wrong with it is reported, and then it is not larger than it may be.
    pub(super) fn size<'k>(
        &mut self,
        fields: impl Iterator<Item = &'k Type> + Clone,
        span: Span,
    ) -> Result<Size, Size> {
        let depth = fields.clone().map(|kind| self.depth(kind)).max().unwrap_or(0);
        let values = fields.fold(0_u32, |sum, kind| sum.saturating_add(self.values(kind)));
        let size = Size { depth: depth.min(TYPE_DEPTH_MAX), values };
        if depth >= TYPE_DEPTH_MAX {
            self.too_deep(span);
            return Err(size);
        }
        if values > TYPE_VALUES_MAX {
            let message =
                format!("a value of this type has {values} values in it, and may have {TYPE_VALUES_MAX}");
            self.too_large(
                Diagnostic::new(Code::TooLarge, span, message)
                    .note("a record that holds another one twice is twice as large, and so on")
                    .help("keep the inner ones in a list of their own and hold their key"),
            );
            // It is said once: of those that hold it not again.
            return Err(Size { values: 1, ..size });
        }
        Ok(size)
    }

    /// Counts a type that is seen from outside, in a view's answer or a setting; reports the first that is too much.
    pub(super) fn seen_outside(&mut self, kind: &Type, span: Span) {
        let before = self.outside_values;
        self.outside_values = before.saturating_add(self.values(kind));
        if before <= OUTSIDE_VALUES_MAX && self.outside_values > OUTSIDE_VALUES_MAX {
            let message = format!(
                "what views give and settings take has more than {OUTSIDE_VALUES_MAX} values in its types up to here"
            );
            self.too_large(
                Diagnostic::new(Code::TooLarge, span, message).help(
                    "let fewer views give such large records, or give those a name: `record Name { … }`",
                ),
            );
        }
    }

    /// Counts a default or an initial value; reports it if it is, or all together are, too large.
    pub(super) fn weigh(&mut self, value: &Value, span: Span) {
        let (mut parts, mut bytes) = (CONSTANT_PARTS_MAX, self.constant_bytes);
        let fits = weigh(value, &mut parts, &mut bytes).is_some();
        let before = std::mem::replace(&mut self.constant_bytes, if fits { bytes } else { 0 });
        if fits || before == 0 {
            return;
        }
        let message = match parts {
            0 => format!("this value has more than {CONSTANT_PARTS_MAX} parts"),
            _ => format!(
                "defaults and initial values have more than {CONSTANT_BYTES_MAX} bytes together up to here"
            ),
        };
        self.too_large(
            Diagnostic::new(Code::TooLarge, span, message)
                .note("the defaults of the records in it are counted each time that they are in it")
                .help("begin with less, and let an `on` put the rest there"),
        );
    }

    pub(super) fn too_deep(&mut self, span: Span) {
        let message = format!("values of this type are nested deeper than {TYPE_DEPTH_MAX} levels");
        self.too_large(Diagnostic::new(Code::TooLarge, span, message));
    }

    fn too_large(&mut self, diagnostic: Diagnostic) {
        self.report.push(diagnostic);
    }
}

/// Takes a value's parts and bytes from what is left; nothing where that is not enough. It goes no further than that:
/// parts may be shared.
fn weigh(value: &Value, parts: &mut u32, bytes: &mut u32) -> Option<()> {
    *parts = parts.checked_sub(1)?;
    let (own, inner): (usize, &[Value]) = match value {
        Value::Text(text) => (text.len(), &[]),
        Value::Bytes(bytes) => (bytes.len(), &[]),
        Value::Record(fields) => (0, fields),
        Value::List(values) => (0, values),
        Value::None | Value::Word(_) | Value::Real(_) | Value::Node(_) | Value::Key(_) => (0, &[]),
    };
    *bytes = bytes.checked_sub(u32::try_from(own).ok()?.checked_add(1)?)?;
    inner.iter().try_for_each(|value| weigh(value, parts, bytes))
}
