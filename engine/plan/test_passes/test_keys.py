"""Keys of tests: equal if nothing that decides on the verdict of a test differs.

All of a node is part of its key, but for what is written for people and for places in files, so that a new setting
counts until somebody says that it does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any

import msgspec

from engine.compile import DataTest, Manifest, Model, Node, Source, UnitTest
from engine.compile.artifacts.node_json import plain_value, to_json
from engine.compile.nodes.manifest import SourceMap
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows
from engine.compile.pipeline.compile_cache import code_digest
from engine.compile.pipeline.library_version import library_version
from engine.errors import Location
from engine.spark.jars import LOCK

_ENCODER = msgspec.json.Encoder(enc_hook=plain_value, order="deterministic")
_NOWHERE = Location("")
_FOR_PEOPLE: Mapping[str, Any] = {
    "file": "", "description": "", "title": "", "group": "", "tags": (), "meta": {}, "raw_sql": "", "location": None,
    "positions": SourceMap(),
}  # fmt: skip


def unit_test_key(manifest: Manifest, settings: Mapping[str, str], test: UnitTest) -> str | None:
    """Return the key of a unit test; None: it may end in another way each time."""
    model = manifest.nodes[test.model]
    if not isinstance(model, Model) or model.broken or test.broken:
        return None
    marks = (item.watermark for item in model.inputs)
    # A bound on the future holds against the clock.
    clock = any(mark is not None and mark.max_future for mark in marks)
    if clock or not model.deterministic or not all(rows.deterministic for rows in _rows_of(test)):
        return None
    read = [_node(manifest.nodes[item.node]) for item in model.inputs]
    return _hash("unit test", _versions(), settings, _node(model), read, _unit_test(test))


def data_test_key(
    manifest: Manifest, settings: Mapping[str, str], test: DataTest, positions: Mapping[str, Any]
) -> str | None:
    """Return the key of a data test; None: it may end in another way, or a position that it reads is not known."""
    if not test.deterministic or any(positions.get(node) is None for node in test.depends_on):
        return None
    sources = [_node(node) for i in test.depends_on if isinstance(node := manifest.nodes[i], Source)]
    return _hash("data test", _versions(), settings, _node(test), sources, positions)


def kept_key(key: str, failing_rows: Mapping[str, Any] | None) -> str:
    """Return the key of a pass with the table of failing rows as the test left it; None: it keeps no rows."""
    return key if failing_rows is None else _hash(key, failing_rows)


@cache
def _versions() -> Sequence[str]:
    """What runs the tests: the engine, Spark, Iceberg and the other jars."""
    return code_digest(), library_version("pyspark"), hashlib.sha256(LOCK.read_bytes()).hexdigest()


def _hash(*parts: Any) -> str:
    try:
        text = _ENCODER.encode(parts)
    except UnicodeEncodeError:
        text = bytes(to_json(parts))
    return hashlib.sha256(text).hexdigest()


def _deciding(record: Any) -> Any:
    names = {f.name for f in fields(record)}
    return replace(record, **{name: value for name, value in _FOR_PEOPLE.items() if name in names})


def _node(node: Node) -> Any:
    if isinstance(node, Model):
        checks = tuple(map(_deciding, node.expectations))
        return replace(_deciding(node), columns=tuple(map(_deciding, node.columns)), expectations=checks)
    if isinstance(node, Source):
        return replace(_deciding(node), columns=tuple(map(_deciding, node.columns)))
    return _deciding(node)


def _rows_of(test: UnitTest) -> Iterator[Rows]:
    yield from (
        given_rows.rows
        for given_rows in (*test.static, *(given_rows for step in test.steps for given_rows in step.given))
    )
    expected = [*(step.expect for step in test.steps), test.expect]
    yield from (expect.rows for expect in expected if expect is not None and expect.rows is not None)


def _unit_test(test: UnitTest) -> Any:
    steps = (
        replace(step, location=_NOWHERE, given=tuple(map(_rows, step.given)), expect=_expected(step.expect))
        for step in test.steps
    )
    return replace(
        _deciding(test), static=tuple(map(_rows, test.static)), steps=tuple(steps), expect=_expected(test.expect)
    )


def _rows(given_rows: GivenRows) -> GivenRows:
    return replace(given_rows, location=_NOWHERE)


def _expected(expected: ExpectedResult | None) -> ExpectedResult | None:
    return replace(expected, location=_NOWHERE) if expected is not None else None
