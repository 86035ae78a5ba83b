"""A model's settings, merged and checked.

Precedence, weakest first: folder defaults from the outermost folder inwards, then header and config() together, which
may not contradict each other. `tags` add up and `meta` merges by key. A folder default that does not fit a kind is
skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.compile.config.column_config import (
    Described,
    TestConfig,
    column_places,
    read_columns,
    read_tests,
)
from engine.compile.config.condition_config import condition_places, read_expectations
from engine.compile.config.config_layers import call_layers, check_own, folder_layers
from engine.compile.config.key_combinations import check_combinations, check_history, unfit_keys
from engine.compile.config.operation_config import read_operation, read_state_partitions
from engine.compile.config.stream_config import StreamConfig, WindowConfig, read_streams, read_windows_config
from engine.compile.config.winning_values import MergedSettings, NamedColumn, merge_settings
from engine.compile.config.write_config import read_write
from engine.compile.nodes.acknowledged_warnings import KEY as ACKNOWLEDGE
from engine.compile.nodes.acknowledged_warnings import Acknowledgement, read_acknowledgements
from engine.compile.nodes.manifest import Column
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import Expectation, Operation, Write
from engine.compile.templates.rendered_values import ValueRenderer
from engine.errors import Diagnostic, Location
from engine.project import LoadedProject, ModelFile
from engine.project.yaml_section import Section, is_name, is_table_name
from engine.schema.model_keys import MODEL
from engine.schema.stream_keys import CONTRACT

_DBT_MATERIALIZED = {
    "incremental": "A streaming table reads only new rows: list the input under 'streams:' and remove 'materialized'.",
    "snapshot": "Set 'materialized: table', 'history: true', 'unique_key', and 'check: all' or 'sequence_by: at'.",
}


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The merged settings of a model.

    `places`: where each setting is; `streams.<name>.<key>`, `columns.<name>` and `columns.<name>.type` among them.
    `named_columns`: the columns that settings name, to be looked for in the SELECT.
    """

    materialized: Materialized
    title: str = ""
    description: str = ""
    streams: tuple[StreamConfig, ...] = ()
    windows: tuple[WindowConfig, ...] = ()
    write: Write = field(default_factory=Write)
    expectations: tuple[Expectation, ...] = ()
    operation: Operation = field(default_factory=Operation)
    contract: bool = False
    columns: tuple[Column, ...] = ()
    tests: tuple[TestConfig, ...] = ()
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    schema: str | None = None
    alias: str | None = None
    alias_place: Location | None = None
    state_partitions: int | None = None
    places: Mapping[str, Location] = field(default_factory=dict)
    named_columns: tuple[NamedColumn, ...] = ()
    acknowledged: tuple[Acknowledgement, ...] = ()


def model_config(
    project: LoadedProject,
    model: ModelFile,
    calls: list[dict[str, Any]],
    values: ValueRenderer,
    diagnostics: list[Diagnostic],
    *,
    certain: bool = True,
) -> ModelConfig:
    """Merge and check settings; `certain` False: header or config() could not be read, so nothing seems missing."""
    defaults = [values.rendered(layer) for layer in folder_layers(project, model, diagnostics)]
    own = [values.rendered(layer) for layer in call_layers(model, calls, diagnostics)]
    if model.header is not None:
        own.insert(0, values.rendered(Section.of_document(model.header, diagnostics, model.name)))
    check_own(own)
    return _interpret(merge_settings(model, defaults, own, diagnostics), certain=certain)


