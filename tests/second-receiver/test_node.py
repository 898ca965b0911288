"""A real node sends to the receiver over loopback, through loss, doubling and reordering. `SELVEDGE` names the program to try.

    SELVEDGE=../../target/release/selvedge python -m unittest -v test_node

`SEEDS=n` tries n seeds of each case; `SLOW=1` also waits for the next epoch, 75 s a seed, and for hails of a sender that was set back.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ.get("SELVEDGE")
SEEDS = int(os.environ.get("SEEDS", "2"))
LETTERS = 100
LENGTHS = [0, 30, 500, 760, 900, 3000, 30000, 180000]
PATIENCE_SECONDS = 120
UNTIL_THE_NEXT_EPOCH_SECONDS = 75


class Pair:
    """A node with the app `letters`, and a receiver that is its peer."""

    def __init__(self, folder: pathlib.Path, seed: int, loss: float, node_options=(), receiver_options=()):
        self.folder, self.seed, self.loss, self._node_options = folder, seed, loss, node_options
        self.chance, self.texts, self.port = random.Random(seed), [], 0
        (folder / "kept").mkdir()
        self.id = json.loads(self.command("id", "--json"))["node"]
        self.start_receiver(*receiver_options)
        self.start_node()

    def add_receiver(self) -> None:
        self.command("peer", "add", self.facts["ticket"], "--name", "receiver")

    def command(self, *words: str) -> str:
        command = [PROGRAM, *words, "--dir", self.folder / "node"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def start_receiver(self, *options: str) -> None:
        weather = ["--loss", self.loss, "--reorder", self.loss, "--duplicate", self.loss / 2, "--seed", self.seed]
        command = [sys.executable, HERE / "receiver.py", "--dir", self.folder / "receiver", "--peer", self.id]
        command += ["--listen", f"127.0.0.1:{self.port}", "--keep", self.folder / "kept", *weather, *options]
        with open(self.folder / "receiver.out", "a") as out, open(self.folder / "notices", "a") as notices:
            begins = out.tell()
            self.receiver = subprocess.Popen([str(word) for word in command], stdout=out, stderr=notices)
        while "listening" not in (said := (self.folder / "receiver.out").read_text()[begins:]):
            assert self.receiver.poll() is None
            time.sleep(0.02)
        self.facts = dict(line.split(" ", 1) for line in said.splitlines() if not line.startswith("record"))
        self.port = int(self.facts["listening"].split(":")[1])

    def start_node(self) -> None:
        command = [PROGRAM, "node", "--dir", self.folder / "node", "--app", HERE / "letters.weft", "--fabric", "127.0.0.1:0", "--json"]
        with open(self.folder / "node.err", "a") as errors:
            self.node = subprocess.Popen([*command, *self._node_options], stdout=subprocess.PIPE, stderr=errors, text=True)
        self.http = json.loads(self.node.stdout.readline())["http"]

    def stop_node(self, by) -> None:
        by(self.node)
        self.node.wait()
        self.node.stdout.close()

    def end(self) -> None:
        self.stop_node(subprocess.Popen.kill)
        self.receiver.kill()
        self.receiver.wait()

    def write(self, count: int) -> None:
        for _ in range(count):
            length = self.chance.choice(LENGTHS[:-1]) if self.chance.random() < 0.97 else LENGTHS[-1]
            text = f"{len(self.texts):06}" + "".join(self.chance.choices("abcdefgh", k=length))
            self.texts.append(text)
            body = json.dumps({"to": self.facts["node"], "words": text}).encode()
            self.ask("write", body)

    def ask(self, name: str, body: bytes | None = None):
        request = urllib.request.Request(f"http://{self.http}/letters/{name}", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def until(self, so) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not so() and time.monotonic() < ends:
            time.sleep(0.1)

    def until_delivered(self, count: int) -> None:
        self.until(lambda: self.ask("delivered") == count)

    def others(self) -> list:
        return [other["what"] for other in self.ask("others")]

    def taken(self) -> list[tuple[int, bytes]]:
        """Number and payload of each record, as it was taken."""
        lines = [line.split() for line in (self.folder / "receiver.out").read_text().splitlines()]
        records = [(words[1], int(words[2])) for words in lines if words[0] == "record"]
        return [(number, (self.folder / "kept" / f"{stream}-{number}").read_bytes()) for stream, number in records]


def in_one_go(pair: Pair) -> None:
    pair.add_receiver()
    pair.write(LETTERS)


def written_before(pair: Pair) -> None:
    """So the hello carries first records."""
    pair.write(LETTERS)
    pair.add_receiver()


def killed(pair: Pair) -> None:
    pair.add_receiver()
    pair.write(LETTERS // 2)
    pair.stop_node(subprocess.Popen.kill)
    pair.start_node()
    pair.write(LETTERS // 2)


def receiver_dies(pair: Pair) -> None:
    pair.add_receiver()
    pair.write(LETTERS)
    assert pair.receiver.wait(PATIENCE_SECONDS) == 3
    pair.start_receiver()


def receiver_forgets_its_links(pair: Pair) -> None:
    """All but its identity, run and ledger."""
    memos = pair.folder / "receiver" / "state.json"
    pair.add_receiver()
    pair.write(LETTERS)
    assert pair.receiver.wait(PATIENCE_SECONDS) == 3
    state = json.loads(memos.read_text())
    for memo in state["peers"].values():
        memo["current"] = memo["pending"] = None
    memos.write_text(json.dumps(state))
    pair.start_receiver()


def epochs(pair: Pair) -> None:
    pair.add_receiver()
    pair.write(LETTERS // 2)
    pair.until_delivered(LETTERS // 2)
    time.sleep(UNTIL_THE_NEXT_EPOCH_SECONDS)
    pair.write(LETTERS // 2)


def set_back(pair: Pair) -> None:
    """Three letters, a copy of the folder, four letters; then the copy goes on: two letters under numbers of the four, and three."""
    node, old = pair.folder / "node", pair.folder / "old"
    pair.add_receiver()
    pair.write(3)
    pair.until(lambda: pair.ask("delivered") == 3)
    pair.stop_node(subprocess.Popen.terminate)
    shutil.copytree(node, old)
    pair.start_node()
    pair.write(4)
    pair.until(lambda: pair.ask("delivered") == 7)
    pair.stop_node(subprocess.Popen.terminate)
    shutil.rmtree(node)
    old.rename(node)
    pair.start_node()
    pair.write(2)
    pair.until(lambda: len(pair.others()) == 2)
    pair.write(3)
    pair.until(lambda: pair.ask("delivered") == 6)


@unittest.skipUnless(PROGRAM, "SELVEDGE names no program")
class Node(unittest.TestCase):
    def check(self, course, loss=0.1, **options):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                folder = pathlib.Path(tempfile.mkdtemp(prefix="second-receiver-"))
                pair = Pair(folder, seed, loss, **options)
                try:
                    course(pair)
                    pair.until_delivered(LETTERS)
                    self.assertEqual(pair.ask("delivered"), LETTERS, folder)
                    self.assertEqual(pair.others(), [])
                    taken = pair.taken()
                    self.assertEqual([number for number, _ in taken], list(range(1, LETTERS + 1)))
                    for (_, payload), text in zip(taken, pair.texts):
                        self.assertIn(text.encode(), payload)
                    self.assertEqual((folder / "notices").read_text(), "")
                finally:
                    pair.end()
                shutil.rmtree(folder)

    def test_without_loss(self):
        self.check(in_one_go, loss=0.0)

    def test_with_loss(self):
        self.check(in_one_go)

    def test_first_frames(self):
        self.check(written_before)

    def test_a_discreet_sender(self):
        self.check(in_one_go, node_options=["--discreet"])

    def test_a_sender_that_is_killed(self):
        self.check(killed)

    def test_a_receiver_that_dies(self):
        self.check(receiver_dies, receiver_options=["--die-after", str(LETTERS // 2)])

    def test_a_receiver_that_loses_its_memo(self):
        self.check(receiver_forgets_its_links, receiver_options=["--die-after", str(LETTERS // 2)])

    @unittest.skipUnless(os.environ.get("SLOW"), "SLOW is not set")
    def test_a_sender_that_was_set_back(self):
        with tempfile.TemporaryDirectory(prefix="second-receiver-") as folder:
            pair = Pair(pathlib.Path(folder), seed=0, loss=0.0)
            try:
                set_back(pair)
                self.assertEqual(pair.others(), ["restored; arrival unknown"] * 2)
                self.assertEqual(pair.ask("delivered"), 6)
                self.assertEqual([number for number, _ in pair.taken()], [1, 2, 3, 4, 5, 6, 7, 1, 2, 3])
            finally:
                pair.end()

    @unittest.skipUnless(os.environ.get("SLOW"), "SLOW is not set")
    def test_epochs(self):
        self.check(epochs)


if __name__ == "__main__":
    unittest.main()
