#!/usr/bin/env python3
"""A receiver of the link on a UDP port: prints who it is, then one line for each record that it took. See README.md."""

import argparse
import heapq
import hashlib
import ipaddress
import json
import os
import pathlib
import random
import select
import socket
import sys
import time

import keys
from node import Node, Peer, counter
from streams import Heard

LARGEST_DATAGRAM_BYTES = 65_536
LONGEST_WAIT_SECONDS = 1.0


class Folder:
    """Identity, run and memos of a receiver in one file that is replaced whole and synced."""

    def __init__(self, path: pathlib.Path):
        path.mkdir(parents=True, exist_ok=True)
        self._path = path / "state.json"
        self._written = None
        fresh = {"signing": os.urandom(32).hex(), "kem": os.urandom(32).hex()}
        state = json.loads(self._path.read_text()) if self._path.exists() else fresh
        self._seeds = {name: state[name] for name in ("signing", "kem")}
        self.identity = keys.Identity(bytes.fromhex(state["signing"]), bytes.fromhex(state["kem"]))
        self._runs = state.get("runs", 0) + 1
        self.run = self._runs.to_bytes(8, "big") + os.urandom(16)
        self._memos = state.get("peers", {})

    def restore(self, node: Node) -> None:
        for text, memo in self._memos.items():
            peer = node.peers.get(bytes.fromhex(text))
            if peer is None:
                continue
            peer.run, peer.accepted = bytes.fromhex(memo["run"]), tuple(memo["accepted"])
            peer.address = tuple(memo["address"]) if memo["address"] else None
            for stream, (number, tag) in memo["ledger"].items():
                peer.ledger[bytes.fromhex(stream)] = Heard(number, bytes.fromhex(tag))
            for name in ("current", "pending"):
                if memo[name]:
                    setattr(peer, name, node.new_pair(peer, bytes.fromhex(memo[name][0]), memo[name][1]))
                    peer.met = False

    def save(self, node: Node) -> None:
        state = {**self._seeds, "runs": self._runs, "peers": {peer.id.hex(): memo(peer) for peer in node.peers.values()}}
        text = json.dumps(state)
        if text == self._written:
            return
        new = self._path.with_suffix(".new")
        with open(new, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)
        self._written = text


def memo(peer: Peer) -> dict:
    return {
        "run": peer.run.hex(),
        "accepted": peer.accepted,
        "address": peer.address,
        "ledger": {stream.hex(): (heard.number, heard.tag.hex()) for stream, heard in peer.ledger.items()},
        "current": peer.current and (peer.current.root.hex(), peer.current.epoch),
        "pending": peer.pending and (peer.pending.root.hex(), peer.pending.epoch),
    }


class Weather:
    """Loses, doubles and delays datagrams of both directions, from a seed."""

    def __init__(self, seed: int, loss: float, twice: float, late: float):
        self._chance, self._loss, self._twice, self._late = random.Random(seed), loss, twice, late
        self._delayed: list = []
        self._count = 0

    def passes(self, now: float, item: tuple) -> list[tuple]:
        """What arrives at once; the rest is lost or waits in `ripe`."""
        if self._chance.random() < self._loss:
            return []
        copies = [item, item] if self._chance.random() < self._twice else [item]
        at_once = []
        for copy in copies:
            if self._chance.random() < self._late:
                self._count += 1
                heapq.heappush(self._delayed, (now + self._chance.uniform(0.001, 0.03), self._count, copy))
            else:
                at_once.append(copy)
        return at_once

    def ripe(self, now: float) -> list[tuple]:
        out = []
        while self._delayed and self._delayed[0][0] <= now:
            out.append(heapq.heappop(self._delayed)[2])
        return out

    def due_at(self) -> float | None:
        return self._delayed[0][0] if self._delayed else None


def serve(arguments, node: Node, udp: socket.socket, finished) -> None:
    incoming = Weather(arguments.seed, arguments.loss, arguments.duplicate, arguments.reorder)
    outgoing = Weather(arguments.seed + 1, arguments.loss, arguments.duplicate, arguments.reorder)
    while not finished(time.monotonic()):
        now = time.monotonic()
        for address, data in incoming.ripe(now):
            node.datagram(now, address, data)
        node.timers(now)
        ready = [passed for sent in node.outgoing(now) for passed in outgoing.passes(now, sent)]
        for address, data in ready + outgoing.ripe(now):
            udp.sendto(data, address)
        dues = [due for due in (node.due_at(now), incoming.due_at(), outgoing.due_at()) if due is not None]
        wait = min([LONGEST_WAIT_SECONDS, *(max(due - now, 0.0) for due in dues)])
        if select.select([udp], [], [], wait)[0]:
            data, address = udp.recvfrom(LARGEST_DATAGRAM_BYTES)
            now = time.monotonic()
            for from_address, passed in incoming.passes(now, (address, data)):
                node.datagram(now, from_address, passed)


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=pathlib.Path, required=True, help="folder of identity and memos; made if it is not there")
    parser.add_argument("--peer", action="append", default=[], type=keys.node_of_text, help="id (sv1…) of a node that may send")
    parser.add_argument("--listen", default="127.0.0.1:0", help="IPv4 address and port")
    parser.add_argument("--expect", type=int, help="end once so many records were taken, and a second passed")
    parser.add_argument("--die-after", type=int, help="end at once when that many records were taken, before the last is synced")
    parser.add_argument("--keep", type=pathlib.Path, help="folder that gets each record's payload as a file")
    parser.add_argument("--seed", type=int, default=0)
    for name, what in (("loss", "is lost"), ("duplicate", "comes twice"), ("reorder", "comes up to 30 ms late")):
        parser.add_argument(f"--{name}", type=float, default=0.0, help=f"share of datagrams, of each direction, that {what}")
    return parser.parse_args()


def main() -> None:
    arguments = parsed_arguments()
    folder = Folder(arguments.dir)
    host, port = arguments.listen.rsplit(":", 1)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    udp.bind((str(ipaddress.ip_address(host)), int(port)))
    taken, last_at, not_synced = 0, time.monotonic(), []

    def take(peer: Peer, record) -> None:
        nonlocal taken, last_at
        taken, last_at = taken + 1, time.monotonic()
        if taken == arguments.die_after:
            os._exit(3)
        not_synced.append(record)

    def save() -> None:
        """A record counts as taken once the ledger that says so is synced; only then it is shown, and later said to be stored."""
        folder.save(node)
        for record in not_synced:
            if arguments.keep:
                (arguments.keep / f"{record.stream.hex()}-{record.number}").write_bytes(record.payload)
            digest = hashlib.sha256(record.payload).hexdigest()
            print("record", record.stream.hex(), record.number, len(record.payload), digest, flush=True)
        not_synced.clear()

    def finished(now: float) -> bool:
        return arguments.expect is not None and taken >= arguments.expect and now > last_at + 1

    def notice(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    node = Node(folder.identity, folder.run, arguments.peer, take, save, notice)
    folder.restore(node)
    folder.save(node)
    print("node", keys.as_text("sv1", folder.identity.id))
    print("run", counter(folder.run))
    print("card", folder.identity.card.hex())
    print("ticket", folder.identity.ticket([udp.getsockname()]))
    print("listening", "%s:%d" % udp.getsockname(), flush=True)
    serve(arguments, node, udp, finished)


if __name__ == "__main__":
    main()
