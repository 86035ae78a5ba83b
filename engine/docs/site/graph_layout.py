"""The graph laid out: what is read lies left of what reads it. The order is igraph's (Sugiyama), heights are ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from engine.compile.nodes.manifest import Manifest, Model

_ROUNDS = 6


BOX_HEIGHT = 56
_GAP = 24
_BEND_HEIGHT = 4
_SWEEPS = 60


@dataclass(frozen=True, slots=True)
class Link:
    parent: str
    child: str


def links_of(manifest: Manifest) -> dict[Link, bool]:
    """What names what in the project, and whether it is read as a stream."""
    links: dict[Link, bool] = {}
    for model in manifest.models:
        reads = [(item.node, item.stream) for item in model.inputs if not item.through]
        inlined = [manifest.nodes.get(f"model.{name}") for name in model.inlined]
        reads += [(node.id, any(i.stream for i in node.inputs)) for node in inlined if isinstance(node, Model)]
        for node, stream in reads:
            if node in manifest.nodes:
                link = Link(node, model.id)
                links[link] = links.get(link, False) or stream
    for exposure in manifest.exposures:
        links |= {Link(node, exposure.id): False for node in exposure.depends_on}
    return links


@dataclass(frozen=True, slots=True)
class NodePlace:
    layer: int
    y: int


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The whole graph.

    Attributes:
        bends: for every link the heights at which it crosses the layers between its ends.
        height: of all, in the units of the boxes.
    """

    places: Mapping[str, NodePlace]
    bends: Mapping[Link, tuple[int, ...]]
    height: int


def lay_out(nodes: Sequence[str], links: Iterable[Link]) -> GraphLayout:
    """Lay out a graph; a link that closes a cycle has no part in it and no bends."""
    links = list(dict.fromkeys(links))
    layer = layers_of(nodes, links)
    number = {node: index for index, node in enumerate(nodes)}
    forward = [link for link in links if layer[link.parent] < layer[link.child]]
    chains = _chains(forward, number, layer)
    ordered, ups, downs = _ordered([layer[node] for node in nodes], chains)
    sizes = [BOX_HEIGHT if vertex < len(nodes) else _BEND_HEIGHT for vertex in range(len(ups))]
    middles = heights(ordered, ups, downs, sizes, _GAP)
    bends = {link: tuple(round(middles[v]) for v in chain[1:-1]) for link, chain in zip(forward, chains, strict=True)}
    places = {node: NodePlace(layer[node], round(middles[index])) for node, index in number.items()}
    height = max((place.y for place in places.values()), default=0) + BOX_HEIGHT // 2
    return GraphLayout(places, {link: bends.get(link, ()) for link in links}, height)


def layers_of(nodes: Sequence[str], links: Iterable[Link]) -> dict[str, int]:
    """For every node the length of its longest path from the left; what reads nothing is beside its readers."""
    parents: dict[str, list[str]] = {node: [] for node in nodes}
    children: dict[str, list[str]] = {node: [] for node in nodes}
    for link in links:
        parents[link.child].append(link.parent)
        children[link.parent].append(link.child)
    order, kept = _acyclic(parents)
    layers: dict[str, int] = {}
    for node in order:
        layers[node] = max((layers[parent] + 1 for parent in kept[node]), default=0)
    for node in nodes:
        if not kept[node] and (readers := [layers[c] for c in children[node] if node in kept[c]]):
            layers[node] = max(min(readers) - 1, 0)
    return layers


def _acyclic(parents: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    kept = {node: tuple(p for p in ps if p in parents and p != node) for node, ps in parents.items()}
    while True:
        try:
            return tuple(TopologicalSorter(kept).static_order()), kept
        except CycleError as error:
            parent, child = error.args[1][:2]
            kept[child] = tuple(p for p in kept[child] if p != parent)


def _chains(links: Sequence[Link], number: Mapping[str, int], layer: Mapping[str, int]) -> list[tuple[int, ...]]:
    """Every link as the vertices it passes: its ends, and a bend in each layer between them."""
    chains = []
    following = len(number)
    for link in links:
        between = layer[link.child] - layer[link.parent] - 1
        bends = range(following, following + between)
        following += between
        chains.append((number[link.parent], *bends, number[link.child]))
    return chains


def _ordered(
    layer: Sequence[int], chains: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """The vertices of each layer from top to bottom, and the neighbours of each before and after it."""
    import igraph  # late: only this needs it

    # Bends are vertices of our own: igraph 1.0 gives those it makes to the wrong links of a graph in several parts.
    count = len(layer) + sum(len(chain) - 2 for chain in chains)
    all_layers = [*layer, *[0] * (count - len(layer))]
    ups: list[list[int]] = [[] for _ in range(count)]
    downs: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for before, after in pairwise(chain):
            downs[before].append(after)
            ups[after].append(before)
            all_layers[after] = all_layers[before] + 1
    edges = [(before, after) for before, readers in enumerate(downs) for after in readers]
    drawn = igraph.Graph(n=count, edges=edges, directed=True).layout_sugiyama(layers=all_layers, maxiter=_SWEEPS)
    standing: list[list[tuple[float, int]]] = [[] for _ in range(max(all_layers, default=-1) + 1)]
    for vertex, place in enumerate(drawn):
        standing[all_layers[vertex]].append((place[0], vertex))
    return [[vertex for _, vertex in sorted(row)] for row in standing], ups, downs


def heights(
    layers: Sequence[Sequence[int]],
    ups: Sequence[Sequence[int]],
    downs: Sequence[Sequence[int]],
    sizes: Sequence[float],
    gap: float,
) -> list[float]:
    """Return the middle of every vertex, the topmost edge at 0; `ups` and `downs` are the neighbours of each."""
    offsets = [_offsets(layer, sizes, gap) for layer in layers]
    middles = [0.0] * len(sizes)
    for layer, below in zip(layers, offsets, strict=True):
        for vertex, offset in zip(layer, below, strict=True):
            middles[vertex] = offset - below[-1] / 2
    both = [[*up, *down] for up, down in zip(ups, downs, strict=True)]
    for index in range(_ROUNDS):
        for layer, below in zip(layers, offsets, strict=True):
            _align(layer, below, ups, middles)
        last = both if index == _ROUNDS - 1 else downs
        for layer, below in zip(layers[::-1], offsets[::-1], strict=True):
            _align(layer, below, last, middles)
    top = min((middle - size / 2 for middle, size in zip(middles, sizes, strict=True)), default=0.0)
    return [middle - top for middle in middles]


def _offsets(layer: Sequence[int], sizes: Sequence[float], gap: float) -> list[float]:
    """How far below the first vertex each one lies when all are as close as they may."""
    offsets = [0.0] * len(layer)
    for index in range(1, len(layer)):
        offsets[index] = offsets[index - 1] + (sizes[layer[index - 1]] + sizes[layer[index]]) / 2 + gap
    return offsets


def _align(
    layer: Sequence[int], offsets: Sequence[float], neighbours: Sequence[Sequence[int]], middles: list[float]
) -> None:
    wishes = [
        sum(middles[n] for n in near) / len(near) if (near := neighbours[vertex]) else middles[vertex]
        for vertex in layer
    ]
    shifted = [wish - offset for wish, offset in zip(wishes, offsets, strict=True)]
    for vertex, offset, shift in zip(layer, offsets, ascending(shifted), strict=True):
        middles[vertex] = shift + offset


def ascending(values: Sequence[float]) -> list[float]:
    """The nearest sequence (least squares) that never falls: neighbours that fall are pooled."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, many = pools.pop()
            total, count = total + before, count + many
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
