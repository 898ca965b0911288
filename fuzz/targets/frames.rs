//! Any frames of a peer that has the keys, in packets and hails, between answers of this node's store. Nothing panics, and
//! what goes out has the size that it may have.

#![no_main]

mod two;

use libfuzzer_sys::fuzz_target;

use ::link::{Effect, Outcome, StreamId, Time, fuzzing};

fuzz_target!(|bytes: &[u8]| {
    let mut both = two::Two::up();
    let mut now = two::START;
    for said in two::datagrams(bytes) {
        let Some((how, frames)) = said.split_first() else { continue };
        let [ann, ben] = &mut both.endpoints;
        let sealed = match how % 4 {
            0 => fuzzing::hail(ann, two::id(1), frames),
            _ => fuzzing::packet(ann, two::id(1), frames),
        };
        let Some(sealed) = sealed else { return };
        ben.handle_datagram(now, two::PLACES[0], &sealed);
        now = Time(now.0 + u64::from(*how) * 1_000);
        while let Some(effect) = ben.poll_effect() {
            match effect {
                Effect::Record { peer, declaration, number, .. } if how % 8 == 1 => {
                    ben.waiting(now, peer, declaration.stream, number, "no such app".into());
                }
                Effect::Record { peer, declaration, number, .. } => {
                    let refused = Outcome::Refused("no".repeat(usize::from(*how)));
                    ben.stored(now, peer, declaration.stream, number, vec![(number, refused)]);
                }
                Effect::Datagram { bytes, .. } => assert!(bytes.len() <= 1_200),
                _ => {}
            }
        }
        match how % 16 {
            3 => ben.ready(now, "b"),
            5 => ben.forked(now, two::id(0), StreamId([1; 16])),
            _ => ben.handle_timeout(now),
        }
    }
});
