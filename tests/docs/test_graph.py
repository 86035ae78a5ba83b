"""The drawing: what is read lies left, boxes do not touch, links cross little."""

from __future__ import annotations

import itertools
import random

import pytest

from engine.docs.drawing import BOX_HEIGHT, Card, draw
from engine.docs.layers import Link, arrange, layer_of
from engine.docs.placement import ascending


def cards(*ids: str) -> list[Card]:
    return [Card(i, i, "table", i, "table") for i in ids]


def links(*pairs: str) -> dict[Link, bool]:
    return {Link(pair[0], pair[1]): False for pair in pairs}


def random_graph(count: int, seed: int) -> tuple[list[Card], dict[Link, bool]]:
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(count)]
    pairs = {
        Link(names[rng.randrange(max(0, i - 20), i)], names[i]): rng.random() < 0.5
        for i in range(1, count)
        for _ in range(2)
    }
    return cards(*names), pairs


def test_layers_are_longest_paths():
    parents = {"a": (), "b": ("a",), "c": ("a", "b"), "d": ("c", "a"), "e": ("gone",)}
    assert layer_of(parents, {"e": 1}) == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 1}


def test_a_cycle_is_cut():
    layers = layer_of({"a": ("c",), "b": ("a",), "c": ("b",), "d": ("d",)}, {})
    assert sorted(layers[n] for n in "abc") == [0, 1, 2]
    assert layers["d"] == 0


def test_long_links_bend_once_in_each_layer_they_cross():
    pairs = links("ab", "bc", "cd", "ad")
    layered = arrange("abcd", pairs, dict(zip("abcd", range(4), strict=True)))
    lengths = {chain.link: len(chain.vertices) for chain in layered.chains}
    assert lengths[Link("a", "d")] == 4
    assert [len(layer) for layer in layered.layers] == [1, 2, 2, 1]


def test_crossings_that_can_be_avoided_are():
    layer = {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1, "z": 1}
    layered = arrange("abcxyz", links("az", "by", "cx"), layer)
    first, second = layered.layers
    partners = {0: 5, 1: 4, 2: 3}
    assert [partners[v] for v in first] == list(second)


def test_ascending_is_the_nearest_sequence_that_never_falls():
    assert ascending([1, 3, 2, 4]) == [1, 2.5, 2.5, 4]
    assert ascending([3, 2, 1]) == [2, 2, 2]
    assert ascending([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_a_column_never_touch_and_links_run_to_the_right(seed):
    boxes, pairs = random_graph(120, seed)
    drawing = draw(boxes, pairs)
    placed = {box.card.id: box for box in drawing.boxes}
    assert len(placed) == 120
    assert all(placed[link.parent].x < placed[link.child].x for link in pairs)
    assert all(
        0 < b.x < drawing.width - drawing.box_width and 0 < b.y < drawing.height - BOX_HEIGHT for b in drawing.boxes
    )
    for _, column in itertools.groupby(sorted(drawing.boxes, key=lambda b: (b.x, b.y)), key=lambda b: b.x):
        tops = [box.y for box in column]
        assert all(b - a > BOX_HEIGHT for a, b in itertools.pairwise(tops))


def test_a_graph_of_300_nodes_is_drawn_whole():
    boxes, pairs = random_graph(300, 1)
    drawing = draw(boxes, pairs)
    assert (len(drawing.boxes), len(drawing.curves)) == (300, len(pairs))


def test_a_long_name_is_shortened_and_wide_letters_count_twice():
    names = ["short", "x" * 100, "航" * 20]
    labels = [box.label for box in draw(cards(*names), {}).boxes]
    assert labels[0] == "short"
    assert labels[1] == "x" * 29 + "…"
    assert labels[2] == "航" * 14 + "…"


def test_the_same_project_is_drawn_the_same_way():
    assert draw(*random_graph(60, 3)) == draw(*random_graph(60, 3))
