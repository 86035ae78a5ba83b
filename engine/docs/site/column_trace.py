"""Column lineage over the whole project: where a column comes from, and what goes with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.compile.nodes.manifest import Column, Manifest, Model, Source
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.compile.types import spark_types
from engine.errors import UsageError, near

STAR = "*"


@dataclass(frozen=True, slots=True)
class ColumnSpot:
    """A column of a model or source; a field of a struct with its path (data.origin)."""

    node: str
    column: str

    def touches(self, other: ColumnSpot) -> bool:
        """Whether one is the other or a part of it; letter case makes no difference to Spark."""
        mine, its = self.column.lower(), other.column.lower()
        return self.node == other.node and (mine == its or mine.startswith(f"{its}.") or its.startswith(f"{mine}."))


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A column on the way to the sources: the text that makes it, and the columns in that text."""

    spot: ColumnSpot
    type: str | None
    sql: str
    origins: tuple[ColumnSpot, ...]


@dataclass(frozen=True, slots=True)
class Decider:
    """A column that decides on the rows of a model (filter, join, group ...) without being a value of it."""

    model: str
    spot: ColumnSpot
    kind: str


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a column comes from: the column itself first, then step by step up to the sources."""

    steps: tuple[TraceStep, ...]
    deciders: tuple[Decider, ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """What goes with a column.

    Attributes:
        values: columns computed from it, near ones first.
        rows: models whose rows it, or a column computed from it, decides on.
        gone: columns that disappear with it, because a star passes it on.
        breaks: ids of models that name it, or a column that is gone: they no longer compile.
        stops: ids of the models below these.
        tests: ids of the tests of a column that is gone or of a model that breaks or stops, and of the unit tests that
            give or expect such a column.
        exposures: ids of the exposures that read the table of the column, of a column computed from it, or of a model
            whose rows it decides on or that stops.
    """

    values: tuple[ColumnSpot, ...]
    rows: tuple[Decider, ...]
    gone: tuple[ColumnSpot, ...]
    breaks: tuple[str, ...]
    stops: tuple[str, ...]
    tests: tuple[str, ...]
    exposures: tuple[str, ...]


class Columns:
    """The columns of a manifest, to be looked up by name or by the path of a struct's field.

    Attributes:
        readers: for every node that is read, the models that read it.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.readers: dict[str, list[Model]] = {}
        for model in manifest.models:
            origins = (o.node for column in model.columns for o in column.origins)
            for node in dict.fromkeys((*model.depends_on, *origins, *(o.node for o in model.indirect))):
                self.readers.setdefault(node, []).append(model)
        self._columns_by_node: dict[str, dict[str, Column]] = {}

    def columns_of(self, node_id: str) -> Mapping[str, Column]:
        """The columns of a node by their names in lower case."""
        read_before = self._columns_by_node.get(node_id)
        if read_before is None:
            node = self.manifest.nodes.get(node_id)
            columns = node.columns if isinstance(node, Model | Source) else ()
            read_before = self._columns_by_node[node_id] = {column.name.lower(): column for column in columns}
        return read_before

    def find(self, spot: ColumnSpot) -> Column | None:
        columns, path = self.columns_of(spot.node), spot.column.lower()
        while path not in columns and "." in path:
            path = path.rpartition(".")[0]
        return columns.get(path)


def spot_named(manifest: Manifest, text: str) -> ColumnSpot:
    """The column that `model.column`, or `source.table.column`, names; fields of structs with their path.

    Raises UsageError: there is no such node or column.
    """
    listed: tuple[Model | Source, ...] = (*manifest.models, *manifest.sources)
    nodes = {node.name: node for node in listed}
    columns = Columns(manifest)
    parts = text.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        node = nodes.get(".".join(parts[:cut]))
        if node is None:
            continue
        spot = ColumnSpot(node.id, ".".join(parts[cut:]))
        known_column = columns.find(spot)
        if known_column is None:
            hint = near(spot.column, (column.name for column in node.columns))
            raise UsageError("usage", f"'{node.name}' has no column '{spot.column}'", hint)
        return ColumnSpot(node.id, known_column.name + spot.column[len(known_column.name) :])
    hint = near(parts[0], nodes) or "Write model.column, or source.table.column."
    raise UsageError("usage", f"column '{text}' not found", hint)


def trace(columns: Columns, start: ColumnSpot) -> Trace:
    steps: dict[ColumnSpot, TraceStep] = {}
    waiting = deque([start])
    while waiting:
        spot = waiting.popleft()
        if spot in steps:
            continue
        column = columns.find(spot)
        origins = tuple(dict.fromkeys(ColumnSpot(o.node, o.column) for o in column.origins)) if column else ()
        steps[spot] = TraceStep(spot, _type(column, spot) if column else None, column.sql if column else "", origins)
        waiting.extend(origins)
    models = dict.fromkeys(spot.node for spot in steps)
    return Trace(tuple(steps.values()), tuple(d for m in models for d in _deciders(columns.manifest, m)))


def _type(column: Column, spot: ColumnSpot) -> str | None:
    if column.name.lower() == spot.column.lower():
        return column.type
    return next((kind for path, kind in fields_of(column) if path.lower() == spot.column.lower()), None)


