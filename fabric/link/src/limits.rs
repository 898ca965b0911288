//! Every bound and constant of the link in one place, each with its unit and its reason.

use crate::time::Span;

/// Bytes of a datagram, as long as no larger ones are known to pass ([`DATAGRAM_SIZES_BYTES`]). 1,200 pass every IPv6 path with room for tunnels (RFC 9000, section 14).
pub const DATAGRAM_BYTES_MAX: usize = 1_200;

/// Sizes of datagrams that are tried in turn: what Ethernet leaves in a tunnel (1,400 with IPv6 and UDP), without one
/// over IPv6 and over IPv4, and in jumbo frames.
pub const DATAGRAM_SIZES_BYTES: [usize; 4] = [1_372, 1_452, 1_472, 8_952];

/// Bytes of the largest packet there is.
pub const DATAGRAM_BYTES_LARGEST: usize = DATAGRAM_SIZES_BYTES[DATAGRAM_SIZES_BYTES.len() - 1];

/// Probes of a size before it counts as too large (RFC 8899, 5.1.2: MAX_PROBES).
pub const SIZE_PROBES_MAX: u32 = 3;

/// When sizes are tried again after one was too large (RFC 8899, 5.1.1: PMTU_RAISE_TIMER).
pub const SIZE_RAISE_INTERVAL: Span = Span::seconds(600);

/// Datagrams above [`DATAGRAM_BYTES_MAX`] that are lost while none comes before they count as too large: by chance not
/// once in 10^7 times at one lost in fifteen.
pub const SIZE_LOSSES_MAX: u32 = 6;

/// Datagrams on their way below which no size is tried: who sends little gains nothing by it.
pub const SIZE_PROBE_FLIGHT: u64 = 5;

/// Bytes of a record, of which a node may take less ([`crate::Config::record_bytes_max`]). Larger ones are the business of
/// an app: the receiver holds a record whole before it hands it over.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a record that goes whole in one frame; larger ones go in pieces. With its declaration it fits a hail.
pub const WHOLE_RECORD_BYTES_MAX: usize = 800;

/// Records in one frame of a sender: their count is one byte then, written once it is known. A receiver takes any count.
pub const RECORDS_PER_FRAME_MAX: u64 = 63;

/// Bytes of what is said now or never: it goes in one frame of one packet, or not at all.
pub const TRANSIENT_BYTES_MAX: usize = WHOLE_RECORD_BYTES_MAX;

/// What is said now or never and waits for the next packets of a link: a few packets' worth, since what waits longer is
/// worth nothing any more. Of more the oldest is dropped.
pub const TRANSIENTS_MAX: usize = 64;

/// Records of a stream between send and outcome: a commit a millisecond at 250 records each is as fast as a store.
pub const WINDOW_RECORDS: usize = 256;

/// Bytes of a stream between send and outcome: 1 MiB fills 80 Mbit/s at 100 ms.
pub const WINDOW_BYTES: usize = 1024 * 1024;

/// Bytes of the name of an app. Long enough for a name, short enough that a declaration fits beside a record.
pub const APP_NAME_BYTES_MAX: usize = 64;

/// Bytes of a reason in a refusal or a wait: longer ones are cut (at a character) so that a frame fits a datagram.
pub const REASON_BYTES_MAX: usize = 256;

/// Bytes of what a receiving app answers a record: like a whole record it goes in one frame, with the `stored` that it is
/// part of, so that it is told when and as the record's outcome is.
pub const ANSWER_BYTES_MAX: usize = WHOLE_RECORD_BYTES_MAX;

/// Addresses kept for a peer: a ticket has at most eight.
pub const ADDRESSES_PER_PEER_MAX: usize = 8;

/// Streams that a peer may declare to this node in a pair of runs: more than pairs of apps of two full nodes.
pub const STREAMS_PER_PEER_MAX: usize = 256;

