"""A node that only receives: answers hellos, hails, packets, card requests and offers, from docs/link.md.

It is handed datagrams and time, and returns datagrams. What must be synced before something is said (section 8) goes through
`save`, which is called before a datagram goes out. It says no hellos of its own and is the responder of every root.
"""

import hashlib
import ipaddress
import os
import random
import struct
import time
from dataclasses import dataclass, field

import frames
import keys
from frames import Malformed
from pair import AMPLIFICATION, DATAGRAM_BYTES, HAIL, HAIL_HEADER_BYTES, PACKET, PACKET_HEADER_BYTES, Pair, Path, Ranges

HELLO_PIECE, ANSWER, HINT, CARD_REQUEST, CARD_ANSWER, TOKEN, HELLO_PIECE_WITH_TOKEN = 0x51, 0x52, 0x55, 0x56, 0x57, 0x58, 0x59
STRANGER, BEHIND = 1, 2
PIECES_OF_A_HELLO = 3
PIECE_BYTES, PIECE_BYTES_WITH_TOKEN = 1189, 1181
CARD_PIECE_BYTES = 1165
REASSEMBLY_ENTRIES = 64
ENTRIES_OF_AN_ADDRESS = 4
REASSEMBLY_SECONDS = 10.0
HELLOS_A_SECOND = {True: 300, False: 150}  # of addresses of peers, of others
HINTS_A_SECOND = 50
HAIL_SECONDS = 0.1
HAIL_BACKOFF_SECONDS = (1, 2, 4, 8, 16, 32, 60)
MOVES, MOVE_SECONDS = 4, 5.0
RUN_COUNTER_BYTES = 8
NO_RUN = bytes(keys.RUN_BYTES)


class Bucket:
    def __init__(self, most: float, each_second: float):
        self._most, self._each_second, self._has, self._at = most, each_second, most, None

    def take(self, now: float) -> bool:
        if self._at is not None:
            self._has = min(self._most, self._has + (now - self._at) * self._each_second)
        self._at = now
        if self._has < 1:
            return False
        self._has -= 1
        return True


def counter(run: bytes) -> int:
    return int.from_bytes(run[:RUN_COUNTER_BYTES], "big")


@dataclass
class Peer:
    """What is kept for a peer. `current` speaks unless it is None; `pending` then does, as far as an unproven pair may (3.8)."""

    id: bytes
    run: bytes = NO_RUN
    accepted: tuple[int, int] = (0, 0)
    ledger: dict = field(default_factory=dict)
    current: Pair | None = None
    pending: Pair | None = None
    first_frames: list = field(default_factory=list)
    answer: tuple[bytes, bytes] | None = None
    answer_address: tuple | None = None
    met: bool = True
    address: tuple | None = None
    hails_heard: dict = field(default_factory=dict)  # (root, run): Ranges
    hails_said: dict = field(default_factory=dict)  # root: the next number
    hail_bucket: Bucket = field(default_factory=lambda: Bucket(1, 1 / HAIL_SECONDS))
    moves: Bucket = field(default_factory=lambda: Bucket(MOVES, 1 / MOVE_SECONDS))
    greeted: int = 0
    greet_at: float = 0.0

    def pairs(self) -> list[Pair]:
        return [pair for pair in (self.current, self.pending) if pair]

    def speaking(self) -> Pair | None:
        return self.current or self.pending


