"""Primitives, key schedule, cards, tickets and the answer to a hello, from docs/keys.md alone.

Knows nothing of packets, frames or sockets.
"""

import base64
import hashlib
import hmac
import ipaddress
import os
import struct
import zlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SUITE = 1
MLKEM_PUBLIC_BYTES = 1184
MLKEM_CIPHERTEXT_BYTES = 1088
KEM_PUBLIC_BYTES = 1216
KEM_CIPHERTEXT_BYTES = 1120
ID_BYTES = 32
RUN_BYTES = 24
TAG_BYTES = 16
SIGNATURE_BYTES = 64
ZERO_NONCE = bytes(12)
ACCEPT, DECLINE = b"\x01", b"\x02"
# S, its run, the hello sequence, the ephemeral key; then come first frames and the signature.
HELLO_FIXED_BYTES = ID_BYTES + RUN_BYTES + 8 + KEM_PUBLIC_BYTES


class Refused(Exception):
    """Bytes of somebody else that are not what they should be."""


def joined(name: str, *fields: bytes) -> bytes:
    """Label and fields, each behind its length in 4 bytes."""
    parts = (b"selvedge/1 " + name.encode(), *fields)
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def hashed(name: str, *fields: bytes) -> bytes:
    return hashlib.sha256(joined(name, *fields)).digest()


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.new(salt, secret, hashlib.sha256).digest()


def expand(secret: bytes, name: str, *fields: bytes, length: int = 32) -> bytes:
    info, block, out = joined(name, *fields), b"", b""
    while len(out) < length:
        counter = len(out) // 32 + 1
        block = hmac.new(secret, block + info + bytes([counter]), hashlib.sha256).digest()
        out += block
    return out[:length]


def seal(key: bytes, nonce: bytes, plaintext: bytes, associated: bytes = b"") -> bytes:
    return AESGCM(key).encrypt(nonce, plaintext, associated)


def unseal(key: bytes, nonce: bytes, ciphertext: bytes, associated: bytes = b"") -> bytes:
    if len(ciphertext) < TAG_BYTES:
        raise Refused("shorter than its tag")
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, associated)
    except InvalidTag:
        raise Refused("does not open") from None


class Direction:
    """Key and iv of one direction; the nonce is the iv with the number in its last 8 bytes."""

    def __init__(self, material: bytes):
        self._aead, self._iv = AESGCM(material[:32]), int.from_bytes(material[32:44], "big")

    def _nonce(self, number: int) -> bytes:
        return (self._iv ^ number).to_bytes(12, "big")

    def seal(self, number: int, header: bytes, plaintext: bytes) -> bytes:
        return self._aead.encrypt(self._nonce(number), plaintext, header)

    def unseal(self, number: int, header: bytes, ciphertext: bytes) -> bytes:
        try:
            return self._aead.decrypt(self._nonce(number), ciphertext, header)
        except (InvalidTag, ValueError):
            raise Refused("does not open") from None


def link_ids(root: bytes) -> tuple[bytes, bytes]:
    """The id of datagrams to the responder, and to the initiator."""
    ids = expand(root, "link-ids", length=16)
    return ids[:8], ids[8:]


def pair_directions(root: bytes, initiator_run: bytes, responder_run: bytes) -> tuple[Direction, Direction]:
    """To the responder, and to the initiator."""
    pair = expand(root, "pair", initiator_run, responder_run)
    return (
        Direction(expand(pair, "pair-to-responder", length=44)),
        Direction(expand(pair, "pair-to-initiator", length=44)),
    )


def hail_direction(root: bytes, to_responder: bool, run: bytes) -> Direction:
    return Direction(expand(root, "hail-to-responder" if to_responder else "hail-to-initiator", run, length=44))


