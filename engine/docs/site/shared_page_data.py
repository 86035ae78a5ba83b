"""What every page of the site needs: the graph, the status of each node, the columns; and the facts it is made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from engine import __version__
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.guarantee import Guarantee, guarantees
from engine.compile.nodes.macro_docs import macros_used
from engine.compile.nodes.manifest import Column, DataTest, Manifest, Model, Source
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.docs.site import format_values
from engine.docs.site.column_trace import fields_of, named_in, own_columns
from engine.docs.site.differences import Differences, RemovedNode
from engine.docs.site.freshness_status import FreshnessStatus
from engine.docs.site.graph_links import Link, links_of
from engine.docs.site.last_run import LastRun, NodeRun, ResultInShort
from engine.docs.site.table_rows import TableRows
from engine.docs.site.table_statistics import StoredTable
from engine.errors import Diagnostic

Record = dict[str, Any]
# What has a page.
SiteNode = Source | Model | Exposure | Sink | RemovedNode
_Test = TypeVar("_Test", DataTest, UnitTest)


@dataclass(frozen=True)
class Facts:
    """Everything that the site shows: the project, its last run, its tables, freshness, and the time.

    `watermarks` has that of each stream, by its id, and `rows` rows of tables, if they shall be shown.
    """

    manifest: Manifest
    run: LastRun
    tables: Mapping[str, StoredTable]
    freshness: Mapping[str, FreshnessStatus]
    at: datetime
    watermarks: Mapping[str, datetime] = field(default_factory=dict)
    differences: Differences | None = None
    rows: Mapping[str, TableRows] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> tuple[SiteNode, ...]:
        """The nodes that have a page: sources, models, exposures, sinks, and what an earlier project had."""
        manifest = self.manifest
        removed_nodes = self.differences.removed if self.differences else ()
        return (*manifest.sources, *manifest.models, *manifest.exposures, *manifest.sinks, *removed_nodes)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Their positions by id: nodes are referenced by number."""
        return {node.id: number for number, node in enumerate(self.nodes)}

    @cached_property
    def links(self) -> dict[Link, bool]:
        removed_nodes = self.differences.removed if self.differences else ()
        reads = {Link(read, node.id): False for node in removed_nodes for read in node.reads if read in self.numbers}
        readers = {
            Link(node.id, reader): False for node in removed_nodes for reader in node.readers if reader in self.numbers
        }
        return {**links_of(self.manifest), **reads, **readers}

    @cached_property
    def promised(self) -> Mapping[str, Guarantee]:
        return guarantees(self.manifest)

    @cached_property
    def tests(self) -> Mapping[str, list[DataTest]]:
        return _by_model(self.manifest.tests)

    @cached_property
    def unit_tests(self) -> Mapping[str, list[UnitTest]]:
        return _by_model(self.manifest.unit_tests)

    def all_tests(self, model: str) -> Iterator[DataTest | UnitTest]:
        yield from self.tests.get(model, ())
        yield from self.unit_tests.get(model, ())

    def watermark(self, node: str) -> datetime | None:
        """How far a stream is in event time: by its checkpoint, else by its last run."""
        run = self.run.nodes.get(node)
        return self.watermarks.get(node) or (run.watermark if run else None)

    @cached_property
    def findings(self) -> Mapping[str, list[int]]:
        """The places of a node's findings among all, by the node's name."""
        places: dict[str, list[int]] = {}
        for place, diagnostic in enumerate(self.manifest.diagnostics):
            places.setdefault(diagnostic.node or "", []).append(place)
        return places


def _by_model(tests: Iterable[_Test]) -> dict[str, list[_Test]]:
    by_model: dict[str, list[_Test]] = {}
    for test in tests:
        by_model.setdefault(test.model, []).append(test)
    return by_model


def slim(record: Mapping[str, Any]) -> Record:
    return {key: value for key, value in record.items() if value not in (None, "", False, [], {}, ())}


def moment(at: datetime | None) -> int | None:
    """A time as milliseconds since 1970, as JavaScript has it."""
    return None if at is None else round(at.timestamp() * 1000)


_BARS = 40


def index_record(facts: Facts) -> Record:
    manifest, run = facts.manifest, facts.run
    number = facts.numbers
    return {
        "project": manifest.project,
        "version": manifest.version,
        "target": manifest.target,
        "engine": __version__,
        "at": moment(facts.at),
        "run": slim(
            {
                "at": moment(run.at),
                "command": run.command,
                "target": run.target,
                "seconds": run.seconds,
                "models": list(run.counted("model").items()),
                "tests": list(run.counted("test", "unit_test").items()),
            }
        )
        if run.nodes
        else None,
        "runs": len(run.history),
        "compared": facts.differences is not None,
        "tests": len(manifest.tests),
        "unit_tests": len(manifest.unit_tests),
        "nodes": [_node_in_short(facts, node) for node in facts.nodes],
        "links": [[number[link.parent], number[link.child], int(stream)] for link, stream in facts.links.items()],
        "macros": [macro.name for macro in manifest.macros],
        "problems": [_problem(facts, diagnostic) for diagnostic in manifest.diagnostics],
    }