def own_columns(node: Model | Source) -> Iterator[Column]:
    """A node's columns without those that only describe a field of another (`place.lat`)."""
    types = {column.name.lower(): column.type for column in node.columns}
    yield from (c for c in node.columns if c.sql or c.origins or not _is_field(c.name.lower(), types))


def _is_field(path: str, types: Mapping[str, str | None]) -> bool:
    first, *rest = path.split(".")
    type_ = types.get(first) if rest else None
    return type_ is not None and spark_types.field_type(spark_types.normal(type_), rest) is not None


def fields_of(column: Column) -> Iterator[tuple[str, str]]:
    """The fields of a struct, array or map, and the fields of these: path from the column on, and type."""
    waiting = [(column.name, spark_types.normal(column.type) if column.type else None)]
    while waiting:
        path, kind = waiting.pop(0)
        inner = [(f"{path}.{name}", type_) for name, type_ in spark_types.members(kind)]
        yield from inner
        waiting += inner


def _deciders(manifest: Manifest, node_id: str) -> Iterator[Decider]:
    node = manifest.nodes.get(node_id)
    if isinstance(node, Model):
        yield from dict.fromkeys(Decider(node.id, ColumnSpot(o.node, o.column), o.kind) for o in node.indirect)


def impact(columns: Columns, start: ColumnSpot) -> Impact:
    values = _closure(columns, start, stars_only=False)
    rows = dict.fromkeys(decider for spot in (start, *values) for decider in _decided(columns, spot))
    without_column = _closure(columns, start, stars_only=True)
    breaks = dict.fromkeys(node for spot in (start, *without_column) for node in _naming(columns, spot))
    stops = tuple(node for node in _below(columns, breaks) if node not in breaks)
    tests = _tests(columns.manifest, (start, *without_column), {*breaks, *stops})
    tables = {start.node, *(spot.node for spot in values), *(decider.model for decider in rows), *breaks, *stops}
    exposures = tuple(e.id for e in columns.manifest.exposures if not tables.isdisjoint(e.depends_on))
    return Impact(values, tuple(rows), without_column, tuple(breaks), stops, tests, exposures)


def _closure(columns: Columns, start: ColumnSpot, *, stars_only: bool) -> tuple[ColumnSpot, ...]:
    """The columns computed from a column; or only those that a star hands on."""
    reached: dict[ColumnSpot, None] = {}
    waiting = deque([start])
    while waiting:
        for spot, sql in _computed(columns, waiting.popleft()):
            if spot not in reached and spot != start and (sql == STAR or not stars_only):
                reached[spot] = None
                waiting.append(spot)
    return tuple(reached)


def _computed(columns: Columns, spot: ColumnSpot) -> Iterator[tuple[ColumnSpot, str]]:
    for model in columns.readers.get(spot.node, ()):
        for column in model.columns:
            if any(spot.touches(ColumnSpot(o.node, o.column)) for o in column.origins):
                yield ColumnSpot(model.id, column.name), column.sql


def _decided(columns: Columns, spot: ColumnSpot) -> Iterator[Decider]:
    for model in columns.readers.get(spot.node, ()):
        for origin in model.indirect:
            if spot.touches(ColumnSpot(origin.node, origin.column)):
                yield Decider(model.id, ColumnSpot(origin.node, origin.column), origin.kind)


def _naming(columns: Columns, spot: ColumnSpot) -> Iterator[str]:
    yield from (reader.node for reader, sql in _computed(columns, spot) if sql != STAR)
    yield from (decider.model for decider in _decided(columns, spot))


def _below(columns: Columns, nodes: Iterable[str]) -> tuple[str, ...]:
    nodes_below: dict[str, None] = {}
    waiting = deque(nodes)
    while waiting:
        for model in columns.readers.get(waiting.popleft(), ()):
            if model.id not in nodes_below:
                nodes_below[model.id] = None
                waiting.append(model.id)
    return tuple(nodes_below)


def _tests(manifest: Manifest, removed_columns: Iterable[ColumnSpot], stopped: set[str]) -> tuple[str, ...]:
    removed_names = {(spot.node, spot.column.lower()) for spot in removed_columns}
    of_data = [
        t.id
        for t in manifest.tests
        if t.model in stopped or (t.column and (t.model, t.column.lower()) in removed_names)
    ]
    of_units = [
        t.id
        for t in manifest.unit_tests
        if t.model in stopped or any((s.node, s.column.lower()) in removed_names for s in named_in(manifest, t))
    ]
    return (*of_data, *of_units)


def named_in(manifest: Manifest, test: UnitTest) -> Iterator[ColumnSpot]:
    model = manifest.nodes[test.model]
    nodes = {item.view: item.node for item in model.inputs} if isinstance(model, Model) else {}
    every = (*test.static, *(rows for step in test.steps for rows in step.given))
    rows_given = [rows for rows in every if rows.view in nodes]
    ends = [end.rows for end in (test.expect, *(step.expect for step in test.steps)) if end and end.rows]
    spots = [ColumnSpot(nodes[rows.view], name) for rows in rows_given for name, _ in rows.rows.columns]
    spots += [ColumnSpot(test.model, name) for rows in ends for name, _ in rows.columns]
    yield from dict.fromkeys(spots)
