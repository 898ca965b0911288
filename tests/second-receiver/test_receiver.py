"""The receiver against a small sender of the same reading, in simulated time, through a network that loses and reorders."""

import hashlib
import random
import struct
import unittest

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import frames
import keys
import node
from frames import varint

STREAM, TAG = bytes(range(16)), b"run one."
SENDER, RECEIVER = ("127.0.0.1", 1), ("127.0.0.1", 2)
TICK_SECONDS = 0.02


def run(count: int) -> bytes:
    return count.to_bytes(8, "big") + bytes([count]) * 16


def declaration(handle: int, oldest: int, last: int, tag_before: bytes, stream: bytes = STREAM) -> bytes:
    numbers = varint(handle) + stream + varint(oldest) + varint(last) + tag_before
    return b"\x10" + numbers + frames.sized(b"from") + frames.sized(b"to")


def record(handle: int, number: int, tag: bytes, payload: bytes) -> bytes:
    return b"\x11" + varint(handle) + varint(number) + tag + varint(1) + frames.sized(payload)


def piece(handle: int, number: int, tag: bytes, payload: bytes, offset: int, length: int) -> bytes:
    part = payload[offset : offset + length]
    return b"\x12" + varint(handle) + varint(number) + tag + varint(len(payload)) + varint(offset) + frames.sized(part)


class Sender:
    """Says a hello, then sends everything without an outcome again and again."""

    def __init__(self, seed: int, card: bytes, own_run: bytes, payloads: list[bytes]):
        self._signing = Ed25519PrivateKey.from_private_bytes(bytes([7]) * 32)
        self.id, self.run, self._payloads = keys.raw_public(self._signing), own_run, payloads
        self._card, self._ephemeral, self._chance = card, keys.KemSecret(bytes([seed % 256]) * 32), random.Random(seed)
        self.stored, self._acked, self._number, self._keys, self._hello_ = 0, set(), 0, None, None

    def hello(self, sequence: int, first_frames: bytes) -> list[bytes]:
        receiver, kem = self._card[1:33], self._card[43:1259]
        secret, ciphertext = keys.encapsulate(kem)
        self._th0 = keys.hashed("hello", b"\x01", receiver, keys.hashed("card-hash", self._card), ciphertext)
        self._k0 = keys.extract(self._th0, secret)
        body = self.id + self.run + struct.pack(">Q", sequence) + self._ephemeral.public + first_frames
        self._body_hash = keys.hashed("hello-body", body)
        body += self._signing.sign(keys.joined("hello-sig", self._th0, self._body_hash))
        hello = b"\x01" + ciphertext + keys.seal(keys.expand(self._k0, "hello-seal"), keys.ZERO_NONCE, body)
        pieces = [hello[at : at + node.PIECE_BYTES] for at in range(0, len(hello), node.PIECE_BYTES)]
        return [bytes([node.HELLO_PIECE]) + keys.hello_key(hello) + bytes([at, len(pieces)]) + part for at, part in enumerate(pieces)]

    def answered(self, data: bytes) -> None:
        answer = data[9:]
        if answer[:1] == keys.ACCEPT and self._keys is None:
            ciphertext = answer[1:1121]
            key = keys.expand(self._k0, "accept-seal", self._th0, self._body_hash, ciphertext)
            receiver_run = keys.unseal(key, keys.ZERO_NONCE, answer[1121:], keys.ACCEPT)
            transcript = keys.hashed("accept", self._th0, self._body_hash, receiver_run, ciphertext)
            root = keys.expand(keys.extract(self._k0, self._ephemeral.decapsulate(ciphertext)), "root", transcript)
            self.root, self.receiver_run = root, receiver_run
            self.speak(root)

    def speak(self, root: bytes) -> None:
        self._keys, self._id, self._number = keys.pair_directions(root, self.run, self.receiver_run), keys.link_ids(root)[0], 0

    def hail(self, number: int, named_run: bytes, body: bytes) -> bytes:
        header = struct.pack(">B8sI", node.HAIL, self._id, number) + self.run
        return header + keys.hail_direction(self.root, True, self.run).seal(number, header, named_run + body)

    def hailed(self, data: bytes) -> tuple[bytes, bytes]:
        """The run of who hails, and the run that it names."""
        direction = keys.hail_direction(self.root, False, data[13:37])
        return data[13:37], direction.unseal(int.from_bytes(data[9:13], "big"), data[:37], data[37:])[:24]

    def packet(self, body: bytes) -> bytes:
        header = struct.pack(">B8sI", node.PACKET, self._id, self._number)
        self._number += 1
        return header + self._keys[0].seal(self._number - 1, header, body)

    def opened(self, data: bytes) -> list:
        number = int.from_bytes(data[9:13], "big")
        return frames.parsed(self._keys[1].unseal(number, data[:13], data[13:]))

    def came(self, data: bytes) -> None:
        if data[0] == node.ANSWER:
            self.answered(data)
        elif data[0] == node.PACKET and self._keys:
            for frame in self.opened(data):
                if isinstance(frame, frames.Stored):
                    self.stored = max(self.stored, frame.up_to)

    def goes(self) -> list[bytes]:
        """A few packets of what has no outcome, each with the declaration, in any order."""
        if not self._keys:
            return self.hello_pieces
        head = declaration(3, 1, len(self._payloads), bytes(8))
        out = []
        for number in range(self.stored + 1, min(self.stored + 9, len(self._payloads) + 1)):
            payload = self._payloads[number - 1]
            if len(payload) <= frames.SMALL_PAYLOAD_BYTES:
                out.append(self.packet(head + record(3, number, TAG, payload)))
            else:
                step = self._chance.randrange(64, 1000)
                out += [self.packet(head + piece(3, number, TAG, payload, at, step)) for at in range(0, len(payload), step)]
        self._chance.shuffle(out)
        return out


