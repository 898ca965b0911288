//! The system lists: what the core itself keeps as rows of the log, beside the apps' own lists.
//!
//! A list's number in the log is the app's number in the high 32 bits and the list's number within the app in the low
//! ones; app 0 is the core. Keys are plain bytes; rows are postcard, whose layout the tests below hold still: a log must open for ever.

use link::StreamId;
use sealing::{Card, NodeId, Ticket};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::net::SocketAddr;
use store::Row;
use weft::change::operations::Operation;
use weft::change::schema::Schema;

/// Apps that a folder may have known in its life.
pub const APPS_MAX: u32 = 65_536;

/// Apps that were ever installed: name to [`AppRow`].
pub const APPS: u64 = 1;
/// Peers, removed ones too: node id to [`PeerRow`].
pub const PEERS: u64 = 2;
/// Streams to peers: their 16 bytes to [`StreamRow`].
pub const STREAMS: u64 = 3;
/// Sends that are not settled: [`outbox_key`] to [`OutboxRow`].
pub const OUTBOX: u64 = 4;
/// Numbers heard of peers' streams: [`heard_key`] to [`HeardRow`].
pub const HEARD: u64 = 5;
/// What apps refused of peers' streams and the sender has not settled: [`outcome_key`] to the reason.
pub const REFUSALS: u64 = 8;
/// What apps answered to peers' streams and the sender has not settled: [`outcome_key`] to the answer.
pub const ANSWERS: u64 = 13;
/// Posts that carried an idempotency key: [`post_key`] to [`PostRow`].
pub const POSTS: u64 = 6;
/// One row, key empty: the time of the last batch in milliseconds since 1970, so that `now` never runs backward.
pub const CLOCK: u64 = 7;

/// One row, key empty: the counter of the newest run, where the log's own count of starts fell behind it: the folder was
/// set back to an older copy, and a peer knew of a later start.
pub const RUN: u64 = 9;

/// Of each app with an `every`, by its name: their periods and when each fires next, as it was when the last batch was made,
/// so that after a restart each fires once for what it missed and for nothing else.
pub const TICKED: u64 = 10;

/// One row, key empty: the node whose log this is, so that a folder put together of two nodes' files is found out.
pub const NODE: u64 = 11;

/// Sends to addresses on the web that have no outcome: [`web_key`] to [`WebRow`].
pub const WEB: u64 = 12;

/// The number in the log of list `list` of app `app`.
pub fn app_list(app: u32, list: u32) -> u64 {
    u64::from(app) << 32 | u64::from(list)
}

/// The app and list that a number in the log stands for.
pub fn split_list(list: u64) -> (u32, u32) {
    ((list >> 32) as u32, list as u32)
}

/// An installed app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppRow {
    /// Its number, never used again.
    pub number: u32,
    /// The source it last ran.
    pub source: String,
    /// How often its shape has changed.
    pub changes: u32,
    /// The shape of what it keeps. None only in a row of the first layout.
    pub schema: Option<Schema>,
    /// What the last change of the shape did to the rows before it in the log.
    pub operations: Vec<Operation>,
    /// The shape before that change, where the row before this one is of the first layout and has none.
    pub before: Option<Schema>,
    /// The shape as a row of the first layout has it: text.
    #[serde(skip)]
    pub shape: Option<String>,
}

/// Of a row of the first layout: number, source and the shape as text.
type FirstAppRow = (u32, String, String);

/// What a row of an app begins with from the second layout on: no app has the number 0, with which one of the first
/// would begin.
const APP_ROW_MARK: u8 = 0;
const APP_ROW_LAYOUT: u8 = 2;

/// The bytes of an app's row.
pub fn encode_app(row: &AppRow) -> Vec<u8> {
    [&[APP_ROW_MARK, APP_ROW_LAYOUT][..], &encode(row)].concat()
}

