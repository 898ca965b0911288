//! The statements of `tests/vectors/statements.txt`.

use super::{CountingEntropy, Lines, identities};
use crate::{
    EnvelopeNumber, Identity, Member, MemberCard, Roster, Run, SafetyNumber, open_envelope, seal_envelope,
};

#[test]
fn statements_are_as_in_the_file_of_vectors() {
    let mut lines = Lines("# Test vectors of signed statements; bytes in hexadecimal.\n".to_owned());
    let (ann, ben) = identities(&mut lines);
    lines.comment("The safety number of both.");
    lines.text("safety.number", SafetyNumber::of(&ann.id(), &ben.id()));
    signed(&mut lines, &ann, &ben);
    envelope(&mut lines, &ann, &ben);
    lines.compare("statements.txt");
}

fn signed(lines: &mut Lines, ann: &Identity, ben: &Identity) {
    lines.comment("Ben's card with sequence 5, the ticket to it, his whereabouts with sequence 6.");
    let addresses = ["192.0.2.1:4711", "[2001:db8::1]:4712"].map(|text| text.parse().unwrap());
    let card = ben.card(5);
    lines.bytes("ben.card", card.bytes());
    lines.bytes("ben.card.hash", card.hash());
    lines.text("ben.addresses", format!("{} {}", addresses[0], addresses[1]));
    lines.text("ben.ticket", ben.ticket(5, &addresses));
    lines.bytes("ben.whereabouts", ben.whereabouts(6, &addresses).bytes());

    lines.comment(
        "Ann's roster with sequence 7: herself by the hash of her card with sequence 1, ben with his card.",
    );
    let anns_card = MemberCard::Hash(ann.card(1).hash());
    let members = vec![
        Member { node: ann.id(), name: "ann".to_owned(), card: anns_card },
        Member { node: ben.id(), name: "ben".to_owned(), card: MemberCard::Whole(Box::new(card)) },
    ];
    lines.bytes("ann.roster", Roster::sign(ann, 7, members).unwrap().bytes());
}

fn envelope(lines: &mut Lines, ann: &Identity, ben: &Identity) {
    lines.comment("An envelope of ann for ben's card with sequence 5. Entropy: of the encapsulation (64).");
    let number = EnvelopeNumber { run: Run { counter: 1, random: *b"ann's random run" }, count: 8 };
    let card = ben.card(5);
    lines.bytes("envelope.run", number.run.to_bytes());
    lines.text("envelope.count", number.count);
    lines.bytes("envelope.payload", "payload");
    let mut entropy = CountingEntropy(Vec::new());
    let bytes = seal_envelope(ann, number, &card, b"payload", &mut entropy).unwrap();
    lines.bytes("envelope.entropy", &entropy.0);
    lines.bytes("envelope", &bytes);
    let opened = open_envelope(ben, &card, &bytes).unwrap();
    assert_eq!((opened.sender(), opened.number(), opened.payload()), (ann.id(), number, &b"payload"[..]));
}
