"""Keys of dbt and of other tools that people type first, each with the form that holds here."""

from __future__ import annotations

_MERGE = "'unique_key' makes the write a MERGE; 'sequence_by' decides which row is newer."
_STREAM = "It belongs to an input: streams: {flights: {%s: ...}}."
_HOOKS = "Write '%s', with an underscore."

HABITS = {
    "incremental_strategy": _MERGE,
    "incremental_predicates": _MERGE,
    "merge_update_columns": "A newer row replaces the whole row of its key; 'exclude' keeps columns out of the table.",
    "merge_exclude_columns": "'exclude' keeps columns out of the table.",
    "strategy": "Write 'history: true' and 'unique_key', with 'sequence_by: updated_at' or 'check: all'.",
    "updated_at": "Write 'sequence_by: updated_at', with a 'unique_key'.",
    "check_cols": "Write 'check: [name, city]' or 'check: all', with 'history: true' and a 'unique_key'.",
    "invalidate_hard_deletes": "Write 'deletes: close', with 'history: true'.",
    "hard_deletes": "Write 'deletes: close' or 'deletes: ignore', with 'history: true'.",
    "on_configuration_change": "Changes of a query are checked before each build; 'on_schema_change' is for columns.",
    "pre-hook": _HOOKS % "pre_hook",
    "post-hook": _HOOKS % "post_hook",
    "file_format": "Every table is an Iceberg table; 'format_version' is 2 or 3.",
    "tblproperties": "Write 'table_properties'.",
    "database": "The catalog is set in the target, in project.yml.",
    "location_root": "The target's catalog decides where tables are stored.",
    "clustered_by": "Write 'partition_by: \"bucket(16, id)\"'.",
    "buckets": "Write 'partition_by: \"bucket(16, id)\"'.",
    "cluster_by": "Write 'sort_by'.",
    "liquid_clustered_by": "Write 'sort_by'.",
    "watermark": _STREAM % "watermark",
    "dedup": _STREAM % "dedup",
    "max_files_per_trigger": _STREAM % "max_files_per_trigger",
    "on_upstream_delete": _STREAM % "on_upstream_delete",
    "on_bad_record": _STREAM % "on_bad_record",
    "event_time": _STREAM % "watermark",
    "batch_size": "A stream reads only new data; to limit a micro-batch write 'max_files_per_trigger' for the stream.",
    "lookback": "The stream's watermark sets how late rows may be: streams: {flights: {watermark: scheduled_at "
                "delay 30 minutes}}.",
    "checkpoint_location": "Checkpoints are managed for you, in the target's 'state' folder.",
    "on_fail": "It belongs to an expectation.",
}  # fmt: skip
