//! `core_cpu_*`, `wire_*`: what a record costs, in processor time of both ends and in bytes on the wire.

use super::load::Load;
use super::network::{Course, Network, SECOND};
use super::ours::Ours;
use super::processor_time_of;
use super::quic::{self, Control, Quic, Settings};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;

pub const CORE_CPU_61: Declared = Declared {
    name: "core_cpu_61",
    unit: "µs/record",
    better: Better::Lower,
    counter: false,
    bars: &[Bar { of: "ours", against: Some("quinn"), limit: 0.66 }],
};
pub const CORE_CPU_1K: Declared = Declared { name: "core_cpu_1k", ..CORE_CPU_61 };
pub const CORE_CPU_16K: Declared = Declared { name: "core_cpu_16k", ..CORE_CPU_61 };
pub const WIRE_61: Declared = Declared {
    name: "wire_61",
    unit: "bytes/record",
    better: Better::Lower,
    counter: true,
    bars: &[Bar { of: "ours", against: Some("quinn"), limit: 0.9999 }],
};
pub const WIRE_1K: Declared = Declared { name: "wire_1k", ..WIRE_61 };

/// Bytes of every contender's datagrams, at most.
const DATAGRAM_BYTES: u16 = 1_200;
/// Streams of ours. QUIC has one.
const STREAMS: u8 = 4;
/// Packets that quinn acknowledges at once where that is tuned.
const PACKETS_AN_ACKNOWLEDGEMENT: u32 = 10;
/// Bytes of records of a trial, and a share of them before the first one counts.
const TRIAL_BYTES: usize = 48 * 1024 * 1024;
const SHORT_BYTES: usize = 256 * 1024;
/// No record less, so that what is between two records is nothing beside them.
const RECORDS_MIN: usize = 64;

/// One way, the ends talk in bursts of what the windows allow; the other, the bottleneck spaces every datagram.
const FAST: Course = Course {
    bits_per_second: None,
    round_trip: SECOND / 1_000,
    queue_bytes: 0,
    loss: 0,
    jitter: 0,
    datagram_bytes_max: 1_500,
};
const SLOW: Course =
    Course { bits_per_second: Some(50_000_000), round_trip: SECOND / 50, queue_bytes: 125_000, ..FAST };

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let is_wire = declared.name.starts_with("wire");
    let bytes = match declared.name.rsplit('_').next() {
        Some("61") => 61,
        Some("1k") => 1_024,
        _ => 16_384,
    };
    let trial_bytes = match extent {
        Extent::Short => SHORT_BYTES,
        _ if is_wire => TRIAL_BYTES / 4,
        _ => TRIAL_BYTES,
    };
    let course = if is_wire { SLOW } else { FAST };
    let contenders = |_: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let transfer = |name: &str, flow| -> Box<dyn Contender> {
            let mut network = Network::new(course, 1);
            network.add(0, flow);
            let records = (trial_bytes / bytes).max(RECORDS_MIN) as u64;
            let name = name.to_owned();
            Box::new(Transfer { name, network, records, is_wire, is_warm: false })
        };
        let quinn = |settings| Quic::new(1, Load::new(bytes), settings);
        let tuned = Settings {
            control: Control::Cubic,
            datagram_bytes_max: DATAGRAM_BYTES,
            packets_an_acknowledgement: Some(PACKETS_AN_ACKNOWLEDGEMENT),
            writes_each: false,
        };
        let each = Settings { writes_each: true, ..tuned };
        let usual = Settings { packets_an_acknowledgement: None, ..tuned };
        let ours = Ours::new(1, STREAMS, Load::new(bytes), usize::from(DATAGRAM_BYTES));
        Ok(vec![
            transfer("ours", Box::new(ours)),
            transfer(&format!("quinn {}", quic::VERSION), Box::new(quinn(tuned)?)),
            transfer(&format!("quinn_acknowledging {}", quic::VERSION), Box::new(quinn(usual)?)),
            transfer(&format!("quinn_writing_each {}", quic::VERSION), Box::new(quinn(each)?)),
        ])
    };
    let settings = settings(&[
        ("record_bytes", json!(bytes)),
        ("trial_bytes", json!(trial_bytes)),
        ("course", json!(format!("{course:?}"))),
        ("datagram_bytes", json!(DATAGRAM_BYTES)),
        ("our_streams", json!(STREAMS)),
        ("quinn_packets_an_acknowledgement", json!(PACKETS_AN_ACKNOWLEDGEMENT)),
    ]);
    let sizes = sizes(extent, bytes, bytes, &[]);
    crate::suite::measure(declared, &sizes, |bytes| format!("records of {bytes} bytes"), contenders, settings)
}

struct Transfer {
    name: String,
    network: Network,
    records: u64,
    is_wire: bool,
    is_warm: bool,
}

impl Contender for Transfer {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        if !self.is_warm {
            self.network.run_until_delivered(self.records / 4)?;
            self.is_warm = true;
        }
        let (first, bytes) = (self.network.delivered(0), self.network.bytes);
        let spent = processor_time_of(|| self.network.run_until_delivered(first + self.records))?;
        // What came above the last one counts, too.
        let records = (self.network.delivered(0) - first) as f64;
        Ok(match self.is_wire {
            true => (self.network.bytes - bytes) as f64 / records,
            false => spent.as_secs_f64() * 1e6 / records,
        })
    }
}
