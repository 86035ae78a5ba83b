"""The order of nodes, and cycles shown with their whole path."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Iterator, Mapping


def order(parents: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return all nodes, each after its parents, by name where that is free; raise CycleError (call `cycles` first)."""
    return tuple(node for level in levels(parents) for node in level)


def levels(parents: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield groups of nodes whose parents are in earlier groups, by name; raise CycleError (call `cycles` first)."""
    sorter = graphlib.TopologicalSorter({node: sorted(parents[node]) for node in sorted(parents)})
    sorter.prepare()
    while sorter.is_active():
        ready = tuple(sorted(sorter.get_ready()))
        yield ready
        sorter.done(*ready)


def cycles(parents: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """The cycles of the graph, one per knot: each node is read by the next, and the last is the first."""
    remaining = {node: sorted({p for p in parents[node] if p in parents}) for node in sorted(parents)}
    result: list[tuple[str, ...]] = []
    while True:
        try:
            graphlib.TopologicalSorter(remaining).prepare()
        except graphlib.CycleError as error:
            path = tuple(error.args[1])
            smallest = path.index(min(path))
            turned = (*path[smallest:-1], *path[:smallest])
            result.append((*turned, turned[0]))
            knot = set(path)
            remaining = {
                node: [p for p in some if p not in knot] for node, some in remaining.items() if node not in knot
            }
        else:
            return result


def ancestors(parents: Mapping[str, Iterable[str]], node: str) -> set[str]:
    visited: set[str] = set()
    waiting = list(parents.get(node, ()))
    while waiting:
        current = waiting.pop()
        if current not in visited:
            visited.add(current)
            waiting += parents.get(current, ())
    return visited
