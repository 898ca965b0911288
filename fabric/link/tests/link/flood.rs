//! A flood of hellos from addresses that are not the sender's: memory stays bounded, and honest senders are served.

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::cases::{run, two};
use crate::world::{SECOND, World};

const TOKEN: u8 = 0x58;
const HELLO_WITH_TOKEN: u8 = 0x59;

/// Pieces of a hello that nobody made: the first ones of one that never ends, or all of one that does not open.
fn pieces(rng: &mut ChaCha20Rng, whole: bool) -> Vec<Vec<u8>> {
    let mut hello = vec![0; 3_000];
    rng.fill_bytes(&mut hello);
    hello[0] = 1;
    let key = Sha256::digest(&hello);
    let piece = |(index, piece): (usize, &[u8])| {
        [&[0x51], &key[..8], &[u8::try_from(index).unwrap(), 3], piece].concat()
    };
    hello.chunks(1_189).enumerate().map(piece).take(if whole { 3 } else { 2 }).collect()
}

/// Floods node 1 for 10 ms, from anywhere and in the name of node 0.
fn flood(world: &mut World, rng: &mut ChaCha20Rng) {
    let victim = world.nodes[0].home;
    for at in 0..60u32 {
        let [a, b, c, d, high, low, ..] = rng.next_u64().to_be_bytes();
        let anywhere = SocketAddr::from(([a, b, c, d], u16::from_be_bytes([high, low])));
        let from = if at % 3 == 0 { victim } else { anywhere };
        for bytes in pieces(rng, at % 2 == 0) {
            world.on_endpoint(1, |endpoint, now| endpoint.handle_datagram(now, from, &bytes));
        }
    }
    run(world, 10_000);
}

/// §3.2.1, §9.2.
#[test]
fn an_honest_hello_comes_through_a_flood() {
    let mut world = two(50);
    let mut rng = ChaCha20Rng::seed_from_u64(50);
    for node in 0..2 {
        world.kill(node);
    }
    world.start(1);
    for _ in 0..100 {
        flood(&mut world, &mut rng);
    }
    assert_eq!(world.kinds_sent(HELLO_WITH_TOKEN), 0);
    assert!(world.kinds_sent(TOKEN) > 1_000, "{} tokens", world.kinds_sent(TOKEN));
    // Its first hello is one of thousands in its own name.
    world.start(0);
    world.write(0, 1, 100);
    for _ in 0..50 {
        flood(&mut world, &mut rng);
    }
    assert_eq!(world.nodes[0].store.fates.len(), 1);
    assert!(world.kinds_sent(HELLO_WITH_TOKEN) >= 3);
    // And it ends with the flood: nobody needs a token any more.
    run(&mut world, 20 * SECOND);
    let tokens = world.kinds_sent(TOKEN);
    world.kill(0);
    world.nodes[0].memos.clear();
    world.start(0);
    world.write(0, 1, 100);
    run(&mut world, SECOND);
    assert_eq!((world.nodes[0].store.fates.len(), world.kinds_sent(TOKEN)), (2, tokens));
}

/// Whoever makes tokens up makes a node say its hello no more than a few times more.
#[test]
fn a_forged_token_costs_a_hello_or_two() {
    let mut world = two(51);
    for node in 0..2 {
        world.kill(node);
        world.nodes[node].memos.clear();
    }
    world.capture = Some(Vec::new());
    world.start(0);
    world.write(0, 1, 100);
    run(&mut world, SECOND / 2);
    let capture = world.capture.take().unwrap();
    let hello = capture.iter().rfind(|bytes| bytes[0] == 0x51).unwrap().clone();
    let from = world.nodes[1].home;
    let before = world.datagrams;
    for token in 0..1_000u64 {
        let bytes = [&[TOKEN], &hello[1..9], &token.to_be_bytes()].concat();
        world.on_endpoint(0, |endpoint, now| endpoint.handle_datagram(now, from, &bytes));
    }
    assert_eq!(world.datagrams - before, 2 * 3);
    // The true one still comes through.
    world.start(1);
    run(&mut world, 10 * SECOND);
    assert_eq!(world.nodes[0].store.fates.len(), 1);
}
