"""Reading the declarations under sources/."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from engine.compile.config.column_config import (
    Described,
    TestConfig,
    check_version,
    read_columns,
    read_meta,
    read_tags,
    read_tests,
)
from engine.compile.config.stream_config import read_watermark
from engine.compile.declarations.source_spec import formats_of, kind_keys, read_spec
from engine.compile.declarations.target import DEFAULT_TARGET, Target
from engine.compile.nodes.acknowledged_warnings import KEY as ACKNOWLEDGE
from engine.compile.nodes.acknowledged_warnings import acknowledge, read_acknowledgements
from engine.compile.nodes.manifest import Age, Column, Freshness, Source
from engine.compile.sql.parse import is_expression
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.types.spark_types import field_type, members, normal
from engine.errors import Diagnostic, near
from engine.project import LoadedProject
from engine.project.yaml_section import Section
from engine.schema.source_keys import AGE, FRESHNESS, SOURCE, SOURCE_FILE, SOURCE_TABLE
from engine.sources import ORIGIN, SourceSpec, kind_of, source_traits
from engine.times import duration_seconds, duration_text

_BOUNDS = ("warn_after", "error_after")
_PERIODS = AGE.choices("period")
_PATH = re.compile(r"`?(\w+)`?(?:\.\w+)*")
# A part of `_metadata` that is a time: when the record came, for sources that know.
_CAME = re.compile(r"\b(\w++): timestamp\b")
_TIMES = ("timestamp", "timestamp_ntz", "date", "string")


def read_freshness(part: Section, group: Section, spec: SourceSpec, columns: Iterable[Column]) -> Freshness | None:
    """The bounds of a source table, else of its group; None if it has none, or takes back those of its group."""
    bounds, loaded = (_nearer(key, part, group) for key in ("freshness", "loaded_at_field"))
    if loaded is not None:
        _check_field(loaded, tuple(columns))
    if bounds is None or not isinstance(bounds.value, dict):
        if bounds is not None:
            bounds.expected("a mapping (warn_after: 1 hour)")
        return None
    bounds.check_keys(FRESHNESS)
    warn, error = (_age(bounds.child(key)) for key in _BOUNDS)
    where = bounds.child("filter")
    if where is not None and not is_expression(where.text()):
        where.report("condition-syntax", f"'filter' is not an SQL expression: {where.text()}", "Write status = 'done'.")
    if not source_traits(spec.format).rows_wait:
        hint = "Remove 'freshness'."
        message = f"a {spec.format} source has no unread data and no newest row"
        bounds.report("setting-conflict", message, hint, at_key=True)
        return None
    if bounds.child("warn_after") is None and bounds.child("error_after") is None:
        hint = "Write 'freshness: {warn_after: 1 hour, error_after: 1 day}'."
        bounds.report("missing-key", "'freshness' needs 'warn_after' or 'error_after'", hint, at_key=True)
    if warn and error and error.seconds < warn.seconds:
        bounds.report("bad-value", "'error_after' is shorter than 'warn_after'", "Make it the longer one.")
    field = loaded.text() if loaded else _when_it_came(spec)
    if not field and (source_traits(spec.format).committed_at is None or where is not None):
        hint = "Add 'loaded_at_field: <column>', the time at which a row was written."
        bounds.report("setting-needs", "'freshness' needs 'loaded_at_field'", hint, at_key=True)
    ahead = bounds.child("max_future")
    read = Freshness(field, warn, error, where.text() if where else None)
    return replace(read, max_future=ahead.duration() or read.max_future) if ahead else read


def _nearer(key: str, part: Section, group: Section) -> Section | None:
    """A key of the table, else of its source; written empty it takes back what the source says."""
    if isinstance(part.value, dict) and key in part.value:
        return part.child(key)
    return group.child(key)


def _check_field(loaded: Section, columns: tuple[Column, ...]) -> None:
    text = loaded.text()
    if not text:
        return
    if not is_expression(text):
        hint = "Name a column, or write an expression: cast(time as timestamp)."
        loaded.report("condition-syntax", f"'loaded_at_field' is not an SQL expression: {text}", hint)
        return
    path = _PATH.fullmatch(text)
    columns_by_name = {column.name.lower(): column for column in columns}
    if path is None or not columns_by_name or path[1].lower() == ORIGIN:
        return
    column = columns_by_name.get(path[1].lower())
    if column is None:
        loaded.report("unknown-column", f"the source has no column '{path[1]}'", near(path[1], columns_by_name))
    elif column.type and "." not in text and column.type not in _TIMES:
        hint = f"Write an expression that gives a timestamp, such as timestamp_seconds({text})."
        loaded.report("bad-value", f"'{text}' is {column.type}, and no time", hint)


def _when_it_came(spec: SourceSpec) -> str:
    kind = kind_of(spec.format)
    match = _CAME.search(kind.origin(spec)) if kind else None
    return f"{ORIGIN}.{match[1]}" if match else ""


def _age(section: Section | None) -> Age | None:
    """`10 minutes`, or dbt's `{count: 10, period: minute}`."""
    if section is None:
        return None
    if isinstance(section.value, dict):
        section.check_keys(AGE, section.name)
        count, period = section.child("count"), section.child("period")
        if count is None or period is None:
            section.report("missing-key", f"'{section.name}' needs 'count' and 'period'", "Write '10 minutes'.")
            return None
        unit = period.choice(*_PERIODS)
        return Age(count.integer(), unit) if unit in _PERIODS else None
    text = section.duration()
    if not text:
        return None
    number, unit = duration_text(duration_seconds(text)).split()
    if unit.rstrip("s") not in _PERIODS:
        hint = "Write minutes, hours or days: 10 minutes."
        section.report("bad-duration", f"'{section.name}' is in whole minutes, not {text}", hint)
        return None
    return Age(int(number), unit.rstrip("s"))


