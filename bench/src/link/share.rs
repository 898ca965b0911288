//! `share_cubic`: how far from half of a path ours is beside a flow of CUBIC, and beside another one of ours.

use super::network::{Course, Network, SECOND};
use super::paths::{ours, theirs};
use super::quic::{self, Control};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::suite::{settings, sizes};
use crate::{BenchError, Extent};
use serde_json::json;

const fn bar(of: &'static str) -> Bar {
    Bar { of, against: None, limit: 0.05 }
}

pub const SHARE_CUBIC: Declared = Declared {
    name: "share_cubic",
    unit: "from half",
    better: Better::Lower,
    counter: true,
    bars: &[bar("ours_beside_cubic"), bar("ours_beside_ours")],
};

/// 50 Mbit/s with a queue of as much as fills the path once more.
const COURSE: Course = Course {
    bits_per_second: Some(50_000_000),
    round_trip: SECOND / 50,
    queue_bytes: 125_000,
    loss: 0,
    jitter: 0,
    datagram_bytes_max: 1_500,
};
/// The one that begins second.
const LATER: u64 = SECOND;
/// Both are there for some time when the share begins to count.
const FROM_SECONDS: u64 = 5;
const SECONDS: usize = 60;
/// Of each, ours begins first in one half.
const PATHS: u64 = 4;

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |seconds: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let share = |first, second| -> Box<dyn Contender> { Box::new(Share { first, second, seconds }) };
        Ok(vec![share(Who::Ours, Who::Cubic), share(Who::Ours, Who::Ours), share(Who::Cubic, Who::Cubic)])
    };
    let settings = settings(&[
        ("course", json!(format!("{COURSE:?}"))),
        ("paths", json!(PATHS)),
        ("from_seconds", json!(FROM_SECONDS)),
        ("the_second_begins_microseconds_later", json!(LATER)),
        ("cubic", json!(format!("quinn-proto {}", quic::VERSION))),
    ]);
    let sizes = sizes(extent, 6, SECONDS, &[]);
    crate::suite::measure(declared, &sizes, |seconds| format!("{seconds} s"), contenders, settings)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Ours,
    Cubic,
}

struct Share {
    first: Who,
    second: Who,
    seconds: usize,
}

impl Contender for Share {
    fn name(&self) -> String {
        match (self.first, self.second) {
            (Who::Ours, Who::Cubic) => "ours_beside_cubic".into(),
            (Who::Ours, _) => "ours_beside_ours".into(),
            _ => "cubic_beside_cubic".into(),
        }
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let (mut of_first, mut of_both) = (0, 0);
        for path in 1..=PATHS {
            let mut network = Network::new(COURSE, path);
            // In turn, so that who begins makes no difference.
            let swapped = path % 2 == 0;
            let order = if swapped { [self.second, self.first] } else { [self.first, self.second] };
            for (at, who) in (0..).zip(order) {
                let seed = 2 * path + at;
                network.add(
                    at * LATER,
                    match who {
                        Who::Ours => ours(seed),
                        Who::Cubic => theirs(seed, Control::Cubic)?,
                    },
                );
            }
            network.run_until(FROM_SECONDS * SECOND)?;
            let before = [0, 1].map(|flow| network.delivered(flow));
            network.run_until(self.seconds as u64 * SECOND)?;
            let [one, other] = [0, 1].map(|flow| network.delivered(flow) - before[flow]);
            of_first += if swapped { other } else { one };
            of_both += one + other;
        }
        Ok((of_first as f64 / of_both.max(1) as f64 - 0.5).abs())
    }
}
