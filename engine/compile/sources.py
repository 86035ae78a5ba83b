"""Reading the declarations under sources/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.config import TestConfig, read_columns, read_watermark, rendered
from engine.compile.manifest import Column, Source
from engine.compile.sql import DIALECT
from engine.errors import Diagnostic, near
from engine.jinja import Sandbox
from engine.project import Project
from engine.project.files import inside
from engine.project.section import Section
from engine.sources import KINDS, SourceSpec

_TABLE_KEYS = (
    "name", "description", "format", "path", "schema", "columns", "options", "max_files_per_trigger",
    "timezone", "watermark", "dedup", "tags", "meta", "on_bad_record", "targets",
)  # fmt: skip
_REPLACEABLE = ("format", "path", "options", "max_files_per_trigger")
_LATER_FORMATS = ("kafka", "avro", "orc", "text", "iceberg", "rate", "socket")


def read_sources(
    project: Project, target: str, sandbox: Sandbox, names: Mapping[str, Any], found: list[Diagnostic]
) -> tuple[dict[str, Source], dict[str, list[TestConfig]]]:
    """All declared source tables by id, and the tests listed for each."""
    sources: dict[str, Source] = {}
    tests: dict[str, list[TestConfig]] = {}
    for doc in project.sources:
        top = rendered(Section.of(doc, found), sandbox, names)
        top.check_keys(("sources", "version"), "a source file")
        part = top.child("sources")
        for group in part.items() if part else ():
            for source, own in _group(project, target, group):
                if source.id in sources:
                    message = f"the source '{source.name}' is declared twice"
                    hint = f"It also stands in {sources[source.id].location}."
                    found.append(Diagnostic("duplicate-name", message, hint, location=source.location))
                    continue
                sources[source.id] = source
                tests[source.id] = own
    return sources, tests


def _group(project: Project, target: str, group: Section) -> list[tuple[Source, list[TestConfig]]]:
    if not isinstance(group.value, dict):
        group.expected("a source with 'name' and 'tables'")
        return []
    group.check_keys(("name", "description", "tables", "tags", "meta"), "a source")
    name, tables = group.child("name"), group.child("tables")
    if name is None or tables is None:
        group.report(
            "missing-key", "a source needs 'name' and 'tables'", "Write '- name: github' and 'tables:'."
        )
        return []
    source_name = name.identifier()
    result = []
    for table in tables.items():
        if not isinstance(table.value, dict) or table.child("name") is None:
            table.report("missing-key", "a source table needs a 'name'", "Write '- name: events'.")
            continue
        result.append(_table(project, target, source_name, table))
    return result


def _table(project: Project, target: str, source: str, part: Section) -> tuple[Source, list[TestConfig]]:
    before = len(part.found)
    name_part = part.child("name")
    name = name_part.identifier() if name_part else ""
    part = Section(part.doc, part.path, part.value, part.found, f"{source}.{name}")
    part.check_keys(_TABLE_KEYS, "a source table")
    _on_bad_record(part)
    spec, columns = _spec(project, _chosen(part, target), part, f"{source}.{name}")
    tests: list[TestConfig] = []
    described = part.child("columns")
    known = {c.name: c for c in columns}
    for column in read_columns(described, tests) if described else ():
        if known and column.name not in known and described is not None:
            place = described.child(column.name) or described
            place.report("bad-value", f"the schema has no column '{column.name}'", near(column.name, known))
            continue
        known[column.name] = Column(column.name, column.description, known[column.name].type, column.meta)
    text, watermark, dedup = part.child("description"), part.child("watermark"), part.child("dedup")
    broken = any(d.is_error for d in part.found[before:])
    return (
        Source(
            id=f"source.{source}.{name}",
            source=source,
            table=name,
            file=part.doc.file,
            description=text.text() if text else "",
            spec=spec,
            columns=tuple(known.values()),
            watermark=read_watermark(watermark) if watermark else None,
            dedup=tuple(item.text() for item in dedup.items()) if dedup else (),
            location=part.place,
            broken=broken,
        ),
        tests,
    )


def _on_bad_record(part: Section) -> None:
    policy = part.child("on_bad_record")
    if policy is None:
        return
    value = policy.choice("fail", "drop", "quarantine")
    if value in {"drop", "quarantine"}:
        policy.report("not-supported", f"on_bad_record '{value}' is not part of this version", "Use fail.")


def _chosen(part: Section, target: str) -> dict[str, Section]:
    """The keys that say how the source is read, with the target's replacements."""
    chosen = {key: child for key in _REPLACEABLE if (child := part.child(key)) is not None}
    targets = part.child("targets")
    own = targets.child(target) if targets else None
    if own is not None:
        own.check_keys(_REPLACEABLE, f"targets.{target}")
        chosen = {key: child for key in _REPLACEABLE if (child := own.child(key)) is not None}
        if "format" not in chosen and (format_ := part.child("format")) is not None:
            chosen["format"] = format_
    return chosen


