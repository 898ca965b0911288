//! JSON in and JSON out, both along a type.

mod expected;
mod read;
mod straight;
mod write;

pub use expected::default_of;
pub(crate) use expected::expected;
pub(crate) use read::{
    Misshapen, Read, Unread, filled, read_arguments, read_fields, read_parameter, read_setting, read_value,
};
pub(crate) use write::{Stream, write_fields, write_value, write_within};
