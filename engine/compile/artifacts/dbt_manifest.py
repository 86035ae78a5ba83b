"""Nodes in the shape of dbt's manifest, version 12, so that the tools that read dbt's artifacts read ours.

What dbt has no word for is in `config` (in the words of a header) and under `meta.headrace` (what the compiler found
out).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.compile.nodes.column_facts import Origin
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.facts import plain
from engine.compile.nodes.fingerprint import definition_hash, published_facts
from engine.compile.nodes.guarantee import Guarantee
from engine.compile.nodes.manifest import AcknowledgedWarning, Column, DataTest, Input, Macro, Model, Node, Source
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, UnitTest
from engine.relations import Partition, SortColumn
from engine.sources import SourceSpec, location, source_traits
from engine.sources.credentials import masked_options, shown_setting

# The one key of `meta` that is ours.
OWN = "headrace"


@dataclass(frozen=True, slots=True)
class About:
    project: str
    guarantee: Guarantee | None = None
    macros: tuple[str, ...] = ()


def unique_id(node_id: str, project: str) -> str:
    """The id in dbt's form: model.flights is model.<project>.flights."""
    kind, _, rest = node_id.partition(".")
    return f"{kind}.{project}.{rest}"


def own_id(unique: str) -> str:
    """The way back; an id of two parts (a model or test without a project) stays."""
    kind, _, rest = unique.partition(".")
    _, _, name = rest.partition(".")
    return f"{kind}.{name}" if name else unique


def node_dict(node: Node, about: About) -> dict[str, Any]:
    if isinstance(node, Model):
        return _model(node, about)
    if isinstance(node, UnitTest):
        return _unit_test(node, about)
    if isinstance(node, Exposure):
        return _exposure(node, about)
    if isinstance(node, Sink):
        return _sink(node, about)
    return _source(node, about) if isinstance(node, Source) else _test(node, about)


def macro_dict(macro: Macro, project: str) -> dict[str, Any]:
    return {
        "name": macro.name,
        "resource_type": "macro",
        "package_name": project,
        "path": macro.file,
        "original_file_path": macro.file,
        "unique_id": f"macro.{project}.{macro.name}",
        "macro_sql": macro.text,
        "description": macro.description,
        "arguments": [{"name": name, "type": None, "description": ""} for name in macro.arguments],
        "depends_on": {"macros": []},
    }


def _common(node: Node, about: About, kind: str, path: str) -> dict[str, Any]:
    *folders, _ = path.split("/")
    return {
        "name": node.name,
        "resource_type": kind,
        "package_name": about.project,
        "path": path,
        "original_file_path": node.file,
        "unique_id": unique_id(node.id, about.project),
        "fqn": [about.project, *folders, node.name],
    }


def _below(file: str) -> str:
    return file.partition("/")[2] or file


def _compiled(sql: str, raw: str, about: About, depends_on: Iterable[str]) -> dict[str, Any]:
    return {
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest()},
        "raw_code": raw,
        "compiled_code": sql,
        "language": "sql",
        "depends_on": {
            "macros": [f"macro.{about.project}.{name}" for name in about.macros],
            "nodes": list(dict.fromkeys(unique_id(node, about.project) for node in depends_on)),
        },
    }


def _model(model: Model, about: About) -> dict[str, Any]:
    # A model that is deferred keeps its own table's name: other projects compare themselves with this one.
    relation = model.deferred_from or model.relation
    reads = dict.fromkeys(model.depends_on)
    return {
        **_common(model, about, "model", _below(model.file)),
        **_compiled(model.sql, model.raw_sql.strip(), about, reads),
        "database": relation.catalog,
        "schema": relation.schema,
        "alias": relation.name,
        "relation_name": relation.sql if model.in_catalog else None,
        **_deferred(model),
        "description": model.description,
        "tags": list(model.tags),
        "meta": {**model.meta, OWN: _found_out(model, about)},
        "config": _model_config(model),
        "columns": {column.name: _column(column, about) for column in model.columns},
        **_refs_and_sources(reads),
        "compiled": bool(model.sql) and not model.broken,
        "compiled_path": f"target/compiled/{about.project}/{model.file}" if model.sql else None,
        "contract": {"enforced": model.contract, "alias_types": True, "checksum": None},
        "access": "protected",
    }