def _node_in_short(facts: Facts, node: SiteNode) -> Record:
    if isinstance(node, RemovedNode):
        return {
            "id": node.id,
            "name": node.name,
            "what": "removed",
            "kind": node.kind,
            "file": node.file,
            "change": "removed",
            "columns": 0,
        }
    change = facts.differences.changes.get(node.id) if facts.differences else None
    record = _end_in_short(node) if isinstance(node, Exposure | Sink) else _table_or_source_in_short(facts, node)
    return {**record, **({"change": change.kind} if change else {})}


def _table_or_source_in_short(facts: Facts, node: Model | Source) -> Record:
    run = facts.run.nodes.get(node.id)
    record = {
        "id": node.id,
        "name": node.name,
        "what": format_values.kind(node),
        "file": node.file,
        "summary": format_values.summary(node),
        "about": _first_sentence(node.description),
        "broken": node.broken,
        "columns": sum(1 for _ in own_columns(node)),
    }
    if isinstance(node, Source):
        fresh = facts.freshness.get(node.id)
        more = {"kind": "source", "folder": node.source, "fresh": fresh.status.value if fresh else None}
        newest = moment(fresh.newest) if fresh else None
        return slim({**record, **more, "tags": list(node.tags), "newest": newest})
    promise = facts.promised.get(node.id)
    table = facts.tables.get(node.id)
    return slim(
        {
            **record,
            "kind": "stream" if node.streaming else "table" if node.keeps_rows else "view",
            "materialized": node.materialized.value,
            "output_mode": node.write.output_mode,
            "schema": node.relation.schema,
            "alias": node.relation.name,
            "folder": "/".join(node.file.split("/")[1:-1]),
            "tags": list(node.tags),
            "guarantee": promise.level.value if promise else None,
            "run": run_in_short(node, run) if run else None,
            "failing": sum(facts.run.failed(test.id) for test in facts.all_tests(node.id)),
            "watermark": moment(facts.watermark(node.id)),
            "table": _table_in_short(table) if table else None,
            "waiting": table is not None and table.waiting,
        }
    )


def _end_in_short(node: Exposure | Sink) -> Record:
    """An exposure, or a sink, which is drawn as one."""
    about = {
        "id": node.id,
        "name": node.name,
        "what": format_values.kind(node),
        "kind": "exposure",
        "file": node.file,
        "summary": node.label if isinstance(node, Exposure) else node.place,
        "about": _first_sentence(node.description),
        "tags": list(node.tags),
    }
    return slim({**about, "columns": 0})


def _first_sentence(text: str) -> str:
    flat = " ".join(text.split())
    end = flat.find(". ")
    return flat[: end + 1] if 0 < end < 200 else flat[:200]  # noqa: PLR2004


def run_in_short(model: Model, run: NodeRun) -> Record:
    record = {
        "status": run.status,
        "tone": run.tone.value,
        "at": moment(run.at),
        "attempt": list(run.attempt) if run.attempt else None,
    }
    numbers = {key: number for key, number in run.numbers.items() if number or key not in _absent(model)}
    return slim({**record, "counted": [list(item) for item in run.counted]}) | numbers


def _absent(model: Model) -> frozenset[str]:
    """What a stream cannot have: without state nothing is held, and nothing comes too late."""
    if not model.stateful:
        return frozenset({"state_rows", "late"})
    return frozenset() if any(item.watermark for item in model.inputs if item.stream) else frozenset({"late"})


def _table_in_short(table: StoredTable) -> Record:
    last = table.last
    return {
        "rows": table.rows,
        "bytes": table.bytes,
        "at": moment(last.at) if last else None,
        "added": [snapshot.added for snapshot in table.snapshots[-_BARS:]],
        "quarantined": table.quarantined[-1].rows if table.quarantined else None,
    }


def _problem(facts: Facts, diagnostic: Diagnostic) -> Record:
    nodes = (f"{kind}.{diagnostic.node}" for kind in ("model", "source", "exposure", "sink"))
    node = next((facts.numbers[node] for node in nodes if node in facts.numbers), None)
    return {
        "level": diagnostic.level.value,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "place": str(diagnostic.location) if diagnostic.location else "",
        "node": node,
    }


