//! Ids, cards, tickets, memo places and packet keys: what goes in comes out, and whatever is changed is refused.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use proptest::prelude::*;
use sealing::memo::{Held, HelloCounters, Memo, MemoError, PLACE_BYTES, Role};
use sealing::{
    ADDRESSES_MAX, Card, CardError, Identity, Member, MemberCard, NodeId, NodeIdError, Roster, RosterError,
    Run, Tag, Ticket, TicketError, Toward, Whereabouts, WhereaboutsError, hello,
};

const ANN_RUN: Run = Run { counter: 1, random: [1; 16] };
const BEN_RUN: Run = Run { counter: 2, random: [2; 16] };

fn identity(number: u8) -> Identity {
    Identity::from_seed(&[number; 64])
}

fn rng(seed: u64) -> rand_chacha::ChaCha20Rng {
    rand_core::SeedableRng::seed_from_u64(seed)
}

fn root(seed: u64) -> sealing::Root {
    let (ann, ben) = (identity(1), identity(2));
    let card = ben.card(0);
    let (bytes, _) = hello::seal_hello(&ann, &ANN_RUN, 1, &card, b"", &mut rng(seed));
    hello::open_hello(&ben, &card, &bytes).unwrap().accept(&BEN_RUN, &mut rng(seed)).1
}

#[test]
fn a_card_verifies_and_says_what_was_signed() {
    let ann = identity(1);
    let card = ann.card(7);
    let verified = Card::verify(card.bytes()).unwrap();
    assert_eq!(verified, card);
    assert_eq!((verified.node(), verified.sequence(), verified.hash()), (ann.id(), 7, card.hash()));
    assert_eq!(ann.card(7), card);
    assert_ne!(ann.card(8).hash(), card.hash());
    assert_ne!(identity(2).card(7).hash(), card.hash());
}

/// A statement of each kind, and whether bytes are one.
type Kind = (&'static str, Vec<u8>, fn(&[u8]) -> bool);

fn one_of_each_kind() -> Vec<Kind> {
    let ann = identity(1);
    let addresses = ["192.0.2.1:7", "[2001:db8::1]:8"].map(|text| text.parse().unwrap());
    let card = identity(2).card(1);
    let by_hash = |number: u8, name: &str| {
        let card = identity(number).card(1);
        Member { node: card.node(), name: name.to_owned(), card: MemberCard::Hash(card.hash()) }
    };
    let whole = Member { node: card.node(), name: "ben".to_owned(), card: MemberCard::Whole(Box::new(card)) };
    let members = vec![by_hash(1, "ann"), whole, by_hash(3, "")];
    vec![
        ("card", ann.card(7).bytes().to_vec(), |bytes| Card::verify(bytes).is_ok()),
        ("whereabouts", ann.whereabouts(7, &addresses).bytes().to_vec(), |bytes| {
            Whereabouts::verify(bytes).is_ok()
        }),
        ("roster", Roster::sign(&ann, 7, members).unwrap().bytes().to_vec(), |bytes| {
            Roster::verify(bytes).is_ok()
        }),
    ]
}

#[test]
fn any_changed_byte_of_a_statement_any_cut_and_any_other_kind_is_refused() {
    let kinds = one_of_each_kind();
    for (name, bytes, verifies) in &kinds {
        assert!(verifies(bytes), "{name}");
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << (position % 8);
            assert!(!verifies(&changed), "{name}: byte {position}");
        }
        for length in (0..bytes.len()).step_by(7) {
            assert!(!verifies(&bytes[..length]), "{name}: cut to {length}");
        }
        assert!(!verifies(&[bytes.as_slice(), &[0]].concat()), "{name}: longer");
        for (other, _, verifies_other) in kinds.iter().filter(|(other, ..)| other != name) {
            assert!(!verifies_other(bytes), "{name} as {other}");
        }
    }
}

#[test]
fn the_later_statement_of_the_same_node_counts() {
    let (ann, ben) = (identity(1), identity(2));
    let table = [((&ann, 2), (&ann, 1), true), ((&ann, 1), (&ann, 1), false), ((&ann, 2), (&ben, 1), false)];
    for ((new, sequence), (old, before), counts) in table {
        assert_eq!(new.card(sequence).supersedes(&old.card(before)), counts);
        assert_eq!(new.whereabouts(sequence, &[]).supersede(&old.whereabouts(before, &[])), counts);
        let roster = |identity, sequence| Roster::sign(identity, sequence, Vec::new()).unwrap();
        assert_eq!(roster(new, sequence).supersedes(&roster(old, before)), counts);
    }
}

