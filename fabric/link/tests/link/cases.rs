//! Single situations with the course that they must take.

use std::net::SocketAddr;

use link::limits::{GREETINGS_PER_SECOND, MOVE_INTERVAL, MOVES_MAX, REST_AFTER};
use link::{DownReason, Effect, Peer, PeerState, Time};
use sealing::NodeId;

use crate::world::{Forwarder, SECOND, World};

pub fn two(seed: u64) -> World {
    let mut world = World::new(seed, 2);
    world.befriend_all();
    for node in &mut world.nodes {
        for peer in &mut node.peers {
            peer.addresses.retain(|address| address.port() != 1);
        }
    }
    // Node 0 holds the card of 1 and 1 that of 0.
    let cards = [world.nodes[1].card.clone(), world.nodes[0].card.clone()];
    for (node, card) in world.nodes.iter_mut().zip(cards) {
        node.peers[0].card = Some(card);
    }
    world.start(0);
    world.start(1);
    world
}

pub fn run(world: &mut World, microseconds: u64) {
    let end = Time(world.now.0 + microseconds);
    world.run_until(end);
    assert_eq!(world.violation, None);
    world.now = end;
}

/// One way takes 5 ms and a commit at most 20 ms: a record is written, committed, sent, applied, committed, told.
const ONE_ROUND_TRIP: u64 = 20_000 + 5_000 + 20_000 + 5_000;

#[test]
fn first_contact_takes_one_round_trip_to_stored() {
    let mut world = two(1);
    world.write(0, 1, 100);
    run(&mut world, ONE_ROUND_TRIP);
    assert_eq!(world.nodes[0].store.fates.len(), 1);
}

#[test]
fn a_restarted_receiver_is_found_by_the_next_record_in_a_round_trip_more() {
    for with_memo in [true, false] {
        let mut world = two(2);
        world.write(0, 1, 100);
        run(&mut world, 7 * 24 * 3600 * SECOND);
        world.kill(1);
        if !with_memo {
            world.nodes[1].memos.clear();
        }
        world.start(1);
        run(&mut world, SECOND);
        world.write(0, 1, 100);
        // Told of the restart, said again; a lost memo needs a hello, whose records wait for nothing.
        run(&mut world, ONE_ROUND_TRIP + 2 * 10_000 + 25_000);
        assert_eq!(world.nodes[0].store.fates.len(), 2, "with the memo: {with_memo}");
    }
}

#[test]
fn a_receiver_that_was_away_for_long_has_the_backlog_at_once() {
    let mut world = two(8);
    world.write(0, 1, 100);
    run(&mut world, SECOND);
    world.kill(1);
    for _ in 0..20 {
        world.write(0, 1, 100);
    }
    run(&mut world, 3600 * SECOND);
    world.start(1);
    run(&mut world, 5_000 + ONE_ROUND_TRIP + 20_000 + 25_000);
    assert_eq!(world.nodes[0].store.fates.len(), 21);
}

#[test]
fn a_link_at_rest_has_no_timer_and_sends_nothing() {
    let mut world = two(3);
    world.write(0, 1, 100);
    run(&mut world, 3 * REST_AFTER.0);
    let before = world.datagrams;
    assert!(world.is_at_rest());
    run(&mut world, 30 * 24 * 3600 * SECOND);
    assert_eq!(world.datagrams, before);
}

#[test]
fn a_stranger_is_declined_and_shown() {
    let mut world = two(4);
    let peer = world.nodes[0].id();
    let mut shown = false;
    world.on_endpoint(1, |endpoint, _| endpoint.remove_peer(peer));
    world.write(0, 1, 100);
    let status = |world: &World| {
        let other = world.nodes[1].id();
        world.nodes[0].endpoint.as_ref().unwrap().peer_status(other).unwrap().state
    };
    run(&mut world, 3 * SECOND);
    assert_eq!(status(&world), PeerState::Declined);
    shown |= world.reached.contains_key("a stranger said hello");
    assert!(shown);
    // Added after all: what waited arrives.
    let back = world.nodes[1].peers[0].clone();
    world.on_endpoint(1, |endpoint, now| endpoint.add_peer(now, back));
    run(&mut world, 60 * SECOND);
    assert_eq!(world.nodes[0].store.fates.len(), 1);
    assert_eq!(status(&world), PeerState::Up);
}

