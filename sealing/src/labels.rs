//! The label of every use of a key and of every signature: one table, so that no two uses can share one.
//!
//! A label names its purpose; [`label`] puts the protocol and its version before it, so that another version's keys and
//! signatures are other keys and signatures. Nothing outside this module spells a label.

/// What stands before every label: the protocol and its version.
pub const PREFIX: &str = "selvedge/1 ";

/// The hash that binds a hello to its suite, its receiver and its encapsulation.
pub const HELLO: &str = "hello";
/// The key that seals a hello's body and signature.
pub const HELLO_SEAL: &str = "hello-seal";
/// The hash of a hello's body.
pub const HELLO_BODY: &str = "hello-body";
/// The initiator's signature over a hello.
pub const HELLO_SIGNATURE: &str = "hello-sig";
/// The hash of all that an accepted hello agreed on.
pub const ACCEPT: &str = "accept";
/// The key that seals the responder's run in an accept.
pub const ACCEPT_SEAL: &str = "accept-seal";
/// The salt that a decline's key depends on, made of its content.
pub const DECLINE_SALT: &str = "decline-salt";
/// The key that seals a decline.
pub const DECLINE_SEAL: &str = "decline-seal";
/// A root of a link.
pub const ROOT: &str = "root";
/// The hash of all that a change to the next root agreed on.
pub const EPOCH: &str = "epoch";
/// The ids of a link's two directions.
pub const LINK_IDS: &str = "link-ids";
/// The secret of a pair of runs.
pub const PAIR: &str = "pair";
/// Packet key and iv of a pair, towards the responder.
pub const PAIR_TO_RESPONDER: &str = "pair-to-responder";
/// Packet key and iv of a pair, towards the initiator.
pub const PAIR_TO_INITIATOR: &str = "pair-to-initiator";
/// Packet key and iv of a hail, towards the responder.
pub const HAIL_TO_RESPONDER: &str = "hail-to-responder";
/// Packet key and iv of a hail, towards the initiator.
pub const HAIL_TO_INITIATOR: &str = "hail-to-initiator";
/// The proof that an address gets what goes to it, for hellos.
pub const ADDRESS_TOKEN: &str = "address-token";
/// The signature on a card.
pub const CARD_SIGNATURE: &str = "card-sig";
/// The hash of a card, as tickets and hellos name it.
pub const CARD_HASH: &str = "card-hash";
/// The signature on whereabouts.
pub const WHEREABOUTS_SIGNATURE: &str = "whereabouts-sig";
/// The signature on a roster.
pub const ROSTER_SIGNATURE: &str = "roster-sig";
/// The signature on a ticket.
pub const TICKET_SIGNATURE: &str = "ticket-sig";
/// What an envelope's key schedule is bound to.
pub const ENVELOPE_SEAL: &str = "envelope-seal";
/// The hash of an envelope's body.
pub const ENVELOPE_BODY: &str = "envelope-body";
/// The sender's signature on an envelope.
pub const ENVELOPE_SIGNATURE: &str = "envelope-sig";
/// What the digits of a safety number are made of.
pub const SAFETY_NUMBER: &str = "safety-number";
/// The checksum of a link's memo place.
pub const MEMO_CHECKSUM: &str = "memo-checksum";

/// Every label there is.
pub const ALL: [&str; 27] = [
    HELLO,
    HELLO_SEAL,
    HELLO_BODY,
    HELLO_SIGNATURE,
    ACCEPT,
    ACCEPT_SEAL,
    DECLINE_SALT,
    DECLINE_SEAL,
    ROOT,
    EPOCH,
    LINK_IDS,
    PAIR,
    PAIR_TO_RESPONDER,
    PAIR_TO_INITIATOR,
    HAIL_TO_RESPONDER,
    HAIL_TO_INITIATOR,
    ADDRESS_TOKEN,
    CARD_SIGNATURE,
    CARD_HASH,
    WHEREABOUTS_SIGNATURE,
    ROSTER_SIGNATURE,
    TICKET_SIGNATURE,
    ENVELOPE_SEAL,
    ENVELOPE_BODY,
    ENVELOPE_SIGNATURE,
    SAFETY_NUMBER,
    MEMO_CHECKSUM,
];

/// `L(x)`: the label `x` under this protocol and version.
pub fn label(purpose: &str) -> Vec<u8> {
    [PREFIX.as_bytes(), purpose.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_labels_are_equal() {
        let distinct: std::collections::BTreeSet<_> = ALL.iter().map(|purpose| label(purpose)).collect();
        assert_eq!(distinct.len(), ALL.len());
    }

    /// The table is complete: every `pub const` of this file but the prefix and the table itself is in it.
    #[test]
    fn every_label_is_in_the_table() {
        let declared =
            include_str!("labels.rs").lines().filter(|line| line.starts_with("pub const ")).count();
        assert_eq!(declared - 2, ALL.len());
    }
}
