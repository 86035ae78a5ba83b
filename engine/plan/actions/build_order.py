"""The order of a build."""

from __future__ import annotations

from collections.abc import Iterable

from engine.compile import DataTest, Manifest, Model, Source, UnitTest


def run_order(manifest: Manifest, nodes: Iterable[str]) -> list[str]:
    """The selected nodes in order: each model after its unit tests, before its data tests (as early as possible)."""
    chosen = {i for i in nodes if not isinstance(n := manifest.nodes[i], Model) or n.in_catalog}
    units: dict[str, list[str]] = {}
    for node in manifest.order:
        if node in chosen and isinstance(unit := manifest.nodes[node], UnitTest):
            units.setdefault(unit.model, []).append(node)
    tests = [t for t in manifest.order if t in chosen and isinstance(manifest.nodes[t], DataTest)]
    # Those of sources come before what reads the sources.
    order = [t for t in tests if _is_of_sources(manifest, t) and not set(manifest.parents(t)) & chosen]
    placed: set[str] = set(order)
    for node in manifest.order:
        if node not in chosen:
            order += units.get(node, ())
        elif node not in tests and not isinstance(manifest.nodes[node], UnitTest):
            order += [*units.get(node, ()), node]
            placed.add(node)
            ready = [t for t in tests if t not in placed and not (set(manifest.parents(t)) & chosen) - placed]
            order += ready
            placed.update(ready)
    return order + [t for t in tests if t not in placed]


def _is_of_sources(manifest: Manifest, test_id: str) -> bool:
    test = manifest.nodes[test_id]
    return isinstance(test, DataTest) and isinstance(manifest.nodes[test.model], Source)
