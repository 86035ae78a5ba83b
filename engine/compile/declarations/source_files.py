"""Reading the declarations under sources/."""

from __future__ import annotations

from collections.abc import Mapping
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
from engine.compile.declarations import freshness_config
from engine.compile.declarations.source_spec import formats_of, kind_keys, read_spec
from engine.compile.declarations.target import DEFAULT_TARGET, Target
from engine.compile.nodes.acknowledged_warnings import KEY as ACKNOWLEDGE
from engine.compile.nodes.acknowledged_warnings import acknowledge, read_acknowledgements
from engine.compile.nodes.manifest import Column, Source
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.types.spark_types import field_type, members, normal
from engine.errors import Diagnostic, near
from engine.project import LoadedProject
from engine.project.yaml_section import Section
from engine.schema.source_keys import SOURCE, SOURCE_FILE, SOURCE_TABLE


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
    bounds = freshness_config.read_freshness(part, group, spec, declared)
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
