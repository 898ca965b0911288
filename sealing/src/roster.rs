//! A roster: which nodes belong to a fleet, signed by the node that answers for it.
//!
//! A signed statement (version 1, label `roster-sig`) with the content: number of members (2 bytes), then each member in
//! ascending order of node ids, none twice: node (32), length of its name (1) and the name in UTF-8, without control
//! characters; 0 (1) and the hash of its card (32), or 1 (1) and the whole card, which saves fetching it.
//!
//! Whoever is not in the newest roster does not belong to the fleet: that is how a node is revoked.

use std::fmt;

use crate::card::{CARD_BYTES_MAX, Card, CardError};
use crate::identity::{Identity, NodeId, SIGNATURE_BYTES};
use crate::labels;
use crate::statement::{self, Fault, HEAD_BYTES, Kind, Unverified};

/// A roster has at most so many members: the largest fleet that is planned for.
pub const ROSTER_MEMBERS_MAX: usize = 10_000;
/// A member's name has at most so many bytes: a line of a table.
pub const ROSTER_NAME_BYTES_MAX: usize = 64;
/// A roster has at most so many bytes: 10,000 members by hash with names of ordinary length, or about 750 whole cards.
pub const ROSTER_BYTES_MAX: usize = 1 << 20;

const HASH: u8 = 0;
const CARD: u8 = 1;

pub(crate) const KIND: Kind =
    Kind { purpose: labels::ROSTER_SIGNATURE, version: 1, bytes_max: ROSTER_BYTES_MAX };

/// A fleet's signed list of members. There is none that was not signed here or verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Roster {
    bytes: Vec<u8>,
    node: NodeId,
    sequence: u64,
    members: Vec<Member>,
}

/// One member of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// Its card.
    pub card: MemberCard,
}

/// What a roster says of a member's card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberCard {
    /// Its [`Card::hash`]; the card is fetched.
    Hash([u8; 32]),
    /// All of it.
    Whole(Box<Card>),
}

/// What is no roster, or cannot become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// Cut, too long, or something after its end.
    #[error(
        "a roster of {0} bytes is cut, has something after its end or is longer than 1 MiB; ask for it again"
    )]
    Length(usize),
    /// A layout that this version does not know.
    #[error("the roster has version {0}, this program reads version 1; update the older of the two")]
    Version(u8),
    /// More members than a roster takes.
    #[error("a roster of {0} members is larger than 10000, the most that one takes; split the fleet")]
    Members(usize),
    /// A member stands twice, or before one with a lower id.
    #[error("the roster's members are not in ascending order, each once: {0}")]
    Order(NodeId),
    /// A name that is too long, no UTF-8, or has control characters.
    #[error("the name of {0} in the roster is not at most 64 bytes of text without control characters")]
    Name(NodeId),
    /// A card inside is none, or another node's.
    #[error("the card of {node} in the roster is not its own: {source}")]
    Card {
        /// Whose it should be.
        node: NodeId,
        /// What is wrong with it.
        source: CardError,
    },
    /// Neither a hash nor a card.
    #[error("the roster says neither the hash nor the card of {0}")]
    Form(NodeId),
    /// Not signed by the node that it names.
    #[error("the roster is not signed by the node it names; do not use it")]
    Signature,
}

impl Roster {
    /// The roster that `identity` answers for, of these members in any order.
    ///
    /// # Errors
    /// [`RosterError`] when no roster can say this: a member twice, too many, a name or card that is none.
    pub fn sign(identity: &Identity, sequence: u64, mut members: Vec<Member>) -> Result<Roster, RosterError> {
        if members.len() > ROSTER_MEMBERS_MAX {
            return Err(RosterError::Members(members.len()));
        }
        members.sort_by_key(|member| member.node);
        let count = u16::try_from(members.len()).map_err(|_| RosterError::Members(members.len()))?;
        let mut content = count.to_be_bytes().to_vec();
        let mut before = None;
        for member in &members {
            check(member, before)?;
            before = Some(member.node);
            encode(&mut content, member);
        }
        let length = HEAD_BYTES + content.len() + SIGNATURE_BYTES;
        if length > ROSTER_BYTES_MAX {
            return Err(RosterError::Length(length));
        }
        let bytes = statement::sign(identity, KIND, sequence, &content);
        Ok(Roster { bytes, node: identity.id(), sequence, members })
    }

