"""The graph as boxes and curves, in the units of its SVG."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from engine.docs.layers import Layered, Link, arrange, layer_of
from engine.docs.placement import heights

BOX_HEIGHT = 52
_BEND_HEIGHT = 6
_GAP = 20
_COLUMN_GAP = 84
_MARGIN = 16
_TIP = 7
# A letter of the names (13 px, monospace) and of the kinds (11 px); wide ones count twice.
_LETTER, _SMALL_LETTER = 7.9, 6.6
_PADDING = 30
_LEAST_WIDTH, _MOST_LETTERS = 168, 30


@dataclass(frozen=True, slots=True)
class Card:
    """What stands in a box: where it leads, the kind in words, the name, and classes of style."""

    id: str
    anchor: str
    kind: str
    name: str
    style: str
    first_layer: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A drawn card; `kind` and `label` are its kind and name, shortened where they would not fit."""

    card: Card
    kind: str
    label: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Curve:
    """A drawn link: the path and its tip. A stream is drawn unlike a read as a whole."""

    path: str
    tip: str
    stream: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """The whole graph."""

    width: int
    height: int
    box_width: int
    box_height: int
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]


def draw(cards: Sequence[Card], links: Mapping[Link, bool]) -> Drawing:
    """Draw the graph, what is read left of what reads it.

    Args:
        cards: the boxes.
        links: every link between two of them, and whether it is a stream.
    """
    ids = [card.id for card in cards]
    parents: dict[str, list[str]] = {node: [] for node in ids}
    for link in links:
        parents[link.child].append(link.parent)
    layer = layer_of(parents, {card.id: card.first_layer for card in cards})
    layered = arrange(ids, links, layer)
    middles = heights(layered, lambda vertex: BOX_HEIGHT if vertex < len(ids) else _BEND_HEIGHT, _GAP)
    texts = [(_shortened(card.kind), _shortened(card.name)) for card in cards]
    width = _box_width(texts)
    columns = _columns(layered, width)
    points = [(columns[vertex], round(middle) + _MARGIN) for vertex, middle in enumerate(middles)]
    boxes = tuple(
        Box(card, kind, label, x, y - BOX_HEIGHT // 2)
        for card, (kind, label), (x, y) in zip(cards, texts, points, strict=False)
    )
    number = {node: index for index, node in enumerate(ids)}
    chains = {chain.link: chain.vertices for chain in layered.chains}
    curves = tuple(
        _curve([points[v] for v in chains[link]], width, stream)
        if link in chains
        else _back(points[number[link.parent]], points[number[link.child]], width, stream)
        for link, stream in links.items()
    )
    bottom = max((y for _, y in points), default=0) + BOX_HEIGHT // 2 + _GAP
    right = max((x for x, _ in points), default=0) + width + _MARGIN
    return Drawing(right, bottom, width, BOX_HEIGHT, boxes, curves)


def _columns(layered: Layered, width: int) -> dict[int, int]:
    step = width + _COLUMN_GAP
    return {vertex: _MARGIN + step * index for index, layer in enumerate(layered.layers) for vertex in layer}


def _curve(points: Sequence[tuple[int, int]], width: int, stream: bool) -> Curve:
    """From the right of a box, straight through the columns it crosses, to the left of a box."""
    (x, y), *rest = points
    x += width
    parts = [f"M{x} {y}"]
    for index, (column, height) in enumerate(rest):
        last = index == len(rest) - 1
        to = column - _TIP if last else column
        middle = (x + to) // 2
        parts.append(f"C{middle} {y} {middle} {height} {to} {height}")
        if not last:
            parts.append(f"H{column + width}")
        x, y = column + width, height
    return _finished(parts, points[-1], stream)


def _back(parent: tuple[int, int], child: tuple[int, int], width: int, stream: bool) -> Curve:
    """The link that closes a cycle: out to the right, back below the boxes, in from the left."""
    (x, y), (to, end), below = parent, child, (BOX_HEIGHT + _GAP) // 2
    turn = _COLUMN_GAP // 2
    parts = [f"M{x + width} {y}C{x + width + turn} {y} {x + width + turn} {y + below} {x + width} {y + below}"]
    if parent != child:
        middle = (x + to + width) // 2
        parts.append(f"H{x}C{middle} {y + below} {middle} {end + below} {to + width} {end + below}")
    parts.append(f"H{to}C{to - turn} {end + below} {to - turn} {end} {to - _TIP} {end}")
    return _finished(parts, child, stream)


def _finished(parts: Sequence[str], end: tuple[int, int], stream: bool) -> Curve:
    tip = f"M{end[0]} {end[1]}l-{_TIP + 1} -4v8z"
    # Markup: made of numbers only.
    return Curve(Markup(" ".join(parts)), Markup(tip), stream)  # noqa: S704


def _letters(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _shortened(name: str) -> str:
    if _letters(name) <= _MOST_LETTERS:
        return name
    text = name
    while _letters(text) >= _MOST_LETTERS:
        text = text[: min(len(text) - 1, _MOST_LETTERS)]
    return f"{text}…"


def _box_width(texts: Iterable[tuple[str, str]]) -> int:
    longest = max((max(_letters(kind) * _SMALL_LETTER, _letters(label) * _LETTER) for kind, label in texts), default=0)
    return max(_LEAST_WIDTH, round(longest) + _PADDING)
