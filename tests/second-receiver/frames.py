"""The frames of docs/link.md, section 2: bytes to values and back. What is malformed raises `Malformed`.

Knows nothing of keys, streams or time. A frame is judged here only as far as its own bytes go.
"""

from dataclasses import dataclass, field

SMALL_PAYLOAD_BYTES = 800
LARGEST_RECORD_BYTES = 16 << 20
APP_BYTES = 64
FURTHER_RANGES = 31
OFFER_HALF_BYTES = 608
CIPHERTEXT_BYTES = 1120


class Malformed(Exception):
    """The whole packet is ignored (2.1)."""


@dataclass(frozen=True)
class Padding:
    pass


@dataclass(frozen=True)
class Ping:
    pass


@dataclass(frozen=True)
class Close:
    pass


@dataclass(frozen=True)
class Ack:
    delay: int
    ranges: tuple  # (lowest, highest), the largest first


@dataclass(frozen=True)
class PathChallenge:
    data: bytes


@dataclass(frozen=True)
class PathResponse:
    data: bytes


@dataclass(frozen=True)
class Hailed:
    number: int


@dataclass(frozen=True)
class Offer:
    key: bytes
    index: int
    half: bytes


@dataclass(frozen=True)
class Accept:
    key: bytes
    ciphertext: bytes


@dataclass(frozen=True)
class Declaration:
    handle: int
    stream: bytes
    oldest: int
    last: int
    tag_before: bytes
    from_app: str
    to_app: str


@dataclass(frozen=True)
class Records:
    handle: int
    first: int
    tag: bytes
    payloads: tuple


@dataclass(frozen=True)
class Piece:
    handle: int
    number: int
    tag: bytes
    total: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class Settled:
    handle: int
    up_to: int


@dataclass(frozen=True)
class Transient:
    from_app: str
    to_app: str
    data: bytes


@dataclass(frozen=True)
class Blocked:
    handle: int
    number: int


@dataclass(frozen=True)
class Stored:
    handle: int
    up_to: int
    outcomes: tuple = field(default=())  # (number, kind, reason or answer)


@dataclass(frozen=True)
class Waiting:
    handle: int
    turn: int
    number: int
    reason: str


@dataclass(frozen=True)
class Ready:
    handle: int
    turn: int
    number: int


@dataclass(frozen=True)
class Forked:
    handle: int


@dataclass(frozen=True)
class Credit:
    handle: int
    oldest: int
    number: int
    bytes: int


# 2.3
ASKS_FOR_NO_ACK = (Padding, Close, Ack, PathResponse, Transient)
# 2.4
OF_A_HELLO = (Padding, Ping, Declaration, Records, Piece, Settled)
OF_A_HAIL = (*OF_A_HELLO, Hailed, Stored, Waiting, Ready, Forked, Blocked, Credit)
# 6.1: packets of these alone move nothing.
PROBING = (Padding, PathChallenge, PathResponse)


