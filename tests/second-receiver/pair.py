"""One pair, that is a root with both runs: seals and opens packets, acknowledges, and sends again what was lost.

From docs/link.md, sections 1, 5, 6 and 7, as far as a receiver needs it: what it sends are outcomes, acknowledgements and answers,
a few bytes at a time, so it has no congestion window, only a probe timer that doubles.
"""

import os
import random
import struct
from dataclasses import dataclass, field

import frames
import keys
from frames import Malformed
from streams import Streams

PACKET, HAIL = 0x53, 0x54
PACKET_HEADER_BYTES = 13
HAIL_HEADER_BYTES = 37
DATAGRAM_BYTES = 1200
RANGES_KEPT = 64
RANGES_SAID = frames.FURTHER_RANGES + 1
ACK_DELAY_SECONDS = 0.025
PACKETS_WITHOUT_ACK = 2
FIRST_PROBE_SECONDS = 0.3
LEAST_PROBE_SECONDS = 0.05
MOST_PROBE_SECONDS = 60.0
REORDERED_PACKETS = 3
SKIPPED_ONE_IN = 256
AMPLIFICATION = 3
# Acknowledgements alone are not acknowledged themselves; the oldest are forgotten.
REMEMBERED_PACKETS = 4096


class Ranges:
    """Received numbers; what lies below the lowest range of 64, or was forgotten, counts as received (1.6)."""

    def __init__(self):
        self._ranges: list[tuple[int, int]] = []  # the largest first
        self._forgotten_below = 0

    def __contains__(self, number: int) -> bool:
        return number < self._forgotten_below or any(low <= number <= high for low, high in self._ranges)

    def largest(self) -> int:
        return self._ranges[0][1] if self._ranges else -1

    def add(self, number: int) -> None:
        low = high = number
        others = []
        for start, end in self._ranges:
            if end + 1 < low or start > high + 1:
                others.append((start, end))
            else:
                low, high = min(low, start), max(high, end)
        self._ranges = sorted([*others, (low, high)], reverse=True)
        if len(self._ranges) > RANGES_KEPT:
            self._forgotten_below = max(self._forgotten_below, self._ranges[RANGES_KEPT - 1][0])
            del self._ranges[RANGES_KEPT:]

    def forget_below_range_of(self, number: int) -> None:
        for low, high in self._ranges:
            if low <= number <= high:
                self._forgotten_below = max(self._forgotten_below, low)
        self._ranges = [(low, high) for low, high in self._ranges if low >= self._forgotten_below]

    def to_say(self) -> list[tuple[int, int]]:
        return self._ranges[:RANGES_SAID]


def expanded(low_half: int, largest: int) -> int:
    """RFC 9000, A.3, with 32 bits."""
    window, next_one = 1 << 32, largest + 1
    candidate = (next_one & ~(window - 1)) | low_half
    if candidate <= next_one - window // 2 and candidate + window < 1 << 62:
        return candidate + window
    if candidate > next_one + window // 2 and candidate >= window:
        return candidate - window
    return candidate


@dataclass
class Path:
    """An address, and how many bytes may go there before it is proven (6.1)."""

    address: tuple
    proven: bool = False
    budget: int = 0
    challenge: bytes | None = None

    def came(self, length: int) -> None:
        self.budget += AMPLIFICATION * length

    def sent(self, length: int) -> None:
        if not self.proven:
            self.budget -= length


@dataclass
class Sent:
    at: float
    stored: dict = field(default_factory=dict)  # handle: up to
    forked: set = field(default_factory=set)
    hailed: set = field(default_factory=set)
    accepted: bytes | None = None
    largest_acked: int | None = None
    challenged: tuple | None = None
    eliciting: bool = False