def lineage_records(facts: Facts) -> Iterator[Record]:
    """The columns of every node, in the order of their numbers: where each comes from, and row-level lineage."""
    number = facts.numbers
    unit_tests_by_node = _unit_tests(facts)
    for node in facts.nodes:
        indirect = node.indirect if isinstance(node, Model) else ()
        tests = facts.tests.get(node.id, ())
        yield {
            "columns": [
                [
                    c.name,
                    c.type or "",
                    c.sql,
                    [[number[o.node], o.column] for o in c.origins if o.node in number],
                    *_fields(c),
                ]
                for c in (own_columns(node) if isinstance(node, Model | Source) else ())
            ],
            "indirect": [[number[o.node], o.column, o.kind] for o in indirect if o.node in number],
            "tests": [*([t.name, t.column or ""] for t in tests), *unit_tests_by_node[node.id]],
        }


def _unit_tests(facts: Facts) -> Mapping[str, list[list[Any]]]:
    """For each node its unit tests and the columns of it that unit tests name: name, column, number of the model."""
    by_model: dict[str, list[list[Any]]] = defaultdict(list)
    for unit_test in facts.manifest.unit_tests:
        model_number = facts.numbers[unit_test.model]
        by_model[unit_test.model].append([unit_test.name, "", model_number])
        for spot in named_in(facts.manifest, unit_test):
            by_model[spot.node].append([unit_test.name, spot.column, model_number])
    return by_model


def _fields(column: Column) -> Iterator[list[list[str]]]:
    if column.type and column.type.startswith("struct<"):
        yield [list(field) for field in fields_of(column)]


def macro_records(facts: Facts) -> list[Record]:
    names = [macro.name for macro in facts.manifest.macros]
    users: dict[str, list[int]] = {name: [] for name in names}
    for model in facts.manifest.models:
        for name in macros_used(model.raw_sql, names):
            users[name].append(facts.numbers[model.id])
    return [
        {
            "name": macro.name,
            "file": macro.file,
            "arguments": list(macro.arguments),
            "description": macro.description,
            "text": macro.text,
            "used": users[macro.name],
        }
        for macro in facts.manifest.macros
    ]


def run_records(facts: Facts) -> list[Record]:
    """The last runs, the newest first: nodes by their numbers, others (tests) by their names."""
    return [
        {
            "at": moment(run.at),
            "command": run.command,
            "target": run.target,
            "seconds": run.seconds,
            "results": [
                [
                    _node_or_name(facts, result.node), result.status, result.tone.value,
                    result.began, result.ended, result.rows_in, result.rows_out, result.message,
                    _written(facts, result),
                ]
                for result in run.results
            ],
            "reported": [
                slim({"level": one.level, "code": one.code, "message": one.message, "hint": one.hint,
                      "node": facts.numbers.get(f"model.{one.node}", one.node), "place": one.place})
                for one in run.reported
            ],
            "more": run.more_reported,
        }
        for run in facts.run.history
    ]  # fmt: skip


def _node_or_name(facts: Facts, node: str) -> int | str:
    if node in facts.numbers:
        return facts.numbers[node]
    test = facts.manifest.nodes.get(node)
    return test.name if test is not None else node.partition(".")[2]


def _written(facts: Facts, result: ResultInShort) -> Record:
    """What a node wrote in a run; the id of a snapshot as text, as JavaScript has no such numbers.

    `tested` is the model of a test, and whether the test waited for it: a unit test does not.
    """
    snapshot = None if result.snapshot is None else str(result.snapshot)
    counts = {key: value for key, value in result.numbers.items() if key not in ("rows_in", "rows_out")}
    test = facts.manifest.nodes.get(result.node)
    tested_model = facts.numbers.get(test.model) if isinstance(test, DataTest | UnitTest) else None
    record: Record = {"table": result.table, "snapshot": snapshot, "note": result.note}
    if tested_model is not None:
        record["tested"] = [tested_model, isinstance(test, DataTest)]
    return slim({**record, "counts": counts, "counted": [list(counted) for counted in result.counted]})


def change_records(facts: Facts) -> list[Record]:
    """Differences from an earlier project, by the numbers of nodes."""
    if facts.differences is None:
        return []
    changed = [
        {
            "node": facts.numbers[node],
            "kind": change.kind,
            "details": [list(detail) for detail in change.details],
            "sql": list(change.sql),
            "action": change.action,
        }
        for node, change in facts.differences.changes.items()
    ]
    removed = [
        {"node": facts.numbers[node.id], "kind": "removed", "details": [], "sql": [], "action": ""}
        for node in facts.differences.removed
    ]
    return [*changed, *removed]
