"""Which jars a session needs for what runs in it."""

from __future__ import annotations

from collections.abc import Iterable

from engine.compile import DataTest, Manifest, Model, Source
from engine.sources import KINDS

CORE = ("core",)


def jar_sets(manifest: Manifest, nodes: Iterable[Model | DataTest]) -> tuple[str, ...]:
    read = (manifest.nodes[i] for node in nodes for i in _read_by(node))
    specs = [node.spec for node in read if isinstance(node, Source)]
    return (*CORE, *sorted({name for spec in specs for name in KINDS[spec.format].jars(spec)}))


def _read_by(node: Model | DataTest) -> Iterable[str]:
    return node.depends_on if isinstance(node, DataTest) else (item.node for item in node.inputs)
