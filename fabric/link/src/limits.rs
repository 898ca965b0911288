//! Every bound and constant of the link in one place, each with its unit and its reason.

use crate::time::Span;

/// Bytes of a datagram. 1,200 pass every IPv6 path with room for tunnels (RFC 9000, section 14).
pub const DATAGRAM_BYTES_MAX: usize = 1_200;

/// Bytes of a record. Larger ones are the business of an app: they cost the receiver this much memory a stream.
pub const RECORD_BYTES_MAX: usize = 256 * 1024;

/// Records of a stream between send and outcome: a commit a millisecond at 250 records each is as fast as a store.
pub const WINDOW_RECORDS: usize = 256;

/// Bytes of a stream between send and outcome: 1 MiB fills 80 Mbit/s at 100 ms.
pub const WINDOW_BYTES: usize = 1024 * 1024;

/// Bytes of the name of an app. Long enough for a name, short enough that a declaration fits a datagram.
pub const APP_NAME_BYTES_MAX: usize = 64;

/// Bytes of a reason in a refusal or a wait: longer ones are cut (at a character) so that a frame fits a datagram.
pub const REASON_BYTES_MAX: usize = 256;

/// Addresses kept for a peer: a ticket has at most eight.
pub const ADDRESSES_PER_PEER_MAX: usize = 8;

/// Streams that a peer may declare to this node in a pair of runs: more than pairs of apps of two full nodes.
pub const STREAMS_PER_PEER_MAX: usize = 256;

/// The longest time between two probes of a peer that does not answer.
pub const PROBE_INTERVAL_MAX: Span = Span::seconds(60);