#[test]
fn a_peer_without_card_or_ticket_is_named_as_that() {
    let mut world = two(5);
    world.kill(0);
    world.kill(1);
    world.nodes[0].peers[0].card = None;
    world.nodes[0].peers[0].card_hash = None;
    world.start(0);
    world.write(0, 1, 100);
    run(&mut world, SECOND);
    let other = world.nodes[1].id();
    let state = world.nodes[0].endpoint.as_ref().unwrap().peer_status(other).unwrap().state;
    assert_eq!(state, PeerState::Down { why: DownReason::NoCard });
}

#[test]
fn the_memo_is_saved_before_the_accept_leaves() {
    let mut world = two(6);
    world.capture = Some(Vec::new());
    world.write(0, 1, 100);
    run(&mut world, 20_000);
    let from = world.nodes[0].home;
    let hello: Vec<Vec<u8>> =
        world.capture.take().unwrap().into_iter().filter(|bytes| bytes[0] == 0x51).collect();
    world.kill(1);
    world.nodes[1].memos.clear();
    world.start(1);
    let now = world.now;
    let endpoint = world.nodes[1].endpoint.as_mut().unwrap();
    for bytes in hello.iter().take(3) {
        endpoint.handle_datagram(now, from, bytes);
    }
    let effects: Vec<Effect> = std::iter::from_fn(|| endpoint.poll_effect()).collect();
    let saved = effects.iter().position(|effect| matches!(effect, Effect::SaveMemo { .. })).expect("a memo");
    let left =
        effects.iter().position(|effect| matches!(effect, Effect::Datagram { .. })).expect("an accept");
    assert!(saved < left);
}

/// The sender is set back, goes on with other records under the same numbers, and must not be told that they arrived.
fn set_back(seed: u64, ignores_tags: bool) -> World {
    let mut world = two(seed);
    world.nodes[1].ignores_tags = ignores_tags;
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    world.back_up(0);
    for _ in 0..5 {
        world.write(0, 1, 100);
    }
    run(&mut world, 10 * SECOND);
    world.roll_back(0);
    for _ in 0..8 {
        world.write(0, 1, 100);
    }
    let end = Time(world.now.0 + 100 * SECOND);
    world.run_until(end);
    world
}

#[test]
fn a_sender_set_back_is_told_and_a_ledger_without_tags_is_found_out() {
    let world = set_back(7, false);
    assert!(world.reached.contains_key("the sender was told that it forked"));
    assert_eq!(world.falsely_delivered(), 0);
    let found = (7..27).any(|seed| set_back(seed, true).falsely_delivered() > 0);
    assert!(found, "the planted bug was not found");
}

#[test]
fn a_node_that_moved_and_has_nothing_to_send_is_found() {
    for with_memo in [true, false] {
        let mut world = two(9);
        world.write(0, 1, 100);
        run(&mut world, 10 * SECOND);
        world.kill(1);
        if !with_memo {
            world.nodes[1].memos.clear();
        }
        world.leave_home(1);
        world.write(0, 1, 100);
        world.weather.loss = 1000;
        world.start(1);
        run(&mut world, 10 * SECOND);
        world.weather.loss = 0;
        run(&mut world, 20 * SECOND);
        assert_eq!(world.nodes[0].store.fates.len(), 2, "with the memo: {with_memo}");
    }
}

#[test]
fn a_fresh_peer_is_known_at_once_to_the_other_side() {
    let mut world = two(10);
    world.kill(0);
    world.kill(1);
    world.nodes[0].peers[0].addresses = vec![SocketAddr::from(([10, 9, 9, 9], 1))];
    world.start(0);
    world.start(1);
    world.write(0, 1, 100);
    run(&mut world, 2 * SECOND);
    assert_eq!(world.nodes[0].store.fates.len(), 1);
}

