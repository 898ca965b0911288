"""Breadth-first search over adjacency lists: the peer of bfs_event and bfs_view. Edges come in as pairs of uint32."""
import sys
from array import array
from time import perf_counter

nodes, edges = int(sys.argv[1]), int(sys.argv[2])
pairs = array("I")
assert pairs.itemsize == 4
pairs.frombytes(sys.stdin.buffer.read(edges * 8))
adjacent = [[] for _ in range(nodes)]
for at in range(0, 2 * edges, 2):
    adjacent[pairs[at]].append(pairs[at + 1])
del pairs


def search(adjacent, start, goal):
    distances = [-1] * len(adjacent)
    distances[start] = 0
    queue = [start]
    found = queue.append
    for here in queue:
        distance = distances[here]
        if here == goal:
            return distance
        distance += 1
        for to in adjacent[here]:
            if distances[to] < 0:
                distances[to] = distance
                found(to)
    return -1


print(sys.version.split()[0], flush=True)
for line in sys.stdin.buffer:
    goal, searches, elapsed = int(line), 0, 0.0
    started = perf_counter()
    while elapsed < 0.25:
        distance = search(adjacent, 0, goal)
        searches += 1
        elapsed = perf_counter() - started
    print(distance, elapsed / searches, flush=True)