def _spec(
    project: Project, chosen: dict[str, Section], part: Section, name: str
) -> tuple[SourceSpec, tuple[Column, ...]]:
    format_ = chosen.get("format")
    kind = format_.text() if format_ else ""
    if format_ is None:
        part.report("missing-key", f"source '{name}' has no 'format'", f"One of: {', '.join(KINDS)}.")
    elif kind in _LATER_FORMATS:
        format_.report(
            "not-supported", f"the format '{kind}' is not part of this version", f"Use {_either()}."
        )
    elif kind not in KINDS:
        format_.report("bad-value", f"there is no format '{kind}'", near(kind, KINDS) or f"Use {_either()}.")
    path = chosen.get("path")
    folder = path.text() if path else ""
    if path is None:
        part.report(
            "missing-key", f"source '{name}' has no 'path'", "Name a folder, relative to the project."
        )
    elif not inside(project.root, project.root / folder):
        path.report("path-outside", f"'{folder}' leads out of the project", "Name a folder of the project.")
    schema = part.child("schema")
    columns: tuple[Column, ...] = ()
    if schema is None:
        hint = 'Declare the columns: schema: "id string, time timestamp".'
        part.report("missing-key", f"source '{name}' has no 'schema'", hint)
    else:
        columns = _schema_columns(schema)
    files, zone = chosen.get("max_files_per_trigger"), part.child("timezone")
    return (
        SourceSpec(
            name=name,
            format=kind,
            path=folder,
            schema=" ".join(schema.text().split()) if schema else "",
            options=_options(chosen.get("options"), kind),
            timezone=zone.text() if zone else None,
            max_files_per_trigger=files.integer() if files else None,
        ),
        columns,
    )


def _either() -> str:
    return " or ".join(KINDS)


def _options(part: Section | None, kind: str) -> dict[str, str]:
    if part is None:
        return {}
    options = {k: str(v.value).lower() if isinstance(v.value, bool) else v.text() for k, v in part.mapping()}
    if kind in KINDS:
        for key in KINDS[kind].check_options(options):
            option = part.child(key)
            if option is not None:
                option.report(
                    "bad-value", f"the option '{key}' is set by the engine", "Remove it.", at_key=True
                )
    return options


def _schema_columns(schema: Section) -> tuple[Column, ...]:
    """Read a schema such as `id string, data struct<a: int>` without Spark."""
    text = schema.text().strip().rstrip(",")
    hint = "Write names and Spark types: id string, time timestamp, data struct<origin: string>."
    try:
        tree = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect=DIALECT)
    except SqlglotError:
        schema.report("bad-schema", "the schema cannot be read", hint)
        return ()
    definitions = list(tree.this.expressions) if isinstance(tree, exp.Create) and tree.this else []
    columns: dict[str, Column] = {}
    for definition in definitions:
        kind = definition.args.get("kind") if isinstance(definition, exp.ColumnDef) else None
        if not isinstance(kind, exp.DataType) or kind.this in {
            exp.DataType.Type.USERDEFINED,
            exp.DataType.Type.UNKNOWN,
        }:
            shown = definition.name or definition.sql(dialect=DIALECT)
            schema.report(
                "bad-schema", f"the column '{shown}' of the schema has no type that Spark knows", hint
            )
            return ()
        if definition.name.lower() in columns:
            schema.report("bad-schema", f"the schema names '{definition.name}' twice", "Keep one of them.")
            return ()
        columns[definition.name.lower()] = Column(definition.name, type=kind.sql(dialect=DIALECT).lower())
    if not columns:
        schema.report("bad-schema", "the schema has no columns", hint)
    return tuple(columns.values())
