"""Reading the declarations under sources/."""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import available_timezones

from engine.compile.column_config import Described, TestConfig, read_columns
from engine.compile.layers import not_yet
from engine.compile.manifest import Column, Source
from engine.compile.schema import read_schema
from engine.compile.streams import read_watermark
from engine.compile.values import Values
from engine.errors import Diagnostic, near
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
_LATER_KEYS = (
    "topic", "topics", "topic_pattern", "assign", "connection", "value", "starting_offsets",
    "starting_timestamp", "max_offsets_per_trigger", "fail_on_data_loss", "stream", "loaded_at_field",
    "freshness", "max_file_age",
)  # fmt: skip


def read_sources(
    project: Project, target: str, values: Values, found: list[Diagnostic]
) -> tuple[dict[str, Source], dict[str, list[TestConfig]]]:
    """All declared source tables by id, and the tests listed for each."""
    sources: dict[str, Source] = {}
    tests: dict[str, list[TestConfig]] = {}
    for doc in project.sources:
        top = values.rendered(Section.of(doc, found))
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
        hint = "Write '- name: github' and 'tables:'."
        group.report("missing-key", "a source needs 'name' and 'tables'", hint)
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
    part = replace(part, node=f"{source}.{name}")
    for key, value in part.mapping():
        if key in _LATER_KEYS:
            not_yet(value, key)
    part.check_keys((*_TABLE_KEYS, *_LATER_KEYS), "a source table")
    _on_bad_record(part)
    spec, declared = _spec(project, _chosen(part, target), part, f"{source}.{name}")
    section = part.child("columns")
    described = read_columns(section) if section else Described()
    columns = _with_descriptions(declared, described)
    text, watermark, dedup = part.child("description"), part.child("watermark"), part.child("dedup")
    event_time = read_watermark(watermark) if watermark else None
    if dedup and not watermark:
        hint = "Add 'watermark: <column> delay <interval>': repeats within the delay are dropped."
        dedup.report("dedup-needs-watermark", f"dedup on '{part.node}' needs a watermark", hint, at_key=True)
    result = Source(
        id=f"source.{source}.{name}",
        source=source,
        table=name,
        file=part.doc.file,
        description=text.text() if text else "",
        spec=spec,
        columns=columns,
        watermark=event_time,
        dedup=tuple(item.text() for item in dedup.items()) if dedup else (),
        location=part.place,
        broken=any(d.is_error for d in part.found[before:]),
    )
    return result, list(described.tests)


def _with_descriptions(declared: tuple[Column, ...], described: Described) -> tuple[Column, ...]:
    """The columns of the schema with what is said about them; without a schema, the described ones."""
    known = {column.name: column for column in declared}
    for column in described.columns:
        if known and column.name not in known:
            place = (described.places or {})[column.name]
            message = f"the schema has no column '{column.name}'"
            place.report("bad-value", message, near(column.name, known), at_key=True)
        elif declared:
            _check_type(column, known[column.name], (described.places or {})[column.name])
            known[column.name] = replace(known[column.name], description=column.description, meta=column.meta)
    return tuple(known.values()) if declared else described.columns


def _check_type(described: Column, declared: Column, place: Section) -> None:
    if described.type is not None and described.type != declared.type:
        message = f"'{declared.name}' is {described.type} here and {declared.type} in the schema"
        place.report("setting-conflict", message, "Say it once, in the schema.", at_key=True)


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
    kind = _format(chosen.get("format"), part, name)
    folder = _path(project, chosen.get("path"), part, name)
    schema = part.child("schema")
    if schema is None:
        hint = 'Declare the columns: schema: "id string, time timestamp".'
        part.report("missing-key", f"source '{name}' has no 'schema'", hint)
    columns = read_schema(schema) if schema else ()
    files = chosen.get("max_files_per_trigger")
    spec = SourceSpec(
        name=name,
        format=kind,
        path=folder,
        schema=" ".join(schema.text().split()) if schema else "",
        options=_options(chosen.get("options"), kind),
        timezone=_timezone(part.child("timezone")),
        max_files_per_trigger=files.integer() if files else None,
    )
    return spec, columns


def _format(format_: Section | None, part: Section, name: str) -> str:
    if format_ is None:
        part.report("missing-key", f"source '{name}' has no 'format'", f"One of: {', '.join(KINDS)}.")
        return ""
    kind = format_.text()
    if kind in _LATER_FORMATS:
        message = f"the format '{kind}' is not part of this version"
        format_.report("not-supported", message, f"Use {' or '.join(KINDS)}.")
    elif kind and kind not in KINDS:
        format_.report("bad-value", f"there is no format '{kind}'", near(kind, KINDS))
    return kind


def _path(project: Project, path: Section | None, part: Section, name: str) -> str:
    if path is None:
        hint = "Name a folder, relative to the project."
        part.report("missing-key", f"source '{name}' has no 'path'", hint)
        return ""
    folder = path.text()
    if "://" in folder:
        hint = "Name a folder, relative to the project."
        path.report("not-supported", f"the path '{folder}' of an object store is not part of this version", hint)
    elif not inside(project.root, project.root / folder):
        path.report("path-outside", f"the path '{folder}' leads out of the project", "Name a folder of the project.")
    return folder


def _timezone(part: Section | None) -> str | None:
    zone = part.text() if part else ""
    if part and zone and _KNOWN_ZONE in available_timezones() and zone not in available_timezones():
        part.report("bad-value", f"there is no time zone '{zone}'", near(zone, available_timezones()))
    return zone or None


# Some machines have no table of time zones; there nothing is known to be wrong.
_KNOWN_ZONE = "America/New_York"


def _options(part: Section | None, kind: str) -> dict[str, str]:
    if part is None:
        return {}
    options = {key: value.option() for key, value in part.mapping()}
    for key in KINDS[kind].check_options(options) if kind in KINDS else ():
        option = part.child(key)
        if option is not None:
            option.report("bad-value", f"the option '{key}' is set by the engine", "Take it out.", at_key=True)
    return options