/// An app's row of its bytes, in either layout.
pub fn read_app(bytes: &[u8]) -> Option<AppRow> {
    match bytes {
        [APP_ROW_MARK, APP_ROW_LAYOUT, row @ ..] => {
            decode::<AppRow>(row).filter(|row| row.number > 0 && row.schema.is_some())
        }
        [APP_ROW_MARK, ..] => None,
        row => {
            let (number, source, shape) = decode::<FirstAppRow>(row)?;
            Some(AppRow { number, source, shape: Some(shape), ..AppRow::default() })
        }
    }
}

/// A peer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRow {
    /// What people call it here.
    pub name: String,
    /// Hash of its card, from the ticket.
    pub card_hash: [u8; 32],
    /// Its signed card, once fetched.
    pub card: Option<Vec<u8>>,
    /// Where it was last known to be, newest first.
    pub addresses: Vec<SocketAddr>,
    /// Removed by a person: its sends are refused, its links are ended.
    pub removed: bool,
}

impl PeerRow {
    /// The card held of a peer that stays its card beside this ticket: the ticket's own, or a newer one. A ticket to an
    /// older card is old itself, and must not lead back to a key that was given up.
    pub fn card_beside(&self, ticket: &Ticket) -> Option<Card> {
        let card = Card::verify(self.card.as_ref()?).ok()?;
        let stays = card.sequence() > ticket.card_sequence() || card.hash() == ticket.card_hash();
        stays.then_some(card)
    }
}

/// The sender's side of a stream: everything one app sends to one app of one peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRow {
    /// Who receives.
    pub peer: [u8; 32],
    /// The app that sends.
    pub from_app: String,
    /// The app that receives.
    pub to_app: String,
    /// Every number up to this one is settled.
    pub settled: u64,
    /// The tag of the record `settled`.
    pub settled_tag: [u8; 8],
    /// Why the stream ended, if it did: what is unsettled is being refused.
    pub ended: Option<String>,
}

/// One send that is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxRow {
    /// The tag of the run that made it.
    pub tag: [u8; 8],
    /// The output's name.
    pub output: String,
    /// Its arguments, as the engine encoded them.
    pub arguments: Vec<u8>,
}

/// One send to an address on the web that has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebRow {
    /// Random, so that it is no other record's: by it the address finds out that it has had this one.
    pub key: [u8; 16],
    /// The app that sends.
    pub app: String,
    /// The address.
    pub endpoint: String,
    /// The output's name.
    pub output: String,
    /// Its arguments, as the engine encoded them: for the event that hears the outcome.
    pub arguments: Vec<u8>,
    /// JSON object of its fields: what is sent.
    pub body: String,
}

/// The receiver's side of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardRow {
    /// The highest number applied or refused.
    pub number: u64,
    /// The tag of that record.
    pub tag: [u8; 8],
    /// Refusals up to this number were forgotten, since the sender settled them.
    pub settled: u64,
    /// The sending app.
    pub from_app: String,
    /// The receiving app.
    pub to_app: String,
    /// Ranges that never arrived because this node was set back in time: named to people, never silent.
    pub gaps: Vec<(u64, u64)>,
}

/// What a post with an idempotency key was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostRow {
    /// Counts up an app's keyed posts, so that the oldest is known.
    pub order: u64,
    /// Half of SHA-256 of the input's name and body: the same key with another request is a mistake.
    pub request: [u8; 16],
    /// The answer's JSON; empty if it had one that is forgotten.
    pub answer: Option<String>,
}

/// Whose log a row is of, if it is the one that says so.
pub fn owner(row: &Row) -> Option<NodeId> {
    let is_it = row.list == NODE && row.key.is_empty();
    is_it.then(|| decode::<[u8; 32]>(&row.row))?.map(NodeId)
}

/// The name of an app and its number, if a row is one that says what an app is.
pub fn app(row: &Row) -> Option<(&str, u32)> {
    let name = std::str::from_utf8(&row.key).ok().filter(|_| row.list == APPS)?;
    Some((name, read_app(&row.row)?.number))
}

/// The number of the app that a list is of; 0 for what the node itself keeps.
pub fn app_of(list: u64) -> u32 {
    split_list(list).0
}