@dataclass(frozen=True, slots=True)
class DeclaredSources:
    """The declared source tables; `whole`: all could be read, so that a source not found is none."""

    sources: Mapping[str, Source]
    tests: Mapping[str, tuple[TestConfig, ...]]
    whole: bool


def read_sources(
    project: LoadedProject, target: Target, values: ValueRenderer, diagnostics: list[Diagnostic]
) -> DeclaredSources:
    sources: dict[str, Source] = {}
    tests: dict[str, tuple[TestConfig, ...]] = {}
    whole = project.sources_whole
    for doc in project.sources:
        top = values.rendered(Section.of_document(doc, diagnostics))
        top.check_keys(SOURCE_FILE)
        check_version(top)
        part = top.child("sources")
        for group in part.items() if part else ():
            for source, own in _group(project, target, group):
                if source is None:
                    whole = False
                elif source.id in sources:
                    message = f"the source '{source.name}' is declared twice"
                    hint = f"It is also declared in {sources[source.id].location}."
                    diagnostics.append(Diagnostic("duplicate-name", message, hint, location=source.location))
                else:
                    sources[source.id], tests[source.id] = source, own
    return DeclaredSources(sources, tests, whole)


_Tested = tuple[Source | None, tuple[TestConfig, ...]]


def _group(project: LoadedProject, target: Target, group: Section) -> list[_Tested]:
    """The tables of a source, each with its tests; None for one without a valid name, which nothing may use."""
    if not isinstance(group.value, dict):
        group.expected("a source with 'name' and 'tables'")
        return []
    group.check_keys(SOURCE)
    name, tables = group.child("name"), group.child("tables")
    if name is None or tables is None:
        hint = "Write '- name: github' and 'tables:'."
        group.report("missing-key", "a source needs 'name' and 'tables'", hint)
        return []
    source_name = name.identifier()
    result: list[_Tested] = []
    for table in tables.items():
        if not isinstance(table.value, dict) or table.child("name") is None:
            table.report("missing-key", "a source table needs a 'name'", "Write '- name: events'.")
            continue
        name_part = table.child("name")
        own = name_part.identifier() if name_part else ""
        result.append(_table(project, target, (source_name, own), table, group) if source_name and own else (None, ()))
    return result


