//! What an attacker tries on links of the production type. Which threat is tested where stands in docs/link.md, "Threats".

use std::net::SocketAddr;

use link::{PeerState, Time};

use crate::world::{SECOND, Weather, World};

const VICTIM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 9)), 99);

fn two(seed: u64) -> World {
    let mut world = World::new(seed, 2);
    world.capture = Some(Vec::new());
    world.befriend_all();
    world.start(0);
    world.start(1);
    world
}

fn run(world: &mut World, microseconds: u64) {
    let end = Time(world.now.0 + microseconds);
    world.run_until(end);
    assert_eq!(world.violation, None);
    world.now = end;
}

fn talk(world: &mut World) {
    for bytes in [100, 5_000, 0] {
        world.write(0, 1, bytes);
        world.write(1, 0, bytes);
    }
    run(world, 20 * SECOND);
    assert!(world.is_settled());
}

fn applied(world: &World) -> usize {
    world.nodes.iter().map(|node| node.store.applied.len()).sum()
}

/// All that was ever said is said again, from everywhere, to both.
fn replay(world: &mut World) {
    let captured = world.capture.clone().unwrap_or_default();
    let homes = [world.nodes[0].address, world.nodes[1].address, VICTIM];
    for bytes in captured.iter().chain(captured.iter().rev()) {
        for from in homes {
            for node in 0..2 {
                world.on_endpoint(node, |endpoint, now| endpoint.handle_datagram(now, from, bytes));
            }
        }
    }
}

/// §9.1.
#[test]
fn a_whole_capture_replayed_after_kills_and_moves_applies_nothing() {
    for with_memo in [true, false] {
        let mut world = two(1);
        talk(&mut world);
        world.move_away(0);
        talk(&mut world);
        for node in [1, 0] {
            world.kill(node);
            world.start(node);
            talk(&mut world);
        }
        world.leave_home(1);
        talk(&mut world);
        for node in [0, 1] {
            let before = applied(&world);
            world.kill(node);
            if !with_memo {
                world.nodes[node].memos.clear();
            }
            world.start(node);
            replay(&mut world);
            run(&mut world, 120 * SECOND);
            assert_eq!(applied(&world), before, "node {node}, with the memo: {with_memo}");
            replay(&mut world);
            talk(&mut world);
            assert_eq!(applied(&world), before + 6, "node {node}, with the memo: {with_memo}");
        }
    }
}

#[test]
fn a_mirror_on_the_path_is_no_peer() {
    let mut world = two(2);
    world.weather = Weather { reflection: 1_000, ..Weather::default() };
    for node in [0, 1, 0] {
        talk(&mut world);
        world.kill(node);
        world.start(node);
    }
    talk(&mut world);
    assert_eq!(applied(&world), 4 * 6);
    assert!(world.reached["reflection"] > 100);
}

/// Whoever takes one packet of a peer and sends it on from elsewhere makes a stranger get no more than three times that,
/// whatever waits for the peer (§6.1).
#[test]
fn a_move_that_somebody_made_up_floods_nobody() {
    let mut world = two(3);
    talk(&mut world);
    world.capture = Some(Vec::new());
    world.taken = |node, _| node == 0;
    world.write(0, 1, 100);
    run(&mut world, SECOND / 10);
    let captured = world.capture.take().unwrap_or_default();
    let of_0 = captured.iter().find(|bytes| bytes[0] == 0x53 && bytes.len() > 100).expect("its record");
    for _ in 0..90 {
        world.write(1, 0, 5_000);
    }
    let came = of_0.len() as u64;
    let before = world.sent_to.get(&VICTIM).copied().unwrap_or(0);
    for from in [VICTIM, VICTIM] {
        world.on_endpoint(1, |endpoint, now| endpoint.handle_datagram(now, from, of_0));
    }
    run(&mut world, 600 * SECOND);
    let sent = world.sent_to.get(&VICTIM).copied().unwrap_or(0) - before;
    assert!(sent > 0, "the move was not followed, so nothing is tested");
    // Challenges go one at a time, with the probes of a peer that is silent.
    assert!(sent <= 3 * came + 20 * 38, "{sent} bytes for {came}");
    world.taken = |_, _| false;
    run(&mut world, 200 * SECOND);
    assert!(world.is_settled());
}

/// Where roots stand in a memo place.
fn roots(place: &[u8; 256]) -> Vec<[u8; 32]> {
    let all = [59, 124].map(|at| place[at..at + 32].try_into().expect("32 bytes"));
    all.into_iter().filter(|root| *root != [0; 32]).collect()
}

#[test]
fn a_root_that_another_one_followed_is_in_no_memo_any_more() {
    let mut world = two(4);
    talk(&mut world);
    let places = |world: &World| -> Vec<[u8; 256]> {
        world.nodes.iter().flat_map(|node| node.memos.values().copied()).collect()
    };
    let old: Vec<[u8; 32]> = places(&world).iter().flat_map(roots).collect();
    assert!(!old.is_empty());
    world.kill(1);
    world.nodes[1].memos.clear();
    world.start(1);
    talk(&mut world);
    let new = places(&world);
    assert!(new.iter().all(|place| !roots(place).is_empty()));
    for place in new {
        let found = old.iter().any(|root| place.windows(32).any(|window| window == root));
        assert!(!found, "a memo still has a root that is no more in use");
    }
}

/// §9.6.
#[test]
fn nothing_that_shows_itself_shows_a_secret() {
    let mut world = two(5);
    world.shown = Some(String::new());
    talk(&mut world);
    world.kill(1);
    world.start(1);
    talk(&mut world);
    world.write(0, 1, 100);
    let mut shown = world.shown.take().unwrap_or_default();
    for node in &world.nodes {
        shown.push_str(&format!("{:?} {:?} {:?}", node.endpoint, node.identity, node.peers));
    }
    let mut secrets: Vec<Vec<u8>> = Vec::new();
    for place in world.nodes.iter().flat_map(|node| node.memos.values()) {
        secrets.extend(roots(place).into_iter().map(Vec::from));
        secrets.push(place[240..].to_vec());
    }
    assert!(secrets.len() >= 4 && shown.contains("Endpoint") && shown.contains("SaveMemo"));
    for secret in secrets {
        let numbers = format!("{:?}", &secret[..8]);
        let hexadecimal: String = secret[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!shown.contains(numbers.trim_matches(['[', ']'])), "{numbers} is shown");
        assert!(!shown.to_lowercase().contains(&hexadecimal), "{hexadecimal} is shown");
    }
}

/// A node that was removed: what it says on a link that lives, on one that it resumes, and anew.
#[test]
fn a_removed_peer_is_heard_on_no_link_that_it_had() {
    for restarts in [false, true] {
        let mut world = two(6);
        talk(&mut world);
        let (peer, before) = (world.nodes[0].id(), applied(&world));
        world.on_endpoint(1, |endpoint, _| endpoint.remove_peer(peer));
        assert_eq!(world.nodes[1].memos[&peer], [0; 256]);
        world.nodes[1].peers.clear();
        if restarts {
            world.kill(1);
            world.start(1);
            world.kill(0);
            world.start(0);
        }
        for _ in 0..3 {
            world.write(0, 1, 100);
            run(&mut world, 100 * SECOND);
            replay(&mut world);
        }
        assert_eq!(applied(&world), before, "after restarts: {restarts}");
        let other = world.nodes[1].id();
        let state = world.nodes[0].endpoint.as_ref().and_then(|endpoint| endpoint.peer_status(other));
        assert_eq!(state.map(|status| status.state), Some(PeerState::Declined), "after restarts: {restarts}");
    }
}