/// Reads a key of [`STREAMS`].
pub fn read_stream_key(key: &[u8]) -> Option<StreamId> {
    Some(StreamId(key.try_into().ok()?))
}

/// Key of [`OUTBOX`]: the stream, then the number in big endian.
pub fn outbox_key(stream: StreamId, number: u64) -> Vec<u8> {
    [&stream.0[..], &number.to_be_bytes()].concat()
}

/// Reads a key of [`OUTBOX`].
pub fn read_outbox_key(key: &[u8]) -> Option<(StreamId, u64)> {
    let (stream, number) = key.split_first_chunk::<16>()?;
    Some((StreamId(*stream), u64::from_be_bytes(number.try_into().ok()?)))
}

/// Key of [`WEB`]: the number in big endian.
pub fn web_key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Reads a key of [`WEB`].
pub fn read_web_key(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.try_into().ok()?))
}

/// Key of [`HEARD`].
pub fn heard_key(peer: NodeId, stream: StreamId) -> Vec<u8> {
    [&peer.as_bytes()[..], &stream.0].concat()
}

/// Reads a key of [`HEARD`].
pub fn read_heard_key(key: &[u8]) -> Option<(NodeId, StreamId)> {
    let (peer, stream) = key.split_first_chunk::<32>()?;
    Some((NodeId(*peer), StreamId(stream.try_into().ok()?)))
}

/// Key of [`REFUSALS`] and [`ANSWERS`].
pub fn outcome_key(peer: NodeId, stream: StreamId, number: u64) -> Vec<u8> {
    [&heard_key(peer, stream)[..], &number.to_be_bytes()].concat()
}

/// Reads a key of [`REFUSALS`] and [`ANSWERS`].
pub fn read_outcome_key(key: &[u8]) -> Option<((NodeId, StreamId), u64)> {
    let (number, heard) = key.split_last_chunk::<8>().map(|(heard, number)| (number, heard))?;
    Some((read_heard_key(heard)?, u64::from_be_bytes(*number)))
}

/// Key of [`POSTS`].
pub fn post_key(app: &str, key: &str) -> Vec<u8> {
    encode(&(app, key))
}

/// Reads a key of [`POSTS`].
pub fn read_post_key(key: &[u8]) -> Option<(String, String)> {
    decode(key)
}

/// The bytes of a row.
pub fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    postcard::to_stdvec(row).expect("rows hold only types that postcard writes, into memory")
}

