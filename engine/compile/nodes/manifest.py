"""What the compiler says about a project: frozen records, the currency of all later stages."""

from __future__ import annotations

import bisect
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.compile.nodes.column_facts import Derivation, Origin
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.facts import NO_FACTS, Facts
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import Expectation, OnNull, OnUpstreamDelete, Operation, TimeWindow, Write
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.errors import Diagnostic, Location
from engine.relations import Relation
from engine.sources import OnBadRecord, SourceSpec
from engine.times import SECONDS


class Severity(StrEnum):
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Event time of a stream.

    `expression`: the SQL that makes the column; None: the input has it. `max_future`: rows further ahead of the clock
    are bad records; None: no bound. `on_null`: what becomes of rows without a time; None: they are bad records.
    """

    column: str
    delay: str
    expression: str | None = None
    max_future: str | None = None
    on_null: OnNull | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """Something a model reads.

    `view` stands for it in the compiled SQL: a table's full name, or a temporary view. `dedup`: columns by which
    repeats are dropped within the watermark's delay. `max_files_per_trigger` and `on_bad_record` None: as the source
    says. `through`: the ephemeral model that brings it. `metadata`: the view has `_metadata`, because the query names
    it. `needs_time`: rows whose event time is NULL would be lost in a stateful step; None: not as far as is known.
    """

    node: str
    name: str
    stream: bool
    view: str
    watermark: Watermark | None = None
    dedup: tuple[str, ...] = ()
    max_files_per_trigger: int | None = None
    on_upstream_delete: OnUpstreamDelete = OnUpstreamDelete.FAIL
    through: str = ""
    metadata: bool = False
    on_bad_record: OnBadRecord | None = None
    needs_time: bool | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column: what the user says of it, and what the query says.

    `type`, `sql`, `named` and `certain` are as in `ColumnFacts`. `window`: the declared window whose start or end it
    is. `renamed_from`: the name that the column of the table had; empty: none is named.
    """

    name: str
    description: str = ""
    type: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    origins: tuple[Origin, ...] = ()
    sql: str = ""
    derivation: Derivation = Derivation.EXPRESSION
    window: str = ""
    named: bool = True
    certain: bool = False
    renamed_from: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of the compiled SQL where an input is named: begin and end (exclusive), and the name."""

    start: int
    end: int
    view: str

    def moved(self, by: int) -> Slot:
        return Slot(self.start + by, self.end + by, self.view)


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The way from compiled SQL back to the model's file.

    `runs`: (offset in the compiled SQL, line and column in the file, whether columns continue with the offset),
    ascending; a run never crosses a line end. `settings`: where each is; those of a stream as `streams.<name>.<key>`.
    """

    runs: tuple[tuple[int, int, int, bool], ...] = ()
    settings: Mapping[str, Location] = field(default_factory=dict)

    def locate(self, file: str, offset: int) -> Location:
        index = bisect.bisect_right([run[0] for run in self.runs], offset) - 1
        if index < 0:
            return Location(file)
        begin, line, column, literal = self.runs[index]
        return Location(file, line, column + (offset - begin if literal else 0))


@dataclass(frozen=True, slots=True)
class AcknowledgedWarning:
    code: str
    message: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A compiled model. A broken one stays in the manifest, marked, with what could be found out.

    `indirect` names the columns that decide on its rows (filters, joins, groups) without being their values.
    `inlined` names the ephemeral models whose SQL is inside its own. `deterministic`: its query, checks and
    event times neither read the clock nor draw random numbers. `slots` are the places of its SQL where inputs are
    named, in order. `deferred_from` is the relation that it has in this target where `--defer` lets its readers use
    another target's table, which `relation` is then: that table is read and never built; None: it is not deferred.
    `custom_schema` is what the model adds to the target's schema.
    """

    id: str
    name: str
    file: str
    description: str
    materialized: Materialized
    relation: Relation
    raw_sql: str
    sql: str
    inputs: tuple[Input, ...] = ()
    inlined: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    indirect: tuple[Origin, ...] = ()
    write: Write = field(default_factory=Write)
    expectations: tuple[Expectation, ...] = ()
    operation: Operation = field(default_factory=Operation)
    contract: bool = False
    title: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    stateful: bool = False
    windows: Mapping[str, TimeWindow] = field(default_factory=dict)
    state_partitions: int | None = None
    fingerprint: str = ""
    facts: Facts = NO_FACTS
    positions: SourceMap = field(default_factory=SourceMap)
    broken: bool = False
    deterministic: bool = True
    slots: tuple[Slot, ...] = ()
    acknowledged: tuple[AcknowledgedWarning, ...] = ()
    deferred_from: Relation | None = None
    custom_schema: str = ""

    @property
    def in_catalog(self) -> bool:
        return self.materialized.traits.in_catalog

    @property
    def is_inlined(self) -> bool:
        return self.materialized.traits.inlined

    @property
    def keeps_rows(self) -> bool:
        return self.materialized.traits.keeps_rows

    @property
    def computed_when_read(self) -> bool:
        return self.materialized.traits.computed_when_read

    @property
    def recomputed(self) -> bool:
        return self.materialized.traits.recomputed

    @property
    def streaming(self) -> bool:
        return self.materialized.traits.streaming

    def sql_with(self, names: Mapping[str, str]) -> str:
        parts, at = [], 0
        for slot in self.slots:
            parts += [self.sql[at : slot.start], names.get(slot.view, slot.view)]
            at = slot.end
        return "".join([*parts, self.sql[at:]])

    @property
    def depends_on(self) -> tuple[str, ...]:
        direct = (i.node for i in self.inputs if not i.through)
        return (*direct, *(f"model.{name}" for name in self.inlined))


@dataclass(frozen=True, slots=True)
class Age:
    count: int
    period: str

    @property
    def seconds(self) -> int:
        """The same in seconds."""
        return self.count * SECONDS[self.period]


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old the newest row of a source may be.

    `warn_after`, `error_after` None: never. `filter`: condition on the rows that count. `max_future`: how far ahead of
    the clock a time may be; rows with later ones do not count.
    """

    loaded_at: str
    warn_after: Age | None = None
    error_after: Age | None = None
    filter: str | None = None
    max_future: str = "1 day"


