"""Layers of the graph: longest paths from the sources, long links split, few crossings."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Link:
    """A node and one that reads it."""

    parent: str
    child: str


@dataclass(frozen=True, slots=True)
class Chain:
    """A link with the vertices it passes, from parent to child."""

    link: Link
    vertices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layered:
    """Vertices by layer, from top to bottom.

    Attributes:
        layers: vertices of each layer. The first len(ids) vertices are the nodes in their order, the others
            are bends of links that cross a layer.
        chains: every link that leads to a later layer.
        ups: for every vertex its neighbours in the layer before.
        downs: for every vertex its neighbours in the layer after.
    """

    layers: tuple[tuple[int, ...], ...]
    chains: tuple[Chain, ...]
    ups: tuple[tuple[int, ...], ...]
    downs: tuple[tuple[int, ...], ...]


def layer_of(parents: Mapping[str, Sequence[str]], first: Mapping[str, int]) -> dict[str, int]:
    """For every node the length of its longest path from a node without parents.

    Args:
        parents: what each node reads; of a cycle one link is left out.
        first: the least layer of a node, 0 where it is not named.
    """
    layers: dict[str, int] = {}
    order, kept = _acyclic(parents)
    for node in order:
        layers[node] = max([layers[p] + 1 for p in kept[node]] + [first.get(node, 0)])
    return layers


def _acyclic(parents: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    kept = {node: tuple(p for p in ps if p in parents) for node, ps in parents.items()}
    while True:
        try:
            return tuple(TopologicalSorter(kept).static_order()), kept
        except CycleError as error:
            parent, child = error.args[1][:2]
            kept[child] = tuple(p for p in kept[child] if p != parent)


def arrange(ids: Sequence[str], links: Iterable[Link], layer: Mapping[str, int]) -> Layered:
    """Put the nodes of each layer, and the bends of long links, into an order with few crossings."""
    number = {node: index for index, node in enumerate(ids)}
    layers: list[list[int]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node in ids:
        layers[layer[node]].append(number[node])
    chains: list[Chain] = []
    count = len(ids)
    for link in links:
        begin, end = layer[link.parent], layer[link.child]
        if begin >= end:
            continue
        bends = range(count, count + end - begin - 1)
        for place, bend in enumerate(bends, begin + 1):
            layers[place].append(bend)
        count += len(bends)
        chains.append(Chain(link, (number[link.parent], *bends, number[link.child])))
    ups, downs = _neighbours(count, chains)
    ordered = _order(layers, ups, downs)
    return Layered(tuple(map(tuple, ordered)), tuple(chains), ups, downs)


def _neighbours(count: int, chains: Iterable[Chain]) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    ups: list[list[int]] = [[] for _ in range(count)]
    downs: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for before, after in pairwise(chain.vertices):
            downs[before].append(after)
            ups[after].append(before)
    return tuple(map(tuple, ups)), tuple(map(tuple, downs))


def _order(layers: list[list[int]], ups: Sequence[Sequence[int]], downs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sort each layer by the mean place of its neighbours, to and fro; the best round counts."""
    current = [list(layer) for layer in layers]
    best, least = current, _crossings(current, downs)
    for sweep in range(_SWEEPS):
        if not least:
            break
        forward = sweep % 2 == 0
        current = _swept(current, ups if forward else downs, forward=forward)
        crossings = _crossings(current, downs)
        if crossings < least:
            best, least = current, crossings
    return best


def _swept(layers: list[list[int]], neighbours: Sequence[Sequence[int]], *, forward: bool) -> list[list[int]]:
    result = [list(layer) for layer in layers]
    places: dict[int, float] = {}
    for layer in result if forward else reversed(result):
        # What has no neighbour on this side keeps its place; the others share the places that are left.
        free = [vertex for vertex in layer if neighbours[vertex]]
        means = {vertex: sum(places[n] for n in neighbours[vertex]) / len(neighbours[vertex]) for vertex in free}
        ranked = iter(sorted(free, key=means.__getitem__))
        layer[:] = [next(ranked) if vertex in means else vertex for vertex in layer]
        places |= {vertex: (index + 0.5) / len(layer) for index, vertex in enumerate(layer)}
    return result


def _crossings(layers: Sequence[Sequence[int]], downs: Sequence[Sequence[int]]) -> int:
    total = 0
    for layer, following in pairwise(layers):
        places = {vertex: index for index, vertex in enumerate(following)}
        seen: list[int] = []
        for vertex in layer:
            ends = sorted(places[d] for d in downs[vertex])
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