#[test]
fn what_is_wrong_with_whereabouts_or_a_roster_is_named() {
    let whereabouts = identity(1).whereabouts(7, &[]).bytes().to_vec();
    let of_version = |version| [&[version], &whereabouts[1..]].concat();
    let error = |bytes: &[u8]| Whereabouts::verify(bytes).unwrap_err();
    assert_eq!(error(&[]), WhereaboutsError::Length(0));
    assert_eq!(error(&[1; 300]), WhereaboutsError::Length(300));
    assert_eq!(error(&of_version(2)), WhereaboutsError::Version(2));
    let error = |bytes: &[u8]| Roster::verify(bytes).unwrap_err();
    assert_eq!(error(&[1; 20]), RosterError::Length(20));
    assert_eq!(error(&[2; 200]), RosterError::Version(2));
    assert_eq!(error(&[1; 200]), RosterError::Signature);
}

#[test]
fn what_is_wrong_with_a_card_is_named() {
    let card = identity(1).card(7);
    let bytes = card.bytes();
    let with = |position: usize, value: u8| {
        let mut changed = bytes.to_vec();
        changed[position] = value;
        changed
    };
    let mut weak = bytes.to_vec();
    weak[1..33].fill(0);
    weak[1] = 1;
    let signature = bytes.len() - 64;
    weak[signature..].fill(0);
    weak[signature] = 1;
    let table = [
        ("nothing", Vec::new(), CardError::Length(0)),
        ("cut", bytes[..bytes.len() - 1].to_vec(), CardError::Length(bytes.len() - 1)),
        ("longer", [bytes, &[0]].concat(), CardError::Length(bytes.len() + 1)),
        ("version 2", with(0, 2), CardError::Version(2)),
        ("another node", with(1, bytes[1] ^ 1), CardError::Signature),
        ("another sequence", with(40, 8), CardError::Signature),
        ("another suite", with(42, 2), CardError::Signature),
        ("another KEM key", with(43, bytes[43] ^ 1), CardError::Signature),
        ("a node of small order", weak, CardError::Signature),
    ];
    for (name, changed, expected) in table {
        assert_eq!(Card::verify(&changed), Err(expected), "{name}");
    }
}

#[test]
fn a_wrong_text_is_named() {
    let id = identity(1).id();
    let text = id.to_string();
    assert_eq!(text.len(), 61);
    let ticket_text = identity(1).ticket(1, &[]).to_string();
    assert!(matches!("".parse::<NodeId>(), Err(NodeIdError::Prefix(_))));
    assert!(matches!(text.to_uppercase().parse::<NodeId>(), Err(NodeIdError::Prefix(_))));
    assert!(matches!(text.replacen("sv1", "sv2", 1).parse::<NodeId>(), Err(NodeIdError::Prefix(_))));
    assert!(matches!(format!("{text} ").parse::<NodeId>(), Err(NodeIdError::Shape(_))));
    for short in ["sv1", "sv1aaaaaaaaaa", &text[..60], &text[..53]] {
        assert!(matches!(short.parse::<NodeId>(), Err(NodeIdError::Shape(_))), "{short}");
    }
    assert!(matches!(format!("{text}aaaaaaaa").parse::<NodeId>(), Err(NodeIdError::Shape(_))));
    assert!(matches!(ticket_text.parse::<NodeId>(), Err(NodeIdError::Prefix(_))));
    assert!(matches!(text.parse::<Ticket>(), Err(TicketError::Prefix(_))));
    assert!(matches!("svtx".parse::<Ticket>(), Err(TicketError::Prefix(_))));
    assert_eq!(ticket_text.replacen("svt2", "svt1", 1).parse::<Ticket>(), Err(TicketError::Version('1')));
    assert!(matches!(
        ticket_text[..40].parse::<Ticket>(),
        Err(TicketError::Shape(_) | TicketError::Checksum(_))
    ));
}

#[test]
fn a_ticket_names_at_most_eight_addresses() {
    let addresses: Vec<SocketAddr> = (1..10).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
    let read: Ticket = identity(1).ticket(1, &addresses).to_string().parse().unwrap();
    assert_eq!(read.addresses(), &addresses[..ADDRESSES_MAX]);
}

