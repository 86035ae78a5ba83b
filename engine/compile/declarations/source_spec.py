"""Reading how a source is read: format, location and options, checked by the kind of source that the format names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any
from zoneinfo import available_timezones

from engine.compile.declarations import source_credentials
from engine.compile.declarations.catalog_config import SQLITE
from engine.compile.declarations.shared_folders import SHARED_HINT, is_folder_here
from engine.compile.declarations.target import Target
from engine.compile.nodes.manifest import Column
from engine.compile.sql.schema_text import read_ddl, read_schema
from engine.errors import Diagnostic, Level, ProjectError, near
from engine.project import LoadedProject
from engine.project.project_files import inside
from engine.project.yaml_section import UNKNOWN, Section
from engine.schema.source_keys import READING
from engine.sources import KINDS, Kind, OnBadRecord, SourceSpec, SpecFault, ValueForm, kind_of, source_traits
from engine.sources.listing import base, is_uri
from engine.sources.spec import BadRecordLimit, read_limit
from engine.sources.traits import ChangeFeed

# Keys that say how any source is read; a target may replace each.
INDEPENDENT = tuple(key.name for key in READING.keys)
_ARCHIVE = "archive_path"
# Some machines have no table of time zones; there nothing is known to be wrong.
_KNOWN_ZONE = "America/New_York"


def kind_keys(part: Section) -> set[str]:
    """The keys that the formats of a declaration bring: its own, and those of its targets."""
    kinds = [kind for name in formats_of(part) if (kind := kind_of(name))]
    # A format that is missing or wrong is reported itself; the keys of any kind may be right then.
    return {key for kind in kinds or KINDS.values() for key in kind.KEYS}


def formats_of(part: Section) -> tuple[str, ...]:
    formats = (level.value.get("format") for level in _levels(part) if isinstance(level.value, dict))
    return tuple(dict.fromkeys(name for name in formats if isinstance(name, str)))


def _levels(part: Section) -> Iterator[Section]:
    yield part
    targets = part.child("targets")
    yield from (level for _, level in targets.mapping()) if targets else ()


def read_spec(
    project: LoadedProject, part: Section, target: Target, name: str
) -> tuple[SourceSpec, tuple[Column, ...]]:
    source_credentials.report_credentials(_levels(part), {*INDEPENDENT, *kind_keys(part)} - {"schema"}, name)
    sections = {
        key: source_credentials.without_credentials(value)
        for key, value in _sections_for_target(part, target.name).items()
    }
    format_ = _format(sections.get("format"), part, name)
    kind = kind_of(format_)
    unknown = [key for key, value in sections.items() if _is_unrendered(value.value)]
    policy, stream, zone = (sections.get(key) for key in ("on_bad_record", "stream", "timezone"))
    schema = sections.get("schema")
    spec = SourceSpec(
        name=name,
        format=format_,
        schema=" ".join(schema.text().split()) if schema else "",
        options={key: value.option() for key, value in sections["options"].mapping()} if "options" in sections else {},
        timezone=_timezone(zone),
        on_bad_record=_on_bad_record(policy),
        max_bad_records=_max_bad_records(sections.get("max_bad_records")),
        stream=stream.boolean() if stream else None,
        settings=_settings(project, kind, sections),
    )
    _check_clearing(project, sections, target)
    ignored = {"unknown-option"} if _allows_unknown(sections.get("allow_unknown_options"), format_) else set()
    for fault in (
        (*kind.faults(spec), *_unknown_names(spec, kind, target), *_refused_by_target(spec, kind, target))
        if kind
        else ()
    ):
        if fault.path[0] not in unknown and fault.code not in ignored:
            _report(fault, sections, part)
    spec = with_schema_file(project, spec, sections)
    columns = _columns(spec, kind, schema, part)
    if (feed := source_traits(format_).change_feed(spec)) is not None:
        columns = _with_changes(columns, feed, _key_section(sections, part), part)
    if source_traits(format_).is_table and not columns and "table" in sections:
        _warn_of_unknown(sections["table"], name)
    return spec, columns


def _allows_unknown(section: Section | None, format_: str) -> bool:
    allowed = section.boolean() if section else False
    if section and allowed and source_traits(format_).closed_options:
        message = f"'allow_unknown_options' has no effect on the format '{format_}', whose options are a closed list"
        section.report("setting-conflict", message, "Remove it.", at_key=True)
        return False
    return allowed


def _warn_of_unknown(table: Section, name: str) -> None:
    message = f"the columns of '{name}' are known to its table only"
    hint = (
        f"They are checked before the first batch. 'engine source inspect {name}' prints a declaration that has them."
    )
    table.diagnostics.append(Diagnostic("unknown-columns", message, hint, Level.WARNING, table.node, table.place))


def _unknown_names(spec: SourceSpec, kind: Kind, target: Target) -> Iterator[SpecFault]:
    value = spec.settings.get("value")
    registry = value.get("schema_registry") if isinstance(value, dict) else None
    if source_traits(spec.format).is_table and not any(fault.path == ("table",) for fault in kind.faults(spec)):
        yield from _other_catalog(spec, target)
    for path, name, noun, names_in_target in (
        (("connection",), spec.settings.get("connection"), "connection", target.connections),
        (("value", "schema_registry"), registry, "schema registry", target.registries),
    ):
        if isinstance(name, str) and name and name not in names_in_target:
            message = f"the target '{target.name}' has no {noun} '{name}'"
            key = "connections" if noun == "connection" else "schema_registries"
            yield SpecFault(
                path,
                message,
                near(name, names_in_target) or f"Add it under '{key}:' in the target.",
                "unknown-connection",
            )


def _other_catalog(spec: SourceSpec, target: Target) -> Iterator[SpecFault]:
    table_name = str(spec.settings["table"])
    catalog, *rest = table_name.split(".")
    # In a catalog that a server keeps they are the levels of a namespace.
    local = target.catalog.type == SQLITE
    if local and len(rest) == 2 and catalog != target.catalog.name:  # noqa: PLR2004 - namespace and name
        message = (
            f"'{table_name}' is in a catalog '{catalog}', and the target '{target.name}' has '{target.catalog.name}'"
        )
        hint = "Tables of other catalogs are not supported: write <namespace>.<name>."
        yield SpecFault(("table",), message, hint, "not-supported")


def _refused_by_target(spec: SourceSpec, kind: Kind, target: Target) -> Iterator[SpecFault]:
    if target.require_replayable and not kind.REPLAYABLE:
        message = f"the target '{target.name}' takes no {spec.format} source: its records cannot be re-read"
        hint = (
            f"Set another format for that target (targets: {{{target.name}: {{format: kafka, ...}}}}), or remove "
            "'require_replayable' from the target."
        )
        yield SpecFault(("format",), message, hint, "source-not-replayable")
    path = spec.settings.get("path")
    if target.executors_elsewhere and isinstance(path, str) and is_folder_here(path):
        message = f"'{path}' is a local folder, and the executors of {target.master} run on other machines"
        yield SpecFault(("path",), message, SHARED_HINT, "folder-not-shared")


def _sections_for_target(part: Section, target: str) -> dict[str, Section]:
    """The keys of the source with the target's replacements; another format keeps only what any source has."""
    format_keys = kind_keys(part)
    own, replaced = _known_sections(part, format_keys), {}
    targets = part.child("targets")
    level = targets.child(target) if targets else None
    if level is not None:
        level.check_keys(READING, f"targets.{target}", more=format_keys)
        replaced = _known_sections(level, format_keys)
    format_ = replaced.get("format", own.get("format"))
    kind = kind_of(str(format_.value)) if format_ else None
    if format_ and "format" in own and own["format"].value != format_.value:
        own = {key: value for key, value in own.items() if key in INDEPENDENT and key != "options"}
    for group in kind.ONE_OF if kind else ():
        if any(key in replaced for key in group):
            own = {key: value for key, value in own.items() if key not in group}
    return own | replaced


