"""Which settings of a model need each other, and which exclude each other (docs: the table of keys)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.compile.config.merged_config import MergedSettings
from engine.compile.nodes.manifest import Materialized
from engine.schema.config_key import EPHEMERAL, EVERY_KIND, STREAMING_TABLE, TABLE, ConfigKey
from engine.schema.model_keys import MODEL

# key -> (what it needs, what to do)
_NEEDS = {
    "sequence_by": ("unique_key", "Add 'unique_key: id': the newest row of each key wins."),
    "delete_when": (
        "sequence_by",
        "Add 'sequence_by: updated_at' and a 'unique_key': it orders deletes and updates of a key.",
    ),
    "history": ("sequence_by", "Add 'sequence_by: updated_at' and a 'unique_key': it is the start of a version."),
    "exclude": ("unique_key", "Leave the column out of the SELECT, or add 'unique_key: id'."),
    "deletes_remembered": ("delete_when", "Add delete_when: op = 'd', or remove it."),
}
_STREAMING = "is for streaming tables"
_NO_VIEW = "does not apply to a view"
_BATCH = "is for batch tables"
_NO_TABLE = "does not apply to an ephemeral model, which has no table"
# Whether a model reads streams is compared with its kind in words of its own.
_CHECKED_APART = "streams"


def _why(key: ConfigKey, kind: str) -> str:
    """Why a key means nothing for a kind of model."""
    if key.kinds == (STREAMING_TABLE,):
        return _STREAMING
    if key.kinds == (TABLE,):
        return _BATCH
    return _NO_TABLE if kind == EPHEMERAL else _NO_VIEW


_UNFIT: Mapping[str, Mapping[str, str]] = {
    kind: {key.name: _why(key, kind) for key in MODEL.keys if kind not in key.kinds and key.name != _CHECKED_APART}
    for kind in EVERY_KIND
}


def unfit_keys(kind: Materialized) -> Mapping[str, str]:
    """The keys that mean nothing for a kind of model, each with the reason."""
    return _UNFIT[kind.value]


def check_combinations(settings: MergedSettings) -> None:
    """Report settings that miss others or exclude each other; each message names both, with their places."""
    for key, (needed, hint) in _NEEDS.items():
        if settings.says(key) and not _has(settings, needed):
            settings.refuse(key, "setting-needs", f"'{key}' needs '{needed}'", hint)
    if _is(settings, "overwrite", "partitions") and not settings.says("partition_by"):
        hint = "Add 'partition_by: day(ts)': the partitions that the query's rows fall into are replaced."
        settings.refuse("overwrite", "setting-needs", "'overwrite: partitions' needs 'partition_by'", hint)
    if settings.says("unique_key") and _is(settings, "output_mode", "complete"):
        hint = "Complete mode rewrites the whole table: remove the key, or set output_mode: update."
        _exclude(settings, "unique_key", "output_mode: complete", hint)
    if _is(settings, "publish", "on_tests_pass"):
        _check_publish(settings)
    _check_format(settings)


def _check_publish(settings: MergedSettings) -> None:
    if _is(settings, "output_mode", "complete"):
        hint = "A table that is rewritten in each micro-batch cannot be staged: set publish: immediately."
        _exclude(settings, "publish", "output_mode: complete", hint, said="publish: on_tests_pass")
    if settings.says("history"):
        hint = "A history continues from the published rows: set publish: immediately."
        _exclude(settings, "publish", "history: true", hint, said="publish: on_tests_pass")


def _check_format(settings: MergedSettings) -> None:
    properties, version = settings.get("table_properties"), settings.get("format_version")
    own = properties.child("format-version") if properties else None
    if own is not None and version is not None and own.option() != version.option():
        message = (
            f"'format_version' is not the 'format-version' of 'table_properties' {settings.where('table_properties')}"
        )
        settings.refuse("format_version", "setting-conflict", message, "Keep 'format_version' alone.")


def _exclude(settings: MergedSettings, key: str, other: str, hint: str, said: str = "") -> None:
    where = settings.where(other.partition(":")[0])
    settings.refuse(key, "setting-conflict", f"'{said or key}' cannot be combined with '{other}' {where}", hint)


def _has(settings: MergedSettings, key: str) -> bool:
    """Whether a key is there; in update mode the grouping columns are a unique_key that is left out."""
    inferred = key == "unique_key" and _is(settings, "output_mode", "update")
    return settings.says(key) or inferred


def _is(settings: MergedSettings, key: str, value: str) -> bool:
    section = settings.get(key)
    return section is not None and section.value == value
