//! Suite `link`: the protocol core beside those of QUIC, as pure code in one thread, over a path in virtual time.

mod contact;
mod load;
mod network;
mod ours;
mod paths;
mod quic;
mod rest;
mod share;
mod transfer;

use crate::BenchError;
use crate::suite::Measured;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::time::Duration;

pub const FIGURES: &[Measured] = &[
    (transfer::CORE_CPU_61, transfer::measure),
    (transfer::CORE_CPU_1K, transfer::measure),
    (transfer::CORE_CPU_16K, transfer::measure),
    (transfer::WIRE_61, transfer::measure),
    (transfer::WIRE_1K, transfer::measure),
    (paths::PATH_CLEAN_20, paths::measure),
    (paths::PATH_LOSS_1_20, paths::measure),
    (paths::PATH_LOSS_5_20, paths::measure),
    (paths::PATH_REORDERING_20, paths::measure),
    (paths::PATH_BOTH_20, paths::measure),
    (paths::PATH_CLEAN_100, paths::measure),
    (paths::PATH_LOSS_1_100, paths::measure),
    (paths::PATH_LOSS_5_100, paths::measure),
    (paths::PATH_REORDERING_100, paths::measure),
    (paths::PATH_BOTH_100, paths::measure),
    (share::SHARE_CUBIC, share::measure),
    (contact::HELLO_CPU, contact::measure_hello),
    (contact::RESTART_PK, contact::measure_restart),
    (rest::REST_BYTES, rest::measure),
];

/// What a process writes that this one starts to count bytes.
pub const COUNTS_ALONE: &str = rest::ALONE;

/// Counts the bytes of so many links at rest, in a process that does nothing else, and writes them.
pub fn count_alone(links: &str, output: &mut impl Write) -> Result<(), BenchError> {
    let wrong = |_| BenchError::Process(format!("{links} is not a number of links"));
    Ok(writeln!(output, "{}", rest::bytes_of_links(links.parse().map_err(wrong)?)?)?)
}

/// Processor time of this thread so far, user and system.
fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// Processor time that some work took.
fn processor_time_of(work: impl FnOnce() -> Result<(), BenchError>) -> Result<Duration, BenchError> {
    let before = processor_time();
    work()?;
    Ok(processor_time() - before)
}