class Life:
    def __init__(self, seed: int, payloads: list[bytes]):
        self.taken, self.notices = [], []
        self.identity = keys.Identity(bytes([1]) * 32, bytes([2]) * 32)
        self.sender = Sender(seed, self.identity.card, run(1), payloads)
        self.node = node.Node(
            self.identity, run(4), [self.sender.id], lambda _, taken: self.taken.append(taken), notice=self.notices.append
        )
        self.now, self._chance = 0.0, random.Random(seed)

    def storm(self, loss: float, ticks: int) -> None:
        late = []
        for _ in range(ticks):
            self.now += TICK_SECONDS
            arriving = [data for data in self.sender.goes() + late if self._chance.random() >= loss]
            late = [data for data in arriving if self._chance.random() < 0.1]
            self._chance.shuffle(arriving)
            for data in arriving:
                self.node.datagram(self.now, SENDER, data)
            self.node.timers(self.now)
            for _, data in self.node.outgoing(self.now):
                if self._chance.random() >= loss:
                    self.sender.came(data)
            if self.sender.stored == len(self.sender._payloads):
                return

    def give(self, *datagrams: bytes) -> list[bytes]:
        for data in datagrams:
            self.node.datagram(self.now, SENDER, data)
        self.now += TICK_SECONDS * 2
        self.node.timers(self.now)
        return [data for _, data in self.node.outgoing(self.now)]

    def connected(self) -> "Life":
        self.sender.came(self.give(*self.sender.hello(1, b""))[0])
        self.give(self.sender.packet(frames.ping()))
        return self

    def said(self, body: bytes) -> list:
        """What one packet with these frames is answered."""
        return [frame for data in self.give(self.sender.packet(body)) for frame in self.sender.opened(data)]


def payloads(seed: int, count: int) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(chance.choice([0, 1, 20, 800, 801, 5000])) for _ in range(count)]


