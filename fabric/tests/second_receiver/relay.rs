//! A path on loopback that loses, doubles and delays datagrams in both directions, from a seed.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between looks at what is delayed.
const TICK: Duration = Duration::from_millis(2);
/// The most that a datagram is late; each is late by a share of it.
const LATE_MOST_MS: u64 = 30;
/// What UDP carries at most.
const DATAGRAM_BYTES_LARGEST: usize = 65_535;

/// What happens to datagrams: shares in thousandths, of each direction.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub seed: u64,
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
}

/// Datagrams to its address come to the destination, and answers back to who sent last.
pub struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    pub fn start(to: SocketAddr, weather: Weather) -> io::Result<Relay> {
        let near = UdpSocket::bind("127.0.0.1:0")?;
        let far = UdpSocket::bind("127.0.0.1:0")?;
        far.connect(to)?;
        let address = near.local_addr()?;
        let sender = Arc::new(Mutex::new(None));
        let ended = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (forth, seed) in [(true, weather.seed), (false, !weather.seed)] {
            let (near, far) = (near.try_clone()?, far.try_clone()?);
            let from = if forth { &near } else { &far };
            from.set_read_timeout(Some(TICK))?;
            let (sender, ended) = (Arc::clone(&sender), Arc::clone(&ended));
            let mut chance = Chance(seed);
            threads.push(std::thread::spawn(move || {
                let mut bytes = vec![0; DATAGRAM_BYTES_LARGEST];
                let mut delayed: Vec<(Instant, Vec<u8>)> = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    let came = if forth { near.recv_from(&mut bytes) } else { far.recv_from(&mut bytes) };
                    if let Ok((length, from)) = came {
                        if forth {
                            *sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
                        }
                        for late in chance.fates(weather) {
                            delayed.push((Instant::now() + late, bytes[..length].to_vec()));
                        }
                    }
                    let sender = *sender.lock().unwrap_or_else(PoisonError::into_inner);
                    delayed.retain(|(at, bytes)| {
                        let due = *at <= Instant::now();
                        // A datagram that the system does not take is lost, as others are.
                        match sender {
                            Some(sender) if due && !forth => drop(near.send_to(bytes, sender)),
                            _ if due && forth => drop(far.send(bytes)),
                            _ => {}
                        }
                        !due
                    });
                }
            }));
        }
        Ok(Relay { address, ended, threads })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }

    /// How late each copy of a datagram comes; none if it is lost.
    fn fates(&mut self, weather: Weather) -> Vec<Duration> {
        if self.below(1_000) < weather.lost {
            return Vec::new();
        }
        let copies = if self.below(1_000) < weather.doubled { 2 } else { 1 };
        let late =
            (0..copies).map(|_| if self.below(1_000) < weather.late { self.below(LATE_MOST_MS) } else { 0 });
        late.map(Duration::from_millis).collect()
    }
}
