//! The change of roots: when epochs end, what a crash between two of them costs, and what is left of those that ended.

use link::Epochs;
use link::limits::{EPOCH_SPAN, REST_AFTER};
use sealing::memo::{Held, Memo, Role};
use sealing::{Root, Run};

use crate::cases::{run, two};
use crate::world::{SECOND, World};

const HELLO: u8 = 0x51;
const PACKET: u8 = 0x53;

/// A memo of a node of this world, as whoever seizes the node reads it.
fn memo(world: &World, node: usize) -> Memo {
    let place = world.nodes[node].memos.values().next().expect("one link");
    Memo::decode(place).expect("a whole memo")
}

/// The epoch of both nodes, once they agree and hold no other root.
fn epoch(world: &World) -> Option<u64> {
    let [here, there] = [0, 1].map(|node| memo(world, node));
    let settled = here.pending.is_none() && there.pending.is_none();
    let (here, there) = (here.current?, there.current?);
    (settled && here.root == there.root).then_some(here.epoch)
}

fn responder(world: &World) -> usize {
    let is_responder = |node: &usize| memo(world, *node).current.unwrap().role == Role::Responder;
    [0, 1].into_iter().find(is_responder).unwrap()
}

/// A link that was set up, rests, and has nothing to say.
pub fn rested(seed: u64) -> World {
    let mut world = two(seed);
    world.write(0, 1, 100);
    run(&mut world, 3 * REST_AFTER.0);
    assert!(world.is_at_rest());
    world
}

/// §10.1.
#[test]
fn an_epoch_ends_before_its_link_rests_if_it_carried_something() {
    let mut world = rested(40);
    let hellos = world.kinds_sent(HELLO);
    assert_eq!(epoch(&world), Some(2));
    run(&mut world, 24 * 3600 * SECOND);
    assert_eq!(epoch(&world), Some(2), "it carried nothing");
    for (from, next) in [(0, 3), (1, 4)] {
        world.write(from, 1 - from, 100);
        run(&mut world, REST_AFTER.0 / 2);
        assert_eq!(epoch(&world), Some(next - 1));
        run(&mut world, REST_AFTER.0);
        assert_eq!(epoch(&world), Some(next));
    }
    assert_eq!(world.kinds_sent(HELLO), hellos);
}

/// Somebody always has something to say, so that the link never rests.
#[test]
fn an_epoch_ends_after_its_time_and_after_its_bytes() {
    let usual = Epochs::default();
    for (epochs, expected) in [(usual, 3..=3), (Epochs { bytes: 30_000, ..usual }, 5..=20)] {
        let mut world = two(41);
        for node in 0..2 {
            world.nodes[node].epochs = epochs;
            world.kill(node);
            world.start(node);
        }
        // Each record of 800 bytes every half minute, with all around it about 1,100 bytes, for two hours and a little.
        for _ in 0..4 * EPOCH_SPAN.0 / REST_AFTER.0 + 4 {
            world.write(0, 1, 800);
            run(&mut world, REST_AFTER.0 / 2);
        }
        assert!(world.is_settled());
        let reached = epoch(&world).expect("no change is under way");
        assert!(expected.contains(&reached), "{reached}, not {expected:?}: {epochs:?}");
    }
}

/// The datagrams of a capture that whoever has this root and these runs can open.
fn opened(capture: &[Vec<u8>], held: &Held, mine: &[Run]) -> usize {
    let pairs: Vec<_> = mine
        .iter()
        .map(|mine| match held.role {
            Role::Initiator => held.root.pair(mine, &held.peer_run),
            Role::Responder => held.root.pair(&held.peer_run, mine),
        })
        .collect();
    let opens = |bytes: &&Vec<u8>| {
        let (header, ciphertext) = bytes.split_at(13);
        let number = u64::from(u32::from_be_bytes([header[9], header[10], header[11], header[12]]));
        let mut directions = pairs.iter().flat_map(|pair| [&pair.to_responder, &pair.to_initiator]);
        directions.any(|direction| direction.open(number, header, ciphertext).is_ok())
    };
    capture.iter().filter(|bytes| bytes[0] == PACKET).filter(opens).count()
}

/// Where this secret stands in what a node keeps.
fn places_of(world: &World, root: &Root) -> usize {
    let held = |place: &[u8; 256]| {
        let memo = Memo::decode(place).ok();
        memo.map_or([None, None], |memo| [memo.current, memo.pending]).into_iter().flatten().collect()
    };
    let places = world.nodes.iter().flat_map(|node| node.memos.values());
    places.flat_map(|place| -> Vec<Held> { held(place) }).filter(|held| held.root == *root).count()
}

