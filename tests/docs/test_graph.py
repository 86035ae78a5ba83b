"""The graph: what is read lies left, boxes do not touch, links cross little."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from engine.docs.site.graph_layout import BOX_HEIGHT, Link, ascending, lay_out, layers_of


def links(*pairs: str) -> list[Link]:
    return [Link(pair[0], pair[1]) for pair in pairs]


def random_graph(count: int, seed: int) -> tuple[list[str], list[Link]]:
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(count)]
    return names, [Link(names[rng.randrange(max(0, i - 20), i)], names[i]) for i in range(1, count) for _ in range(2)]


def test_layers_are_longest_paths():
    assert layers_of("abcd", links("ab", "bc", "ac", "cd", "ad")) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_what_reads_nothing_stands_beside_the_first_that_reads_it():
    assert layers_of("abcxy", links("ab", "bc", "xc")) == {"a": 0, "b": 1, "c": 2, "x": 1, "y": 0}


def test_cycles_are_cut_and_drawn():
    pairs = links("ca", "ab", "bc", "dd")
    layout = lay_out("abcd", pairs)
    assert sorted(layout.places[n].layer for n in "abc") == [0, 1, 2]
    assert layout.places["d"].layer == 0
    assert set(layout.bends) == set(pairs)


def test_a_long_link_bends_in_each_layer_it_crosses_and_beside_the_boxes_there():
    layout = lay_out("abcd", links("ab", "bc", "cd", "ad"))
    bends = layout.bends[Link("a", "d")]
    assert len(bends) == 2
    for bend, node in zip(bends, "bc", strict=True):
        assert abs(bend - layout.places[node].y) > BOX_HEIGHT / 2


def test_crossings_that_can_be_avoided_are():
    layout = lay_out("abcxyz", links("az", "by", "cx"))
    order = sorted("abc", key=lambda n: layout.places[n].y)
    partners = {"a": "z", "b": "y", "c": "x"}
    assert [partners[n] for n in order] == sorted("xyz", key=lambda n: layout.places[n].y)


def test_ascending_is_the_nearest_sequence_that_never_falls():
    assert ascending([1, 3, 2, 4]) == [1, 2.5, 2.5, 4]
    assert ascending([3, 2, 1]) == [2, 2, 2]
    assert ascending([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_boxes_of_a_layer_never_touch_and_links_run_to_the_right(seed):
    names, pairs = random_graph(120, seed)
    layout = lay_out(names, pairs)
    places = layout.places
    assert all(places[link.parent].layer < places[link.child].layer for link in pairs)
    assert all(BOX_HEIGHT / 2 <= place.y <= layout.height - BOX_HEIGHT / 2 for place in places.values())
    for _, column in itertools.groupby(sorted(places.values(), key=lambda p: (p.layer, p.y)), key=lambda p: p.layer):
        middles = [place.y for place in column]
        assert all(b - a > BOX_HEIGHT for a, b in itertools.pairwise(middles))


def test_parts_that_have_nothing_to_do_with_each_other_keep_their_own_bends():
    """igraph 1.0 mixes up the links of several parts: its bends are not used."""
    names, pairs = [], []
    for part in range(4):
        nodes = [f"{part}{letter}" for letter in "abcde"]
        names += nodes
        pairs += [Link(a, b) for a, b in itertools.pairwise(nodes)] + [Link(nodes[0], nodes[-1])]
    layout = lay_out(names, pairs)
    for link in pairs:
        assert len(layout.bends[link]) == layout.places[link.child].layer - layout.places[link.parent].layer - 1


def test_nothing_is_laid_out():
    assert lay_out([], []).height == BOX_HEIGHT // 2


@pytest.mark.slow
def test_a_thousand_nodes_are_laid_out_quickly():
    names, pairs = random_graph(1000, 1)
    begin = time.perf_counter()
    lay_out(names, pairs)
    assert time.perf_counter() - begin < 3
