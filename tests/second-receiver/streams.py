"""Streams of one pair and the ledger that outlives pairs: docs/link.md, section 5 and 2.6.

Knows nothing of packets: it is handed frames, says for each whether it was kept (2.2), and holds what is to be said.
"""

from dataclasses import dataclass, field

import frames
from frames import Malformed

STREAMS_OF_A_PEER = 256
RECORDS_ABOVE_OLDEST = 512
WAITING_BYTES_OF_A_PEER = 4 << 20
PIECED_BYTES_OF_A_PEER = 32 << 20
RECORD_OVERHEAD_BYTES = 64
BYTES_FOR_A_GAP = 64
# 5.9: of what was heard no more can be unsettled.
HEARD_AND_UNSETTLED = 256


@dataclass
class Heard:
    """What is known of a stream over all pairs: the highest number taken, and its tag."""

    number: int = 0
    tag: bytes = bytes(8)


@dataclass
class Taken:
    """A record that was new to the ledger."""

    stream: bytes
    number: int
    payload: bytes
    from_app: str
    to_app: str


class Partial:
    """A record that comes in pieces."""

    def __init__(self, tag: bytes, total: int):
        self.tag, self._bytes, self._have = tag, bytearray(total), []
        self._most_gaps = total // BYTES_FOR_A_GAP + 1

    @property
    def total(self) -> int:
        return len(self._bytes)

    def add(self, offset: int, data: bytes) -> bool:
        """False if it would leave more gaps than are kept."""
        low, high, have = offset, offset + len(data), []
        for start, end in self._have:
            if end < low or start > high:
                have.append((start, end))
            else:
                low, high = min(low, start), max(high, end)
        have = sorted([*have, (low, high)])
        if len(have) > self._most_gaps:
            return False
        self._bytes[offset : offset + len(data)] = data
        self._have = have
        return True

    def whole(self) -> bytes | None:
        return bytes(self._bytes) if self._have == [(0, self.total)] else None


@dataclass
class Stream:
    """A declared stream: `expected` is the next number to hand over, `base` the oldest not settled."""

    declaration: frames.Declaration
    expected: int
    base: int
    begun_at: int
    last: int
    waiting: dict = field(default_factory=dict)  # number: (tag, payload)
    partial: dict = field(default_factory=dict)  # number: Partial
    compared: bool = False
    forked: bool = False