def _refs_and_sources(reads: Iterable[str]) -> dict[str, Any]:
    models = [node.partition(".")[2] for node in reads if node.startswith("model.")]
    return {
        "refs": [{"name": name, "package": None, "version": None} for name in models],
        "sources": [node.split(".", 2)[1:] for node in reads if node.startswith("source.")],
    }


def _exposure(exposure: Exposure, about: About) -> dict[str, Any]:
    tags, meta = list(exposure.tags), dict(exposure.meta)
    return {
        **_common(exposure, about, "exposure", _below(exposure.file)),
        "type": exposure.kind,
        "owner": dict(exposure.owner),
        "label": exposure.label or None,
        "description": exposure.description,
        "url": exposure.url or None,
        "maturity": exposure.maturity or None,
        "tags": tags,
        "meta": meta,
        "config": {"enabled": True, "tags": tags, "meta": meta},
        "depends_on": {"macros": [], "nodes": [unique_id(node, about.project) for node in exposure.depends_on]},
        **_refs_and_sources(exposure.depends_on),
        "metrics": [],
    }


def _sink(sink: Sink, about: About) -> dict[str, Any]:
    tags, meta = list(sink.tags), dict(sink.meta)
    own = {
        "connection": sink.connection, "table": sink.table, "key": list(sink.key), "columns": list(sink.columns),
        "exclude": list(sink.exclude), "start": "now" if sink.from_now else "earliest", "create": sink.create,
    }  # fmt: skip
    return {
        **_common(sink, about, "exposure", _below(sink.file)),
        "type": "application",
        "owner": {"name": sink.connection},
        "label": None,
        "description": sink.description,
        "url": None,
        "maturity": None,
        "tags": tags,
        "meta": {**meta, OWN: {"sink": own}},
        "config": {"enabled": True, "tags": tags, "meta": meta},
        "depends_on": {"macros": [], "nodes": [unique_id(node, about.project) for node in sink.depends_on]},
        **_refs_and_sources(sink.depends_on),
        "metrics": [],
    }


def _deferred(model: Model) -> dict[str, Any]:
    if model.deferred_from is None:
        return {}
    read = model.relation
    defer_relation = {"database": read.catalog, "schema": read.schema, "alias": read.name, "relation_name": read.sql}
    return {"defer_relation": defer_relation}


def _acknowledged(warning: AcknowledgedWarning) -> dict[str, Any]:
    return {
        "code": warning.code,
        "message": warning.message,
        "line": warning.location.line if warning.location else None,
    }


def _found_out(model: Model, about: About) -> dict[str, Any]:
    guarantee = about.guarantee
    return {
        "acknowledged": [_acknowledged(warning) for warning in model.acknowledged],
        "title": model.title,
        "guarantee": guarantee.level.value if guarantee else None,
        "guarantee_reason": guarantee.reason if guarantee else None,
        "stateful": model.stateful,
        "indirect": [_origin(origin, about) for origin in model.indirect],
        "fingerprint": model.fingerprint,
        "facts": plain(published_facts(model.facts)),
        "definition": definition_hash(model.facts),
        "custom_schema": model.custom_schema,
        "broken": model.broken,
    }


def _origin(origin: Origin, about: About) -> dict[str, str]:
    return {"node": unique_id(origin.node, about.project), "column": origin.column, "kind": origin.kind}


def _column(column: Column, about: About) -> dict[str, Any]:
    lineage = {"origins": [_origin(origin, about) for origin in column.origins], "sql": column.sql}
    return {
        "name": column.name,
        "description": column.description,
        "data_type": column.type,
        "meta": {**column.meta, OWN: lineage} if column.sql or column.origins else dict(column.meta),
        "tags": [],
    }


