//! Suite `store`: the core, its log and its checkpoints on a disk, beside SQLite and redb.
//!
//! How the parts meet: `rows` is the data, `ours` a node without its network, `kept` what all contenders do with the rows, `scratch`
//! where they do it; each other module is a figure or two.

mod alone;
mod commits;
mod device;
mod kept;
mod lookups;
mod opening;
mod ours;
mod parts;
mod rows;
mod scratch;
mod throughput;

use crate::suite::Measured;

pub use alone::{PREFIX, run as run_alone};

/// Its figures, in their order.
pub const FIGURES: &[Measured] = &[
    (throughput::ROWS_1, throughput::measure_rows),
    (throughput::ROWS_16, throughput::measure_rows),
    (throughput::ROWS_256, throughput::measure_rows),
    (throughput::ROWS_1000, throughput::measure_rows),
    (device::DEVICE_BYTES_256, device::measure_device),
    (device::DEVICE_BYTES_256_1M, device::measure_device),
    (commits::COMMIT_P999_CHECKPOINT, commits::measure_commits),
    (opening::OPEN_1M, opening::measure_open),
    (lookups::LOOKUP_P999, lookups::measure_lookups),
    (device::TRANSIENT_SAVING, device::measure_transient),
];