class KemSecret:
    """An X-Wing key pair: 32 bytes become ML-KEM-768's seed (64) and an X25519 secret (32) by SHAKE256."""

    def __init__(self, seed: bytes):
        expanded = hashlib.shake_256(seed).digest(96)
        self._mlkem = MLKEM768PrivateKey.from_seed_bytes(expanded[:64])
        self._x25519 = X25519PrivateKey.from_private_bytes(expanded[64:])
        self._x25519_public = raw_public(self._x25519)
        self.public = self._mlkem.public_key().public_bytes_raw() + self._x25519_public

    def decapsulate(self, ciphertext: bytes) -> bytes:
        mlkem, x25519 = ciphertext[:MLKEM_CIPHERTEXT_BYTES], ciphertext[MLKEM_CIPHERTEXT_BYTES:]
        shared = exchange(self._x25519, x25519)
        return combined(self._mlkem.decapsulate(mlkem), shared, x25519, self._x25519_public)


def encapsulate(public: bytes) -> tuple[bytes, bytes]:
    """The secret and the ciphertext of a fresh encapsulation."""
    try:
        mlkem = MLKEM768PublicKey.from_public_bytes(public[:MLKEM_PUBLIC_BYTES])
    except ValueError:
        raise Refused("no ML-KEM key") from None
    secret, ciphertext = mlkem.encapsulate()
    return encapsulated(public, secret, ciphertext, os.urandom(32))


def encapsulated(public: bytes, mlkem_secret: bytes, mlkem_ciphertext: bytes, entropy: bytes) -> tuple[bytes, bytes]:
    """What X-Wing adds to an encapsulation of ML-KEM; `entropy` is the ephemeral X25519 secret."""
    ephemeral = X25519PrivateKey.from_private_bytes(entropy)
    x25519, recipient = raw_public(ephemeral), public[MLKEM_PUBLIC_BYTES:]
    secret = combined(mlkem_secret, exchange(ephemeral, recipient), x25519, recipient)
    return secret, mlkem_ciphertext + x25519


def combined(mlkem: bytes, x25519: bytes, ciphertext: bytes, public: bytes) -> bytes:
    return hashlib.sha3_256(mlkem + x25519 + ciphertext + public + bytes.fromhex("5c2e2f2f5e5c")).digest()


def exchange(secret: X25519PrivateKey, public: bytes) -> bytes:
    try:
        return secret.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise Refused("a point of small order") from None


def raw_public(secret) -> bytes:
    return secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


FIELD = 2**255 - 19
# The y coordinates of the eight points of small order.
SMALL_ORDER = {
    0,
    1,
    FIELD - 1,
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
}


def strict_point(encoded: bytes) -> bool:
    y = int.from_bytes(encoded, "little") & (2**255 - 1)
    return y < FIELD and y not in SMALL_ORDER


def verify(node: bytes, signature: bytes, message: bytes) -> None:
    try:
        if strict_point(node) and strict_point(signature[:32]):
            return Ed25519PublicKey.from_public_bytes(node).verify(signature, message)
    except (InvalidSignature, ValueError):
        pass
    raise Refused("not signed by the node that it names")


def as_text(prefix: str, content: bytes) -> str:
    checksum = zlib.crc32(prefix.encode() + content).to_bytes(4, "big")
    return prefix + base64.b32encode(content + checksum).decode().lower().rstrip("=")


def node_of_text(text: str) -> bytes:
    encoded = text.removeprefix("sv1").upper()
    content = base64.b32decode(encoded + "=" * (-len(encoded) % 8))[:-4]
    if len(content) != ID_BYTES or as_text("sv1", content) != text:
        raise Refused("no node id")
    return content


