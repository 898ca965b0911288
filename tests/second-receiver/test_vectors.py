"""The primitives and the key schedule against the repository's vectors."""

import pathlib
import unittest

from kyber_py.ml_kem import ML_KEM_768

import keys

VECTORS = pathlib.Path(__file__).parents[2] / "sealing" / "tests" / "vectors"


def vectors(name: str) -> dict[str, str]:
    lines = (VECTORS / name).read_text().splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line and not line.startswith("#"))


LINK = vectors("link.txt")


def link(name: str) -> bytes:
    return bytes.fromhex(LINK[name])


def with_entropy(entropy: bytes):
    """X-Wing's encapsulation with given randomness: ML-KEM's message, then the X25519 secret."""

    def encapsulate(public):
        secret, ciphertext = ML_KEM_768._encaps_internal(public[: keys.MLKEM_PUBLIC_BYTES], entropy[:32])
        return keys.encapsulated(public, secret, ciphertext, entropy[32:])

    return encapsulate


def ben() -> keys.Identity:
    seed = link("ben.seed")
    return keys.Identity(seed[:32], seed[32:], card_sequence=5)


class Vectors(unittest.TestCase):
    def test_x_wing(self):
        draft = {name: bytes.fromhex(value) for name, value in vectors("xwing.txt").items()}
        for case in "123":
            secret = keys.KemSecret(draft[f"{case}.seed"])
            self.assertEqual(secret.public, draft[f"{case}.pk"])
            self.assertEqual(secret.decapsulate(draft[f"{case}.ct"]), draft[f"{case}.ss"])
            made = with_entropy(draft[f"{case}.eseed"])(secret.public)
            self.assertEqual(made, (draft[f"{case}.ss"], draft[f"{case}.ct"]))

    def test_signatures(self):
        lines = (VECTORS / "wycheproof" / "ed25519.txt").read_text().splitlines()
        cases = [line.split() for line in lines if not line.startswith("#")]
        for number, public, message, signature, result in cases:
            public, message, signature = (b"" if part == "-" else bytes.fromhex(part) for part in (public, message, signature))
            with self.subTest(number):
                if result == "valid":
                    keys.verify(public, signature, message)
                else:
                    self.assertRaises(keys.Refused, keys.verify, public, signature, message)

    def test_identity(self):
        self.assertEqual(ben().id, link("ben.id"))
        self.assertEqual(ben().card, link("ben.card"))
        self.assertEqual(ben().card_hash, link("ben.card.hash"))
        self.assertEqual(keys.as_text("sv1", ben().id), LINK["ben.id.text"])
        self.assertEqual(keys.node_of_text(LINK["ann.id.text"]), link("ann.id"))
        ticket = ben().ticket([("192.0.2.1", 4711), ("2001:db8::1", 4712)])
        self.assertEqual(ticket, vectors("statements.txt")["ben.ticket"])

    def test_hello_and_answers(self):
        hello = ben().open_hello(link("hello"))
        self.assertEqual(hello.node, link("ann.id"))
        self.assertEqual(hello.run, link("ann.run"))
        self.assertEqual(hello.sequence, int(LINK["hello.sequence"]))
        self.assertEqual(hello.frames, link("hello.frames"))
        self.assertEqual(hello.th0, link("hello.th0"))
        self.assertEqual(hello.k0, link("hello.k0"))
        self.assertEqual(hello.body_hash, link("hello.body.hash"))
        self.assertEqual(hello.ephemeral, keys.KemSecret(link("hello.entropy")[64:]).public)
        accepted = hello.accept(link("ben.run"), with_entropy(link("accept.entropy")))
        self.assertEqual(accepted, (link("accept"), link("root")))
        self.assertEqual(hello.decline(2, 9), link("decline"))

    def test_a_hello_with_any_byte_changed_is_refused(self):
        hello = link("hello")
        for place in (0, 1, 1119, 1121, 1200, len(hello) - 1):
            changed = bytearray(hello)
            changed[place] ^= 1
            self.assertRaises(keys.Refused, ben().open_hello, bytes(changed))

    def test_what_comes_from_the_root(self):
        root, ann, run = link("root"), link("ann.run"), link("ben.run")
        self.assertEqual(keys.link_ids(root), (link("id.to_responder"), link("id.to_initiator")))
        to_responder, to_initiator = keys.pair_directions(root, ann, run)
        directions = {
            "pair.to_responder": to_responder,
            "pair.to_initiator": to_initiator,
            "hail.to_responder": keys.hail_direction(root, True, ann),
            "hail.to_initiator": keys.hail_direction(root, False, run),
        }
        for name, direction in directions.items():
            sealed = direction.seal(258, b"header", b"plaintext")
            self.assertEqual(sealed, link(f"{name}.packet"))
            self.assertEqual(direction.unseal(258, b"header", sealed), b"plaintext")

    def test_the_next_epoch(self):
        entropy = link("epoch.entropy")
        offered = keys.KemSecret(entropy[:32]).public
        self.assertEqual(offered, link("epoch.offered"))
        made = keys.next_root(link("root"), 2, offered, with_entropy(entropy[32:]))
        self.assertEqual(made, (link("epoch.ciphertext"), link("epoch.root")))


if __name__ == "__main__":
    unittest.main()
