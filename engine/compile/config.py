"""A model's settings: folder defaults of project.yml, the header, and config(), merged and checked.

Precedence, weakest first: folder defaults from the outermost folder inwards, then the model's own header
and config() together, which may not contradict each other. `tags` add up and `meta` merges by key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.compile.manifest import Column, Materialized, Partition, Severity, Watermark
from engine.errors import Diagnostic, Location, ProjectError, near
from engine.jinja import Sandbox
from engine.project import ModelFile, Project
from engine.project.section import Section, is_name
from engine.project.yaml import Yaml

KEYS = (
    "description", "title", "materialized", "streams", "windows", "output_mode", "partition_by", "columns",
    "tags", "meta", "enabled", "data_tests", "tests", "schema", "alias", "table_properties", "state_store",
)  # fmt: skip
# Keys of the handbook that a later version brings; naming them is kinder than "unknown key".
LATER = (
    "unique_key", "sequence_by", "delete_when", "history", "exclude", "deletes_remembered", "expectations",
    "publish", "contract", "sort_by", "write_options", "format_version", "trigger", "schedule", "overwrite",
    "on_schema_change", "full_refresh", "pre_hook", "post_hook", "explain", "persist_docs",
)  # fmt: skip
STREAM_KEYS = ("watermark", "dedup", "max_files_per_trigger")
_DBT_MATERIALIZED = {
    "incremental": "a streaming table reads only what is new: list the input under 'streams:' and leave "
    "'materialized' out",
    "snapshot": "a history of changes is not part of this version",
    "ephemeral": "use a CTE, or a view for batch models; ephemeral models are not part of this version",
}
_WATERMARK = re.compile(r"(?P<what>.+?)\s+delay\s+(?P<delay>.+)$", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"(?P<sql>.+)\s+as\s+(?P<name>`?\w+`?)$", re.IGNORECASE | re.DOTALL)
_CALL = re.compile(r"(?P<transform>\w+)\s*\(\s*(?P<arguments>[^()]*)\)$")
_ARGUMENTS = {"year": 1, "month": 1, "day": 1, "hour": 1, "identity": 1, "bucket": 2, "truncate": 2}


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """A stream as listed in a header."""

    name: str
    location: Location
    watermark: Watermark | None = None
    dedup: tuple[str, ...] = ()
    max_files_per_trigger: int | None = None


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """A declared window: `text` as written."""

    name: str
    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class TestConfig:
    """A data test as listed for a model (column None) or one of its columns."""

    kind: str
    column: str | None
    arguments: Mapping[str, Any]
    severity: Severity
    location: Location


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The merged settings of a model."""

    materialized: Materialized
    description: str = ""
    streams: tuple[StreamConfig, ...] = ()
    streams_place: Location | None = None
    windows: tuple[WindowConfig, ...] = ()
    output_mode: str | None = None
    partition_by: tuple[Partition, ...] = ()
    columns: tuple[Column, ...] = ()
    tests: tuple[TestConfig, ...] = ()
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    schema: str | None = None
    alias: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    state_partitions: int | None = None


@dataclass(slots=True)
class _Values:
    """Renders Jinja in values, once each."""

    sandbox: Sandbox
    names: Mapping[str, Any]

    def rendered(self, section: Section) -> Section:
        value = self._walk(section)
        return Section(section.doc, section.path, value, section.found, section.node)

    def _walk(self, part: Section) -> Any:
        if isinstance(part.value, dict):
            return {key: self._walk(value) for key, value in part.mapping()}
        if isinstance(part.value, list):
            return [self._walk(item) for item in part.items()]
        if isinstance(part.value, str) and ("{{" in part.value or "{%" in part.value):
            try:
                return self.sandbox.render_value(part.value, part.place, self.names)
            except ProjectError as error:
                part.found.extend(d.at(None, part.node) for d in error.diagnostics)
                return None
        return part.value


def rendered(section: Section, sandbox: Sandbox, names: Mapping[str, Any]) -> Section:
    """The section with Jinja in its values rendered; failures are findings at the value."""
    return _Values(sandbox, names).rendered(section)


