"""Heights in the graph: each vertex as near to its neighbours as the order and the gaps allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.docs.layers import Layered

_ROUNDS = 6


def heights(layered: Layered, size: Callable[[int], float], gap: float) -> list[float]:
    """The middle of every vertex, the topmost edge at 0.

    Args:
        layered: the order of each layer.
        size: the height of a vertex.
        gap: what stays free between two.
    """
    middles = [0.0] * len(layered.ups)
    for layer in layered.layers:
        offsets = _offsets(layer, size, gap)
        for vertex, offset in zip(layer, offsets, strict=True):
            middles[vertex] = offset - offsets[-1] / 2
    both = tuple(up + down for up, down in zip(layered.ups, layered.downs, strict=True))
    for index in range(_ROUNDS):
        _align(layered.layers, layered.ups, middles, size, gap)
        _align(layered.layers[::-1], both if index == _ROUNDS - 1 else layered.downs, middles, size, gap)
    top = min((middle - size(vertex) / 2 for vertex, middle in enumerate(middles)), default=0.0)
    return [middle - top for middle in middles]


def _offsets(layer: Sequence[int], size: Callable[[int], float], gap: float) -> list[float]:
    """How far below the first vertex each one lies when all stand as close as they may."""
    offsets = [0.0] * len(layer)
    for index in range(1, len(layer)):
        offsets[index] = offsets[index - 1] + (size(layer[index - 1]) + size(layer[index])) / 2 + gap
    return offsets


def _align(
    layers: Sequence[Sequence[int]],
    neighbours: Sequence[Sequence[int]],
    middles: list[float],
    size: Callable[[int], float],
    gap: float,
) -> None:
    for layer in layers:
        offsets = _offsets(layer, size, gap)
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