class Streams:
    def __init__(self, ledger: dict[bytes, Heard], take):
        self._ledger, self._take = ledger, take
        self._by_handle: dict[int, Stream] = {}
        self.to_say_stored: set[int] = set()
        self.to_say_forked: set[int] = set()

    def stored_up_to(self, handle: int) -> int:
        return self._heard(self._by_handle[handle]).number

    def _heard(self, stream: Stream) -> Heard:
        return self._ledger.setdefault(stream.declaration.stream, Heard())

    def check(self, frame, declared: dict[int, bytes]) -> None:
        """What is misbehaviour before anything is applied; `declared` has what this packet declares itself."""
        if isinstance(frame, frames.Declaration):
            known = {handle: stream.declaration.stream for handle, stream in self._by_handle.items()} | declared
            if known.get(frame.handle, frame.stream) != frame.stream:
                raise Malformed("another stream under a known handle")
            if any(stream == frame.stream and handle != frame.handle for handle, stream in known.items()):
                raise Malformed("a stream under two handles")
            declared[frame.handle] = frame.stream
        elif isinstance(frame, frames.Piece) and frame.handle in self._by_handle:
            partial = self._by_handle[frame.handle].partial.get(frame.number)
            if partial and (partial.total, partial.tag) != (frame.total, frame.tag):
                raise Malformed("pieces of two records under one number")

    def apply(self, frame) -> bool:
        if isinstance(frame, frames.Declaration):
            return self._declare(frame)
        stream = self._by_handle.get(frame.handle)
        if stream is None:
            return False
        if stream.forked:
            return True
        if isinstance(frame, frames.Records):
            kept = [self._record(stream, frame.first + at, frame.tag, payload) for at, payload in enumerate(frame.payloads)]
            return all(kept)
        if isinstance(frame, frames.Piece):
            return self._piece(stream, frame)
        stream.base = max(stream.base, frame.up_to + 1)
        return True

    def _declare(self, frame: frames.Declaration) -> bool:
        stream = self._by_handle.get(frame.handle)
        if stream is None:
            if len(self._by_handle) == STREAMS_OF_A_PEER:
                return False
            stream = Stream(frame, expected=frame.oldest, base=frame.oldest, begun_at=frame.oldest, last=frame.last)
            self._by_handle[frame.handle] = stream
        elif frame.oldest > stream.expected:
            stream.declaration = frame
            stream.expected = stream.begun_at = frame.oldest
            for kept in (stream.waiting, stream.partial):
                for number in [number for number in kept if number < frame.oldest]:
                    del kept[number]
            self._hand_over(stream)
        stream.last = max(stream.last, frame.last)
        stream.base = max(stream.base, frame.oldest)
        return True

    def _begin(self, stream: Stream) -> None:
        """At the first record: does the sender have its past (5.2.1)? The one before counts as handed over, with its tag."""
        heard = self._heard(stream)
        if heard.number == 0:
            stream.compared = True
        elif stream.last < heard.number or heard.number - stream.begun_at >= HEARD_AND_UNSETTLED:
            self._fork(stream)
        else:
            self._compare(stream, stream.begun_at - 1, stream.declaration.tag_before)

    def _compare(self, stream: Stream, number: int, tag: bytes) -> None:
        heard = self._heard(stream)
        if number != heard.number or number == 0:
            return
        if tag == heard.tag:
            stream.compared = True
            self.to_say_stored.add(stream.declaration.handle)
        else:
            self._fork(stream)

    def _fork(self, stream: Stream) -> None:
        stream.forked = True
        self.to_say_forked.add(stream.declaration.handle)
        self.to_say_stored.discard(stream.declaration.handle)

    def _record(self, stream: Stream, number: int, tag: bytes, payload: bytes) -> bool:
        if number < stream.expected or number in stream.waiting:
            if stream.compared and number <= self._heard(stream).number:
                self.to_say_stored.add(stream.declaration.handle)
            return True
        if number != stream.expected and not self._has_room(stream, number, len(payload)):
            return False
        stream.partial.pop(number, None)
        stream.waiting[number] = (tag, payload)
        self._hand_over(stream)
        return True

    def _piece(self, stream: Stream, frame: frames.Piece) -> bool:
        number = frame.number
        partial = stream.partial.get(number)
        if partial is None:
            if number < stream.expected or number in stream.waiting:
                return self._record(stream, number, frame.tag, b"")
            next_one = number == stream.expected
            if next_one and self._pieced_bytes() + frame.total > PIECED_BYTES_OF_A_PEER:
                return False
            if not next_one and not self._has_room(stream, number, frame.total):
                return False
            partial = stream.partial[number] = Partial(frame.tag, frame.total)
        if not partial.add(frame.offset, frame.data):
            return False
        whole = partial.whole()
        if whole is not None:
            del stream.partial[number]
            stream.waiting[number] = (frame.tag, whole)
            self._hand_over(stream)
        return True

    def _has_room(self, stream: Stream, number: int, length: int) -> bool:
        if number >= stream.base + RECORDS_ABOVE_OLDEST:
            return False
        return self._waiting_bytes() + length + RECORD_OVERHEAD_BYTES <= WAITING_BYTES_OF_A_PEER

    def _waiting_bytes(self) -> int:
        return sum(
            sum(len(payload) + RECORD_OVERHEAD_BYTES for _, payload in stream.waiting.values())
            + sum(partial.total + RECORD_OVERHEAD_BYTES for number, partial in stream.partial.items() if number != stream.expected)
            for stream in self._by_handle.values()
        )

    def _pieced_bytes(self) -> int:
        nexts = (stream.partial.get(stream.expected) for stream in self._by_handle.values())
        return sum(partial.total for partial in nexts if partial)

    def _hand_over(self, stream: Stream) -> None:
        """Contiguously (5.2); the ledger alone decides what is new."""
        while not stream.forked and stream.expected in stream.waiting:
            number = stream.expected
            tag, payload = stream.waiting.pop(number)
            stream.expected += 1
            heard = self._heard(stream)
            if number == stream.begun_at:
                self._begin(stream)
            if stream.forked:
                return
            if number <= heard.number:
                self._compare(stream, number, tag)
            else:
                self._new(stream, heard, number, tag, payload)

    def _new(self, stream: Stream, heard: Heard, number: int, tag: bytes, payload: bytes) -> None:
        declared = stream.declaration
        self._take(Taken(declared.stream, number, payload, declared.from_app, declared.to_app))
        heard.number, heard.tag = number, tag
        stream.compared = True
        self.to_say_stored.add(declared.handle)