/// Whether `text` with the character at `position` made `character` is refused, or is the text itself.
fn one_character_refused<T: std::str::FromStr>(text: &str, position: usize, character: char) -> bool {
    let position = position % text.len();
    let changed: String = text
        .chars()
        .enumerate()
        .map(|(index, old)| if index == position { character } else { old })
        .collect();
    changed == text || changed.parse::<T>().is_err()
}

fn address() -> impl Strategy<Value = SocketAddr> {
    prop_oneof![
        (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from),
        (any::<[u8; 16]>(), any::<u16>()).prop_map(SocketAddr::from),
    ]
}

fn ticket() -> impl Strategy<Value = Ticket> {
    (any::<u8>(), any::<u64>(), prop::collection::vec(address(), 0..=ADDRESSES_MAX))
        .prop_map(|(number, sequence, addresses)| identity(number).ticket(sequence, &addresses))
}

fn member() -> impl Strategy<Value = Member> {
    (any::<u8>(), "\\PC{0,16}", any::<bool>()).prop_map(|(number, name, is_whole)| {
        let card = identity(number).card(u64::from(number));
        let node = card.node();
        let card = if is_whole { MemberCard::Whole(Box::new(card)) } else { MemberCard::Hash(card.hash()) };
        Member { node, name, card }
    })
}

fn run() -> impl Strategy<Value = Run> {
    (any::<u64>(), any::<[u8; 16]>()).prop_map(|(counter, random)| Run { counter, random })
}

fn held() -> impl Strategy<Value = Held> {
    (any::<bool>(), any::<u64>(), 0..3u64, run()).prop_map(|(initiator, epoch, seed, peer_run)| Held {
        role: if initiator { Role::Initiator } else { Role::Responder },
        epoch,
        root: root(seed),
        peer_run,
    })
}