class Identity:
    """A node that is said hellos: its keys, its card and tickets."""

    def __init__(self, signing_seed: bytes, kem_seed: bytes, card_sequence: int = 1):
        self._signing = Ed25519PrivateKey.from_private_bytes(signing_seed)
        self._kem = KemSecret(kem_seed)
        self.id = raw_public(self._signing)
        self._sequence = card_sequence
        self.card = self._statement(1, "card-sig", bytes([1, SUITE]) + self._kem.public)
        self.card_hash = hashed("card-hash", self.card)

    def _statement(self, version: int, name: str, content: bytes) -> bytes:
        said = bytes([version]) + self.id + struct.pack(">Q", self._sequence) + content
        return said + self._signing.sign(joined(name, said))

    def ticket(self, addresses: list[tuple[str, int]]) -> str:
        encoded = bytes([len(addresses)])
        for host, port in addresses:
            address = ipaddress.ip_address(host)
            encoded += bytes([address.version]) + address.packed + struct.pack(">H", port)
        return as_text("svt2", self._statement(2, "ticket-sig", self.card_hash + encoded))

    def open_hello(self, hello: bytes) -> "Hello":
        """Opens and checks a whole hello; what is wrong with it raises `Refused`."""
        sealed_from = 1 + KEM_CIPHERTEXT_BYTES
        if len(hello) < sealed_from + HELLO_FIXED_BYTES + SIGNATURE_BYTES + TAG_BYTES or hello[0] != SUITE:
            raise Refused("no hello")
        encapsulation = hello[1:sealed_from]
        th0 = hashed("hello", hello[:1], self.id, self.card_hash, encapsulation)
        k0 = extract(th0, self._kem.decapsulate(encapsulation))
        opened = unseal(expand(k0, "hello-seal"), ZERO_NONCE, hello[sealed_from:])
        body, signature = opened[:-SIGNATURE_BYTES], opened[-SIGNATURE_BYTES:]
        body_hash = hashed("hello-body", body)
        node = body[:ID_BYTES]
        verify(node, signature, joined("hello-sig", th0, body_hash))
        run_end = ID_BYTES + RUN_BYTES
        return Hello(
            key=hello_key(hello),
            node=node,
            run=body[ID_BYTES:run_end],
            sequence=int.from_bytes(body[run_end : run_end + 8], "big"),
            ephemeral=body[run_end + 8 : HELLO_FIXED_BYTES],
            frames=body[HELLO_FIXED_BYTES:],
            th0=th0,
            body_hash=body_hash,
            k0=k0,
        )


def hello_key(hello: bytes) -> bytes:
    return hashlib.sha256(hello).digest()[:8]


@dataclass
class Hello:
    """A hello that opened and was signed by the node that it names."""

    key: bytes
    node: bytes
    run: bytes
    sequence: int
    ephemeral: bytes
    frames: bytes
    th0: bytes
    body_hash: bytes
    k0: bytes

    def accept(self, run: bytes, encapsulate=encapsulate) -> tuple[bytes, bytes]:
        """The answer, and the root that both have then."""
        secret, ciphertext = encapsulate(self.ephemeral)
        key = expand(self.k0, "accept-seal", self.th0, self.body_hash, ciphertext)
        answer = ACCEPT + ciphertext + seal(key, ZERO_NONCE, run, ACCEPT)
        transcript = hashed("accept", self.th0, self.body_hash, run, ciphertext)
        return answer, expand(extract(self.k0, secret), "root", transcript)

    def decline(self, reason: int, known_run: int) -> bytes:
        content = bytes([reason]) + struct.pack(">Q", known_run)
        salt = expand(self.k0, "decline-salt", self.th0, self.body_hash, content, length=16)
        key = expand(self.k0, "decline-seal", self.th0, self.body_hash, salt)
        return DECLINE + salt + seal(key, ZERO_NONCE, content, DECLINE)


def next_root(root: bytes, epoch: int, offered: bytes, encapsulate=encapsulate) -> tuple[bytes, bytes]:
    """The ciphertext that accepts an offered key, and the root of `epoch`."""
    secret, ciphertext = encapsulate(offered)
    change = hashed("epoch", struct.pack(">Q", epoch), offered, ciphertext)
    return ciphertext, expand(extract(root, secret), "root", change)
