"""How an Iceberg table is declared: its keys, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from engine.schema import ValueForm
from engine.schema.format_keys import ICEBERG_KEYS
from engine.sources.spec import SourceSpec, SpecFault, reader_faults, starting_milliseconds
from engine.spark_options import ICEBERG_READ

KEYS: Mapping[str, ValueForm] = ICEBERG_KEYS.forms
STARTS = ("starting_timestamp", "starting_snapshot")
_OF_STREAMS = (*STARTS, "on_upstream_delete")
_DELETES = ICEBERG_KEYS.choices("on_upstream_delete")
# A namespace and a name at least; the catalog may be written before them.
_LEAST_PARTS = 2
# Options that decide which rows are read; with `branch` a stream silently reads main (measured, Iceberg 1.12.0).
_CHOOSING = ("branch", "tag", "snapshot-id", "as-of-timestamp", "start-snapshot-id", "end-snapshot-id", "versionasof",
             "timestampasof")  # fmt: skip
_OF_CHANGELOGS = ("start-timestamp", "end-timestamp")
_STREAMING = ("stream-from-timestamp", "streaming-", "async-micro-batch-planning-enabled")
# A last part of a name that Iceberg takes for a branch, a tag, a snapshot or a time.
_SELECTOR = re.compile(r"(?:branch|tag)_.*|(?:snapshot_id|at_timestamp)_\d+")


def parts(spec: SourceSpec) -> list[str]:
    return [part.strip("`") for part in str(spec.settings.get("table", "")).split(".")]


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    yield from _name_faults(spec)
    settings = spec.settings
    if all(key in settings for key in STARTS):
        message = "'starting_timestamp' and 'starting_snapshot' exclude each other"
        yield SpecFault(("starting_snapshot",), message, "Remove one of them.", "setting-conflict", at_key=True)
    if "starting_timestamp" in settings and starting_milliseconds(settings) is None:
        message = f"'{settings['starting_timestamp']}' is not a timestamp"
        yield SpecFault(
            ("starting_timestamp",),
            message,
            "Write '2024-05-01 10:00:00' (UTC), or add an offset: '2024-05-01 10:00:00+02:00'.",
        )
    if "starting_snapshot" in settings and not str(settings["starting_snapshot"]).isdecimal():
        message = f"'{settings['starting_snapshot']}' is not a snapshot id"
        yield SpecFault(("starting_snapshot",), message, "Write its number: select snapshot_id from <table>.snapshots.")
    if settings.get("on_upstream_delete", "fail") not in _DELETES:
        message = f"'on_upstream_delete' cannot be '{settings['on_upstream_delete']}'"
        yield SpecFault(("on_upstream_delete",), message, f"Allowed: {', '.join(_DELETES)}.")
    for key in _OF_STREAMS if spec.stream is False else ():
        if key in settings:
            message = f"'{key}' is for streams, but '{spec.name}' has stream: false"
            yield SpecFault((key,), message, "Remove one of them.", "setting-conflict", at_key=True)
    if spec.timezone:
        message = "'timezone' does not apply to tables, whose timestamps have a type"
        yield SpecFault(("timezone",), message, "Remove it.", "setting-conflict", at_key=True)
    yield from _option_faults(spec)


def _name_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    if not spec.settings.get("table"):
        message = f"source '{spec.name}' has no 'table'"
        yield SpecFault(("table",), message, "Add 'table: <namespace>.<name>'.", "missing-key")
        return
    table, names = spec.settings["table"], parts(spec)
    if _SELECTOR.fullmatch(names[-1]):
        message = f"'{table}' names a branch, tag or snapshot: a stream of it would silently read main"
        hint = "Set the table itself; 'starting_snapshot' and 'starting_timestamp' set where a stream starts."
        yield SpecFault(("table",), message, hint, "not-supported")
    elif len(names) < _LEAST_PARTS or not all(names):
        message = f"'{table}' is not a table name"
        yield SpecFault(("table",), message, "Write <namespace>.<name>, in the catalog of the target.")


def _option_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    streaming = [key.lower() for key in spec.options if key.lower().startswith(_STREAMING)]
    reported = ("path", *_CHOOSING, *_OF_CHANGELOGS, *streaming)
    yield from reader_faults(spec, ICEBERG_READ, "Iceberg's reader", reserved=reported)
    for key in spec.options:
        if key.lower() in _CHOOSING:
            message = f"the option '{key}' is not supported in this version: a stream would silently read main"
            hint = "Remove it; 'starting_snapshot' and 'starting_timestamp' set where a stream starts."
            yield SpecFault(("options", key), message, hint, "not-supported", at_key=True)
        elif key.lower() in _OF_CHANGELOGS:
            message = f"the option '{key}' is for changelogs, which are not supported"
            yield SpecFault(("options", key), message, "Remove it.", "not-supported", at_key=True)
        elif key.lower() == "path":
            message = "the option 'path' is set by Headrace"
            yield SpecFault(("options", key), message, "Write 'table:' next to 'format:'.", at_key=True)
        elif key.lower().startswith(_STREAMING):
            message = f"the option '{key}' is set by Headrace"
            hint = "Remove it; 'starting_timestamp', 'starting_snapshot' and 'on_upstream_delete' are keys."
            yield SpecFault(("options", key), message, hint, at_key=True)