class Reader:
    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, length: int) -> bytes:
        if length > self.left():
            raise Malformed("cut short")
        self._at += length
        return self._data[self._at - length : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        first = self.byte()
        rest = self.take((1 << (first >> 6)) - 1)
        return int.from_bytes(bytes([first & 0x3F]) + rest, "big")

    def bytes(self, most: int) -> bytes:
        length = self.varint()
        if length > most:
            raise Malformed(f"{length} bytes where at most {most} are allowed")
        return self.take(length)

    def text(self, most: int) -> str:
        try:
            return self.bytes(most).decode()
        except UnicodeDecodeError:
            raise Malformed("text that is not UTF-8") from None


def parsed(data: bytes) -> list:
    """All frames of a plaintext, or `Malformed`."""
    reader, frames = Reader(data), []
    while reader.left():
        kind = reader.byte()
        read = READERS.get(kind)
        if read is None:
            raise Malformed(f"unknown frame {kind:#x}")
        frame = read(reader)
        if not (isinstance(frame, Padding) and frames and isinstance(frames[-1], Padding)):
            frames.append(frame)
    return frames


def read_ack(reader: Reader) -> Ack:
    largest, delay, further = reader.varint(), reader.varint(), reader.varint()
    if further > FURTHER_RANGES:
        raise Malformed("too many ranges")
    lowest = largest - reader.varint()
    ranges = [(lowest, largest)]
    for _ in range(further):
        highest = lowest - reader.varint() - 2
        lowest = highest - reader.varint()
        ranges.append((lowest, highest))
    if lowest < 0:
        raise Malformed("an acknowledged number below zero")
    return Ack(delay, tuple(ranges))


def read_offer(reader: Reader) -> Offer:
    offer = Offer(reader.take(8), reader.byte(), reader.take(OFFER_HALF_BYTES))
    if offer.index > 1:
        raise Malformed("an offer has two halves")
    return offer


def read_declaration(reader: Reader) -> Declaration:
    handle, stream = reader.varint(), reader.take(16)
    oldest, last, tag_before = reader.varint(), reader.varint(), reader.take(8)
    if oldest == 0 or last + 1 < oldest:
        raise Malformed("a declaration that ends before it begins")
    return Declaration(handle, stream, oldest, last, tag_before, reader.text(APP_BYTES), reader.text(APP_BYTES))


def read_records(reader: Reader) -> Records:
    handle, first, tag, count = reader.varint(), reader.varint(), reader.take(8), reader.varint()
    if count == 0 or first == 0 or count > reader.left():
        raise Malformed("records without a number, or none")
    return Records(handle, first, tag, tuple(reader.bytes(SMALL_PAYLOAD_BYTES) for _ in range(count)))


def read_piece(reader: Reader) -> Piece:
    handle, number, tag = reader.varint(), reader.varint(), reader.take(8)
    total, offset = reader.varint(), reader.varint()
    piece = Piece(handle, number, tag, total, offset, reader.bytes(reader.left()))
    if not SMALL_PAYLOAD_BYTES < total <= LARGEST_RECORD_BYTES:
        raise Malformed("a record in pieces that goes whole, or is too large")
    if number == 0 or not piece.data or offset + len(piece.data) > total:
        raise Malformed("a piece that is not of its record")
    return piece


def read_stored(reader: Reader, with_kind: bool) -> Stored:
    handle, up_to, count = reader.varint(), reader.varint(), reader.varint()
    outcomes, before = [], -1
    for _ in range(count):
        number = reader.varint()
        kind = reader.byte() if with_kind else 0
        if number <= before or number > up_to or kind > 1:
            raise Malformed("outcomes that are not in ascending order up to the number")
        before = number
        outcomes.append((number, kind, reader.text(reader.left()) if kind == 0 else reader.bytes(SMALL_PAYLOAD_BYTES)))
    return Stored(handle, up_to, tuple(outcomes))


READERS = {
    0x00: lambda reader: Padding(),
    0x01: lambda reader: Ping(),
    0x02: read_ack,
    0x03: lambda reader: PathChallenge(reader.take(8)),
    0x04: lambda reader: PathResponse(reader.take(8)),
    0x05: lambda reader: Close(),
    0x06: lambda reader: Hailed(reader.varint()),
    0x07: read_offer,
    0x08: lambda reader: Accept(reader.take(8), reader.take(CIPHERTEXT_BYTES)),
    0x10: read_declaration,
    0x11: read_records,
    0x12: read_piece,
    0x13: lambda reader: Settled(reader.varint(), reader.varint()),
    0x14: lambda reader: Transient(reader.text(APP_BYTES), reader.text(APP_BYTES), reader.bytes(SMALL_PAYLOAD_BYTES)),
    0x15: lambda reader: Blocked(reader.varint(), reader.varint()),
    0x20: lambda reader: read_stored(reader, with_kind=False),
    0x21: lambda reader: Waiting(reader.varint(), reader.varint(), reader.varint(), reader.text(reader.left())),
    0x22: lambda reader: Ready(reader.varint(), reader.varint(), reader.varint()),
    0x23: lambda reader: Forked(reader.varint()),
    0x24: lambda reader: read_stored(reader, with_kind=True),
    0x25: lambda reader: Credit(reader.varint(), reader.varint(), reader.varint(), reader.varint()),
}


def varint(value: int) -> bytes:
    for exponent, length in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * length - 2):
            return (value | exponent << (8 * length - 2)).to_bytes(length, "big")
    raise ValueError(f"{value} is no varint")


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def ping() -> bytes:
    return b"\x01"


def ack(ranges: list[tuple[int, int]], delay_micros: int) -> bytes:
    """`ranges` are (lowest, highest), the largest first, at most 32."""
    lowest, largest = ranges[0]
    out = b"\x02" + varint(largest) + varint(delay_micros) + varint(len(ranges) - 1) + varint(largest - lowest)
    for next_lowest, next_highest in ranges[1:]:
        out += varint(lowest - next_highest - 2) + varint(next_highest - next_lowest)
        lowest = next_lowest
    return out


def path_challenge(data: bytes) -> bytes:
    return b"\x03" + data


def path_response(data: bytes) -> bytes:
    return b"\x04" + data


def hailed(number: int) -> bytes:
    return b"\x06" + varint(number)


def accept(key: bytes, ciphertext: bytes) -> bytes:
    return b"\x08" + key + ciphertext


def stored(handle: int, up_to: int) -> bytes:
    return b"\x20" + varint(handle) + varint(up_to) + varint(0)


def forked(handle: int) -> bytes:
    return b"\x23" + varint(handle)