def _table(project: LoadedProject, target: Target, names: tuple[str, str], part: Section, group: Section) -> _Tested:
    before, (source, name) = len(part.diagnostics), names
    part = msgspec.structs.replace(part, node=f"{source}.{name}")
    part.check_keys(SOURCE_TABLE, more=kind_keys(part))
    spec, declared = read_spec(project, part, target, f"{source}.{name}")
    section = part.child("columns")
    described = read_columns(section) if section else Described()
    columns, fields = _with_descriptions(declared, described)
    _check_targets(project, part)
    text, watermark, dedup = part.child("description"), part.child("watermark"), part.child("dedup")
    event_time = read_watermark(watermark) if watermark else None
    if watermark and spec.stream is False:
        hint = "Remove the watermark, or 'stream: false': a watermark is for streams."
        watermark.report("stream-bounded", f"'{part.node}' is not a stream, but has a watermark", hint, at_key=True)
    if dedup and not watermark:
        hint = "Add 'watermark: <column> delay <interval>': duplicates within the delay are dropped."
        dedup.report("dedup-needs-watermark", f"dedup on '{part.node}' needs a watermark", hint, at_key=True)
    bounds = read_freshness(part, group, spec, declared)
    listed = read_acknowledgements(part.child(ACKNOWLEDGE), SOURCE_TABLE)
    part.diagnostics[before:], acknowledged = acknowledge(listed, part.diagnostics[before:], f"{source}.{name}")
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
        broken=any(d.is_error for d in part.diagnostics[before:]),
        formats=formats_of(part),
        freshness=bounds,
        group=about.text() if (about := group.child("description")) else "",
        tags=tuple(dict.fromkeys(tag for level in (group, part) for tag in read_tags(level.child("tags")))),
        meta={**read_meta(group.child("meta")), **read_meta(part.child("meta"))},
        acknowledged=acknowledged,
        fields=fields,
    )
    of_all = (read_tests(part.child(key), None) for key in ("tests", "data_tests"))
    return result, (*(test for some in of_all for test in some), *described.tests)


def _check_targets(project: LoadedProject, part: Section) -> None:
    """Report targets that the project does not have: what is set for them would never count."""
    declared, targets = Section.of_document(project.doc, []).child("targets"), part.child("targets")
    target_names = [name for name, _ in declared.mapping()] if declared else [project.target or DEFAULT_TARGET]
    for name, section in targets.mapping() if targets else ():
        if name not in target_names:
            section.report("unknown-target", f"target '{name}' not found", near(name, target_names), at_key=True)


def _with_descriptions(
    declared: tuple[Column, ...], described: Described
) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """The schema's columns with what is said of them; without a schema, a described name with a dot is a field."""
    columns_by_name = {column.name: column for column in declared}
    fields = []
    for column in described.columns:
        place = (described.places or {})[column.name]
        if column.renamed_from:
            message = "'renamed_from' renames a column of a model's table, and this is a source"
            place.report("renamed-from", message, "Remove it.", at_key=True)
        if column.name in columns_by_name:
            _check_type(column, columns_by_name[column.name], place)
            columns_by_name[column.name] = replace(
                columns_by_name[column.name], description=column.description, meta=column.meta
            )
        elif not declared:
            if "." in column.name:
                fields.append(column)
        elif (type_ := _type_of_field(column.name, columns_by_name)) is not None:
            fields.append(replace(column, type=type_))
            _check_type(column, fields[-1], place)
        else:
            paths = [
                f"{name}.{field}"
                for name, one in columns_by_name.items()
                for field, _ in members(normal(one.type or ""))
            ]
            message = f"the schema has no column '{column.name}'"
            place.report("bad-value", message, near(column.name, [*columns_by_name, *paths]), at_key=True)
    columns = tuple(columns_by_name.values()) if declared else tuple(c for c in described.columns if "." not in c.name)
    return columns, tuple(fields)


def _type_of_field(path: str, columns_by_name: Mapping[str, Column]) -> str | None:
    """The type of a field of a column, by its path; None if there is none."""
    first, *rest = path.split(".")
    column = next((one for name, one in columns_by_name.items() if name.lower() == first.lower()), None)
    return field_type(normal(column.type), rest) if column is not None and column.type and rest else None


def _check_type(described: Column, declared: Column, place: Section) -> None:
    if described.type is not None and described.type != declared.type:
        message = f"'{declared.name}' is {described.type} here and {declared.type} in the schema"
        place.report("setting-conflict", message, "Set it once, in the schema.", at_key=True)