    /// The roster in these bytes, if the node it names signed it.
    ///
    /// # Errors
    /// [`RosterError`] says what is wrong; nothing of the bytes may be used then.
    pub fn verify(bytes: &[u8]) -> Result<Roster, RosterError> {
        let length = RosterError::Length(bytes.len());
        let fault = |fault| match fault {
            Fault::Length => length,
            Fault::Version(version) => RosterError::Version(version),
            Fault::Signature => RosterError::Signature,
        };
        let statement = Unverified::read(KIND, bytes).map_err(fault)?;
        // The signature first: the cards inside cost a signature each.
        statement.verify().map_err(fault)?;
        let members = decode_all(statement.content, length)?;
        Ok(Roster { bytes: bytes.to_vec(), node: statement.node, sequence: statement.sequence, members })
    }

    /// As it is sent and kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Who answers for the fleet.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Of two rosters of a node that with the higher sequence counts.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// All members, in ascending order of their ids.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What it says of a node; nothing if the node does not belong to the fleet.
    pub fn member(&self, node: &NodeId) -> Option<&Member> {
        let position = self.members.binary_search_by_key(node, |member| member.node).ok()?;
        self.members.get(position)
    }

    /// Whether this is of the same node and says something later.
    pub fn supersedes(&self, older: &Roster) -> bool {
        self.node == older.node && self.sequence > older.sequence
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, sequence, members) = (self.node, self.sequence, self.members.len());
        write!(formatter, "Roster({node}, sequence {sequence}, {members} members)")
    }
}

impl MemberCard {
    /// The hash of the card, however it is told.
    pub fn hash(&self) -> [u8; 32] {
        match self {
            MemberCard::Hash(hash) => *hash,
            MemberCard::Whole(card) => card.hash(),
        }
    }
}

/// What must hold of a member that stands behind the one of `before`.
fn check(member: &Member, before: Option<NodeId>) -> Result<(), RosterError> {
    let node = member.node;
    if before.is_some_and(|before| before >= node) {
        return Err(RosterError::Order(node));
    }
    if member.name.len() > ROSTER_NAME_BYTES_MAX || member.name.chars().any(char::is_control) {
        return Err(RosterError::Name(node));
    }
    match &member.card {
        MemberCard::Whole(card) if card.node() != node => {
            Err(RosterError::Card { node, source: CardError::Signature })
        }
        MemberCard::Whole(_) | MemberCard::Hash(_) => Ok(()),
    }
}

fn encode(content: &mut Vec<u8>, member: &Member) {
    content.extend_from_slice(member.node.as_bytes());
    content.push(u8::try_from(member.name.len()).expect("names were checked to have at most 64 bytes"));
    content.extend_from_slice(member.name.as_bytes());
    match &member.card {
        MemberCard::Hash(hash) => {
            content.push(HASH);
            content.extend_from_slice(hash);
        }
        MemberCard::Whole(card) => {
            content.push(CARD);
            content.extend_from_slice(card.bytes());
        }
    }
}

fn decode_all(content: &[u8], length: RosterError) -> Result<Vec<Member>, RosterError> {
    let (count, mut rest) = content.split_first_chunk::<2>().ok_or(length)?;
    let count = usize::from(u16::from_be_bytes(*count));
    if count > ROSTER_MEMBERS_MAX {
        return Err(RosterError::Members(count));
    }
    let mut members: Vec<Member> = Vec::new();
    for _ in 0..count {
        let (member, after) = decode(rest, length)?;
        check(&member, members.last().map(|member| member.node))?;
        members.push(member);
        rest = after;
    }
    if rest.is_empty() { Ok(members) } else { Err(length) }
}

