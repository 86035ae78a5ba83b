"""Which settings of a model need each other, and which exclude each other (docs: the table of keys)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.compile.config.winning_values import MergedSettings
from engine.compile.nodes.materialization import Materialized
from engine.schema.config_key import EPHEMERAL, EVERY_KIND, STREAMING_TABLE, TABLE, ConfigKey
from engine.schema.model_keys import MODEL

# key -> (what it needs, what to do)
NEEDS = {
    "sequence_by": ("unique_key", "Add 'unique_key: id': the newest row of each key wins."),
    "delete_when": (
        "sequence_by",
        "Add 'sequence_by: updated_at' and a 'unique_key': it orders deletes and updates of a key.",
    ),
    "history": ("sequence_by", "Add 'sequence_by: updated_at' and a 'unique_key': it is the start of a version."),
    "exclude": ("unique_key", "Leave the column out of the SELECT, or add 'unique_key: id'."),
    "deletes_remembered": ("delete_when", "Add delete_when: op = 'd', or remove it."),
}
# With one of these the header of a streaming table says itself how rows are written; without them, a source of changes
# says it.
SAYS_HOW = ("unique_key", "sequence_by", "delete_when", "output_mode")
_STREAMING = "is for streaming tables"
_NO_VIEW = "does not apply to a view"
_BATCH = "is for batch tables"
_NO_TABLE = "does not apply to an ephemeral model, which has no table"
# Whether a model reads streams is compared with its kind in words of its own.
_CHECKED_APART = "streams"


def _why(key: ConfigKey, kind: str) -> str:
    if key.kinds == (STREAMING_TABLE,):
        return _STREAMING
    if key.kinds == (TABLE,):
        return _BATCH
    return _NO_TABLE if kind == EPHEMERAL else _NO_VIEW


# Of a batch table these mean something for a history only.
_OF_HISTORY = ("unique_key", "sequence_by", "check", "deletes", "on_empty_extract")
_TAKES_OUT = ("drop", "quarantine")


_UNFIT: Mapping[str, Mapping[str, str]] = {
    kind: {key.name: _why(key, kind) for key in MODEL.keys if kind not in key.kinds and key.name != _CHECKED_APART}
    for kind in EVERY_KIND
}


def unfit_keys(kind: Materialized) -> Mapping[str, str]:
    return _UNFIT[kind.value]


def check_combinations(settings: MergedSettings, kind: Materialized) -> None:
    """Report settings that miss others or exclude each other; each message names both, with their places."""
    if not may_be_inferred(settings, kind):
        check_needs(settings, kind)
    if kind.traits.streaming and _is(settings, "history", "changes"):
        hint = "Set 'history: true', or keep the changes of this table in a model that is 'materialized: table'."
        settings.refuse("history", "setting-conflict", f"'history: changes' {_BATCH}", hint)
    if _is(settings, "overwrite", "partitions") and not settings.says("partition_by"):
        hint = "Add 'partition_by: day(ts)': the partitions that the query's rows fall into are replaced."
        settings.refuse("overwrite", "setting-needs", "'overwrite: partitions' needs 'partition_by'", hint)
    if settings.says("unique_key") and _is(settings, "output_mode", "complete"):
        hint = "Complete mode rewrites the whole table: remove the key, or set output_mode: update."
        _exclude(settings, "unique_key", "output_mode: complete", hint)
    if _is(settings, "publish", "on_tests_pass"):
        _check_publish(settings)
    _check_format(settings)


def may_be_inferred(settings: MergedSettings, kind: Materialized) -> bool:
    """Whether how rows are written may follow from the source that the model streams from."""
    return kind.traits.streaming and settings.says("streams") and not any(key in settings.keys for key in SAYS_HOW)


def check_needs(settings: MergedSettings, kind: Materialized) -> None:
    for key, (needed, hint) in NEEDS.items():
        apart = key == "history" and (kind.traits.recomputed or _is(settings, key, "changes"))
        if settings.says(key) and not apart and not _has(settings, needed):
            settings.refuse(key, "setting-needs", f"'{key}' needs '{needed}'", hint)


def _check_publish(settings: MergedSettings) -> None:
    if _is(settings, "output_mode", "complete"):
        hint = "A table that is rewritten in each micro-batch cannot be staged: set publish: immediately."
        _exclude(settings, "publish", "output_mode: complete", hint, written_as="publish: on_tests_pass")
    if settings.says("history"):
        hint = "A history continues from the published rows: set publish: immediately."
        _exclude(settings, "publish", "history", hint, written_as="publish: on_tests_pass")


def _check_format(settings: MergedSettings) -> None:
    properties, version = settings.get("table_properties"), settings.get("format_version")
    own = properties.child("format-version") if properties else None
    if own is not None and version is not None and own.option() != version.option():
        message = (
            f"'format_version' is not the 'format-version' of 'table_properties' {settings.where('table_properties')}"
        )
        settings.refuse("format_version", "setting-conflict", message, "Keep 'format_version' alone.")


def _exclude(settings: MergedSettings, key: str, other: str, hint: str, written_as: str = "") -> None:
    where = settings.where(other.partition(":")[0])
    settings.refuse(key, "setting-conflict", f"'{written_as or key}' cannot be combined with '{other}' {where}", hint)


def _has(settings: MergedSettings, key: str) -> bool:
    """Whether a key is there; in update mode the grouping columns are a unique_key that is left out."""
    inferred = key == "unique_key" and _is(settings, "output_mode", "update")
    return settings.says(key) or inferred


def _is(settings: MergedSettings, key: str, value: str) -> bool:
    section = settings.get(key)
    return section is not None and section.value == value


def check_history(settings: MergedSettings, kind: Materialized) -> None:
    """Report settings of a batch table that do not make a history; folder defaults that do not fit are taken out."""
    if not kind.traits.recomputed:
        return
    if not settings.says("history"):
        for key in _OF_HISTORY:
            if key in settings.own:
                message = f"'{key}' of a batch table needs 'history'"
                hint = "Add 'history: true' to keep the versions of each key, or remove it: a build replaces all rows."
                settings.refuse(key, "setting-needs", message, hint)
            settings.keys.pop(key, None)
        return
    if not settings.says("unique_key"):
        hint = "Add 'unique_key: id': the columns that identify a row of the extract."
        settings.refuse("history", "setting-needs", "'history' needs 'unique_key'", hint)
    ways = [key for key in ("check", "sequence_by") if settings.says(key)]
    of_changes = _is(settings, "history", "changes")
    if of_changes and settings.says("sequence_by"):
        hint = "Remove it: changes are in the order of the builds that found them (changed_at)."
        _exclude(settings, "sequence_by", "history: changes", hint)
    if not ways and not of_changes:
        message = "'history' of a batch table needs 'check' or 'sequence_by'"
        hint = "Add 'check: all' to compare all columns, or 'sequence_by: updated_at' (when a row changed)."
        settings.refuse("history", "setting-needs", message, hint)
    if len(ways) > 1 and not of_changes:
        message = f"'check' cannot be combined with 'sequence_by' {settings.where('sequence_by')}"
        settings.refuse("check", "setting-conflict", message, "Keep one: it decides which rows are new versions.")
    _check_deletes(settings)
    _check_sequence(settings)
    if settings.says("overwrite"):
        message = f"'overwrite' cannot be combined with 'history' {settings.where('history')}"
        settings.refuse("overwrite", "setting-conflict", message, "Remove it: a history is never replaced.")


def _check_sequence(settings: MergedSettings) -> None:
    section = settings.get("sequence_by")
    if section is not None and len(list(section.items())) > 1:
        hint = "Keep the column with the time of the last change: a version begins at its value."
        section.report("bad-value", "'sequence_by' of a batch table takes one column", hint)


def _check_deletes(settings: MergedSettings) -> None:
    closed = _is(settings, "history", "changes") and not settings.says("deletes")
    if not closed and not _is(settings, "deletes", "close"):
        if settings.says("on_empty_extract"):
            hint = "Add 'deletes: close', or remove it."
            settings.refuse("on_empty_extract", "setting-needs", "'on_empty_extract' needs 'deletes: close'", hint)
        return
    section = settings.get("expectations")
    for item in section.items() if section else ():
        on_fail = item.child("on_fail") if isinstance(item.value, dict) else None
        if on_fail is not None and on_fail.value in _TAKES_OUT:
            key, value = ("history", "changes") if closed else ("deletes", "close")
            closing_setting = f"'{key}: {value}' {settings.where(key)}"
            message = f"'on_fail: {on_fail.value}' cannot be combined with {closing_setting}"
            hint = "A row that is taken out would count as deleted: set on_fail: warn or fail."
            on_fail.report("setting-conflict", message, hint)