class Pair:
    def __init__(self, root: bytes, epoch: int, peer_run: bytes, own_run: bytes, ledger: dict, take):
        self.root, self.epoch = root, epoch
        self.id_in, self.id_out = keys.link_ids(root)
        self._in, self._out = keys.pair_directions(root, peer_run, own_run)
        self.received = Ranges()
        self.streams = Streams(ledger, take)
        self.path: Path | None = None
        self.proven = False
        self.offers: dict[bytes, dict[int, bytes]] = {}
        self._next_number = 0
        self._left_out: set[int] = set()
        self._in_flight: dict[int, Sent] = {}
        self._unacknowledged, self._ack_at, self._largest_at = 0, None, 0.0
        self._round_trip = None
        self._probes, self._probe_due = 0, False
        self._response: tuple[tuple, bytes] | None = None
        self.to_say_hailed: set[int] = set()
        self.accept: tuple[bytes, bytes] | None = None  # of an offer: its key and the ciphertext
        self.to_say_accept: tuple[bytes, bytes] | None = None
        self._challenge_due = False

    # What comes

    def opened(self, datagram: bytes) -> tuple[int, bytes]:
        """Number and plaintext of a packet that is new; else `Refused`. Changes nothing."""
        number = expanded(int.from_bytes(datagram[9:13], "big"), self.received.largest())
        if number in self.received:
            raise keys.Refused("came before")
        header, ciphertext = datagram[:PACKET_HEADER_BYTES], datagram[PACKET_HEADER_BYTES:]
        return number, self._in.unseal(number, header, ciphertext)

    def check(self, parsed: list) -> None:
        declared: dict[int, bytes] = {}
        for frame in parsed:
            if isinstance(frame, frames.Ack):
                self._check_ack(frame)
            elif isinstance(frame, frames.Accept):
                raise Malformed("an accept of an offer that nobody made")
            elif isinstance(frame, (frames.Declaration, frames.Piece)):
                self.streams.check(frame, declared)

    def _check_ack(self, ack: frames.Ack) -> None:
        for low, high in ack.ranges:
            if high >= self._next_number or any(low <= number <= high for number in self._left_out):
                raise Malformed("acknowledges what was never sent")

    def count_received(self, now: float, number: int, eliciting: bool) -> None:
        if number > self.received.largest():
            self._largest_at = now
        self.received.add(number)
        if eliciting:
            self._unacknowledged += 1
            self._ack_at = now if self._unacknowledged >= PACKETS_WITHOUT_ACK else (self._ack_at or now + ACK_DELAY_SECONDS)

    def acknowledged(self, now: float, ack: frames.Ack) -> bool:
        """Takes an acknowledgement; true if it was of more than path challenges (6.1)."""
        more = False
        arrived = [n for n in self._in_flight if any(low <= n <= high for low, high in ack.ranges)]
        for number in arrived:
            sent = self._in_flight.pop(number)
            more = more or not sent.challenged
            if sent.eliciting:
                self._probes = 0
                if number == ack.ranges[0][1]:
                    self._measure(now - sent.at - ack.delay / 1e6)
            if sent.largest_acked is not None:
                self.received.forget_below_range_of(sent.largest_acked)
        for number in [n for n in self._in_flight if n + REORDERED_PACKETS <= ack.ranges[0][1]]:
            self._lost(self._in_flight.pop(number))
        return more

    def _measure(self, round_trip: float) -> None:
        round_trip = max(round_trip, 0.0)
        self._round_trip = round_trip if self._round_trip is None else 0.875 * self._round_trip + 0.125 * round_trip

    def _lost(self, sent: Sent) -> None:
        """What it carried is due again, made anew from what is true now."""
        self.streams.to_say_stored |= {handle for handle in sent.stored if handle not in self.streams.to_say_forked}
        self.streams.to_say_forked |= sent.forked
        self.to_say_hailed |= sent.hailed
        if sent.accepted and self.accept and self.accept[0] == sent.accepted:
            self.to_say_accept = self.accept
        if sent.challenged and self.path and self.path.challenge == sent.challenged:
            self._challenge_due = True

    def heard(self) -> None:
        """Whatever opens from the peer ends the backoff (7.8)."""
        self._probes = 0

    def respond(self, address: tuple, data: bytes) -> None:
        self._response = (address, data)

    def challenge(self) -> None:
        self.path.challenge = os.urandom(8)
        self._challenge_due = True

    def responded(self, data: bytes) -> None:
        if self.path and self.path.challenge == data:
            self.path.proven, self.path.challenge = True, None

    def ping(self) -> None:
        self._probe_due = True

    # What goes

    def due_at(self) -> float | None:
        due = [self._ack_at] if self._ack_at is not None else []
        eliciting = [sent.at for sent in self._in_flight.values() if sent.eliciting]
        if eliciting:
            due.append(max(eliciting) + self._probe_seconds())
        return min(due) if due else None

    def _probe_seconds(self) -> float:
        measured = FIRST_PROBE_SECONDS if self._round_trip is None else 3 * self._round_trip + 2 * ACK_DELAY_SECONDS
        return min(max(measured, LEAST_PROBE_SECONDS) * 2**self._probes, MOST_PROBE_SECONDS)

    def probe_if_due(self, now: float) -> None:
        eliciting = [sent.at for sent in self._in_flight.values() if sent.eliciting]
        if eliciting and now >= max(eliciting) + self._probe_seconds():
            self._probes = min(self._probes + 1, 10)
            in_flight, self._in_flight = self._in_flight, {}
            for sent in in_flight.values():
                self._lost(sent)
            self._probe_due = True

    def packets(self, now: float) -> list[tuple[tuple, bytes]]:
        """All that is due, with where it goes."""
        out = []
        if self._response is not None:
            address, data = self._response
            out.append((address, self._sealed(frames.path_response(data), Sent(now), address)))
            self._response = None
        while self.path is not None:
            body, sent = self._body(now)
            if not body:
                return out
            out.append((self.path.address, self._sealed(body, sent, self.path.address)))
        return out

    def _body(self, now: float) -> tuple[bytes, Sent]:
        """The frames of one packet; what is taken is no longer due."""
        sent, body = Sent(now), b""
        datagram = DATAGRAM_BYTES if self.path.proven else min(DATAGRAM_BYTES, self.path.budget)
        room = datagram - PACKET_HEADER_BYTES - keys.TAG_BYTES
        ack, ranges = b"", self.received.to_say()
        if ranges and self._ack_at is not None:
            ack = frames.ack(ranges, max(int((now - self._largest_at) * 1e6), 0))

        def add(frame: bytes) -> bool:
            nonlocal body
            if len(body) + len(frame) + len(ack) > room:
                return False
            body += frame
            sent.eliciting = True
            return True

        if self._challenge_due and add(frames.path_challenge(self.path.challenge)):
            self._challenge_due, sent.challenged = False, self.path.challenge
        if self.to_say_accept and add(frames.accept(*self.to_say_accept)):
            sent.accepted, self.to_say_accept = self.to_say_accept[0], None
        for number in sorted(self.to_say_hailed):
            if add(frames.hailed(number)):
                sent.hailed.add(number)
        self.to_say_hailed -= sent.hailed
        for handle in sorted(self.streams.to_say_stored):
            up_to = self.streams.stored_up_to(handle)
            if add(frames.stored(handle, up_to)):
                sent.stored[handle] = up_to
        self.streams.to_say_stored -= set(sent.stored)
        if self.proven:
            sent.forked = {handle for handle in sorted(self.streams.to_say_forked) if add(frames.forked(handle))}
            self.streams.to_say_forked -= sent.forked
        if self._probe_due and (sent.eliciting or add(frames.ping())):
            self._probe_due = False
        if ack and (now >= self._ack_at or sent.eliciting) and len(ack) + len(body) <= room:
            body += ack
            sent.largest_acked = ranges[0][1]
            self._unacknowledged, self._ack_at = 0, None
        return body, sent

    def _sealed(self, body: bytes, sent: Sent, address: tuple) -> bytes:
        number = self._number()
        header = struct.pack(">B8sI", PACKET, self.id_out, number & 0xFFFFFFFF)
        datagram = header + self._out.seal(number, header, body)
        if self.path and address == self.path.address:
            self.path.sent(len(datagram))
        self._in_flight[number] = sent
        if len(self._in_flight) > REMEMBERED_PACKETS:
            self._lost(self._in_flight.pop(next(iter(self._in_flight))))
        return datagram

    def _number(self) -> int:
        """One in 256 is left out, by chance (1.8)."""
        if random.randrange(SKIPPED_ONE_IN) == 0:
            self._left_out.add(self._next_number)
            self._next_number += 1
        self._next_number += 1
        return self._next_number - 1