/// Bytes of records that came before their turn, whole or in part, for all streams of a peer: as much as may be on its way
/// ([`CONGESTION_WINDOW_MAX`]). What does not fit is not acknowledged.
pub const REORDER_BYTES_PER_PEER_MAX: usize = 4 * 1024 * 1024;

/// What a record that came before its turn counts beside its bytes: its place in a map.
pub const REORDER_ENTRY_BYTES: usize = 64;

/// Bytes of records in pieces that are the next of their streams, for all streams of a peer: two of the largest. Each is
/// the next of its stream, so each ends, and then there is room for another one.
pub const TURN_BYTES_PER_PEER_MAX: usize = 2 * RECORD_BYTES_MAX;

/// Ranges of packet numbers in an acknowledgement: as many as reordering makes, few enough to leave room for records.
pub const ACK_RANGES_MAX: usize = 32;

/// Ranges of received packet numbers kept; what is below the lowest counts as received.
pub const RECEIVED_RANGES_MAX: usize = 64;

/// The largest packet number: that of RFC 9000, 12.3. At a million a second it is reached in 146,000 years.
pub const PACKET_NUMBER_MAX: u64 = (1 << 62) - 1;

/// The largest number of a hail: it has 4 bytes and is not expanded (§1.4).
pub const HAIL_NUMBER_MAX: u64 = u32::MAX as u64;

/// One packet number in so many, by chance, is never sent. A peer that acknowledges packets as they may have been sent, not
/// as they come, is found within some hundred (RFC 9000, 21.4).
pub const PACKETS_PER_SKIPPED_NUMBER: u32 = 256;

/// Skipped numbers remembered, the newest: an acknowledgement tells of what is on its way, not of the past.
pub const SKIPPED_NUMBERS_KEPT: usize = 32;

/// Datagrams of a hello.
pub const HELLO_PIECES_MAX: usize = 3;

/// Hellos that are being put together, of all senders: 64 of 3 datagrams are 230 KiB. A full table loses a random one.
pub const REASSEMBLY_ENTRIES_MAX: usize = 64;

/// Hellos that are being put together above which a new one needs a token of its address: half of the table, so that
/// senders of whom nothing is proven leave the other half to those that are where they say.
pub const REASSEMBLY_ENTRIES_WITHOUT_TOKEN: usize = REASSEMBLY_ENTRIES_MAX / 2;

/// Hellos of one address that are being put together at once: a node says one to each identity of a host.
pub const REASSEMBLY_ENTRIES_PER_ADDRESS: usize = 4;

/// How long pieces of a hello are kept: longer than all of its pieces take.
pub const REASSEMBLY_SPAN: Span = Span::seconds(10);

/// Hellos opened a second that came with a token: see [`HELLOS_OF_PEERS_PER_SECOND`].
pub const HELLOS_WITH_TOKEN_PER_SECOND: u64 = 300;

/// How long a token is good for, at least, and at most twice that: until a hello is said again a few times.
pub const TOKEN_SPAN: Span = Span::seconds(60);

/// Tokens that a hello is said again with, between two times that it is said anyway: who is on the way can make them up.
pub const TOKENS_PER_HELLO: u32 = 2;

/// How much more may go to an unproven address than came from it (RFC 9000, section 8).
pub const AMPLIFICATION_MAX: u64 = 3;

/// Hellos opened a second for addresses of peers, and for all others: at 0.3 ms each a tenth and a twentieth of a core.
/// (§3.4)
pub const HELLOS_OF_PEERS_PER_SECOND: u64 = 300;
/// See [`HELLOS_OF_PEERS_PER_SECOND`].
pub const HELLOS_OF_OTHERS_PER_SECOND: u64 = 150;

/// Hints a second: enough for a thousand links to be told within a minute, too few to be of use in a flood.
pub const HINTS_PER_SECOND: u64 = 50;

/// Strangers shown a second, at most.
pub const STRANGERS_PER_SECOND: u64 = 1;