def _known_sections(part: Section, format_keys: set[str]) -> dict[str, Section]:
    return {key: child for key in (*INDEPENDENT, *sorted(format_keys)) if (child := part.child(key)) is not None}


def _is_unrendered(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_unrendered(inner) for inner in value.values())
    return any(_is_unrendered(inner) for inner in value) if isinstance(value, list) else value is UNKNOWN


def _format(format_: Section | None, part: Section, name: str) -> str:
    if format_ is None:
        part.report("missing-key", f"source '{name}' has no 'format'", f"One of: {', '.join(KINDS)}.")
        return ""
    text = format_.text()
    if text and kind_of(text) is None:
        hint = near(text, KINDS) or f"For a reader of Spark's own, or from a jar, write 'spark.{text}'."
        format_.report("bad-value", f"unknown format '{text}'", hint)
    return text


def _settings(project: LoadedProject, kind: Kind | None, sections: Mapping[str, Section]) -> dict[str, Any]:
    settings = {}
    for key, value in sections.items():
        if kind is not None and key in kind.KEYS:
            settings[key] = _read(project, value, kind.KEYS[key])
        elif key not in INDEPENDENT and kind is not None:
            message = f"the format '{sections['format'].value}' has no key '{key}'"
            value.report("unknown-key", message, near(key, kind.KEYS), at_key=True)
    return settings


