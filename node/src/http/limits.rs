//! Every bound of the server, with its reason.

use std::time::Duration;

/// Connections open at once. Half of the usual limit of 1024 open files, so that the log and the links never go
/// without; who comes later waits in the system's queue and costs the node nothing, while the idle make place.
pub(super) const CONNECTIONS_MAX: usize = 512;

/// Event streams open at once. They last for hours, so they may not take every connection from the requests.
pub(super) const EVENT_STREAMS_MAX: usize = 384;
const _: () = assert!(EVENT_STREAMS_MAX < CONNECTIONS_MAX);

/// What a view may cost where each is tried first: at most some milliseconds, so that whoever waits there waits for
/// little, whatever other views cost. One that costs more, or has no room, did it for nothing, and begins anew among the costly: a 256th of
/// what it may cost there.
pub(crate) const LITTLE_OPERATIONS_MAX: u64 = engine::OPERATIONS_MAX / 256;

/// Views computed at once that cost little, or have yet to show that they do not. They block their thread, and more threads
/// than this only take turns on a small machine.
pub(super) const LITTLE_VIEWS_AT_ONCE: usize = 4;

/// Views computed at once that cost more than a little: they take turns among themselves.
pub(super) const COSTLY_VIEWS_AT_ONCE: usize = 4;

/// Bytes that all views being computed make together, beside the first mebibyte of each: two of the largest. Each alone
/// may make [`engine::BYTES_MAX`], and a node runs on the smallest machines.
pub(crate) const VIEWS_BYTES_MAX: u64 = 2 * engine::BYTES_MAX;

/// One view's answer. A page shows some thousands of rows of it; more is for a view with arguments, part by part.
pub(crate) const VIEW_BYTES_MAX: usize = 4 * 1024 * 1024;

/// All answers together that are being sent or kept for the next who asks, each counted once however many it is sent
/// to: sixteen of the largest, and a node runs on the smallest machines.
pub(super) const ANSWERS_BYTES_MAX: usize = 64 * 1024 * 1024;
const _: () = assert!(VIEW_BYTES_MAX <= ANSWERS_BYTES_MAX && ANSWERS_BYTES_MAX <= u32::MAX as usize);

/// An answer this small always finds room and is not counted, so that readers of large ones shut nobody out: all
/// connections' and streams' together have at most 14 MiB.
pub(super) const UNCOUNTED_BYTES_MAX: usize = 16 * 1024;

/// What is made of a backup at a time, at least, unless it ends: as much as a checkpoint writes at a time.
pub(super) const BACKUP_PIECE_BYTES: usize = 256 * 1024;

/// An input's body. A line of the messenger has at most 4000 characters; a send's arguments 240 KiB.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A control request's body: a ticket with eight addresses has about 500 bytes.
pub(super) const CONTROL_BODY_BYTES_MAX: usize = 16 * 1024;

/// An app's source and its libraries as a JSON text: one source has at most 1 MiB, and is mostly letters.
pub(super) const PLAN_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is read and thrown away of a body that is too large, so that its sender gets to read why. A connection closed
/// on unread bytes is reset, and the answer lost with it.
pub(super) const DISCARD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A request's line and headers together: arguments of a view and a browser's headers fit many times.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

/// What one connection may buffer: the headers, and room to read and write in.
pub(super) const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// An idempotency key: a UUID has 36.
pub(super) const IDEMPOTENCY_KEY_CHARACTERS_MAX: usize = 128;

/// From the connection's opening, or the last answer, to the end of the next request's headers. Also what an idle
/// connection is kept for.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// From the headers to the body's last byte: 1 MiB at 280 kbit/s.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a reader may take nothing at all of what is sent. A suspended page comes back and reconnects by itself.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// A reader that is behind all this time must have taken [`VIEW_BYTES_MAX`] in it: 14 kB/s, less than any line that
/// people still use. So the largest answer is held for one reader no longer than this.
pub(super) const BEHIND_TIMEOUT: Duration = Duration::from_secs(300);

/// Between two signs of life on an event stream; proxies usually give up after 30 to 60 s.
pub(super) const EVENT_KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What requests under way have for finishing once the node stops: many times a slow disk's sync, well within the
/// 90 s that systemd gives.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection without a request under way has for writing out its last answer once the node stops.
pub(super) const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// While clients wait for a place: how often those who do nothing are asked to leave.
pub(super) const CROWDED_PAUSE: Duration = Duration::from_millis(100);

/// While clients wait for a place: who has done nothing for this long has to leave. A client that means to ask does so
/// within a round trip.
pub(super) const CROWDED_IDLE_SPARED: Duration = Duration::from_secs(1);

/// What one who has to leave gets for taking the last of an answer.
pub(super) const CROWDED_TIMEOUT: Duration = Duration::from_millis(100);

/// Before accepting is tried again after an error (no file descriptors left, mostly).
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a client is told to wait when too much is going on here.
pub(super) const RETRY_AFTER_SECONDS: u32 = 1;