/// Parallel hellos that hints may cause: one in this time for a peer, and three at once.
pub const HINTED_HELLO_INTERVAL: Span = Span::seconds(10);
/// See [`HINTED_HELLO_INTERVAL`].
pub const HINTED_HELLOS_MAX: u64 = 3;

/// Causes kept for comparison with a hint: a burst of probes and what went just before.
pub const CAUSES_MAX: usize = 16;

/// How long a receiver may hold back an acknowledgement (RFC 9000, 13.2.1).
pub const ACK_DELAY_MAX: Span = Span::milliseconds(25);

/// Round trip assumed before the first measurement (RFC 9002, 6.2.2).
pub const ROUND_TRIP_INITIAL: Span = Span::milliseconds(333);

/// Smallest time of any timer (RFC 9002, 6.1.2).
pub const GRANULARITY: Span = Span::milliseconds(1);

/// Packets acknowledged above a missing one before it counts as lost, while no reordering was seen (RFC 9002, 6.1.1).
pub const REORDERING_PACKETS: u64 = 3;

/// Losses declared after one another, none of them spurious, after which seen reordering is forgotten (RFC 8985, 6.2.4).
pub const REORDERING_EPISODES: u64 = 16;

/// Lost packets remembered, in case they were only late: those of the largest window.
pub const LOST_KEPT_MAX: usize = 4_096;

/// A timer that fires so much too late shows that the machine slept, and times measured over it say nothing of the path.
/// (§7.9)
pub const SLEPT: Span = Span::seconds(1);

/// What is sent in one go when it is paced: a timer a millisecond at most.
pub const PACING_QUANTUM: Span = Span::milliseconds(1);

/// Datagrams that may go at once after a pause (RFC 9002, 7.7: the initial window).
pub const PACING_BURST_DATAGRAMS: u64 = 10;

/// Bytes of the first congestion window, and the smallest one (RFC 9002, 7.2).
pub const CONGESTION_WINDOW_INITIAL: u64 = 10 * DATAGRAM_BYTES_MAX as u64;
/// Bytes in flight at most: what a receiver's reordering can hold of several streams, and a bound on what is kept sent.
pub const CONGESTION_WINDOW_MAX: u64 = 4 * 1024 * 1024;

/// The first wait for an answer to a hello, a hail or a request for a card: a round trip assumed, thrice.
pub const ANSWER_INTERVAL_INITIAL: Span = Span::seconds(1);

/// The longest time between two probes of a peer that does not answer.
pub const PROBE_INTERVAL_MAX: Span = Span::seconds(60);

/// Unanswered probes after which other addresses are tried, and the other side's hello is answered.
pub const PROBES_BEFORE_CHANGE: u32 = 2;

/// Unanswered probes after which a hello is said beside them: the memo of the peer may be lost and its hints with it.
pub const PROBES_BEFORE_HELLO: u32 = 4;

/// The fewest bytes of a piece that does not end what is to be sent of its record. It bounds the pieces of a record that a
/// receiver keeps account of.
pub const PIECE_BYTES_MIN: usize = 64;

/// Records of a stream above the oldest unsettled one that are on the wire. Twice the window to an outcome: what has an
/// outcome and is not settled when a node dies is sent again with all that the receiver may have heard above it.
/// (§5.9)
pub const WIRE_RECORDS: usize = 2 * WINDOW_RECORDS;

/// Bytes of a stream above the oldest unsettled record that are on the wire; see [`WIRE_RECORDS`].
pub const WIRE_BYTES: usize = 2 * WINDOW_BYTES;

/// Bytes of credit for all streams of a peer that its owner is not done with: sixteen streams at full speed. A stream that
/// has nothing left gets [`CREDIT_BYTES_MIN`] beside.
pub const CREDIT_BYTES_PER_PEER_MAX: usize = 16 * WIRE_BYTES;