def _read(project: LoadedProject, section: Section, form: ValueForm) -> Any:
    return _path(project, section) if form is ValueForm.PATH else _READERS[form](section)


_READERS: Mapping[ValueForm, Callable[[Section], Any]] = {
    ValueForm.TEXT: Section.text,
    ValueForm.TEXTS: lambda section: tuple(item.text() for item in section.items()),
    ValueForm.INTEGER: Section.integer,
    ValueForm.BOOLEAN: Section.boolean,
    ValueForm.DURATION: Section.duration,
    ValueForm.MAPPING: lambda section: {key: value.option() for key, value in section.mapping()},
    ValueForm.TREE: lambda section: section.value,
}


def _path(project: LoadedProject, section: Section) -> str:
    """A place of data: in the project, or anywhere by an absolute path."""
    folder = section.text()
    # The archive is where the target allows it, see below.
    anywhere = is_uri(folder) or folder.startswith("/") or section.name == _ARCHIVE
    if not anywhere and not inside(project.root, project.root / folder):
        hint = "Write the absolute path of data outside the project, such as /data/landing."
        section.report("path-outside", f"the path '{folder}' is outside the project", hint)
    return folder


def _check_clearing(project: LoadedProject, sections: Mapping[str, Section], target: Target) -> None:
    """Files outside the project are moved or deleted, and archives written, only where the target allows it."""
    after = sections.get("after_reading")
    for key in ("path", _ARCHIVE):
        place = sections.get(key)
        if place is None or not isinstance(place.value, str) or is_uri(place.value):
            continue
        path = project.root / base(place.value)
        if inside(project.root, path) or any(inside(folder, path) for folder in target.allow_after_reading):
            continue
        if key == _ARCHIVE:
            allowing = f"allow_after_reading: [{base(place.value)}]"
            hint = f"Use a folder inside the project, or allow it in the target: {allowing}."
            place.report("path-outside", f"the path '{place.value}' is outside the project", hint)
        elif after is not None:
            message = f"after_reading would change files outside the project, in '{place.value}'"
            hint = f"Remove it, or allow it in the target: allow_after_reading: [{base(place.value)}]."
            after.report("after-reading-outside", message, hint)


def _on_bad_record(section: Section | None) -> OnBadRecord:
    value = section.choice(*OnBadRecord) if section else ""
    return OnBadRecord(value) if value in set(OnBadRecord) else OnBadRecord.FAIL


def _max_bad_records(section: Section | None) -> BadRecordLimit:
    limit = read_limit(section.value) if section else BadRecordLimit()
    if section and limit is None:
        message = f"'max_bad_records' is a number of records or a share of them, not '{section.value}'"
        section.report("bad-value", message, "Write max_bad_records: 100, or max_bad_records: 1%.")
    return limit or BadRecordLimit()


def _timezone(section: Section | None) -> str | None:
    zone = section.text() if section else ""
    if section and zone and _KNOWN_ZONE in available_timezones() and zone not in available_timezones():
        section.report("bad-value", f"unknown time zone '{zone}'", near(zone, available_timezones()))
    return zone or None


