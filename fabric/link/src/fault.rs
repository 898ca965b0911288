//! What a peer can do wrong under proven keys: named, so that a test can ask for it. None of it changes any state.

/// A packet that opened and breaks the protocol. It is ignored whole and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// A frame ends before it is complete, or a text is not UTF-8.
    #[error("a frame is cut short or malformed")]
    MalformedFrame,
    /// A type of frame that this version does not have.
    #[error("there is no frame of type {0:#04x}")]
    UnknownFrame(u8),
    /// A packet without any frame.
    #[error("a packet without frames")]
    EmptyPacket,
    /// Acknowledged what was never sent.
    #[error("packet {0} was acknowledged and never sent")]
    AcknowledgedUnsent(u64),
    /// Ranges of an acknowledgement run below zero.
    #[error("ranges of an acknowledgement run below zero")]
    MalformedRanges,
    /// Said something of one of our streams that was never declared.
    #[error("stream {0} was never declared")]
    UnknownStream(u64),
    /// Said `stored` of a record that was never sent.
    #[error("record {0} is said to be stored and was never sent")]
    StoredUnsent(u64),
    /// A refusal or an answer above the number up to which it is said, or out of order, or too long.
    #[error("refusals and answers of `stored` are not in order below its number, or too long")]
    MalformedOutcomes,
    /// Asks to wait or go on at a record that has an outcome, or was never sent.
    #[error("record {0} is not on its way")]
    TurnOutOfRange(u64),
    /// A name of an app is empty or longer than names may be; or number 0 in a declaration.
    #[error("a declaration is not well formed")]
    MalformedDeclaration,
    /// Another stream under a handle, or the same stream under another one.
    #[error("handle {0} was declared for another stream, or its stream under another handle")]
    DeclaredTwice(u64),
    /// More streams than a peer may declare.
    #[error("more streams are declared than a peer may have")]
    TooManyStreams,
    /// A record or piece that is longer than this node takes, or a piece outside its record.
    #[error("a record is longer than this node takes, or a piece is outside its record")]
    RecordTooLarge,
    /// A record that a hail or hello may not carry there, or frames that only a packet may carry.
    #[error("a frame that may not be here")]
    FrameOutOfPlace,
}