@dataclass(frozen=True, slots=True)
class Source:
    """A declared source table; its `meta` wins over its source's; `fields` are named by paths (`place.lat`)."""

    id: str
    source: str
    table: str
    file: str
    spec: SourceSpec
    description: str = ""
    columns: tuple[Column, ...] = ()
    watermark: Watermark | None = None
    dedup: tuple[str, ...] = ()
    location: Location | None = None
    broken: bool = False
    formats: tuple[str, ...] = ()
    freshness: Freshness | None = None
    group: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    acknowledged: tuple[AcknowledgedWarning, ...] = ()
    fields: tuple[Column, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.source}.{self.table}"


@dataclass(frozen=True, slots=True)
class DataTestAggregate:
    """How an aggregate shows that no row fails a data test: it is 0 or NULL then."""

    rows: str
    failing: str


@dataclass(frozen=True, slots=True)
class DataTest:
    """A data test: a query that returns the failing rows.

    `warn_if`, `error_if`: bounds of the number of failing rows, such as `> 10`, several joined by `or`; empty: any. At
    most `limit` failing rows are looked at. `look`: how to see that none fails without running the query. `positions`:
    the way from its SQL back to its file, for one that is a file.
    """

    id: str
    name: str
    kind: str
    model: str
    sql: str
    column: str | None = None
    severity: Severity = Severity.ERROR
    depends_on: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    file: str = ""
    location: Location | None = None
    warn_if: str = ""
    error_if: str = ""
    limit: int | None = None
    stored: Relation | None = None
    look: DataTestAggregate | None = None
    positions: SourceMap = field(default_factory=SourceMap)
    description: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = True


Node = Model | Source | DataTest | UnitTest | Exposure | Sink


@dataclass(frozen=True, slots=True)
class Macro:
    name: str
    file: str
    text: str
    arguments: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as it is in manifest.json: JSON in ASCII, and a key that changes with everything written of it."""

    depends_on: tuple[str, ...]
    text: bytes | memoryview
    key: str


class KeptRecords(Mapping[str, NodeRecord]):
    @abstractmethod
    def keys_written(self) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """A compiled project.

    `order`: ids of models and tests, each after what it depends on. `diagnostics` are sorted by place. `records`: the
    nodes as they are in manifest.json, where they are kept. `invocation_id`: the run id that texts of batch tables were
    given.
    """

    project: str
    version: str
    target: str
    nodes: Mapping[str, Node]
    order: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    macros: tuple[Macro, ...] = ()
    records: Mapping[str, NodeRecord] = field(default_factory=dict)
    invocation_id: str = ""

    @property
    def models(self) -> tuple[Model, ...]:
        return tuple(n for i in self.order if isinstance(n := self.nodes[i], Model))

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(sorted((n for n in self.nodes.values() if isinstance(n, Source)), key=lambda s: s.name))

    @property
    def tests(self) -> tuple[DataTest, ...]:
        return tuple(n for i in self.order if isinstance(n := self.nodes[i], DataTest))

    @property
    def unit_tests(self) -> tuple[UnitTest, ...]:
        return tuple(n for i in self.order if isinstance(n := self.nodes[i], UnitTest))

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        candidates = (self.nodes[i] for i in sorted(self.nodes) if i.startswith("exposure."))
        return tuple(node for node in candidates if isinstance(node, Exposure))

    @property
    def ends(self) -> tuple[str, ...]:
        """The ids of what reads tables and is read by nothing: exposures, then sinks."""
        return (*(exposure.id for exposure in self.exposures), *(sink.id for sink in self.sinks))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        candidates = (self.nodes[i] for i in sorted(self.nodes) if i.startswith("sink."))
        return tuple(node for node in candidates if isinstance(node, Sink))

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.is_error)

    def model(self, name: str) -> Model:
        node = self.nodes[f"model.{name}"]
        if not isinstance(node, Model):
            raise KeyError(name)
        return node

    def tests_of(self, model_id: str) -> tuple[DataTest, ...]:
        return tuple(t for t in self.tests if t.model == model_id)

    def parents(self, node_id: str) -> tuple[str, ...]:
        if node_id in self.records:
            return self.records[node_id].depends_on
        node = self.nodes[node_id]
        return () if isinstance(node, Source) else node.depends_on

    def children(self) -> dict[str, tuple[str, ...]]:
        result: dict[str, list[str]] = {node_id: [] for node_id in self.nodes}
        for node_id in (*self.order, *self.ends):
            for parent in self.parents(node_id):
                result[parent].append(node_id)
        return {node_id: tuple(ids) for node_id, ids in result.items()}
