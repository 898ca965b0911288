//! `path_*`: what gets through 50 Mbit/s that lose and reorder.

use super::load::Load;
use super::network::{Course, Flow, Network, SECOND};
use super::ours::Ours;
use super::quic::{self, Control, Quic, Settings};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;

const fn bar(against: &'static str, limit: f64) -> Bar {
    Bar { of: "ours", against: Some(against), limit }
}

pub const PATH_CLEAN_20: Declared = Declared {
    name: "path_clean_20",
    unit: "Mbit/s",
    better: Better::Higher,
    counter: true,
    bars: &[bar("quinn_cubic", 1.0), bar("quinn_new_reno", 1.0)],
};
/// A path that reorders, for which QUIC is not made.
const REORDERING: &[Bar] = &[bar("quinn_cubic", 10.0), bar("quinn_new_reno", 10.0)];
pub const PATH_LOSS_1_20: Declared = Declared { name: "path_loss_1_20", ..PATH_CLEAN_20 };
pub const PATH_LOSS_5_20: Declared = Declared { name: "path_loss_5_20", ..PATH_CLEAN_20 };
pub const PATH_REORDERING_20: Declared =
    Declared { name: "path_reordering_20", bars: REORDERING, ..PATH_CLEAN_20 };
pub const PATH_BOTH_20: Declared = Declared { name: "path_both_20", ..PATH_CLEAN_20 };
pub const PATH_CLEAN_100: Declared = Declared { name: "path_clean_100", ..PATH_CLEAN_20 };
pub const PATH_LOSS_1_100: Declared = Declared { name: "path_loss_1_100", ..PATH_CLEAN_20 };
pub const PATH_LOSS_5_100: Declared = Declared { name: "path_loss_5_100", ..PATH_CLEAN_20 };
pub const PATH_REORDERING_100: Declared = Declared { name: "path_reordering_100", ..PATH_REORDERING_20 };
pub const PATH_BOTH_100: Declared = Declared { name: "path_both_100", ..PATH_CLEAN_20 };

/// Bits a second of the bottleneck.
const RATE: u64 = 50_000_000;
const RECORD_BYTES: usize = 1_024;
/// Streams of ours: their windows are more than any of the paths holds. QUIC has one stream, and a window of its own.
const STREAMS: u8 = 16;
/// Bytes of a datagram that the path carries, without the headers of IPv4 and UDP.
pub const DATAGRAM_BYTES_MAX: u16 = 1_472;
/// From the first datagram on.
const SECONDS: usize = 20;
/// Paths with the same figures, each with losses of its own.
const SEEDS: u64 = 8;

/// What the name of a figure says of its path.
fn course(name: &str) -> Course {
    let round_trip = if name.ends_with("_100") { SECOND / 10 } else { SECOND / 50 };
    let loss = match name {
        _ if name.contains("loss_5") => 500,
        _ if name.contains("loss_1_") || name.contains("both") => 100,
        _ => 0,
    };
    let jitter = if name.contains("reordering") || name.contains("both") { 5_000 } else { 0 };
    Course {
        bits_per_second: Some(RATE),
        round_trip,
        // As much as fills the path once more.
        queue_bytes: RATE / 8 * round_trip / SECOND,
        loss,
        jitter,
        datagram_bytes_max: 1_500,
    }
}

/// quinn as it is, but for windows that no path fills and datagrams as large as the path carries.
pub fn quinn(control: Control) -> Settings {
    Settings {
        control,
        datagram_bytes_max: DATAGRAM_BYTES_MAX,
        packets_an_acknowledgement: None,
        writes_each: false,
    }
}

/// Our link with more records than any path carries.
pub fn ours(seed: u64) -> Box<dyn Flow> {
    Box::new(Ours::new(seed, STREAMS, Load::new(RECORD_BYTES), usize::from(DATAGRAM_BYTES_MAX)))
}

/// quinn with the same records.
pub fn theirs(seed: u64, control: Control) -> Result<Box<dyn Flow>, BenchError> {
    Ok(Box::new(Quic::new(seed, Load::new(RECORD_BYTES), quinn(control))?))
}

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let course = course(declared.name);
    let seeds = if extent == Extent::Short { 1 } else { SEEDS };
    let contenders = |seconds: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let goodput = |who| -> Box<dyn Contender> { Box::new(Goodput { who, course, seeds, seconds }) };
        Ok(vec![
            goodput(None),
            goodput(Some(Control::Cubic)),
            goodput(Some(Control::NewReno)),
            goodput(Some(Control::Bbr)),
        ])
    };
    let settings = settings(&[
        ("record_bytes", json!(RECORD_BYTES)),
        ("our_streams", json!(STREAMS)),
        ("course", json!(format!("{course:?}"))),
        ("seeds", json!(seeds)),
    ]);
    let sizes = sizes(extent, 2, SECONDS, &[]);
    crate::suite::measure(declared, &sizes, |seconds| format!("{seconds} s"), contenders, settings)
}

struct Goodput {
    /// Nobody is ours.
    who: Option<Control>,
    course: Course,
    seeds: u64,
    seconds: usize,
}

impl Contender for Goodput {
    fn name(&self) -> String {
        match self.who {
            None => "ours".into(),
            Some(Control::Cubic) => format!("quinn_cubic {}", quic::VERSION),
            Some(Control::NewReno) => format!("quinn_new_reno {}", quic::VERSION),
            Some(Control::Bbr) => format!("quinn_bbr {}", quic::VERSION),
        }
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let mut records = 0;
        for seed in 1..=self.seeds {
            let mut network = Network::new(self.course, seed);
            network.add(
                0,
                match self.who {
                    None => ours(seed),
                    Some(control) => theirs(seed, control)?,
                },
            );
            network.run_until(self.seconds as u64 * SECOND)?;
            records += network.delivered(0);
        }
        if records == 0 {
            return Err(BenchError::Process("nothing came through the path".into()));
        }
        let bits = 8 * records * RECORD_BYTES as u64;
        Ok(bits as f64 / 1e6 / (self.seeds * self.seconds as u64) as f64)
    }
}