fn decode(bytes: &[u8], length: RosterError) -> Result<(Member, &[u8]), RosterError> {
    let (node, rest) = bytes.split_first_chunk::<32>().ok_or(length)?;
    let node = NodeId::from_bytes(*node);
    let (name_length, rest) = rest.split_first().ok_or(length)?;
    let (name, rest) = rest.split_at_checked(usize::from(*name_length)).ok_or(length)?;
    let name = std::str::from_utf8(name).map_err(|_| RosterError::Name(node))?.to_owned();
    let (form, rest) = rest.split_first().ok_or(length)?;
    let (card, rest) = match *form {
        HASH => {
            let (hash, rest) = rest.split_first_chunk::<32>().ok_or(length)?;
            (MemberCard::Hash(*hash), rest)
        }
        CARD => {
            let card_bytes = Card::length_of(rest).filter(|bytes| *bytes <= CARD_BYTES_MAX).ok_or(length)?;
            let (card, rest) = rest.split_at_checked(card_bytes).ok_or(length)?;
            let card = Card::verify(card).map_err(|source| RosterError::Card { node, source })?;
            (MemberCard::Whole(Box::new(card)), rest)
        }
        _ => return Err(RosterError::Form(node)),
    };
    Ok((Member { node, name, card }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(number: u8) -> Identity {
        Identity::from_seed(&[number; 64])
    }

    fn member(number: u8, name: &str) -> Member {
        let card = identity(number).card(1);
        Member { node: card.node(), name: name.to_owned(), card: MemberCard::Hash(card.hash()) }
    }

    /// A roster as a node may sign it that means harm: `change` gets what would be the content.
    fn signed(members: Vec<Member>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let roster = Roster::sign(&identity(1), 3, members).unwrap();
        let mut content = roster.bytes[HEAD_BYTES..roster.bytes.len() - SIGNATURE_BYTES].to_vec();
        change(&mut content);
        statement::sign(&identity(1), KIND, 3, &content)
    }

    #[test]
    fn a_signature_does_not_make_a_bad_roster_good() {
        type Change = fn(&mut Vec<u8>);
        const ENTRY: usize = 32 + 1 + 3 + 1 + 32;
        let (low, high) = {
            let mut nodes = [member(2, "ben").node, member(3, "eve").node];
            nodes.sort();
            (nodes[0], nodes[1])
        };
        let table: [(&str, Change, Result<usize, RosterError>); 9] = [
            ("nothing", |_| (), Ok(2)),
            ("a count too many", |bytes| bytes[1] = 3, Err(RosterError::Length(41 + 2 + 2 * ENTRY + 64))),
            ("a count too few", |bytes| bytes[1] = 1, Err(RosterError::Length(41 + 2 + 2 * ENTRY + 64))),
            ("far too many", |bytes| bytes[0] = 0xff, Err(RosterError::Members(0xff02))),
            ("no count", |bytes| bytes.truncate(1), Err(RosterError::Length(41 + 1 + 64))),
            ("the wrong order", |bytes| bytes[2..].rotate_left(ENTRY), Err(RosterError::Order(low))),
            ("one twice", |bytes| bytes.copy_within(2..2 + ENTRY, 2 + ENTRY), Err(RosterError::Order(low))),
            ("a name with a line's end", |bytes| bytes[2 + 33] = b'\n', Err(RosterError::Name(low))),
            ("a third form", |bytes| bytes[2 + ENTRY + 36] = 2, Err(RosterError::Form(high))),
        ];
        for (name, change, expected) in table {
            let bytes = signed(vec![member(3, "eve"), member(2, "ben")], change);
            assert_eq!(Roster::verify(&bytes).map(|roster| roster.members.len()), expected, "{name}");
        }
    }

    #[test]
    fn a_card_inside_is_its_members_own() {
        let card = identity(2).card(9);
        let whole =
            |node| Member { node, name: String::new(), card: MemberCard::Whole(Box::new(card.clone())) };
        let roster = Roster::sign(&identity(1), 1, vec![whole(card.node())]).unwrap();
        let read = Roster::verify(roster.bytes()).unwrap();
        assert_eq!(read.member(&card.node()).unwrap().card.hash(), card.hash());
        let of_another = whole(identity(3).id());
        let expected = RosterError::Card { node: of_another.node, source: CardError::Signature };
        assert_eq!(Roster::sign(&identity(1), 1, vec![of_another]), Err(expected));
        let swapped = signed(vec![whole(card.node())], |bytes| bytes[2] ^= 1);
        assert!(matches!(Roster::verify(&swapped), Err(RosterError::Card { .. })));
        let cut = signed(vec![whole(card.node())], |bytes| bytes.truncate(bytes.len() - 1));
        assert!(matches!(Roster::verify(&cut), Err(RosterError::Length(_))));
    }

    #[test]
    fn what_no_roster_can_say_is_refused_when_signing() {
        let name = |name: &str| Roster::sign(&identity(1), 1, vec![member(2, name)]).map(|_| ());
        assert_eq!(name(&"x".repeat(64)), Ok(()));
        assert_eq!(name(&"x".repeat(65)), Err(RosterError::Name(identity(2).id())));
        assert_eq!(name("a\u{7}b"), Err(RosterError::Name(identity(2).id())));
        let many = (0..=ROSTER_MEMBERS_MAX).map(|_| member(2, "")).take(1).collect::<Vec<_>>();
        let many = vec![many[0].clone(); ROSTER_MEMBERS_MAX + 1];
        assert_eq!(Roster::sign(&identity(1), 1, many), Err(RosterError::Members(ROSTER_MEMBERS_MAX + 1)));
    }
}
