"""What this version compiles and cannot run yet: a build that passed over it would not do what it says."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.manifest import Input, Model
from engine.compile.settings import (
    OnSchemaChange,
    OnUpstreamDelete,
    OutputMode,
    Overwrite,
    PersistDocs,
    Publish,
    StateProvider,
    TriggerKind,
)
from engine.errors import Diagnostic, Location

_HINT = "Take it out; compile, docs and lineage know it already."
_DEFAULT_FORMAT = 2


def unsupported(model: Model) -> tuple[Diagnostic, ...]:
    """The settings in use that a build of this version cannot honour, each at its place."""
    return tuple(_finding(model, key, what) for key, what in [*_write(model), *_operation(model), *_streams(model)])


def _finding(model: Model, key: str, what: str) -> Diagnostic:
    places = model.positions.settings
    place = places.get(key) or places.get(key.partition(".")[0]) or Location(model.file)
    message = f"{what} is compiled, and not run yet by this version"
    return Diagnostic("not-supported", message, _HINT, node=model.name, location=place)


def _write(model: Model) -> Iterator[tuple[str, str]]:
    write, said = model.write, model.positions.settings
    inferred = write.output_mode is OutputMode.UPDATE and "output_mode" not in said
    in_use = {
        "output_mode": write.output_mode in {OutputMode.UPDATE, OutputMode.COMPLETE} and not inferred,
        "unique_key": bool(write.unique_key) and (inferred or "unique_key" in said or not said),
        "sequence_by": bool(write.sequence_by),
        "delete_when": write.delete_when is not None,
        "history": write.history,
        "exclude": bool(write.exclude),
        "deletes_remembered": "deletes_remembered" in said,
        "sort_by": bool(write.sort_by),
        "write_options": bool(write.write_options),
    }
    yield from ((key, f"'{key}'") for key, used in in_use.items() if used)
    values = {
        "overwrite": write.overwrite is Overwrite.PARTITIONS and "overwrite: partitions",
        "format_version": write.format_version not in {None, _DEFAULT_FORMAT}
        and f"format_version {write.format_version}",
        "on_schema_change": write.on_schema_change is not OnSchemaChange.FAIL
        and f"on_schema_change: {write.on_schema_change}",
        "publish": write.publish is Publish.ON_TESTS_PASS and "publish: on_tests_pass",
        "partition_by": any(partition.name for partition in write.partition_by) and "the name of a partition field",
    }
    yield from ((key, what) for key, what in values.items() if what)


def _operation(model: Model) -> Iterator[tuple[str, str]]:
    run = model.operation
    in_use = {
        "pre_hook": bool(run.pre_hook) and "'pre_hook'",
        "post_hook": bool(run.post_hook) and "'post_hook'",
        "trigger": run.trigger.kind is TriggerKind.ONCE and "trigger: once",
        "explain": run.explain and "'explain'",
        "persist_docs": _persists_other(model) and "'persist_docs'",
        "state_store": run.state_provider is StateProvider.HDFS and "state_store: {provider: hdfs}",
    }
    yield from ((key, what) for key, what in in_use.items() if what)


def _persists_other(model: Model) -> bool:
    """Whether the descriptions to store are other than what is stored today: the table's."""
    said = "persist_docs" in model.positions.settings
    return said and model.operation.persist_docs != PersistDocs(relation=True, columns=False)


def _streams(model: Model) -> Iterator[tuple[str, str]]:
    for item in model.inputs:
        yield from ((f"streams.{item.name}.{key}", what) for key, what in _stream(item))


def _stream(item: Input) -> Iterator[tuple[str, str]]:
    if item.on_upstream_delete is OnUpstreamDelete.IGNORE:
        yield "on_upstream_delete", "on_upstream_delete: ignore"