def config_values(node: Node, key: str) -> list[str]:
    """Return the texts that `config.<key>:` may name: a list has several, a mapping its keys, and NULL none."""
    value: Any = _model_config(node) if isinstance(node, Model) else node_dict(node, About("")).get("config")
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping | list | tuple):
        return [_text(inner) for inner in value]
    return [] if value is None else [_text(value)]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _model_config(model: Model) -> dict[str, Any]:
    return {**_settings(model), "tags": list(model.tags), "meta": dict(model.meta)}


def _settings(model: Model) -> dict[str, Any]:
    write, run = model.write, model.operation
    docs, relation = run.persist_docs, model.deferred_from or model.relation
    return {
        "enabled": True,
        "materialized": model.materialized.value,
        "alias": relation.name,
        "schema": relation.schema,
        "database": relation.catalog,
        "streams": {item.name: _stream(item) for item in model.inputs if item.stream},
        "windows": {name: window.sql for name, window in model.windows.items()},
        "output_mode": write.output_mode,
        "unique_key": list(write.unique_key),
        "sequence_by": list(write.sequence_by),
        "delete_when": write.delete_when,
        "history": write.history.header,
        "check": "all" if write.check_all else list(write.check),
        "deletes": write.deletes.value,
        "on_empty_extract": write.on_empty_extract.value,
        "exclude": list(write.exclude),
        "deletes_remembered": write.deletes_remembered,
        "partition_by": [partition_text(field) for field in write.partition_by],
        "sort_by": [sort_text(field) for field in write.sort_by],
        "overwrite": write.overwrite.value,
        "refresh": write.refresh.value,
        "table_properties": masked_options(write.table_properties),
        "write_options": masked_options(write.write_options),
        "format_version": write.format_version,
        "on_schema_change": write.on_schema_change.value,
        "publish": write.publish.value,
        "expectations": [asdict(expectation) for expectation in model.expectations],
        "trigger": " ".join(filter(None, [run.trigger.kind.value, run.trigger.interval])),
        "schedule": run.schedule,
        "stalled_after": run.stalled_after,
        "full_refresh": run.full_refresh,
        "keep_previous": run.keep_previous,
        "renamed_from": run.renamed_from or None,
        "pre-hook": [{"sql": sql, "transaction": False, "index": None} for sql in run.pre_hook],
        "post-hook": [{"sql": sql, "transaction": False, "index": None} for sql in run.post_hook],
        "explain": run.explain,
        "persist_docs": {"relation": docs.relation, "columns": docs.columns},
        "state_store": {"partitions": model.state_partitions, "provider": run.state_provider},
        "contract": {"enforced": model.contract, "alias_types": True},
    }


def _stream(item: Input) -> dict[str, Any]:
    return {
        "watermark": asdict(item.watermark) if item.watermark else None,
        "dedup": list(item.dedup),
        "max_files_per_trigger": item.max_files_per_trigger,
        "on_upstream_delete": item.on_upstream_delete.value,
    }


def partition_text(field: Partition) -> str:
    """A partition field as a header has it: day(window_start), bucket(16, id) as part."""
    inner = field.column if field.number is None else f"{field.number}, {field.column}"
    text = field.column if field.transform == "identity" else f"{field.transform}({inner})"
    return f"{text} as {field.name}" if field.name else text


def sort_text(field: SortColumn) -> str:
    """A column of the order of files as a header has it: window_start desc nulls last."""
    nulls = {None: "", True: " nulls first", False: " nulls last"}[field.nulls_first]
    return f"{field.column}{' desc' if field.descending else ''}{nulls}"


