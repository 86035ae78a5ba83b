"""Which settings of a model need each other, and which exclude each other (docs: the table of keys)."""

from __future__ import annotations

from engine.compile.config.merged_config import MergedSettings
from engine.compile.nodes.manifest import Materialized

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
# keys that fit one kind of model only
_STREAMING_ONLY = (
    "output_mode", "state_store", "unique_key", "sequence_by", "delete_when", "history", "exclude",
    "deletes_remembered", "trigger",
)  # fmt: skip
_NOT_FOR_VIEWS = (
    "partition_by", "table_properties", "sort_by", "write_options", "format_version", "on_schema_change", "publish",
    "expectations", "full_refresh", "schedule",
)  # fmt: skip


_NOT_FOR_EPHEMERAL = (
    *_NOT_FOR_VIEWS, "alias", "schema", "persist_docs", "pre_hook", "post_hook", "data_tests", "tests", "contract",
)  # fmt: skip
_NO_TABLE = "does not apply to an ephemeral model, which has no table"


def unfit_keys(kind: Materialized) -> dict[str, str]:
    """The keys that mean nothing for a kind of model, each with the reason."""
    unfit = {} if kind is Materialized.STREAMING_TABLE else dict.fromkeys(_STREAMING_ONLY, _STREAMING)
    if kind is not Materialized.TABLE:
        unfit["overwrite"] = _BATCH
    if kind is Materialized.EPHEMERAL:
        return unfit | dict.fromkeys(_NOT_FOR_EPHEMERAL, _NO_TABLE)
    return unfit | (dict.fromkeys(_NOT_FOR_VIEWS, _NO_VIEW) if kind is Materialized.VIEW else {})


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
