//! Any bytes as a card, whereabouts, a roster, a ticket, an envelope: as they are, and as content that is rightly signed
//! and sealed, since whoever has a key can sign anything. Nothing panics; what is taken is written in one way alone.

#![no_main]

use std::convert::Infallible;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rand_core::{TryCryptoRng, TryRng, utils};
use sealing::{Card, Identity, NodeId, Roster, Ticket, Whereabouts, fuzzing, open_envelope};

static ANN: LazyLock<Identity> = LazyLock::new(|| Identity::from_seed(&[1; 64]));
static BEN: LazyLock<(Identity, Card)> = LazyLock::new(|| {
    let ben = Identity::from_seed(&[2; 64]);
    let card = ben.card(1);
    (ben, card)
});

/// Always the same chance: a failure happens again.
struct Constant;

impl TryRng for Constant {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(7);
        Ok(())
    }
}

impl TryCryptoRng for Constant {}

fuzz_target!(|bytes: &[u8]| {
    let Some((door, bytes)) = bytes.split_first() else { return };
    match door % 10 {
        0 => card(bytes),
        1 => card(&fuzzing::card(&ANN, bytes)),
        2 => whereabouts(bytes),
        3 => whereabouts(&fuzzing::whereabouts(&ANN, bytes)),
        4 => roster(bytes),
        5 => roster(&fuzzing::roster(&ANN, bytes)),
        6 => texts(&String::from_utf8_lossy(bytes)),
        7 => texts(&fuzzing::ticket(&ANN, bytes)),
        8 => drop(open_envelope(&BEN.0, &BEN.1, bytes)),
        _ => envelope(bytes),
    }
});

fn card(bytes: &[u8]) {
    if let Ok(card) = Card::verify(bytes) {
        assert_eq!(card.bytes(), bytes);
    }
}

fn whereabouts(bytes: &[u8]) {
    if let Ok(read) = Whereabouts::verify(bytes)
        && read.node() == ANN.id()
    {
        assert_eq!(ANN.whereabouts(read.sequence(), read.addresses()).bytes(), bytes);
    }
}

fn roster(bytes: &[u8]) {
    if let Ok(read) = Roster::verify(bytes)
        && read.node() == ANN.id()
    {
        let again = Roster::sign(&ANN, read.sequence(), read.members().to_vec());
        assert_eq!(again.as_ref().map(Roster::bytes), Ok(bytes));
    }
}

fn texts(text: &str) {
    if let Ok(node) = text.parse::<NodeId>() {
        assert_eq!(node.to_string(), text);
    }
    if let Ok(ticket) = text.parse::<Ticket>() {
        assert_eq!(ticket.to_string(), text);
    }
}

/// The body begins with who says that it made it; only ann signs here.
fn envelope(body: &[u8]) {
    let sealed = fuzzing::envelope(&ANN, &BEN.1, body, &mut Constant);
    let opened = open_envelope(&BEN.0, &BEN.1, &sealed);
    let is_anns = body.starts_with(ANN.id().as_bytes()) && body.len() >= 64;
    assert_eq!(opened.is_ok(), is_anns);
    if let Ok(opened) = opened {
        assert_eq!(opened.payload(), &body[64..]);
    }
}