#[test]
fn many_fresh_peers_are_greeted_in_turn_and_rarely_once_they_do_not_answer() {
    let mut world = two(11);
    let card = world.nodes[1].card.clone();
    let other = card.node();
    world.on_endpoint(0, |endpoint, _| endpoint.remove_peer(other));
    let endpoint = world.nodes[0].endpoint.as_mut().unwrap();
    let count = 2 * GREETINGS_PER_SECOND;
    let start = Time(1000 * SECOND);
    for at in 0..count {
        let mut node = [7; 32];
        node[..8].copy_from_slice(&at.to_be_bytes());
        let addresses = vec![SocketAddr::from(([10, 1, 1, 1], 7))];
        let card_hash = Some(card.hash());
        let peer = Peer { node: NodeId(node), card_hash, card: None, addresses, memo: None };
        endpoint.add_peer(start, peer);
    }
    let mut sent_by = |end: Time| {
        let mut sent = 0;
        while let Some(at) = endpoint.next_timeout().filter(|at| *at < end) {
            endpoint.handle_timeout(at.max(start));
            let effects = std::iter::from_fn(|| endpoint.poll_effect());
            sent += effects.filter(|effect| matches!(effect, Effect::Datagram { .. })).count() as u64;
        }
        sent
    };
    // Each asks for a card of two pieces; only the first ones have their turn in the first second.
    assert_eq!(sent_by(Time(start.0 + SECOND)), 2 * GREETINGS_PER_SECOND);
    sent_by(Time(start.0 + 3600 * SECOND));
    let an_hour = sent_by(Time(start.0 + 2 * 3600 * SECOND));
    assert_eq!(an_hour, 2 * count * 6);
}

#[test]
fn a_peer_that_is_removed_and_added_in_one_process_is_no_older_than_it_was() {
    let mut world = two(12);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    let back = world.nodes[0].peers[0].clone();
    world.on_endpoint(0, |endpoint, now| {
        endpoint.remove_peer(back.node);
        endpoint.add_peer(now, back);
    });
    let hellos = world.kinds_sent(0x51);
    run(&mut world, 10 * SECOND);
    // One hello of three datagrams, and none that was behind.
    assert_eq!(world.kinds_sent(0x51) - hellos, 3);
}

#[test]
fn a_node_whose_runs_went_back_is_told_how_far_and_is_well_above() {
    for with_memo in [true, false] {
        let mut world = two(13);
        for _ in 0..3 {
            world.kill(0);
            world.start(0);
            world.write(0, 1, 100);
            run(&mut world, 10 * SECOND);
        }
        let known = world.nodes[0].runs;
        world.kill(0);
        world.nodes[0].runs = 1;
        if !with_memo {
            world.nodes[0].memos.clear();
        }
        world.start(0);
        world.write(0, 1, 100);
        run(&mut world, 60 * SECOND);
        assert_eq!(world.behind, vec![(0, known)], "with the memo: {with_memo}");
        world.kill(0);
        world.nodes[0].runs = known;
        world.start(0);
        run(&mut world, 60 * SECOND);
        assert_eq!(world.nodes[0].store.fates.len(), 4, "with the memo: {with_memo}");
        assert_eq!(world.behind.len(), 1);
    }
}

/// Somebody on the path needs no key to make every datagram seem to come from elsewhere.
#[test]
fn ports_that_change_all_the_time_make_no_storm() {
    for (ports, each) in [(2, 1), (2, 2), (2, 3), (3, 1), (12, 1), (12, 6)] {
        for (records, bound) in [(1, 20), (20, 150)] {
            let mut world = two(14);
            world.write(0, 1, 100);
            run(&mut world, 10 * SECOND);
            world.forwarder = Some(Forwarder { ports, each });
            let before = world.datagrams;
            for _ in 0..records {
                world.write(0, 1, 100);
                run(&mut world, 10 * SECOND / records);
            }
            let sent = world.datagrams - before;
            assert!(world.is_settled(), "{ports} ports, {each} each");
            assert_eq!(world.nodes[0].store.fates.len() as u64, 1 + records);
            assert!(sent < bound, "{records} records, {ports} ports, {each} each: {sent} datagrams");
            run(&mut world, 2 * REST_AFTER.0);
            let before = world.datagrams;
            run(&mut world, 3600 * SECOND);
            assert_eq!(world.datagrams, before, "nobody has anything to say");
        }
    }
}

#[test]
fn all_records_come_through_a_storm_of_ports_and_the_moves_are_few() {
    for (ports, each) in [(2, 1), (12, 6)] {
        let mut world = two(15);
        world.write(0, 1, 100);
        run(&mut world, 10 * SECOND);
        world.forwarder = Some(Forwarder { ports, each });
        let times = 400;
        for at in 0..times {
            world.write(at % 2, 1 - at % 2, if at % 40 == 0 { 20_000 } else { 100 });
            run(&mut world, 10 * SECOND / times as u64);
        }
        run(&mut world, 10 * SECOND);
        assert!(world.is_settled());
        let fates: usize = world.nodes.iter().map(|node| node.store.fates.len()).sum();
        assert_eq!(fates, times + 1);
        let proven = world.reached["an address was proven"];
        // Two sides: those at once, one more each interval, and the first contact.
        let moves = 2 * (MOVES_MAX + 20 * SECOND / MOVE_INTERVAL.0 + 1);
        assert!(proven <= moves, "{ports} ports, {each} each: {proven} moves");
    }
}