def _columns(spec: SourceSpec, kind: Kind | None, schema: Section | None, part: Section) -> tuple[Column, ...]:
    if schema is not None:
        return read_schema(schema)
    brought = kind.columns(spec) if kind else None
    if brought is None:
        hint = 'Declare the columns: schema: "id string, time timestamp".'
        part.report("missing-key", f"source '{spec.name}' has no 'schema'", hint)
        return ()
    return read_ddl(brought) if brought else ()


def _with_changes(columns: tuple[Column, ...], feed: ChangeFeed, key: Section, part: Section) -> tuple[Column, ...]:
    """The declared columns, with those of a change."""
    added, names = read_ddl(feed.columns), {column.name for column in columns}
    for name in feed.key if columns else ():
        if name not in names:
            message = f"the key names '{name}', which the schema does not have"
            key.report("unknown-column", message, near(name, names))
    lower = {name.lower() for name in names}
    for column in added:
        if column.name.lower() in lower:
            message = f"the schema has the column '{column.name}', which each change gets"
            (part.child("schema") or part).report("setting-conflict", message, "Remove it from the schema.")
            return columns
    return (*columns, *added) if columns else ()


def _key_section(sections: Mapping[str, Section], part: Section) -> Section:
    """Where the key of a source of changes is declared: `key`, or `value: {key: ..}`."""
    value = sections.get("value")
    return sections.get("key") or (value.child("key") if value is not None else None) or value or part


def _report(fault: SpecFault, sections: Mapping[str, Section], part: Section) -> None:
    place = sections.get(fault.path[0], part)
    for key in fault.path[1:] if place is not part else ():
        place = place.child(key) or place
    place.report(fault.code, fault.message, fault.hint, at_key=fault.at_key and place is not part)


def with_schema_file(project: LoadedProject, spec: SourceSpec, sections: Mapping[str, Section]) -> SourceSpec:
    """The source with the text of its schema file; what is wrong with the file is reported."""
    value, section = spec.settings.get("value"), sections.get("value")
    if not isinstance(value, dict) or value.get("format") != "avro" or section is None:
        return spec
    # Loaded where a project has Avro: it takes some 40 ms.
    from engine.sources.avro import avro_values

    file_section = section.child(avro_values.SCHEMA_FILE)
    if file_section is None:
        if not spec.schema and value.get("schema_registry"):
            _warn_of_registry_columns(section, spec.name)
        return spec
    text = _schema_file_text(project, file_section)
    return (
        replace(spec, settings={**spec.settings, "value": {**value, avro_values.SCHEMA_TEXT: text}}) if text else spec
    )


def _schema_file_text(project: LoadedProject, file_section: Section) -> str | None:
    """The schema in its one form, so that a space or a comment changes no fingerprint."""
    if not isinstance(file_section.value, str) or not file_section.value:
        return None
    from engine.sources.avro import avro_values

    beside = normpath(PurePosixPath(file_section.doc.file).parent / file_section.value)
    file_name = next((name for name in (beside, normpath(file_section.value)) if name in project.texts), None)
    if file_name is None:
        schemas = [name for name in project.texts if name.endswith(avro_values.SUFFIX)]
        hint = (
            near(file_section.value, schemas) or f"Put it in the folder {project.paths['sources']}/, next to this file."
        )
        file_section.report("file-unreadable", f"schema file '{file_section.value}' not found", hint)
        return None
    try:
        return avro_values.one_text(project.texts[file_name], file_name)
    except ProjectError as error:
        file_section.diagnostics.append(replace(error.diagnostic, node=file_section.node))
        return None


def _warn_of_registry_columns(section: Section, name: str) -> None:
    message = f"the columns of '{name}' are known to the schema registry only"
    hint = (
        f"They are checked before the first batch. 'engine source inspect {name}' prints a declaration that has them."
    )
    section.diagnostics.append(
        Diagnostic("unknown-columns", message, hint, level=Level.WARNING, node=section.node, location=section.place)
    )
