"""What the page of one source, model or exposure shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from engine.compile.artifacts.pyspark_script import script
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.macro_docs import macros_used
from engine.compile.nodes.manifest import Column, DataTest, Model, Source
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.docs.site import format_values, page_header
from engine.docs.site.column_trace import fields_of, own_columns
from engine.docs.site.differences import RemovedNode
from engine.docs.site.freshness_status import FreshnessStatus
from engine.docs.site.last_run import Batch, NodeRun
from engine.docs.site.shared_page_data import Facts, Record, SiteNode, moment, run_in_short, slim
from engine.docs.site.table_rows import TableRows
from engine.docs.site.table_statistics import Snapshot, StoredTable
from engine.sources.credentials import masked_options

_LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")
_SNAPSHOTS_LISTED = 20
_RUNS_LISTED = 20


def node_record(facts: Facts, node: SiteNode) -> Record:
    if isinstance(node, RemovedNode):
        return slim({"id": node.id, "sql": node.sql, "facts": [["Was defined in", node.file]] if node.file else []})
    if isinstance(node, Exposure):
        return _exposure(facts, node)
    if isinstance(node, Sink):
        return _sink(facts, node)
    common = {
        "id": node.id,
        "description": node.description,
        "owner": owner(node.meta.get("owner")),
        "problems": facts.findings.get(node.name, []),
        "columns": list(_columns(facts, node)),
    }
    if isinstance(node, Source):
        fresh = facts.freshness.get(node.id)
        more = {"fresh": _fresh(fresh) if fresh else None, "facts": _source_facts(node)}
        return slim({**common, "words": _details(page_header.source_words(node)), **more})
    promise, run, table = facts.promised.get(node.id), facts.run.nodes.get(node.id), facts.tables.get(node.id)
    rows = facts.rows.get(node.id)
    placed = {column.name.lower() for column in node.columns}
    tests = [t for t in facts.tests.get(node.id, ()) if t.column is None or t.column.lower() not in placed]
    names = [macro.name for macro in facts.manifest.macros]
    return slim(
        {
            **common,
            "title": node.title,
            "words": _details(page_header.model_words(node)),
            "guarantee": [promise.level.value, promise.reason] if promise else None,
            "facts": _model_facts(node),
            "indirect": [[facts.numbers[o.node], o.column, o.kind] for o in node.indirect if o.node in facts.numbers],
            "tests": [_test(facts, data_test) for data_test in tests],
            "unit_tests": [_unit_test(facts, unit_test) for unit_test in facts.unit_tests.get(node.id, ())],
            "macros": [names.index(name) for name in macros_used(node.raw_sql, names)],
            "sql": _trimmed(node.raw_sql),
            "compiled": _trimmed(node.sql),
            "script": script(node, facts.manifest),
            "run": _run(node, run) if run else None,
            "watermark": moment(facts.watermark(node.id)),
            "table": _table(node, table) if table else None,
            "rows": _rows(rows) if rows else None,
        }
    )


def _exposure(facts: Facts, exposure: Exposure) -> Record:
    rows = (
        ("Maturity", exposure.maturity),
        *((f"Meta: {key}", format_values.value(value)) for key, value in exposure.meta.items()),
        ("Declared in", str(exposure.location or exposure.file)),
    )
    return slim(
        {
            "id": exposure.id,
            "title": exposure.label,
            "owner": owner(exposure.owner),
            "description": exposure.description,
            "problems": facts.findings.get(exposure.name, []),
            "url": exposure.url,
            "facts": [[term, text] for term, text in rows if text],
        }
    )


def owner(declared: Any) -> str:
    """An exposure's `owner`, or `meta.owner` of another node, in one line."""
    if not isinstance(declared, Mapping):
        return format_values.value(declared) if declared else ""
    name, email = (str(declared.get(key) or "") for key in ("name", "email"))
    whom = f"{name} <{email}>" if name and email else name or email
    other_details = [
        f"{key}: {format_values.value(value)}" for key, value in declared.items() if key not in {"name", "email"}
    ]
    return ", ".join(filter(None, [whom, *other_details]))


