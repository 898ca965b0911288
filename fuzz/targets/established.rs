//! Any datagrams of anybody to an endpoint of which a link is up. Nothing panics, nothing of the link changes, no answer
//! is more than three times what came, and the peer is heard after that.

#![no_main]

mod two;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut both = two::Two::up();
    for datagram in two::datagrams(bytes) {
        two::somebody_says(&mut both.endpoints[1], datagram);
    }
    let before = both.endpoints[1].peer_status(two::id(0));
    both.write(0, 2);
    both.settle();
    assert_eq!(before, both.endpoints[1].peer_status(two::id(0)));
});