/// A row of its bytes; none if they are not one, or more than one.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (row, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A row is these bytes, and is read from them; not from fewer or more.
    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(row: &T, bytes: &str) {
        let encoded = encode(row);
        assert_eq!(hex(&encoded), bytes, "{row:?}");
        assert_eq!(decode::<T>(&encoded).as_ref(), Some(row));
        assert_eq!(decode::<T>(&encoded[..encoded.len() - 1]), None, "cut");
        assert_eq!(decode::<T>(&[&encoded[..], &[0]].concat()), None, "longer");
    }

    #[test]
    fn a_ticket_to_an_older_card_does_not_lead_back_to_it() {
        let ben = sealing::Identity::from_seed(&[2; 64]);
        let row =
            |sequence| PeerRow { card: Some(ben.card(sequence).bytes().to_vec()), ..PeerRow::default() };
        for (held, ticket, stays) in [(1, 1, true), (2, 1, true), (1, 2, false)] {
            let card = row(held).card_beside(&ben.ticket(ticket, &[]));
            assert_eq!(card.map(|card| card.sequence()), stays.then_some(held), "{held} beside {ticket}");
        }
        assert_eq!(PeerRow::default().card_beside(&ben.ticket(1, &[])), None);
    }

    #[test]
    fn rows_keep_their_layout() {
        let text = |text: &str| text.to_owned();
        let first =
            AppRow { number: 300, source: text("app a"), shape: Some(text("s")), ..AppRow::default() };
        assert_eq!(read_app(&[0xac, 2, 5, 97, 112, 112, 32, 97, 1, 115]), Some(first), "the first layout");
        let source = "app a\nenum E { x, y }\nrecord R { id: int, e: E? }\nstate l: list of R by id index e\nstate n: int = 1\n\
            on f(k: int = 2) from peer {}";
        let schema = Schema::of(&weft::compile(source, "a.weft").expect("the source is right"));
        let operations =
            vec![Operation::AddField { record: 3, field: 7, constant: None }, Operation::Rekey { list: 0 }];
        let changed = AppRow {
            number: 300,
            source: text("app a"),
            changes: 1,
            schema: Some(schema),
            operations,
            ..AppRow::default()
        };
        let bytes = encode_app(&changed);
        assert_eq!(
            hex(&bytes),
            "0002ac0205617070206101010200016c0003010601010701016e0101010301520206026964010007\
             01650c0902010000010201450204017805017900020001660108016b01010104000101660109016b\
             01010104000a02030307000e0000",
            "the second layout"
        );
        assert_eq!(read_app(&bytes), Some(changed));
        assert_eq!(read_app(&bytes[..bytes.len() - 1]), None, "cut");
        assert_eq!(read_app(&[0, 3, 0]), None, "a layout to come");
        let addresses = vec![SocketAddr::from(([10, 0, 0, 1], 7346))];
        let peer = PeerRow {
            name: text("Ben"),
            card_hash: [7; 32],
            card: Some(vec![1, 2]),
            addresses,
            removed: false,
        };
        check(
            &peer,
            "0342656e07070707070707070707070707070707070707070707070707070707070707070102010201000a000001b23900",
        );
        check(
            &StreamRow {
                peer: [1; 32],
                from_app: text("a"),
                to_app: text("b"),
                settled: 300,
                settled_tag: [2; 8],
                ended: Some(text("x")),
            },
            "010101010101010101010101010101010101010101010101010101010101010101610162ac020202020202020202010178",
        );
        check(
            &OutboxRow { tag: [3; 8], output: text("say"), arguments: vec![9] },
            "0303030303030303037361790109",
        );
        check(
            &WebRow {
                key: [6; 16],
                app: text("a"),
                endpoint: text("http://b"),
                output: text("say"),
                arguments: vec![9],
                body: text("{}"),
            },
            "06060606060606060606060606060606016108687474703a2f2f62037361790109027b7d",
        );
        let heard = HeardRow {
            number: 5,
            tag: [4; 8],
            settled: 3,
            from_app: text("a"),
            to_app: text("b"),
            gaps: vec![(1, 2)],
        };
        check(&heard, "0504040404040404040301610162010102");
        check(
            &PostRow { order: 1, request: [5; 16], answer: Some(text("7")) },
            "0105050505050505050505050505050505010137",
        );
        check(&1_000_000i64, "80897a");
        check(&text("no"), "026e6f");
        check(&vec![1u8, 2, 14], "0301020e");
    }

    #[test]
    fn keys_keep_their_layout_and_order() {
        let (peer, stream) = (NodeId([1; 32]), StreamId([2; 16]));
        assert_eq!(read_stream_key(&stream.0), Some(stream));
        assert_eq!(read_outbox_key(&outbox_key(stream, 258)), Some((stream, 258)));
        assert!(
            outbox_key(stream, 255) < outbox_key(stream, 256),
            "records recover in the order of their numbers"
        );
        assert_eq!(read_heard_key(&heard_key(peer, stream)), Some((peer, stream)));
        assert_eq!(read_outcome_key(&outcome_key(peer, stream, 7)), Some(((peer, stream), 7)));
        assert_eq!(read_post_key(&post_key("a", "k")), Some(("a".to_owned(), "k".to_owned())));
        assert_eq!(read_web_key(&web_key(258)), Some(258));
        assert!(web_key(255) < web_key(256), "records recover in the order of their numbers");
        assert_eq!(read_outbox_key(&[0; 23]), None);
        assert_eq!(read_heard_key(&[0; 47]), None);
        assert_eq!(split_list(app_list(3, 9)), (3, 9));
    }
}