/// Whoever listened to all and seizes both nodes afterwards opens the current epoch and nothing of those before.
#[test]
fn a_seized_node_opens_nothing_of_an_epoch_that_ended() {
    let mut world = two(42);
    world.capture = Some(Vec::new());
    for node in [0, 1, 0] {
        world.write(node, 1 - node, 5_000);
    }
    run(&mut world, 10 * SECOND);
    let capture = world.capture.take().unwrap();
    let before = memo(&world, 1).current.unwrap();
    let runs = [0, 1].map(|node| world.nodes[node].run);
    assert!(opened(&capture, &before, &runs) > 10, "who seizes it before the epoch ended opens it");
    run(&mut world, 2 * REST_AFTER.0);
    assert_eq!(places_of(&world, &before.root), 0);
    for node in 0..2 {
        let seized = memo(&world, node);
        assert_eq!(seized.pending, None);
        assert_eq!(opened(&capture, &seized.current.unwrap(), &runs), 0);
    }
}

/// Dies after each effect of an epoch change in turn: the link goes on without a hello, with what was written
/// meanwhile, and its epoch ends.
#[test]
fn a_crash_between_two_epochs_costs_no_hello() {
    let mut reached = 0;
    for (node, effects) in (0..2).flat_map(|node| (0..14).map(move |effects| (node, effects))) {
        let mut world = two(43);
        world.write(0, 1, 100);
        run(&mut world, REST_AFTER.0 - SECOND);
        let hellos = world.kinds_sent(HELLO);
        world.kill_after(node, effects);
        run(&mut world, 3 * SECOND);
        if world.nodes[node].endpoint.is_some() {
            continue;
        }
        reached += 1;
        world.write(1 - node, node, 100);
        world.start(node);
        world.write(node, 1 - node, 100);
        run(&mut world, 3 * SECOND);
        assert!(world.is_settled(), "{node} after {effects} effects");
        run(&mut world, 2 * REST_AFTER.0);
        assert!(world.is_at_rest() && epoch(&world).is_some_and(|epoch| epoch > 1), "{node} {effects}");
        assert_eq!(world.kinds_sent(HELLO), hellos, "{node} after {effects} effects");
    }
    assert!(reached >= 8, "{reached} crashes are no proof");
}

/// Both die at any point of it.
#[test]
fn a_crash_of_both_between_two_epochs_costs_no_hello() {
    for microseconds in (0..60_000).step_by(3_000) {
        let mut world = two(44);
        world.write(0, 1, 100);
        // The datagrams of the change fly about now.
        run(&mut world, REST_AFTER.0 + microseconds);
        let hellos = world.kinds_sent(HELLO);
        for node in 0..2 {
            world.kill(node);
        }
        for node in 0..2 {
            world.start(node);
            world.write(node, 1 - node, 100);
        }
        run(&mut world, 3 * SECOND);
        assert!(world.is_settled(), "after {microseconds} µs");
        assert_eq!(world.kinds_sent(HELLO), hellos, "after {microseconds} µs");
    }
}

/// A responder whose memo is one older than what it said: the initiator goes back to the root that both have (§10.5).
#[test]
fn a_memo_of_before_the_accept_costs_no_hello_either() {
    let mut world = two(45);
    world.write(0, 1, 100);
    run(&mut world, REST_AFTER.0 - SECOND);
    let hellos = world.kinds_sent(HELLO);
    let responder = responder(&world);
    let before = world.nodes[responder].memos.clone();
    // The accept arrives, and the initiator dies before it speaks under the next root.
    while memo(&world, 1 - responder).pending.is_none() {
        assert!(world.step(&mut |_| {}));
    }
    for node in 0..2 {
        world.kill(node);
    }
    world.nodes[responder].memos = before;
    for node in 0..2 {
        world.start(node);
        world.write(node, 1 - node, 100);
    }
    run(&mut world, 5 * SECOND);
    assert!(world.is_settled());
    run(&mut world, 2 * REST_AFTER.0);
    assert_eq!(epoch(&world), Some(2));
    assert_eq!(world.kinds_sent(HELLO), hellos);
}

/// Nobody answers the offer: the link rests all the same, and its epoch ends once the peer is heard (§10.6).
#[test]
fn a_peer_that_is_away_is_not_asked_for_ever() {
    let mut world = two(46);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    let away = responder(&world);
    world.kill(away);
    let before = world.datagrams;
    run(&mut world, 3600 * SECOND);
    assert!(world.is_at_rest() && world.datagrams - before < 15, "{} datagrams", world.datagrams - before);
    world.start(away);
    run(&mut world, 2 * REST_AFTER.0);
    assert!(world.is_at_rest());
    assert_eq!(epoch(&world), Some(2));
}

/// What flies while the root changes comes once, in order, and no later than after a round trip or two.
#[test]
fn records_go_on_through_a_change() {
    let mut world = two(47);
    for node in 0..2 {
        world.nodes[node].epochs = Epochs { bytes: 20_000, ..Epochs::default() };
        world.kill(node);
        world.start(node);
    }
    for _ in 0..60 {
        for node in 0..2 {
            world.write(node, 1 - node, 700);
        }
        run(&mut world, 20_000);
    }
    run(&mut world, 300_000);
    assert!(world.is_settled());
    assert_eq!(world.nodes.iter().map(|node| node.store.fates.len()).sum::<usize>(), 120);
    assert!(epoch(&world).is_some_and(|epoch| epoch > 3), "{:?}", epoch(&world));
}