#[test]
fn a_moved_peer_is_followed_with_the_first_packet() {
    let mut world = two(16);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    for at in 0..MOVES_MAX {
        world.leave_home(0);
        world.write(0, 1, 100);
        run(&mut world, ONE_ROUND_TRIP);
        assert_eq!(world.nodes[0].store.fates.len() as u64, 2 + at);
    }
}

/// A packet of a response alone has 38 bytes, as one of a challenge alone.
fn is_response_of_0(node: usize, bytes: &[u8]) -> bool {
    node == 0 && bytes[0] == 0x53 && bytes.len() == 38
}

/// An address that nothing comes back from is not asked for ever while nobody has anything to say.
#[test]
fn responses_that_never_come_are_not_asked_for_without_end() {
    let mut world = two(17);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    world.taken = is_response_of_0;
    world.move_away(0);
    let before = world.datagrams;
    world.write(0, 1, 100);
    run(&mut world, 60 * SECOND);
    assert_eq!(world.nodes[0].store.fates.len(), 2);
    let sent = world.datagrams - before;
    assert!(sent < 12, "{sent} datagrams");
}

#[test]
fn an_address_that_never_answers_gets_all_records_within_what_it_may_have() {
    let mut world = two(18);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    world.taken = is_response_of_0;
    world.move_away(0);
    world.write(0, 1, 100);
    for _ in 0..5 {
        world.write(1, 0, 900);
        run(&mut world, SECOND / 5);
    }
    run(&mut world, 60 * SECOND);
    assert!(world.is_settled());
}

#[test]
fn a_peer_that_moves_after_a_storm_of_ports_is_followed_once_there_is_a_token() {
    let mut world = two(19);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    world.forwarder = Some(Forwarder { ports: 12, each: 1 });
    for at in 0..40 {
        world.write(at % 2, 1 - at % 2, 100);
        run(&mut world, SECOND / 20);
    }
    world.forwarder = None;
    run(&mut world, SECOND);
    assert!(world.is_settled());
    world.leave_home(0);
    world.write(0, 1, 100);
    // Its probes double: the first one after there is a token comes at most as late again.
    run(&mut world, 2 * MOVE_INTERVAL.0 + SECOND);
    assert!(world.is_settled());
}

#[test]
fn what_is_worth_something_now_or_never_comes_once_or_never() {
    let mut world = two(31);
    let came = |world: &World| world.reached.get("something said now or never came").copied().unwrap_or(0);
    // Nobody is there yet: it is gone.
    world.say(0, 1);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    assert_eq!(came(&world), 0);
    world.say(0, 1);
    run(&mut world, SECOND);
    assert_eq!(came(&world), 1);
    // No timer waits for it, but for the end of its epoch, and no acknowledgement comes.
    let before = world.datagrams;
    world.say(0, 1);
    run(&mut world, REST_AFTER.0 - SECOND);
    assert_eq!((came(&world), world.datagrams), (2, before + 1));
    // Every datagram comes twice: nothing is heard twice. The harness fails where it is.
    world.weather.duplication = 1_000;
    world.say(0, 1);
    run(&mut world, SECOND);
    assert_eq!(came(&world), 3);
    world.weather = Default::default();
    // The receiver starts anew: what is said to the run before is not heard by the new one.
    world.kill(1);
    world.say(0, 1);
    world.start(1);
    run(&mut world, 10 * SECOND);
    assert_eq!(came(&world), 3);
    world.write(0, 1, 100);
    run(&mut world, 10 * SECOND);
    world.say(0, 1);
    run(&mut world, SECOND);
    assert_eq!(came(&world), 4);
    let large = link::Transient { from_app: "a".into(), to_app: "b".into(), payload: vec![0; 801].into() };
    let (peer, before) = (world.nodes[1].id(), world.datagrams);
    world.on_endpoint(0, |endpoint, now| endpoint.transient(now, peer, large));
    assert_eq!(world.datagrams, before);
}
