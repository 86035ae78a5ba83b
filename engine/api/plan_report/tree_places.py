"""Where each model is in the tree of a plan: below the deepest of the models that it reads, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.compile import Manifest


@dataclass(frozen=True, slots=True)
class TreePlace:
    """The place of a model.

    Attributes:
        above: id of the model below which it is; empty: it is a root.
        depth: how many models are above it.
        also: ids of the other models of the tree that it reads, at once or through models that are not in the tree.
    """

    above: str = ""
    depth: int = 0
    also: tuple[str, ...] = ()


def tree_places(manifest: Manifest, shown: Iterable[str]) -> dict[str, TreePlace]:
    """Return the place of each model of a tree, in the order of the project.

    A model that reads several is below the one with the longest way from a root; of equals, the last in the order.

    Args:
        manifest: the compiled project.
        shown: ids of the models that are in the tree.
    """
    places: dict[str, TreePlace] = {}
    reads: dict[str, dict[str, None]] = {}
    wanted = set(shown)
    numbers = {node: number for number, node in enumerate(manifest.order if wanted else ())}
    for node in numbers:
        found: dict[str, None] = {}
        for parent in manifest.parents(node):
            found |= {parent: None} if parent in places else reads.get(parent, {})
        reads[node] = found
        if node not in wanted:
            continue
        above = max(found, key=lambda parent: (places[parent].depth, numbers[parent]), default="")
        depth = places[above].depth + 1 if above else 0
        places[node] = TreePlace(above, depth, tuple(parent for parent in found if parent != above))
    return places


def in_tree_order(places: Mapping[str, TreePlace]) -> list[tuple[str, bool]]:
    """Return the models as a tree is read from top to bottom, each with whether it is the last one of its parent."""
    below: dict[str, list[str]] = {}
    for node, place in places.items():
        below.setdefault(place.above, []).append(node)
    found = []
    left = [(node, node == below[""][-1]) for node in reversed(below.get("", []))]
    while left:
        node, last = left.pop()
        found.append((node, last))
        children = below.get(node, [])
        left += [(child, child == children[-1]) for child in reversed(children)]
    return found
