"""What a model means, as facts that a later build can compare, and their hash.

Formatting, comments, descriptions and tags are not part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from engine.compile.manifest import Input, Materialized, Relation, Source, Write
from engine.compile.spelling import spelling_of
from engine.compile.sql import Query


def facts(
    *,
    materialized: Materialized,
    relation: Relation,
    query: Query,
    windows: Mapping[str, str],
    inputs: tuple[Input, ...],
    nodes: Mapping[str, Any],
    write: Write,
    stateful: bool,
) -> dict[str, Any]:
    """The facts of a model; values are plain JSON."""
    return {
        "materialized": materialized.value,
        "relation": str(relation),
        "sql": query.spelling,
        "windows": {name: spelling_of(text) for name, text in windows.items()},
        "inputs": [_input(i, nodes.get(i.node)) for i in sorted(inputs, key=lambda i: i.name)],
        "output_mode": write.output_mode,
        "partition_by": [asdict(p) for p in write.partition_by],
        "stateful": stateful,
    }


def _input(item: Input, node: Any) -> dict[str, Any]:
    watermark = asdict(item.watermark) if item.watermark else None
    if watermark and watermark["expression"]:
        watermark["expression"] = spelling_of(watermark["expression"])
    known: dict[str, Any] = {
        "name": item.name,
        "stream": item.stream,
        "watermark": watermark,
        "dedup": sorted(item.dedup),
    }
    if isinstance(node, Source):
        known["source"] = {
            "format": node.spec.format,
            "path": node.spec.path,
            "schema": [[column.name, column.type] for column in node.columns],
            "options": dict(node.spec.options),
            "timezone": node.spec.timezone,
        }
    return known


def fingerprint(known: Mapping[str, Any]) -> str:
    """A short hash of the facts."""
    text = json.dumps(known, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
