//! Any datagrams of anybody to an endpoint whose peers have not spoken yet. Nothing panics, nothing that is kept for peers
//! changes, and no answer is more than three times what came.

#![no_main]

mod two;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut endpoint = two::endpoint(1, 1, None);
    while endpoint.poll_effect().is_some() {}
    for datagram in two::datagrams(bytes) {
        two::somebody_says(&mut endpoint, datagram);
    }
});
