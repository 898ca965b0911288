//! What a bystander sees of nodes that are asked to be discreet.

use std::collections::BTreeSet;

use link::limits::{DATAGRAM_BYTES_MAX, PADDED_BYTES};

use crate::cases::{run, two};
use crate::world::{SECOND, World};

const HELLO: u8 = 0x51;
const PACKET: u8 = 0x53;
const HAIL: u8 = 0x54;

/// Two nodes, discreet or not, and all that they say to each other.
fn observed(is_discreet: bool) -> World {
    let mut world = two(60);
    world.capture = Some(Vec::new());
    for node in 0..2 {
        world.kill(node);
        world.nodes[node].memos.clear();
        world.nodes[node].is_discreet = is_discreet;
    }
    for node in 0..2 {
        world.start(node);
    }
    world
}

fn talk(world: &mut World) {
    for bytes in [0, 3, 40, 100, 333, 790, 3_000] {
        for node in 0..2 {
            world.write(node, 1 - node, bytes);
            run(world, SECOND / 3);
        }
    }
    assert!(world.is_settled());
}

fn lengths(world: &World, kinds: &[u8]) -> BTreeSet<usize> {
    let capture = world.capture.as_ref().unwrap();
    capture.iter().filter(|bytes| kinds.contains(&bytes[0])).map(Vec::len).collect()
}

/// §6.5.
#[test]
fn lengths_say_little() {
    for is_discreet in [true, false] {
        let mut world = observed(is_discreet);
        talk(&mut world);
        world.kill(1);
        world.start(1);
        talk(&mut world);
        let seen = lengths(&world, &[PACKET, HAIL]);
        let few: BTreeSet<usize> = PADDED_BYTES.into_iter().chain([DATAGRAM_BYTES_MAX]).collect();
        assert_eq!(seen.is_subset(&few), is_discreet, "{seen:?}");
        assert!(!is_discreet || lengths(&world, &[HELLO]).len() <= 2);
    }
}

/// The ids of all packets from here on.
fn ids(world: &mut World) -> BTreeSet<Vec<u8>> {
    world.capture = Some(Vec::new());
    talk(world);
    let capture = world.capture.as_ref().unwrap();
    capture.iter().filter(|bytes| bytes[0] == PACKET).map(|bytes| bytes[1..9].to_vec()).collect()
}

/// Whichever of the two moves, and whichever of them said the hello (§10.7).
#[test]
fn a_link_has_other_ids_after_a_move() {
    for (is_discreet, node) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let mut world = observed(is_discreet);
        talk(&mut world);
        let before = ids(&mut world);
        world.move_away(node);
        world.write(node, 1 - node, 100);
        run(&mut world, SECOND / 2);
        let after = ids(&mut world);
        assert_eq!(before.is_disjoint(&after), is_discreet, "{node} moves: {before:?} {after:?}");
    }
}