def _source(source: Source, about: About) -> dict[str, Any]:
    spec, where = source.spec, location(source.spec)
    database, schema, identifier = _table(spec, where) or (None, source.source, source.table)
    watermark = asdict(source.watermark) if source.watermark else None
    settings = {key: shown_setting(value, key) for key, value in asdict(spec).items() if key not in {"name", "schema"}}
    return {
        **_common(source, about, "source", source.file),
        "fqn": [about.project, source.source, source.table],
        "name": source.table,
        "source_name": source.source,
        "source_description": source.group,
        "loader": spec.format,
        "database": database,
        "schema": schema,
        "identifier": identifier,
        "relation_name": ".".join(f"`{part}`" for part in (database, schema, identifier)) if database else None,
        "external": {"location": where, "file_format": spec.format},
        "description": source.description,
        "columns": {column.name: _column(column, about) for column in source.columns},
        "tags": list(source.tags),
        "meta": {
            **source.meta,
            OWN: {"broken": source.broken, "acknowledged": [_acknowledged(warning) for warning in source.acknowledged]},
        },
        "config": {
            "enabled": True,
            **settings,
            "watermark": watermark,
            "dedup": list(source.dedup),
            "tags": list(source.tags),
            "meta": dict(source.meta),
        },
    }


def _table(spec: SourceSpec, where: str) -> tuple[str, str, str] | None:
    parts = where.split(".")
    is_named_table = source_traits(spec.format).is_table and len(parts) > 2  # noqa: PLR2004
    return (parts[0], ".".join(parts[1:-1]), parts[-1]) if is_named_table else None


def _test(test: DataTest, about: About) -> dict[str, Any]:
    kind, _, name = test.model.partition(".")
    parts = name.split(".", 1) if kind == "source" else [name]
    called = f"{'source' if kind == 'source' else 'ref'}({', '.join(repr(part) for part in parts)})"
    arguments: Mapping[str, Any] = {"model": f"{{{{ {called} }}}}"}
    if test.column is not None:
        arguments = {"column_name": test.column, **arguments}
    return {
        **_common(test, about, "test", f"{test.name}.sql"),
        **_compiled(test.sql, test.sql, about, test.depends_on),
        "schema": "",
        "alias": test.name,
        "description": test.description,
        "tags": list(test.tags),
        "meta": dict(test.meta),
        "config": {
            "enabled": True,
            "severity": test.severity.value.upper(),
            "tags": list(test.tags),
            "meta": dict(test.meta),
            "warn_if": test.warn_if or "!= 0",
            "error_if": test.error_if or "!= 0",
            "limit": test.limit,
            "store_failures": test.stored is not None,
        },
        "compiled": True,
        "test_metadata": {"name": test.kind, "kwargs": dict(arguments), "namespace": None},
        "attached_node": unique_id(test.model, about.project),
        "column_name": test.column,
    }


def _unit_test(test: UnitTest, about: About) -> dict[str, Any]:
    rows_given = [rows for step in test.steps for rows in step.given]
    steps = [{**asdict(step), "kind": step.kind.value, "location": str(step.location)} for step in test.steps]
    return {
        **_common(test, about, "unit_test", _below(test.file)),
        "fqn": [about.project, test.model.partition(".")[2], test.name],
        "model": test.model.partition(".")[2],
        "given": [_given_rows(rows) for rows in (*test.static, *rows_given)],
        "expect": _expected(test.expect),
        "description": test.description,
        "overrides": {"macros": dict(test.macros), "vars": dict(test.variables), "env_vars": {}},
        "depends_on": {"macros": [], "nodes": [unique_id(test.model, about.project)]},
        "config": {
            "enabled": True,
            "tags": list(test.tags),
            "meta": {**test.meta, OWN: {"steps": json.loads(json.dumps(steps, default=str))}},
        },
    }


def _given_rows(fixture: GivenRows) -> dict[str, Any]:
    sql = fixture.rows.sql
    parts = fixture.input.split(".")
    name = f"ref('{parts[0]}')" if len(parts) == 1 else f"source('{parts[0]}', '{'.'.join(parts[1:])}')"
    return {
        "input": name,
        "rows": sql or [dict(row) for row in fixture.rows.values],
        "format": "sql" if sql else "dict",
    }


def _expected(expected: ExpectedResult | None) -> dict[str, Any]:
    rows = expected.rows if expected else None
    if rows is None:
        return {"rows": [], "format": "dict"}
    return {"rows": rows.sql or [dict(row) for row in rows.values], "format": "sql" if rows.sql else "dict"}
