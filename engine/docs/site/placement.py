"""Heights in the graph: each vertex as near to its neighbours as the order and the gaps allow."""

from __future__ import annotations

from collections.abc import Sequence

_ROUNDS = 6


def heights(
    layers: Sequence[Sequence[int]],
    ups: Sequence[Sequence[int]],
    downs: Sequence[Sequence[int]],
    sizes: Sequence[float],
    gap: float,
) -> list[float]:
    """The middle of every vertex, the topmost edge at 0.

    Args:
        layers: the vertices of each layer, from top to bottom.
        ups: for every vertex its neighbours in the layer before.
        downs: for every vertex its neighbours in the layer after.
        sizes: the height of every vertex.
        gap: what stays free between two.
    """
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