fn memo() -> impl Strategy<Value = Memo> {
    let counters = (any::<u64>(), any::<u64>())
        .prop_map(|(run_counter, hello_sequence)| HelloCounters { run_counter, hello_sequence });
    let option = prop::option::of::<BoxedStrategy<Held>>;
    let roots = (option(held().boxed()), option(held().boxed()));
    (any::<[u8; 32]>(), roots, counters, prop::option::of(address()), any::<bool>()).prop_map(
        |(peer, (current, pending), hello_heard, address, is_fenced)| Memo {
            peer: NodeId::from_bytes(peer),
            current,
            pending,
            hello_heard,
            address,
            is_fenced,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_node_id_is_read_as_written(bytes: [u8; 32]) {
        let id = NodeId::from_bytes(bytes);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn one_changed_character_of_a_node_id_is_refused(bytes: [u8; 32], position: usize, character in "[a-zA-Z0-9 ]") {
        let text = NodeId::from_bytes(bytes).to_string();
        let character = character.chars().next().unwrap();
        prop_assert!(one_character_refused::<NodeId>(&text, position, character));
    }

    #[test]
    fn a_ticket_is_read_as_written(ticket in ticket()) {
        prop_assert_eq!(ticket.to_string().parse(), Ok(ticket));
    }

    #[test]
    fn one_changed_character_of_a_ticket_is_refused(
        ticket in ticket(), position: usize, character in "[a-zA-Z0-9 ]",
    ) {
        let character = character.chars().next().unwrap();
        prop_assert!(one_character_refused::<Ticket>(&ticket.to_string(), position, character));
    }

    #[test]
    fn whereabouts_are_read_as_written(
        number: u8, sequence: u64, addresses in prop::collection::vec(address(), 0..12),
    ) {
        let signed = identity(number).whereabouts(sequence, &addresses);
        prop_assert_eq!(Whereabouts::verify(signed.bytes()), Ok(signed.clone()));
        prop_assert_eq!(identity(number).whereabouts(sequence, signed.addresses()), signed);
    }

    #[test]
    fn a_roster_is_read_as_written(sequence: u64, members in prop::collection::vec(member(), 0..4)) {
        match Roster::sign(&identity(1), sequence, members.clone()) {
            Ok(signed) => {
                let read = Roster::verify(signed.bytes()).unwrap();
                prop_assert_eq!(&read, &signed);
                prop_assert!(members.iter().all(|member| read.member(&member.node) == Some(member)));
                prop_assert_eq!(read.members().len(), members.len());
            }
            Err(error) => prop_assert!(matches!(error, RosterError::Order(_)), "{}", error),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = (format!("sv1{text}").parse::<NodeId>(), format!("svt2{text}").parse::<Ticket>());
    }

    #[test]
    fn a_memo_is_read_as_written_and_refused_when_changed(memo in memo(), position in 0..PLACE_BYTES, change in 1u8..) {
        let mut place = memo.encode();
        prop_assert_eq!(Memo::decode(&place), Ok(memo));
        place[position] ^= change;
        prop_assert_eq!(Memo::decode(&place), Err(MemoError::Checksum));
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        prop_assert!(Card::verify(&bytes).is_err());
        prop_assert!(Whereabouts::verify(&bytes).is_err());
        prop_assert!(Roster::verify(&bytes).is_err());
        let ben = identity(2);
        prop_assert!(hello::open_hello(&ben, &ben.card(0), &bytes).is_err());
    }
}

#[test]
fn an_empty_or_newer_place_is_a_lost_memo() {
    assert_eq!(Memo::decode(&[0; PLACE_BYTES]), Err(MemoError::Empty));
    let mut place = [0; PLACE_BYTES];
    place[3] = 1;
    assert_eq!(Memo::decode(&place), Err(MemoError::Checksum));
}

/// The forgotten memo of a link shows no root to whoever prints it.
#[test]
fn a_memo_does_not_show_its_roots() {
    let held = Held { role: Role::Initiator, epoch: 1, root: root(1), peer_run: BEN_RUN };
    let memo = Memo {
        peer: identity(1).id(),
        current: Some(held),
        pending: None,
        hello_heard: HelloCounters::default(),
        address: None,
        is_fenced: false,
    };
    assert!(format!("{memo:?}").contains("Root(secret)"));
}

#[test]
fn a_run_is_read_as_written_and_has_a_tag() {
    let run = Run { counter: 0x0102_0304_0506_0708, random: *b"0123456789abcdef" };
    assert_eq!(Run::from_bytes(&run.to_bytes()), run);
    assert_eq!(run.tag(), Tag(*b"01234567"));
}

/// Each thing a packet is bound to, changed alone, and it does not open.
#[test]
fn a_packet_opens_only_where_and_as_it_was_sealed() {
    let root = root(1);
    let pair = root.pair(&ANN_RUN, &BEN_RUN);
    let sealed = pair.to_responder.seal(5, b"header", b"plaintext");
    assert_eq!(sealed.len(), 9 + sealing::TAG_BYTES);
    let again = root.pair(&ANN_RUN, &BEN_RUN);
    assert_eq!(again.to_responder.open(5, b"header", &sealed).unwrap(), b"plaintext");
    let newer = Run { counter: 3, ..ANN_RUN };
    let table = [
        ("number", pair.to_responder.open(6, b"header", &sealed)),
        ("number's highest byte", pair.to_responder.open(5 | 1 << 63, b"header", &sealed)),
        ("header", pair.to_responder.open(5, b"Header", &sealed)),
        ("direction", pair.to_initiator.open(5, b"header", &sealed)),
        ("initiator's run", root.pair(&newer, &BEN_RUN).to_responder.open(5, b"header", &sealed)),
        ("responder's run", root.pair(&ANN_RUN, &newer).to_responder.open(5, b"header", &sealed)),
        ("runs swapped", root.pair(&BEN_RUN, &ANN_RUN).to_responder.open(5, b"header", &sealed)),
        ("a hail", root.hail(Toward::Responder, &ANN_RUN).open(5, b"header", &sealed)),
        ("another root", self::root(2).pair(&ANN_RUN, &BEN_RUN).to_responder.open(5, b"header", &sealed)),
        ("cut", pair.to_responder.open(5, b"header", &sealed[..sealed.len() - 1])),
        ("empty", pair.to_responder.open(5, b"header", &[])),
    ];
    for (name, result) in table {
        assert!(result.is_err(), "{name}");
    }
}

#[test]
fn a_hail_opens_only_towards_its_end_and_under_its_run() {
    let root = root(1);
    let sealed = root.hail(Toward::Responder, &ANN_RUN).seal(0, b"run", b"first records");
    assert!(root.hail(Toward::Responder, &ANN_RUN).open(0, b"run", &sealed).is_ok());
    assert!(root.hail(Toward::Initiator, &ANN_RUN).open(0, b"run", &sealed).is_err());
    assert!(root.hail(Toward::Responder, &BEN_RUN).open(0, b"run", &sealed).is_err());
}

#[test]
fn link_ids_are_of_the_root_and_differ_by_direction() {
    let (one, two) = (root(1).ids(), root(2).ids());
    let ids = [one.to_responder, one.to_initiator, two.to_responder, two.to_initiator];
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    assert_eq!(root(1).ids(), one);
}