def _meta(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All but the owner, which has a place of its own."""
    return [(f"Meta: {key}", format_values.value(value)) for key, value in meta.items() if key != "owner"]


def _sink(facts: Facts, sink: Sink) -> Record:
    rows = (
        ("Delivers to", sink.place),
        ("Key", ", ".join(sink.key)),
        ("Columns", ", ".join(sink.columns)),
        ("Excluded", ", ".join(sink.exclude)),
        *_meta(sink.meta),
        ("Declared in", str(sink.location or sink.file)),
    )
    return slim(
        {
            "id": sink.id,
            "description": sink.description,
            "owner": owner(sink.meta.get("owner")),
            "problems": facts.findings.get(sink.name, []),
            "facts": [[term, text] for term, text in rows if text],
        }
    )


def _details(details: Iterable[page_header.Detail]) -> list[list[str]]:
    return [[item.about, item.text] for item in details]


def _columns(facts: Facts, node: Model | Source) -> Iterator[Record]:
    described = [*node.columns, *(node.fields if isinstance(node, Source) else ())]
    descriptions = {field.name.lower(): field.description for field in described}
    tests: dict[str, list[DataTest]] = {}
    for data_test in facts.tests.get(node.id, ()):
        tests.setdefault((data_test.column or "").lower(), []).append(data_test)
    for column in own_columns(node):
        yield _column(facts, column, descriptions, tests.get(column.name.lower(), ()))


def _column(facts: Facts, column: Column, descriptions: Mapping[str, str], tests: Iterable[DataTest]) -> Record:
    origins = [[facts.numbers[o.node], o.column] for o in column.origins if o.node in facts.numbers]
    fields = fields_of(column) if column.type else ()
    return slim(
        {
            "name": column.name,
            "type": column.type,
            "description": column.description,
            "sql": column.sql,
            "origins": origins,
            "fields": [[path, kind, descriptions.get(path.lower(), "")] for path, kind in fields],
            "meta": [[key, format_values.value(value)] for key, value in column.meta.items()],
            "tests": [_test(facts, data_test) for data_test in tests],
        }
    )


def _test(facts: Facts, data_test: DataTest) -> Record:
    other_inputs = [facts.numbers[n] for n in data_test.depends_on if n != data_test.model and n in facts.numbers]
    return slim(
        {
            "what": format_values.test(data_test),
            "name": data_test.name,
            "description": data_test.description,
            "reads": other_inputs,
            **_ended(facts, data_test.id),
        }
    )


def _unit_test(facts: Facts, unit_test: UnitTest) -> Record:
    place = str(unit_test.location or unit_test.file)
    counts = {
        "name": unit_test.name,
        "what": page_header.unit_test_words(unit_test),
        "description": unit_test.description,
    }
    return slim({**counts, "place": place, "broken": unit_test.broken, **_ended(facts, unit_test.id)})


def _ended(facts: Facts, test: str) -> Record:
    run = facts.run.nodes.get(test)
    history = [
        [moment(run.at), result.status, result.tone.value]
        for run, result in reversed(facts.run.results_of.get(test, ()))
    ]
    ended = {"status": run.status, "tone": run.tone.value, "message": run.message} if run else {}
    return {**ended, "history": history if len(history) > 1 else []}


def _fresh(fresh: FreshnessStatus) -> Record:
    record = {"status": fresh.status.value, "at": moment(fresh.looked_at), "newest": moment(fresh.newest)}
    bounds = (("warns after", fresh.warn_after), ("fails after", fresh.error_after))
    limits = ", ".join(f"{text} {bound}" for text, bound in bounds if bound)
    return slim({**record, "bounds": limits, "error": fresh.error})


def _source_facts(source: Source) -> list[list[str]]:
    options = ", ".join(f"{key}: {value}" for key, value in sorted(masked_options(source.spec.options).items()))
    rows = (
        ("Source", source.group),
        ("Options", options),
        *_meta(source.meta),
        ("Declared in", str(source.location or source.file)),
    )
    return [[term, text] for term, text in rows if text]


def _model_facts(model: Model) -> list[list[str]]:
    properties = ", ".join(
        f"{key}: {value}" for key, value in sorted(masked_options(model.write.table_properties).items())
    )
    rows = (
        ("View" if model.computed_when_read else "Table", str(model.relation) if model.in_catalog else ""),
        ("Properties", properties),
        *_meta(model.meta),
        ("Defined in", model.file),
        ("Fingerprint", model.fingerprint),
    )
    return [[term, text] for term, text in rows if text]


def _trimmed(sql: str) -> str:
    """Without the empty lines that a header leaves behind."""
    return _LEADING_BLANK_LINES.sub("", sql).rstrip()


def _run(model: Model, run: NodeRun) -> Record:
    more = slim({"message": run.message, "note": run.note, "seconds": run.seconds})
    return {**run_in_short(model, run), **more, "progress": [_batch(batch) for batch in run.progress]}


def _batch(batch: Batch) -> list[Any]:
    mark = moment(batch.watermark)
    return [batch.id, batch.rows_in, batch.rows_out, batch.late, batch.state_rows, mark, batch.quarantined]


def _rows(rows: TableRows) -> Record:
    profiles = [[p.name, p.nulls, p.distinct, p.least, p.greatest] for p in rows.profiles]
    return {"rows": rows.rows, "profiled": rows.profiled, "profiles": profiles, "hidden": rows.hidden}


def _table(model: Model, table: StoredTable) -> Record:
    merged = bool(model.write.unique_key)
    return {
        "rows": table.rows,
        "bytes": table.bytes,
        "files": table.files,
        "commits": table.commits,
        "columns": [list(column) for column in table.columns],
        "history": [[moment(s.at), s.added, s.removed, s.rows, s.bytes, int(new)] for s, new in _by_run(table)],
        "snapshots": [_snapshot(s, merged=merged) for s in reversed(table.snapshots[-_SNAPSHOTS_LISTED:])],
        "runs": list(islice(_runs(table), _RUNS_LISTED)),
        "quarantined": [[moment(s.at), s.added, s.rows] for s in table.quarantined],
    }


def _runs(table: StoredTable) -> Iterator[list[Any]]:
    """The runs that wrote the table, the newest first: when the last commit was, and the numbers of all of them."""
    for run, commits in groupby(reversed(table.snapshots), key=lambda snapshot: snapshot.run):
        run_commits = list(commits)
        if run:
            added, removed = sum(s.added for s in run_commits), sum(s.removed for s in run_commits)
            yield [moment(run_commits[0].at), len(run_commits), added, removed, run_commits[0].rows, run]


def _by_run(table: StoredTable) -> Iterator[tuple[Snapshot, bool]]:
    """The snapshots, and whether another run began with each."""
    before: str | None = None
    for snapshot in table.snapshots:
        yield snapshot, before is not None and snapshot.run != before
        before = snapshot.run


def _snapshot(snapshot: Snapshot, *, merged: bool) -> list[Any]:
    s = snapshot
    # Iceberg has one word for what a MERGE does and for a table that is rewritten.
    operation = "merge" if merged and s.operation == "overwrite" else s.operation
    # The id as text: JavaScript's numbers are too small for it.
    return [str(s.id), moment(s.at), operation, s.added, s.removed, s.rows, s.batch, s.run]