/// Bytes of credit that a stream gets whatever the others have: for all streams that there may be as much as
/// [`CREDIT_BYTES_PER_PEER_MAX`] once more at most.
pub const CREDIT_BYTES_MIN: usize = 64 * 1024;
const _: () = assert!(STREAMS_PER_PEER_MAX * CREDIT_BYTES_MIN <= CREDIT_BYTES_PER_PEER_MAX);

/// Datagrams of a card.
pub const CARD_PIECES_MAX: usize = 2;

/// Time between two hails that datagrams which do not open may cause on a link.
pub const PROVOKED_HAIL_INTERVAL: Span = Span::milliseconds(100);

/// Hellos a second that are begun because a node started, or was given a peer: sealing them is a twentieth of a core, and
/// fewer than [`HELLOS_OF_PEERS_PER_SECOND`] of a receiver. What has records to say does not wait for its turn.
pub const GREETINGS_PER_SECOND: u64 = 200;

/// Unanswered greetings after which only [`GREETING_INTERVAL_LONG`] is left: five minutes after the first one.
pub const GREETINGS_BEFORE_LONG: u32 = 10;

/// The longest time between two greetings of a peer for which nothing waits here: ten thousand peers that are away cost
/// seventeen datagrams a second, and one that comes back greets by itself.
pub const GREETING_INTERVAL_LONG: Span = Span::seconds(600);

/// The longest time between two hellos to a peer that declines: once it adds this node, it greets by itself.
pub const DECLINED_INTERVAL_LONG: Span = Span::seconds(3_600);

/// Moves of a peer that are followed: one in this time, and [`MOVES_MAX`] at once. A node that goes from one network to
/// another, or whose router forgets it, moves less often; whoever sits on the path and makes its datagrams come from ever
/// other ports gets a challenge, its response and an acknowledgement in this time, and a true move waits no longer.
pub const MOVE_INTERVAL: Span = Span::seconds(5);
/// See [`MOVE_INTERVAL`]: there and back, twice.
pub const MOVES_MAX: u64 = 4;

/// Path challenges of a link: one in this time, as the first probe of an unknown path, and [`CHALLENGES_MAX`] at once.
pub const CHALLENGE_INTERVAL: Span = Span::seconds(1);
/// See [`CHALLENGE_INTERVAL`]: each of [`MOVES_MAX`] may be lost once.
pub const CHALLENGES_MAX: u64 = 2 * MOVES_MAX;

/// Time between two faults of a peer that its owner is told of: for people, who need one to ask for the rest.
pub const FAULT_INTERVAL: Span = Span::seconds(60);

/// Times that a hello is said to a peer that answered, and for which nothing waits, before it is given up.
pub const IDLE_HELLOS_MAX: u32 = 8;

/// How long an epoch that carried something lasts: what a seizure of a running node opens of the past.
pub const EPOCH_SPAN: Span = Span::seconds(3_600);

/// Bytes of datagrams, in both directions, after which an epoch ends: far below what one key may seal (NIST SP 800-38D).
pub const EPOCH_BYTES: u64 = 1 << 30;

/// Quiet after which an epoch that carried something ends, so that the link can rest: who speaks once a minute stays awake,
/// and pays for one epoch an hour.
pub const REST_AFTER: Span = Span::seconds(60);

/// Links at rest whose places are read at once because of what came from the network, which proves nothing before: as many
/// as datagrams that a driver takes in a turn. What comes beyond is lost, as in a full buffer.
pub const WAKING_LINKS_MAX: usize = 64;

/// Bytes to which datagrams are padded where it is asked for, beside the full ones: five lengths say of a line of text no
/// more than that it is one, and double what is sent at most.
pub const PADDED_BYTES: [usize; 5] = [64, 128, 256, 512, 1_024];

/// Addresses of peers that are kept for the sake of their hellos: more than a node has peers.
pub const KNOWN_ADDRESSES_MAX: usize = 65_536;
