//! JSON in and JSON out, both along a type.

mod read;
mod write;

pub(crate) use read::{Misshapen, Read, Unread, expected, filled, read_fields, read_parameter, read_value};
pub(crate) use write::{write_fields, write_value, write_within};