def model_config(
    project: Project,
    model: ModelFile,
    calls: list[dict[str, Any]],
    sandbox: Sandbox,
    names: Mapping[str, Any],
    found: list[Diagnostic],
) -> ModelConfig:
    """Merge and check the settings of a model.

    Args:
        project: for the folder defaults.
        model: the file with its header.
        calls: the arguments of the model's config() calls.
        sandbox: renders Jinja in values.
        names: what those values may use.
        found: findings are added here.
    """
    values = _Values(sandbox, names)
    layers = [values.rendered(s) for s in _folder_layers(project, model, found)]
    own = []
    if model.header is not None:
        own.append(values.rendered(Section.of(model.header, found, model.name)))
    for call in calls:
        origin = _config_place(model)
        own.append(Section.of(Yaml(call, model.file, origin=origin), found, model.name))
    for layer in own:
        _check_keys(layer)
    _check_conflicts(own)
    return _interpret(
        {k: s for layer in [*layers, *own] for k, s in layer.mapping() if not s.empty}, layers + own
    )


def _check_keys(layer: Section) -> None:
    for key, section in layer.mapping():
        if key in LATER:
            section.report(
                "not-supported", f"'{key}' is not part of this version", "Remove the key.", at_key=True
            )
        elif key not in KEYS:
            section.report("unknown-key", f"a model has no key '{key}'", near(key, KEYS), at_key=True)


def _check_conflicts(own: list[Section]) -> None:
    seen: dict[str, Section] = {}
    for layer in own:
        for key, section in layer.mapping():
            if key in seen and seen[key].value != section.value and key not in {"tags", "meta"}:
                where = seen[key].key_place
                section.report(
                    "config-conflict",
                    f"'{key}' is said twice, differently (also in line {where.line})",
                    "Keep it in the header or in config(), not in both.",
                )
            seen.setdefault(key, section)


def _config_place(model: ModelFile) -> Location:
    match = re.search(r"config\s*\(", model.sql)
    if match is None:
        return Location(model.file)
    before = model.sql[: match.start()]
    return Location(model.file, before.count("\n") + 1, match.start() - before.rfind("\n"))


def _folder_layers(project: Project, model: ModelFile, found: list[Diagnostic]) -> list[Section]:
    """The defaults of `models:` for the model's folders, outermost first; keys are `+key`."""
    top = Section.of(project.doc, [], model.name).child("models")
    if top is None or not isinstance(top.value, dict):
        return []
    levels = [top]
    here = top
    for name in (project.name, *model.folders):
        inner = here.child(name)
        if inner is not None:
            levels.append(inner)
            here = inner
        elif name != project.name:
            break
    result = []
    for level in levels:
        keys = (
            {k[1:]: v for k, v in level.value.items() if k.startswith("+")}
            if isinstance(level.value, dict)
            else {}
        )
        places = {
            (*level.path, key): level.doc.values.get((*level.path, f"+{key}"), level.place) for key in keys
        }
        doc = Yaml(level.doc.data, level.doc.file, places, places, level.place)
        result.append(Section(doc, level.path, keys, found, model.name))
    return result


def check_folder_defaults(project: Project, found: list[Diagnostic]) -> None:
    """Check the `models:` tree of project.yml: `+key` is a known key, all else a folder that exists."""
    top = Section.of(project.doc, found).child("models")
    if top is None:
        return
    folders = {
        model.folders[:depth] for model in project.models for depth in range(1, len(model.folders) + 1)
    }

    def walk(level: Section, path: tuple[str, ...]) -> None:
        for key, section in level.mapping():
            if key.startswith("+"):
                if key[1:] in LATER:
                    section.report("not-supported", f"'{key[1:]}' is not part of this version", at_key=True)
                elif key[1:] not in KEYS:
                    section.report(
                        "unknown-key", f"a model has no key '{key[1:]}'", near(key[1:], KEYS), at_key=True
                    )
            elif not path and key == project.name and (key,) not in folders:
                walk(section, path)
            elif (*path, key) in folders:
                walk(section, (*path, key))
            elif key in KEYS:
                section.report("unknown-key", f"'{key}' needs a plus here", f"Write '+{key}:'.", at_key=True)
            else:
                names = [f[len(path)] for f in folders if f[: len(path)] == path and len(f) > len(path)]
                section.report("unknown-key", f"models/ has no folder '{key}'", near(key, names), at_key=True)

    walk(top, ())


