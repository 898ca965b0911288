//! What the machine is, and what else it does while something is measured.

use crate::BenchError;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::process::Command;

/// Processor time so far, in clock ticks: of the whole machine, of what it has, and of our own processes.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    busy: u64,
    all: u64,
    own: u64,
}

impl Ticks {
    /// Reads the counters; `peers` are processes that belong to the measurement.
    pub fn now(peers: &[u32]) -> Result<Ticks, BenchError> {
        let stat = read("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        // proc(5): user nice system idle iowait irq softirq steal; guests are in user already.
        let fields: Vec<u64> = numbers(line.split_whitespace().skip(1).take(8));
        let all = fields.iter().sum::<u64>();
        let idle = fields.iter().skip(3).take(2).sum::<u64>();
        let mut own = process_ticks("/proc/self/stat", 4)?;
        for peer in peers {
            own += process_ticks(&format!("/proc/{peer}/stat"), 2)?;
        }
        Ok(Ticks { busy: all - idle, all, own })
    }

    /// The share of the machine's processor time from then to now that others used.
    pub fn other_work_since(self, then: Ticks) -> f64 {
        let all = self.all.saturating_sub(then.all).max(1);
        let own = self.own.saturating_sub(then.own);
        let others = self.busy.saturating_sub(then.busy).saturating_sub(own);
        others as f64 / all as f64
    }
}

/// User and system time of a process, and of its children that ended when four fields are taken.
fn process_ticks(path: &str, fields: usize) -> Result<u64, BenchError> {
    let stat = read(path)?;
    // The name in parentheses may hold anything; what follows the last one is regular, utime the twelfth.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    Ok(numbers(rest.split_whitespace().skip(11).take(fields)).iter().sum())
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u64> {
    words.filter_map(|word| word.parse().ok()).collect()
}

fn read(path: &str) -> Result<String, BenchError> {
    fs::read_to_string(path).map_err(|error| BenchError::Machine(format!("{path}: {error}")))
}

/// Bytes of memory that this process holds and no file backs.
pub fn resident_bytes() -> Result<u64, BenchError> {
    let status = read("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| BenchError::Machine("/proc/self/status has no RssAnon".into()))
}

/// Commit, machine and binary, as they stand beside every figure.
pub fn provenance() -> Result<Value, BenchError> {
    let executable = std::env::current_exe().and_then(fs::read);
    let executable = executable.map_err(|error| BenchError::Machine(format!("own binary: {error}")))?;
    let cpu = read("/proc/cpuinfo")?;
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = read("/proc/meminfo")?;
    let memory = memory.lines().next().and_then(|line| line.split_whitespace().nth(1)).unwrap_or("unknown");
    let kernel = read("/proc/sys/kernel/osrelease")?;
    Ok(json!({
        "commit": said_by("git", &["rev-parse", "HEAD"]),
        "differs": said_by("git", &["status", "--porcelain"]).lines().count(),
        "built": if cfg!(debug_assertions) { "debug" } else { "release" },
        "rustc": said_by("rustc", &["--version"]),
        "binary_sha256": data_encoding::HEXLOWER.encode(&Sha256::digest(executable)),
        "processor": model.map_or("unknown", |(_, model)| model),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "memory_kib": memory,
        "kernel": kernel.trim(),
    }))
}

/// What a command says; empty when it does not run.
pub fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}
