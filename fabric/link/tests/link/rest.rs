//! Links at rest: what is left of them, what wakes them and what does not.

use std::net::SocketAddr;

use link::limits::REST_AFTER;
use link::{Effect, Endpoint, PeerState};

use crate::cases::run;
use crate::epochs::rested;
use crate::world::{SECOND, World};

const HELLO: u8 = 0x51;
const PACKET: u8 = 0x53;

fn at_rest(world: &World) -> [usize; 2] {
    [0, 1].map(|node| world.nodes[node].endpoint.as_ref().map_or(0, Endpoint::links_at_rest))
}

fn state(world: &World, node: usize) -> PeerState {
    let other = world.nodes[1 - node].id();
    world.nodes[node].endpoint.as_ref().unwrap().peer_status(other).unwrap().state
}

/// Records that node 0 sent and heard of as delivered or refused.
fn heard_of(world: &World) -> usize {
    world.nodes[0].store.fates.len()
}

/// §10.8, §10.9: over and over, with records of either side, and without a hello.
#[test]
fn a_link_at_rest_wakes_for_a_record_and_rests_again() {
    let mut world = rested(60);
    let hellos = world.kinds_sent(HELLO);
    for turn in 0..6 {
        assert_eq!(at_rest(&world), [1, 1], "{turn}");
        assert_eq!(state(&world, 0), PeerState::Up);
        world.write(turn % 2, 1 - turn % 2, 3_000);
        run(&mut world, SECOND);
        assert_eq!(at_rest(&world), [0, 0], "{turn}");
        run(&mut world, 4 * REST_AFTER.0);
    }
    assert_eq!((heard_of(&world), world.nodes[1].store.fates.len()), (4, 3));
    assert_eq!(world.kinds_sent(HELLO), hellos);
}

/// Nothing that does not open: neither what was said before nor what somebody made up.
#[test]
fn what_does_not_open_wakes_nothing() {
    let mut world = rested(61);
    world.capture = Some(Vec::new());
    world.write(0, 1, 100);
    run(&mut world, 4 * REST_AFTER.0);
    let captured = world.capture.take().unwrap();
    assert_eq!(at_rest(&world), [1, 1]);
    let from = SocketAddr::from(([203, 0, 113, 9], 99));
    let mut read = 0;
    for (at, bytes) in captured.iter().enumerate() {
        for flipped in [None, Some(10), Some(bytes.len() - 1)] {
            let mut bytes = bytes.clone();
            if let Some(byte) = flipped {
                bytes[byte] ^= 1 + at as u8 % 7;
            }
            let (now, node) = (world.now, &mut world.nodes[1]);
            let (endpoint, memos) = (node.endpoint.as_mut().unwrap(), &node.memos);
            endpoint.handle_datagram(now, from, &bytes);
            while let Some(effect) = endpoint.poll_effect() {
                match effect {
                    Effect::ReadMemo { peer } => {
                        read += 1;
                        endpoint.place_read(now, peer, memos.get(&peer).copied().map(link::MemoPlace));
                    }
                    Effect::Datagram { to, bytes: answer } => {
                        assert!(to == from && answer.len() <= 3 * bytes.len());
                    }
                    other => panic!("{other:?} came of {bytes:02x?}"),
                }
            }
        }
    }
    assert!(read > 0, "none had the id of the link");
    assert_eq!(at_rest(&world), [1, 1]);
}

/// Who started anew hails, and its hail wakes the link that it names.
#[test]
fn a_peer_that_starts_anew_finds_a_link_at_rest() {
    let mut world = rested(62);
    let hellos = world.kinds_sent(HELLO);
    world.write(0, 1, 100);
    world.kill(0);
    run(&mut world, SECOND);
    world.start(0);
    run(&mut world, 5 * REST_AFTER.0);
    assert_eq!((at_rest(&world), world.kinds_sent(HELLO)), ([1, 1], hellos));
}

/// §10.10: a place that is lost while its link rests costs a hello and no record.
#[test]
fn a_place_that_is_lost_at_rest_costs_a_hello() {
    for (loses, writes) in [(0, 0), (1, 0), (0, 1)] {
        let mut world = rested(63);
        world.nodes[loses].memos.clear();
        let (hellos, fates) = (world.kinds_sent(HELLO), world.nodes[writes].store.fates.len());
        world.write(writes, 1 - writes, 100);
        run(&mut world, 90 * SECOND);
        assert_eq!(world.nodes[writes].store.fates.len(), fates + 1, "{loses} lost its place");
        assert!(world.kinds_sent(HELLO) > hellos);
    }
}

/// A peer that is removed while its link rests is told so at once, and its place is empty.
#[test]
fn a_peer_removed_at_rest_is_told() {
    let mut world = rested(64);
    let other = world.nodes[1].id();
    let packets = world.kinds_sent(PACKET);
    world.on_endpoint(0, |endpoint, _| endpoint.remove_peer(other));
    run(&mut world, SECOND);
    assert_eq!((state(&world, 1), world.kinds_sent(PACKET)), (PeerState::Declined, packets + 1));
    assert_eq!((at_rest(&world), world.nodes[0].memos[&other]), ([0, 0], [0; 256]));
}