def _interpret(settings: MergedSettings, *, certain: bool) -> ModelConfig:
    keys = settings.keys
    streams = read_streams(keys["streams"]) if "streams" in keys else ()
    materialized = _materialized(keys.get("materialized"), bool(streams))
    if certain:
        _check_kind(settings, materialized, bool(streams))
        check_history(settings, materialized)
        check_combinations(settings, materialized)
    described = read_columns(keys["columns"]) if "columns" in keys else Described()
    own_tests = [*read_tests(keys.get("data_tests"), None), *read_tests(keys.get("tests"), None)]
    return ModelConfig(
        materialized=materialized,
        title=settings.text("title"),
        description=settings.text("description"),
        streams=streams,
        windows=read_windows_config(keys["windows"]) if "windows" in keys else (),
        write=read_write(settings),
        expectations=read_expectations(settings),
        operation=read_operation(settings),
        contract=_contract(settings, described),
        columns=described.columns,
        tests=(*own_tests, *described.tests),
        tags=settings.tags,
        meta=settings.meta,
        enabled=keys["enabled"].boolean(otherwise=True) if "enabled" in keys else True,
        schema=keys["schema"].identifier() or None if "schema" in keys else None,
        alias=_alias(keys.get("alias")),
        alias_place=keys["alias"].place if "alias" in keys else None,
        state_partitions=read_state_partitions(keys.get("state_store")),
        places=_places(settings, streams, described),
        named_columns=tuple(settings.named_columns),
        acknowledged=read_acknowledgements(keys.get(ACKNOWLEDGE) if ACKNOWLEDGE in settings.own else None, MODEL),
    )


def _places(settings: MergedSettings, streams: tuple[StreamConfig, ...], described: Described) -> dict[str, Location]:
    inner = {f"streams.{s.name}.{key}": place for s in streams for key, place in s.places.items()}
    columns = {f"columns.{key}": place for key, place in column_places(described)}
    checks = dict(condition_places(settings))
    return dict(settings.places()) | inner | columns | checks


def _contract(settings: MergedSettings, described: Described) -> bool:
    """`contract: true`, or dbt's `{enforced: true}`; each column then has a type."""
    section = settings.get("contract")
    if section is None:
        return False
    if isinstance(section.value, dict):
        section.check_keys(CONTRACT)
        section = section.child("enforced")
    if section is None or not section.boolean():
        return False
    if not described.columns:
        hint = "List them: columns: {id: {type: string}}."
        settings.refuse("contract", "setting-needs", "'contract' needs 'columns' with their types", hint)
    for column in described.columns:
        body = (described.places or {})[column.name]
        if body.child("type") is None and body.child("data_type") is None:
            message = f"the column '{column.name}' has no 'type', and 'contract' {settings.where('contract')} needs it"
            body.report("setting-needs", message, f"Write {column.name}: {{type: string}}.", at_key=True)
    return True


def _materialized(section: Section | None, streams: bool) -> Materialized:
    default = Materialized.STREAMING_TABLE if streams else Materialized.TABLE
    value = section.text() if section is not None else ""
    if section is None or not value:
        return default
    if value in _DBT_MATERIALIZED:
        message = f"'{value}' is not a materialization"
        section.report("dbt-materialization", message, _DBT_MATERIALIZED[value])
        return default
    section.choice(*Materialized)
    return Materialized(value) if value in set(Materialized) else default


def _check_kind(settings: MergedSettings, materialized: Materialized, streams: bool) -> None:
    keys = settings.keys
    streaming, in_catalog = materialized.traits.streaming, materialized.traits.in_catalog
    if streaming and not streams:
        _no_streams(settings)
    if not streaming and streams and in_catalog:
        where = "" if "materialized" in settings.own else f" (from {keys['materialized'].place})"
        message = f"a {materialized} cannot read streams"
        hint = f"Remove 'materialized: {materialized}'{where}, or the streams."
        keys["streams"].report("streams-unexpected", message, hint, at_key=True)
    for key, why in unfit_keys(materialized).items():
        if key in settings.own:
            keys[key].report("bad-value", f"'{key}' {why}", "Remove it.", at_key=True)
        keys.pop(key, None)


def _no_streams(settings: MergedSettings) -> None:
    section = settings.keys["materialized"]
    hint = "List its streaming inputs, such as 'streams: [flights]', or set 'materialized: table'."
    message = "a streaming table lists no streams"
    if "materialized" in settings.own:
        section.report("streams-missing", message, hint)
        return
    model = settings.model
    place = Location(model.file)
    message = f"{message} (materialized: streaming_table comes from {section.place})"
    settings.diagnostics.append(Diagnostic("streams-missing", message, hint, node=model.name, location=place))


def _alias(section: Section | None) -> str | None:
    alias = section.identifier() if section else ""
    if section and is_name(alias) and not is_table_name(alias):
        hint = "Names that begin with branch_, tag_ or __, or end with __quarantine or __deleted, are reserved."
        section.report("bad-name", f"'{alias}' is not a valid table name", hint)
    return alias or None