class Node:
    def __init__(self, identity: keys.Identity, run: bytes, peers: list[bytes], take, save=lambda: None, notice=lambda text: None):
        self.identity, self.run = identity, run
        self.peers = {peer: Peer(peer) for peer in peers}
        self._take, self._save, self._notice = take, save, notice
        self._out: list[tuple[tuple, bytes]] = []
        self._reassembly: dict[tuple, tuple[float, dict]] = {}
        self._token_secret = os.urandom(32)
        self._hellos = {
            (of_peer, token): Bucket(rate, rate) for of_peer, rate in HELLOS_A_SECOND.items() for token in (False, True)
        }
        self._hints = Bucket(HINTS_A_SECOND, HINTS_A_SECOND)

    # What the driver calls

    def datagram(self, now: float, address: tuple, data: bytes) -> None:
        handle = {
            HELLO_PIECE: self._hello_piece,
            HELLO_PIECE_WITH_TOKEN: self._hello_piece,
            PACKET: self._packet,
            HAIL: self._hail,
            CARD_REQUEST: self._card_request,
        }.get(data[0] if data else None)
        if handle:
            handle(now, address, data)

    def timers(self, now: float) -> None:
        for peer in self.peers.values():
            for pair in peer.pairs():
                pair.probe_if_due(now)
            if not peer.met and peer.pairs() and peer.address and now >= peer.greet_at:
                self._say_hail(peer, peer.speaking(), peer.address, [])
                peer.greet_at = now + HAIL_BACKOFF_SECONDS[min(peer.greeted, len(HAIL_BACKOFF_SECONDS) - 1)]
                peer.greeted += 1

    def due_at(self, now: float) -> float | None:
        due = [pair.due_at() for peer in self.peers.values() if peer.met for pair in peer.pairs()]
        due += [peer.greet_at for peer in self.peers.values() if not peer.met and peer.pairs() and peer.address]
        return min((at for at in due if at is not None), default=None)

    def outgoing(self, now: float) -> list[tuple[tuple, bytes]]:
        for peer in self.peers.values():
            if peer.met and peer.speaking():
                self._out += peer.speaking().packets(now)
        out, self._out = self._out, []
        if out:
            self._save()
        return out

    def new_pair(self, peer: Peer, root: bytes, epoch: int) -> Pair:
        return Pair(root, epoch, peer.run, self.run, peer.ledger, lambda taken: self._take(peer, taken))

    # Hellos

    def _hello_piece(self, now: float, address: tuple, data: bytes) -> None:
        with_token = data[0] == HELLO_PIECE_WITH_TOKEN
        header = 19 if with_token else 11
        if not header < len(data) <= DATAGRAM_BYTES:
            return
        key, index, count, token, piece = data[1:9], data[9], data[10], data[11:header], data[header:]
        full = PIECE_BYTES_WITH_TOKEN if with_token else PIECE_BYTES
        if not 1 <= count <= PIECES_OF_A_HELLO or index >= count or (index < count - 1 and len(piece) != full):
            return
        if with_token and token not in self._tokens(address, key):
            return self._say_token(address, key)
        place = (address, key, count, with_token)
        pieces = self._place(now, place)
        if pieces is None:
            return self._say_token(address, key)
        pieces.setdefault(index, piece)
        if len(pieces) == count:
            del self._reassembly[place]
            self._whole_hello(now, address, b"".join(pieces[at] for at in range(count)), key, with_token)

    def _place(self, now: float, place: tuple) -> dict | None:
        table = self._reassembly
        for old in [old for old, (begun, _) in table.items() if now - begun > REASSEMBLY_SECONDS]:
            del table[old]
        if place not in table:
            address, _, _, with_token = place
            alike = [other for other in table if other[3] == with_token]
            if sum(other[0] == address for other in alike) >= ENTRIES_OF_AN_ADDRESS:
                return None
            if not with_token and len(alike) >= REASSEMBLY_ENTRIES // 2:
                return None
            if len(table) >= REASSEMBLY_ENTRIES:
                del table[random.choice(list(table))]
            table[place] = (now, {})
        return table[place][1]

    def _tokens(self, address: tuple, key: bytes) -> list[bytes]:
        minute = int(time.time()) // 60
        where = (ipaddress.ip_address(address[0]).packed, struct.pack(">H", address[1]), key)
        return [
            keys.expand(self._token_secret, "address-token", *where, struct.pack(">Q", at), length=8)
            for at in (minute, minute - 1)
        ]

    def _say_token(self, address: tuple, key: bytes) -> None:
        self._out.append((address, bytes([TOKEN]) + key + self._tokens(address, key)[0]))

    def _whole_hello(self, now: float, address: tuple, data: bytes, key: bytes, with_token: bool) -> None:
        if keys.hello_key(data) != key:
            return
        for peer in self.peers.values():
            if peer.answer and peer.answer[0] == key:
                return self._answer(address, *peer.answer)
        of_peer = any(peer.address == address for peer in self.peers.values())
        if not self._hellos[of_peer, with_token].take(now):
            return None if with_token else self._say_token(address, key)
        try:
            hello = self.identity.open_hello(data)
        except keys.Refused as refused:
            return self._notice(f"a hello from {address}: {refused}")
        peer = self.peers.get(hello.node)
        if peer is None:
            return self._answer(address, key, hello.decline(STRANGER, 0))
        self._judge(now, address, peer, hello, len(data))

    def _answer(self, address: tuple, key: bytes, answer: bytes) -> None:
        self._out.append((address, bytes([ANSWER]) + key + answer))

    def _judge(self, now: float, address: tuple, peer: Peer, hello: keys.Hello, length: int) -> None:
        said = (counter(hello.run), hello.sequence)
        if said <= peer.accepted or not self._may_follow(peer, hello.run):
            known = max(peer.accepted[0], counter(peer.run))
            return self._answer(address, hello.key, hello.decline(BEHIND, known))
        try:
            answer, root = hello.accept(self.run)
        except keys.Refused as refused:
            return self._notice(f"a hello of a peer: {refused}")
        parsed = self._first_frames(hello)
        if hello.run != peer.run:
            self._new_run(peer, hello.run)
        peer.accepted, peer.met = said, True
        peer.answer = (hello.key, answer)
        peer.pending = self.new_pair(peer, root, 1)
        peer.pending.path = Path(address)
        peer.pending.path.came(length)
        peer.pending.path.sent(len(answer) + 9)
        self._save()
        if peer.current is None:
            self._apply_all(peer.pending, parsed)
        else:
            peer.first_frames = parsed
        self._answer(address, *peer.answer)

    def _may_follow(self, peer: Peer, run: bytes) -> bool:
        return run == peer.run or counter(run) > counter(peer.run)

    def _first_frames(self, hello: keys.Hello) -> list:
        """All or, if anything is wrong with them, none: the hello is accepted all the same (2.4)."""
        try:
            parsed = frames.parsed(hello.frames)
            if all(isinstance(frame, frames.OF_A_HELLO) for frame in parsed):
                return parsed
            wrong = "a frame that no hello carries"
        except Malformed as malformed:
            wrong = malformed
        self._notice(f"first frames of a peer: {wrong}")
        return []

    def _new_run(self, peer: Peer, run: bytes) -> None:
        """The roots stay; their pairs and streams begin anew (3.10)."""
        peer.run = run
        for name in ("current", "pending"):
            pair = getattr(peer, name)
            if pair:
                renewed = self.new_pair(peer, pair.root, pair.epoch)
                renewed.path = pair.path
                setattr(peer, name, renewed)

    def _apply_all(self, pair: Pair, parsed: list) -> None:
        try:
            pair.check(parsed)
        except Malformed as wrong:
            return self._notice(f"first frames of a peer: {wrong}")
        for frame in parsed:
            if not isinstance(frame, (frames.Padding, frames.Ping)):
                pair.streams.apply(frame)

    # Packets

    def _of_id(self, link: bytes) -> tuple[Peer, Pair] | tuple[None, None]:
        for peer in self.peers.values():
            for pair in peer.pairs():
                if pair.id_in == link:
                    return peer, pair
        return None, None

    def _packet(self, now: float, address: tuple, data: bytes) -> None:
        if len(data) < PACKET_HEADER_BYTES + keys.TAG_BYTES:
            return
        peer, pair = self._of_id(data[1:9])
        if peer is None:
            return self._say_hint(now, address, data)
        try:
            number, plaintext = pair.opened(data)
        except keys.Refused:
            if not peer.met:
                self._answer_by_hail(now, address, peer, pair, len(data))
            return
        try:
            parsed = frames.parsed(plaintext)
            pair.check(parsed)
        except Malformed as wrong:
            return self._notice(f"a packet of a peer: {wrong}")
        self._confirm(address, peer, pair)
        newest = number > pair.received.largest()
        pair.heard()
        if pair.path and pair.path.address == address:
            pair.path.came(len(data))
        kept, moves = self._apply(now, address, pair, parsed)
        if kept:
            eliciting = not all(isinstance(frame, frames.ASKS_FOR_NO_ACK) for frame in parsed)
            pair.count_received(now, number, eliciting)
        if newest and moves:
            self._follow(now, address, peer, pair, len(data))
        if any(isinstance(frame, frames.Close) for frame in parsed):
            self._closed(peer)

    def _confirm(self, address: tuple, peer: Peer, pair: Pair) -> None:
        """The peer is there in this pair. Its first packet proves the address of the accept (6.2), and a pending root becomes current."""
        if not pair.proven and pair.path and pair.path.address == address:
            pair.path.proven = True
        peer.met = pair.proven = True
        if pair is peer.pending:
            first_frames, peer.first_frames = peer.first_frames, []
            peer.current, peer.pending = pair, None
            self._apply_all(pair, first_frames)

    def _apply(self, now: float, address: tuple, pair: Pair, parsed: list) -> tuple[bool, bool]:
        """Whether all was kept (2.2), and whether the packet moves the address (6.1)."""
        kept, moves = True, False
        for frame in parsed:
            if isinstance(frame, frames.Ack):
                if pair.acknowledged(now, frame):
                    moves = True
                continue
            moves = moves or not isinstance(frame, frames.PROBING)
            if isinstance(frame, frames.PathChallenge):
                pair.respond(address, frame.data)
            elif isinstance(frame, frames.PathResponse):
                pair.responded(frame.data)
            elif isinstance(frame, frames.Offer):
                self._offer(pair, frame)
            elif isinstance(frame, (frames.Declaration, frames.Records, frames.Piece, frames.Settled)):
                kept = pair.streams.apply(frame) and kept
        return kept, moves

    def _follow(self, now: float, address: tuple, peer: Peer, pair: Pair, length: int) -> None:
        if pair.path is None or pair.path.address == address:
            pair.path = pair.path or Path(address, proven=True)
        elif peer.moves.take(now):
            pair.path = Path(address)
            pair.path.came(length)
            pair.challenge()
        peer.address = pair.path.address

    def _closed(self, peer: Peer) -> None:
        """This node is no peer there any more."""
        peer.current, peer.pending, peer.first_frames = None, None, []
        self._notice("a peer has removed this node")

    def _say_hint(self, now: float, address: tuple, cause: bytes) -> None:
        if self._hints.take(now):
            self._out.append((address, bytes([HINT]) + cause[1:9] + cause[-8:]))

    # Offers of a next root (section 10)

    def _offer(self, pair: Pair, frame: frames.Offer) -> None:
        peer = next(peer for peer in self.peers.values() if pair in peer.pairs())
        if pair.accept and pair.accept[0] == frame.key:
            pair.to_say_accept = pair.accept
            return
        halves = {} if frame.key not in pair.offers else pair.offers[frame.key]
        pair.offers = {frame.key: halves}
        halves[frame.index] = frame.half
        if len(halves) < 2:
            return
        offered = halves[0] + halves[1]
        if hashlib.sha256(offered).digest()[:8] != frame.key:
            return self._notice("an offer that has not its key")
        try:
            ciphertext, root = keys.next_root(pair.root, pair.epoch + 1, offered)
        except keys.Refused as refused:
            return self._notice(f"an offer: {refused}")
        peer.pending = self.new_pair(peer, root, pair.epoch + 1)
        peer.pending.path = Path(pair.path.address, pair.path.proven, pair.path.budget)
        peer.first_frames = []
        pair.accept = pair.to_say_accept = (frame.key, ciphertext)

    # Hails

    def _hail(self, now: float, address: tuple, data: bytes) -> None:
        if len(data) < HAIL_HEADER_BYTES + keys.RUN_BYTES + keys.TAG_BYTES:
            return
        peer, pair = self._of_id(data[1:9])
        if peer is None:
            return self._say_hint(now, address, data)
        number, run = int.from_bytes(data[9:13], "big"), data[13:HAIL_HEADER_BYTES]
        heard = peer.hails_heard.get((pair.root, run))
        if run == peer.run and heard is not None and number in heard:
            return
        if not self._may_follow(peer, run):
            return
        direction = keys.hail_direction(pair.root, True, run)
        try:
            plaintext = direction.unseal(number, data[:HAIL_HEADER_BYTES], data[HAIL_HEADER_BYTES:])
        except keys.Refused:
            if not peer.met:
                self._answer_by_hail(now, address, peer, pair, len(data))
            return
        if len(plaintext) < keys.RUN_BYTES:
            return
        named, plaintext = plaintext[: keys.RUN_BYTES], plaintext[keys.RUN_BYTES :]
        try:
            parsed = frames.parsed(plaintext)
            if not all(isinstance(frame, frames.OF_A_HAIL) for frame in parsed):
                raise Malformed("a frame that no hail carries")
        except Malformed as wrong:
            return self._notice(f"a hail of a peer: {wrong}")
        self._opened_hail(now, address, peer, pair, number, run, named, parsed, len(data))

    def _opened_hail(self, now, address, peer, pair, number, run, named, parsed, length) -> None:
        if run != peer.run:
            root = pair.root
            self._new_run(peer, run)
            pair = next(pair for pair in peer.pairs() if pair.root == root)
        try:
            pair.check(parsed)
        except Malformed as wrong:
            return self._notice(f"a hail of a peer: {wrong}")
        to_us = named == self.run
        if to_us:
            self._confirm(address, peer, pair)
            self._follow(now, address, peer, pair, length)
        kept = True
        for frame in parsed:
            if isinstance(frame, (frames.Declaration, frames.Records, frames.Piece, frames.Settled)):
                kept = pair.streams.apply(frame) and kept
        if kept:
            peer.hails_heard.setdefault((pair.root, run), Ranges()).add(number)
            peer.hails_heard = {key: heard for key, heard in peer.hails_heard.items() if key[1] == run}
            pair.to_say_hailed.add(number)
        if not to_us:
            self._say_hail(peer, pair, address, [])

    def _answer_by_hail(self, now: float, address: tuple, peer: Peer, pair: Pair, cause: int) -> None:
        if cause * AMPLIFICATION >= HAIL_HEADER_BYTES + keys.RUN_BYTES + keys.TAG_BYTES + 1 and peer.hail_bucket.take(now):
            self._say_hail(peer, pair, address, [])

    def _say_hail(self, peer: Peer, pair: Pair, address: tuple, said: list) -> None:
        number = peer.hails_said.get(pair.root, 0)
        peer.hails_said[pair.root] = number + 1
        header = struct.pack(">B8sI", HAIL, pair.id_out, number) + self.run
        body = peer.run + b"".join(said or [frames.ping()])
        direction = keys.hail_direction(pair.root, False, self.run)
        self._out.append((address, header + direction.seal(number, header, body)))

    # Cards

    def _card_request(self, now: float, address: tuple, data: bytes) -> None:
        card_hash, index = data[1:33], data[33] if len(data) == DATAGRAM_BYTES else None
        card = self.identity.card
        count = -(-len(card) // CARD_PIECE_BYTES)
        if index is None or any(data[34:]) or card_hash != self.identity.card_hash or index >= count:
            return
        piece = card[index * CARD_PIECE_BYTES : (index + 1) * CARD_PIECE_BYTES]
        self._out.append((address, bytes([CARD_ANSWER]) + card_hash + bytes([index, count]) + piece))