def _interpret(keys: dict[str, Section], layers: list[Section]) -> ModelConfig:
    streams_key = keys.get("streams")
    streams = _streams(streams_key) if streams_key else ()
    windows = keys.get("windows")
    materialized = _materialized(keys.get("materialized"), bool(streams))
    _check_kind(materialized, keys, bool(streams))
    tests = [*_tests(keys.get("data_tests"), None), *_tests(keys.get("tests"), None)]
    columns = _columns(keys.get("columns"), tests)
    properties = keys.get("table_properties")
    state = keys.get("state_store")
    return ModelConfig(
        materialized=materialized,
        description=keys["description"].text() if "description" in keys else "",
        streams=streams,
        streams_place=streams_key.key_place if streams_key else None,
        windows=tuple(WindowConfig(k, s.text(), s.place) for k, s in windows.mapping()) if windows else (),
        output_mode=keys["output_mode"].choice("append", "update", "complete")
        if "output_mode" in keys
        else None,
        partition_by=_partitions(keys.get("partition_by")),
        columns=columns,
        tests=tuple(tests),
        tags=_tags(layers),
        meta={k: s.value for layer in layers if (m := layer.child("meta")) for k, s in m.mapping()},
        enabled=keys["enabled"].boolean() if "enabled" in keys else True,
        schema=keys["schema"].identifier() if "schema" in keys else None,
        alias=keys["alias"].identifier() if "alias" in keys else None,
        table_properties=_properties(properties) if properties else {},
        state_partitions=_state_partitions(state) if state else None,
    )


def _materialized(section: Section | None, streams: bool) -> Materialized:
    default = Materialized.STREAMING_TABLE if streams else Materialized.TABLE
    if section is None:
        return default
    value = section.text()
    if value in _DBT_MATERIALIZED:
        section.report(
            "dbt-materialization", f"there is no materialization '{value}' here", _DBT_MATERIALIZED[value]
        )
        return default
    section.choice(*Materialized)
    return Materialized(value) if value in set(Materialized) else default


def _check_kind(materialized: Materialized, keys: dict[str, Section], streams: bool) -> None:
    streaming = materialized is Materialized.STREAMING_TABLE
    if streaming and not streams and "materialized" in keys:
        hint = "List what it reads as a stream, such as 'streams: [flights]', or say 'materialized: table'."
        keys["materialized"].report("streams-missing", "a streaming table lists no streams", hint)
    if not streaming and streams:
        hint = f"Leave out 'materialized: {materialized}', or the streams."
        keys["streams"].report(
            "streams-unexpected", f"a {materialized} reads nothing as a stream", hint, at_key=True
        )
    for key in ("windows", "output_mode", "state_store"):
        if key in keys and not streaming and not (key == "windows"):
            keys[key].report("bad-value", f"'{key}' is for streaming tables", "Remove it.", at_key=True)
    mode = keys.get("output_mode")
    if mode is not None and mode.value in {"update", "complete"}:
        mode.report("not-supported", f"output_mode '{mode.value}' is not part of this version", "Use append.")
    if "partition_by" in keys and materialized is Materialized.VIEW:
        keys["partition_by"].report(
            "bad-value", "a view has no partitions", "Remove 'partition_by'.", at_key=True
        )


def _tags(layers: list[Section]) -> tuple[str, ...]:
    tags: dict[str, None] = {}
    for layer in layers:
        part = layer.child("tags")
        for item in part.items() if part else ():
            tags[item.text()] = None
    return tuple(tags)


def _streams(section: Section) -> tuple[StreamConfig, ...]:
    if isinstance(section.value, dict):
        return tuple(_stream(name, value) for name, value in section.mapping())
    return tuple(StreamConfig(_node_name(item.text()), item.place) for item in section.items())


def _stream(name: str, section: Section) -> StreamConfig:
    if section.empty:
        return StreamConfig(_node_name(name), section.key_place)
    section.check_keys(STREAM_KEYS, "a stream")
    watermark, dedup, files = (section.child(key) for key in STREAM_KEYS)
    return StreamConfig(
        name=_node_name(name),
        location=section.key_place,
        watermark=read_watermark(watermark) if watermark else None,
        dedup=tuple(item.text() for item in dedup.items()) if dedup else (),
        max_files_per_trigger=files.integer() if files else None,
    )


def _node_name(text: str) -> str:
    """`flights`, `ref('flights')`, `github.events` and `source('github', 'events')` mean the same."""
    match = re.fullmatch(r"(?:ref|source)\s*\((.*)\)", text.strip())
    if match is None:
        return text.strip()
    return ".".join(part.strip().strip("'\"") for part in match[1].split(","))


