//! Bytes of anybody, at several states: never a panic, never state, never more than what came.

use std::net::SocketAddr;

use link::{Effect, Endpoint, Time};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::seeds::number;
use crate::world::{SECOND, World};

/// In a usual run; the long form has a million.
const DATAGRAMS: u64 = 100_000;

/// All that an endpoint keeps for its peers.
fn state(endpoint: &Endpoint, _: &World) -> String {
    format!("{endpoint:?}")
}

/// What can be seen of an endpoint from outside.
fn observable(endpoint: &Endpoint, world: &World) -> String {
    let peers: Vec<_> = world.nodes.iter().map(|node| endpoint.peer_status(node.id())).collect();
    format!("{peers:?} {:?}", endpoint.next_timeout())
}

/// True datagrams to be mutated: what two nodes really said to each other.
fn captured(seed: u64) -> (World, Vec<Vec<u8>>) {
    let mut world = World::new(seed, 2);
    world.capture = Some(Vec::new());
    world.befriend_all();
    world.start(0);
    world.start(1);
    for bytes in [10, 5_000, 700] {
        world.write(0, 1, bytes);
        world.write(1, 0, bytes);
    }
    let end = Time(world.now.0 + 10 * SECOND);
    world.run_until(end);
    let captured = world.capture.take().unwrap_or_default();
    assert!(world.is_settled() && captured.len() > 10);
    (world, captured)
}

/// A datagram that nobody sent: random, or a true one with a bit changed or its end cut.
fn forged(rng: &mut ChaCha20Rng, captured: &[Vec<u8>]) -> Vec<u8> {
    let mut below = |bound: usize| (rng.next_u64() % bound as u64) as usize;
    let mut bytes = captured[below(captured.len())].clone();
    match below(3) {
        0 => {
            bytes.truncate(below(bytes.len()));
            bytes.iter_mut().skip(1).for_each(|byte| *byte = below(256) as u8);
        }
        1 => bytes.truncate(below(bytes.len())),
        _ => {
            let at = below(bytes.len());
            bytes[at] ^= 1 << below(8);
        }
    }
    bytes
}

fn flood(world: &mut World, captured: &[Vec<u8>], divisor: u64, look: fn(&Endpoint, &World) -> String) {
    let count = number("LINK_FORGERIES").unwrap_or(DATAGRAMS) / divisor;
    let mut rng = ChaCha20Rng::seed_from_u64(99);
    let from = SocketAddr::from(([203, 0, 113, 9], 99));
    let before = look(world.nodes[1].endpoint.as_ref().unwrap(), world);
    for at in 0..count {
        let bytes = forged(&mut rng, captured);
        let now = Time(world.now.0 + at);
        let endpoint = world.nodes[1].endpoint.as_mut().unwrap();
        endpoint.handle_datagram(now, from, &bytes);
        while let Some(effect) = endpoint.poll_effect() {
            match effect {
                Effect::Datagram { to, bytes: answer } => {
                    assert_eq!(to, from);
                    assert!(answer.len() <= 3 * bytes.len(), "{} for {}", answer.len(), bytes.len());
                }
                other => panic!("{other:?} came of {bytes:02x?}"),
            }
        }
    }
    let after = look(world.nodes[1].endpoint.as_ref().unwrap(), world);
    assert_eq!(before, after);
}

/// §9.1.
#[test]
fn forged_datagrams_change_nothing_on_a_link_that_is_up() {
    let (mut world, captured) = captured(1);
    flood(&mut world, &captured, 1, state);
}

#[test]
fn forged_datagrams_change_nothing_after_a_restart() {
    let (mut world, captured) = captured(2);
    world.kill(1);
    world.start(1);
    // What does not open is answered by a hail, so its number and where it went are other ones (§4.4).
    flood(&mut world, &captured, 4, observable);
}

#[test]
fn forged_datagrams_change_nothing_before_anybody_spoke() {
    let (mut world, captured) = captured(3);
    world.kill(1);
    world.nodes[1].memos.clear();
    world.start(1);
    flood(&mut world, &captured, 4, state);
}

#[test]
fn a_replayed_capture_changes_nothing() {
    let (mut world, captured) = captured(4);
    let before = observable(world.nodes[1].endpoint.as_ref().unwrap(), &world);
    let applied = world.nodes[1].store.applied.len();
    let from = world.nodes[0].home;
    for bytes in &captured {
        world.on_endpoint(1, |endpoint, now| endpoint.handle_datagram(now, from, bytes));
    }
    assert_eq!(before, observable(world.nodes[1].endpoint.as_ref().unwrap(), &world));
    assert_eq!(applied, world.nodes[1].store.applied.len());
}
