//! Any bytes as a link's memo place, as they are and with the checksum that they have. Nothing panics; what is read is
//! written in one way alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sealing::fuzzing;
use sealing::memo::{Memo, PLACE_BYTES, Place};

fuzz_target!(|bytes: &[u8]| {
    let mut place: Place = [0; PLACE_BYTES];
    let length = bytes.len().min(PLACE_BYTES);
    place[..length].copy_from_slice(&bytes[..length]);
    for place in [place, fuzzing::memo_place(place)] {
        if let Ok(memo) = Memo::decode(&place) {
            assert_eq!(memo.encode(), place);
        }
    }
});