def read_watermark(section: Section) -> Watermark | None:
    """Read `<column> delay <interval>`, `<SQL> as <column> delay <interval>`, or the mapping form."""
    if isinstance(section.value, dict):
        section.check_keys(("column", "as", "delay"), "a watermark")
        column, sql, delay = section.child("column"), section.child("as"), section.child("delay")
        if column is None or delay is None:
            section.report("missing-key", "a watermark needs 'column' and 'delay'", _WATERMARK_HINT)
            return None
        length = delay.duration()
        return Watermark(column.text(), length, sql.text() if sql else None) if length else None
    text = section.text()
    match = _WATERMARK.match(text)
    if match is None:
        section.report("watermark-syntax", f"'{text}' is not a watermark", _WATERMARK_HINT)
        return None
    length = Section(
        section.doc, section.path, match["delay"].strip(), section.found, section.node
    ).duration()
    named = _NAMED.match(match["what"].strip())
    column_name = (named["name"] if named else match["what"]).strip().strip("`")
    if not re.fullmatch(r"\w+", column_name):
        section.report(
            "watermark-syntax", f"'{column_name}' is an expression without a name", _WATERMARK_HINT
        )
        return None
    return Watermark(column_name, length, named["sql"].strip() if named else None) if length else None


_WATERMARK_HINT = "Write 'scheduled_at delay 30 minutes', or '<SQL> as scheduled_at delay 30 minutes'."


def _partitions(section: Section | None) -> tuple[Partition, ...]:
    parts = []
    for item in section.items() if section else ():
        part = _partition(item)
        if part:
            parts.append(part)
    return tuple(parts)


def _partition(item: Section) -> Partition | None:
    text = item.text().strip()
    if re.fullmatch(r"`?\w+`?", text):
        return Partition("identity", text.strip("`"))
    match = _CALL.match(text)
    if match:
        transform = match["transform"].lower().removesuffix("s") if match["transform"] else ""
        arguments = [a.strip().strip("`") for a in match["arguments"].split(",")]
        if _ARGUMENTS.get(transform) == len(arguments):
            return _transformed(item, transform, arguments)
    hint = "Write a column, year/month/day/hour(column), bucket(16, column) or truncate(10, column)."
    item.report("bad-value", f"'{text}' is not a partition field", hint)
    return None


def _transformed(item: Section, transform: str, arguments: list[str]) -> Partition | None:
    if len(arguments) == 1:
        return Partition(transform, arguments[0])
    number, column = arguments
    if not number.isdigit() or int(number) < 1:
        item.report("bad-value", f"'{number}' is not a number", f"Write {transform}(16, {column}).")
        return None
    return Partition(transform, column, int(number))


def _properties(section: Section) -> dict[str, str]:
    return {
        key: str(value.value).lower() if isinstance(value.value, bool) else value.text()
        for key, value in section.mapping()
    }


def _state_partitions(section: Section) -> int | None:
    section.check_keys(("partitions",), "state_store")
    partitions = section.child("partitions")
    return partitions.integer() if partitions else None


def _columns(section: Section | None, tests: list[TestConfig]) -> tuple[Column, ...]:
    return read_columns(section, tests) if section else ()


def read_columns(section: Section, tests: list[TestConfig]) -> tuple[Column, ...]:
    """Read `columns:` as a mapping or as dbt's list; the columns' tests are added to `tests`."""
    columns = []
    entries: list[tuple[str, Section]] = []
    if isinstance(section.value, list):
        for item in section.items():
            name = item.child("name")
            if name is None:
                item.report("missing-key", "a column has no 'name'", "Write '- name: origin'.")
            else:
                entries.append((name.text(), item))
    else:
        entries = list(section.mapping())
    for name, body in entries:
        if isinstance(body.value, str):
            columns.append(Column(name, body.value))
            continue
        body.check_keys(("name", "description", "tests", "data_tests", "meta"), f"column '{name}'")
        tests += [*_tests(body.child("tests"), name), *_tests(body.child("data_tests"), name)]
        text, meta = body.child("description"), body.child("meta")
        columns.append(Column(name, text.text() if text else "", meta=dict(meta.value) if meta else {}))
    return tuple(columns)


def _tests(section: Section | None, column: str | None) -> list[TestConfig]:
    tests = []
    for item in section.items() if section else ():
        test = _test(item, column)
        if test:
            tests.append(test)
    return tests


def _test(item: Section, column: str | None) -> TestConfig | None:
    if isinstance(item.value, dict):
        if len(item.value) != 1:
            item.expected("one test, such as 'accepted_values: {values: [a, b]}'")
            return None
        ((kind, body),) = item.mapping()
        arguments = dict(body.value) if isinstance(body.value, dict) else {}
        severity = body.child("severity")
        level = severity.choice(*Severity) if severity else "error"
        arguments.pop("severity", None)
        chosen = Severity(level) if level in set(Severity) else Severity.ERROR
        return TestConfig(kind, column, arguments, chosen, body.key_place)
    name = item.text()
    if not is_name(name):
        item.report("bad-name", f"'{name}' is not the name of a test", "Write a name such as not_null.")
        return None
    return TestConfig(name, column, {}, Severity.ERROR, item.place)