class Receiver(unittest.TestCase):
    def test_storms(self):
        for seed in range(20):
            with self.subTest(seed=seed):
                all_payloads = payloads(seed, 40)
                life = Life(seed, all_payloads)
                life.sender.hello_pieces = life.sender.hello(1, declaration(3, 1, 1, bytes(8)) + record(3, 1, TAG, all_payloads[0][:400]))
                if len(all_payloads[0]) > 400:
                    all_payloads[0] = all_payloads[0][:400]
                life.storm(loss=0.1, ticks=2000)
                self.assertEqual([taken.payload for taken in life.taken], all_payloads)
                self.assertEqual([taken.number for taken in life.taken], list(range(1, 41)))
                self.assertEqual(life.sender.stored, 40)
                self.assertEqual(life.notices, [])

    def test_what_packets_are_answered(self):
        head = declaration(0, 1, 9, bytes(8))
        small = record(0, 1, TAG, b"one")
        cases = [
            ("a record", [head + small], 1, True, False),
            ("a record twice", [head + small, small], 1, True, False),
            ("a record before its turn", [head + record(0, 2, TAG, b"two")], 0, True, False),
            ("a record of no declared stream", [small], 0, False, False),
            ("a record beyond the window", [head + record(0, 513, TAG, b"far")], 0, False, False),
            ("a whole record in pieces out of order", [head + piece(0, 1, TAG, bytes(900), 800, 100), piece(0, 1, TAG, bytes(900), 0, 850)], 1, True, False),
            ("an unknown frame behind a record", [head + small + b"\x3f"], 0, False, True),
            ("another stream under a handle", [head, declaration(0, 1, 9, bytes(8), stream=bytes(16)) + small], 0, False, True),
            ("a stream under two handles", [head, declaration(1, 1, 9, bytes(8)) + small], 0, False, True),
            ("a record that is cut", [head + small[:-1]], 0, False, True),
            ("an acknowledgement of nothing sent", [head + small + frames.ack([(0, 900)], 0)], 0, False, True),
            ("a record with the number 0", [head + record(0, 0, TAG, b"none")], 0, False, True),
            ("a frame's type in two bytes", [b"\x40\x01"], 0, False, True),
            ("a small record in pieces", [head + piece(0, 1, TAG, bytes(800), 0, 800)], 0, False, True),
            ("a declaration from 0 on", [declaration(0, 0, 9, bytes(8))], 0, False, True),
            ("a stream that waits for credit, where none is ever said", [head + b"\x15" + varint(0) + varint(513)], 0, True, False),
            ("a declaration of nothing yet", [declaration(0, 1, 0, bytes(8))], 0, True, False),
            ("two records of two lengths under one number", [head + piece(0, 1, TAG, bytes(900), 0, 64), piece(0, 1, TAG, bytes(901), 64, 64)], 0, False, True),
        ]
        for name, bodies, taken, acknowledged, noticed in cases:
            with self.subTest(name):
                life = Life(1, []).connected()
                for body in bodies:
                    said = life.said(body)
                last = life.sender._number - 1
                acks = [frame for frame in said if isinstance(frame, frames.Ack)]
                self.assertEqual(any(low <= last <= high for ack in acks for low, high in ack.ranges), acknowledged)
                self.assertEqual(len(life.taken), taken)
                self.assertEqual(bool(life.notices), noticed)

    def test_a_record_under_another_tag_forks_the_stream(self):
        life = Life(1, []).connected()
        life.said(declaration(0, 1, 2, bytes(8)) + record(0, 1, TAG, b"one") + record(0, 2, TAG, b"two"))
        life.sender.run, life.sender._keys, life.sender._number = run(2), None, 0
        life.connected()
        said = life.said(declaration(5, 1, 3, bytes(8)) + record(5, 1, TAG, b"one") + record(5, 2, b"run two.", b"other") + record(5, 3, b"run two.", b"3"))
        self.assertIn(frames.Forked(5), said)
        self.assertEqual(len(life.taken), 2)

    def test_whether_a_sender_has_its_past(self):
        """Seven records were heard. What a new run declares, sends, and is told."""
        new = b"run two."
        cases = [
            ("the same again", declaration(5, 4, 9, TAG), [(4, TAG), (5, TAG), (6, TAG), (7, TAG)], frames.Stored(5, 7)),
            ("after all that was heard", declaration(5, 8, 9, TAG), [(8, new)], frames.Stored(5, 8)),
            ("after another past", declaration(5, 8, 9, new), [(8, new)], frames.Forked(5)),
            ("another past, found at the number heard", declaration(5, 4, 9, TAG), [(4, new), (5, new), (6, new), (7, new)], frames.Forked(5)),
            ("not yet at the number heard", declaration(5, 4, 9, TAG), [(4, new), (5, new), (6, new)], None),
            ("it ends below the number heard", declaration(5, 4, 5, TAG), [(4, TAG)], frames.Forked(5)),
            ("nothing but a declaration", declaration(5, 8, 8, new), [], None),
            ("a gap", declaration(5, 20, 20, new), [(20, new)], frames.Stored(5, 20)),
        ]
        for name, head, records, outcome in cases:
            with self.subTest(name):
                life = Life(1, []).connected()
                life.said(declaration(0, 1, 7, bytes(8)) + b"".join(record(0, number, TAG, b"") for number in range(1, 8)))
                life.sender.run, life.sender._keys, life.sender._number = run(2), None, 0
                said = life.connected().said(head + b"".join(record(5, *numbered, b"") for numbered in records))
                self.assertEqual([frame for frame in said if isinstance(frame, (frames.Stored, frames.Forked))], [outcome] if outcome else [])

    def test_a_new_pair_takes_nothing_twice(self):
        life = Life(1, []).connected()
        body = record(0, 1, TAG, b"one") + record(0, 2, TAG, b"two")
        life.said(declaration(0, 1, 2, bytes(8)) + body)
        life.sender.run, life.sender._keys, life.sender._number = run(2), None, 0
        said = life.connected().said(declaration(0, 1, 2, bytes(8)) + body)
        self.assertIn(frames.Stored(0, 2), said)
        self.assertEqual(len(life.taken), 2)

    def test_declines_and_the_same_answer_again(self):
        life = Life(1, [])
        pieces = life.sender.hello(5, b"")
        first = life.give(*pieces)
        self.assertEqual(life.give(*pieces), first)
        self.assertEqual(life.give(*life.sender.hello(5, b""))[0][9:10], keys.DECLINE)
        life.node.peers.clear()
        self.assertEqual(life.give(*life.sender.hello(6, b""))[0][9:10], keys.DECLINE)

    def test_wrong_first_frames_are_not_applied(self):
        life, good = Life(1, []), declaration(0, 1, 1, bytes(8)) + record(0, 1, TAG, b"one")
        for sequence, wrong in enumerate((b"\x3f", frames.ack([(0, 0)], 0)), 1):
            self.assertEqual(life.give(*life.sender.hello(sequence, good + wrong))[0][9:10], keys.ACCEPT)
        self.assertEqual(life.taken, [])
        life.give(*life.sender.hello(3, good))
        self.assertEqual(len(life.taken), 1)

    def test_a_run_with_the_same_counter_is_behind(self):
        life = Life(1, []).connected()
        life.sender.run = run(1)[:8] + bytes(16)
        self.assertEqual(life.give(*life.sender.hello(9, b""))[0][9:10], keys.DECLINE)

    def test_the_next_epoch(self):
        life = Life(1, []).connected()
        offered = keys.KemSecret(bytes(32))
        key = hashlib.sha256(offered.public).digest()[:8]
        said = life.said(b"".join(b"\x07" + key + bytes([at]) + offered.public[at * 608 :][:608] for at in range(1)))
        said = life.said(b"\x07" + key + b"\x01" + offered.public[608:])
        accept = next(frame for frame in said if isinstance(frame, frames.Accept))
        old = next(iter(life.node.peers.values())).current.root
        change = keys.hashed("epoch", struct.pack(">Q", 2), offered.public, accept.ciphertext)
        root = keys.expand(keys.extract(old, offered.decapsulate(accept.ciphertext)), "root", change)
        life.sender.speak(root)
        said = life.said(declaration(0, 1, 1, bytes(8)) + record(0, 1, TAG, b"one"))
        self.assertIn(frames.Stored(0, 1), said)
        self.assertEqual(next(iter(life.node.peers.values())).current.root, root)

    def test_a_hail_of_a_new_run(self):
        life = Life(1, []).connected()
        life.sender.run = run(2)
        life.sender.speak(life.sender.root)
        body = declaration(0, 1, 1, bytes(8)) + record(0, 1, TAG, b"one")
        first, old = life.sender.hail(0, run(4), body), life.sender.run
        said = [frame for data in life.give(first) for frame in life.sender.opened(data)]
        self.assertIn(frames.Hailed(0), said)
        self.assertIn(frames.Stored(0, 1), said)
        self.assertEqual(life.give(first), [])
        life.sender.run = run(1)
        self.assertEqual(life.give(life.sender.hail(0, run(4), body)), [])
        life.sender.run = old
        self.assertEqual(len(life.taken), 1)

    def test_a_receiver_that_started_again_hails(self):
        life = Life(1, []).connected()
        peer = life.node.peers[life.sender.id]
        again = Life(1, [])
        again.sender, again.node.run = life.sender, run(5)
        known = again.node.peers[life.sender.id]
        known.run, known.accepted, known.address, known.met = peer.run, peer.accepted, SENDER, False
        known.current = again.node.new_pair(known, peer.current.root, 1)
        hails = again.give(life.sender.packet(frames.ping()))
        self.assertEqual({life.sender.hailed(data) for data in hails}, {(run(5), run(1))})
        life.sender.receiver_run = run(5)
        life.sender.speak(life.sender.root)
        said = again.said(declaration(0, 1, 1, bytes(8)) + record(0, 1, TAG, b"one"))
        self.assertIn(frames.Stored(0, 1), said)
        self.assertEqual(again.give(), [])

    def test_a_sender_that_moves_is_followed_once_its_address_is_proven(self):
        life, elsewhere = Life(1, []).connected(), ("127.0.0.1", 9)
        head = declaration(0, 1, 2, bytes(8))
        life.node.datagram(life.now, elsewhere, life.sender.packet(head + record(0, 1, TAG, b"one")))
        went = life.node.outgoing(life.now)
        self.assertEqual({address for address, _ in went}, {elsewhere})
        said = [frame for _, data in went for frame in life.sender.opened(data)]
        challenge = next(frame for frame in said if isinstance(frame, frames.PathChallenge))
        path = next(iter(life.node.peers.values())).current.path
        self.assertFalse(path.proven)
        life.node.datagram(life.now, SENDER, life.sender.packet(frames.path_response(challenge.data)))
        self.assertEqual((path.proven, path.address), (True, elsewhere))

    def test_to_an_address_that_is_not_proven_goes_three_times_what_came(self):
        life, elsewhere = Life(1, []).connected(), ("127.0.0.1", 9)
        moved = life.sender.packet(declaration(0, 1, 1, bytes(8)) + record(0, 1, TAG, b"one"))
        life.node.datagram(life.now, elsewhere, moved)
        went = 0
        for _ in range(200):
            life.now += 1.0
            life.node.timers(life.now)
            went += sum(len(data) for _, data in life.node.outgoing(life.now))
        self.assertLessEqual(went, 3 * len(moved))

    def test_a_flood_of_pieces_is_answered_by_tokens_that_count(self):
        life = Life(1, [])
        for flood in range(40):
            for address in (("127.0.1.1", flood), SENDER):
                life.node.datagram(life.now, address, bytes([node.HELLO_PIECE]) + bytes([flood]) * 8 + b"\0\3" + bytes(node.PIECE_BYTES))
        life.node.outgoing(life.now)
        pieces = life.sender.hello(1, b"")
        said = life.give(*pieces)
        key = pieces[0][1:9]
        self.assertEqual({data[:9] for data in said}, {bytes([node.TOKEN]) + key})
        hello, size = b"".join(data[11:] for data in pieces), node.PIECE_BYTES_WITH_TOKEN
        parts = [hello[at : at + size] for at in range(0, len(hello), size)]
        for token, answer in ((bytes(8), node.TOKEN), (said[0][9:], node.ANSWER)):
            header = bytes([node.HELLO_PIECE_WITH_TOKEN]) + key
            said_now = life.give(*(header + bytes([at, len(parts)]) + token + part for at, part in enumerate(parts)))
            self.assertEqual({data[0] for data in said_now}, {answer})

    def test_a_card_is_handed_out_in_pieces(self):
        life = Life(1, [])
        asked = [bytes([node.CARD_REQUEST]) + life.identity.card_hash + bytes([at]) for at in range(3)]
        answers = life.give(*(request.ljust(1200, b"\0") for request in asked))
        self.assertEqual(b"".join(answer[35:] for answer in answers), life.identity.card)

    def test_noise_changes_nothing(self):
        life, chance = Life(1, []).connected(), random.Random(1)
        good = life.sender.packet(declaration(0, 1, 1, bytes(8)) + record(0, 1, TAG, b"one"))
        for _ in range(3000):
            noise = bytearray(good[: chance.randrange(len(good))] + chance.randbytes(chance.randrange(40)))
            if noise:
                noise[0] = chance.choice([0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, noise[0]])
            life.give(bytes(noise))
        self.assertEqual((life.taken, life.notices), ([], []))
        life.give(good)
        self.assertEqual(len(life.taken), 1)


if __name__ == "__main__":
    unittest.main()
