"""The keys of a model's header; folder defaults in project.yml have the same with a plus."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import (
    EPHEMERAL,
    NONE,
    STREAMING_TABLE,
    TABLE,
    VIEW,
    ConfigBlock,
    ConfigKey,
    ValueForm,
)
from engine.schema.data_test_keys import TABLE_TESTS

# The warnings that compiling a model can give; those about the text of files are always shown.
WARNINGS = (
    "agg-null-groups", "chain-mode", "comment-continues", "join-never-matches", "limit-whole-stream",
    "string-for-column", "trigger-once", "unbounded-collection", "unbounded-complete", "unbounded-distinct",
    "unbounded-groups", "unbounded-join", "watermark-unused", "window-many", "window-week",
)  # fmt: skip
_STREAMING = (STREAMING_TABLE,)
_TABLES = (STREAMING_TABLE, TABLE)
_STORED = (STREAMING_TABLE, TABLE, VIEW)

ABOUT = (
    ConfigKey("title", ValueForm.TEXT, "the name", "heading on the docs site", "title: Sales per hour"),
    ConfigKey(
        "description", ValueForm.TEXT, NONE, "for the docs, and the table's comment", "description: One row an hour."
    ),
    ConfigKey("tags", ValueForm.TEXTS, NONE, "for selection; those of the folders add up", "tags: [hourly]"),
    ConfigKey(
        "meta",
        ValueForm.VALUES,
        NONE,
        "anything; the docs site shows it; merged with the folders'",
        "meta: {owner: sales}",
    ),
    ConfigKey(
        "acknowledge",
        ValueForm.TEXTS,
        NONE,
        "warnings of compile that were seen and are accepted: they are not reported; not a folder default",
        "acknowledge: [unbounded-complete]",
        choices=WARNINGS,
    ),
    ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: the model does not exist", "enabled: false"),
    ConfigKey(
        "columns",
        ValueForm.BY_NAME,
        NONE,
        "descriptions, types and tests of columns",
        "columns: {id: {type: string, tests: [unique]}}",
        also=(ValueForm.BLOCKS,),
        block="column",
    ),
    ConfigKey(
        "contract",
        ValueForm.BOOLEAN,
        "`false`",
        "`true`: the query gives the columns listed, with their types, and no others",
        "contract: true",
        also=(ValueForm.BLOCK,),
        block="contract",
        kinds=_STORED,
    ),
)

_READ = (
    ConfigKey(
        "materialized",
        ValueForm.TEXT,
        "`streaming_table` with streams, else `table`",
        "what the model becomes",
        "materialized: view",
        choices=(STREAMING_TABLE, TABLE, VIEW, EPHEMERAL),
    ),
    ConfigKey(
        "schema", ValueForm.NAME, "the target's", "appended: `<target schema>_<schema>`", "schema: marts", kinds=_STORED
    ),
    ConfigKey("alias", ValueForm.NAME, "the file's name", "name of the table", "alias: sales", kinds=_STORED),
    ConfigKey(
        "renamed_from",
        ValueForm.TEXT,
        NONE,
        "the model or table that it was: the next build gives that table its name, and continues it",
        "renamed_from: old_orders",
        kinds=_TABLES,
    ),
    ConfigKey(
        "streams",
        ValueForm.BY_NAME,
        NONE,
        "inputs that are read incrementally: a list of names, or a mapping to settings",
        "streams: {orders: {watermark: ordered_at delay 30 minutes}}",
        also=(ValueForm.TEXTS,),
        block="stream",
        kinds=(STREAMING_TABLE, EPHEMERAL),
    ),
    ConfigKey(
        "windows",
        ValueForm.MAPPING,
        NONE,
        "named windows: `tumbling(ts, size[, start])`, `sliding(ts, size, slide[, start])`, `session(ts, gap)`",
        'windows: {hour: "tumbling(ordered_at, 1 hour)"}',
    ),
)

_WRITE = (
    ConfigKey(
        "output_mode",
        ValueForm.TEXT,
        "`update` with a `unique_key` and an aggregate that allows it, else `append`",
        "what the query emits in a micro-batch",
        "output_mode: complete",
        choices=("append", "update", "complete"),
        kinds=_STREAMING,
    ),
    ConfigKey(
        "state_store",
        ValueForm.BLOCK,
        NONE,
        "where state is kept; fixed at the first start",
        "state_store: {partitions: 8}",
        block="state_store",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "unique_key",
        ValueForm.TEXTS,
        "none; in update mode the grouping columns",
        "columns that identify a row: the write is a MERGE; of a batch table with `history: true` only",
        "unique_key: id",
        kinds=_TABLES,
    ),
    ConfigKey(
        "sequence_by",
        ValueForm.TEXTS,
        "the row that comes last",
        "with `unique_key`: columns that decide which row is newer",
        "sequence_by: [updated_at]",
        kinds=_TABLES,
    ),
    ConfigKey(
        "delete_when",
        ValueForm.SQL,
        NONE,
        "with `sequence_by`: where it is true, the key is deleted",
        "delete_when: op = 'd'",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "deletes_remembered",
        ValueForm.DURATION,
        "7 days",
        "with `delete_when`: for how long an older row cannot bring a deleted key back",
        "deletes_remembered: 30 days",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "history",
        ValueForm.TEXT,
        "`false`",
        "`true` keeps every version of a key, with `valid_from`, `valid_to`, `is_current`: of a stream with "
        "`sequence_by`; of a batch table, whose query gives a full extract, with `check` or `sequence_by`. `changes` "
        "keeps every change of a key, with `change_type` and `changed_at`: of a batch table, which streams can read",
        "history: true",
        choices=("true", "false", "changes"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "check",
        ValueForm.TEXTS,
        NONE,
        "with `history` of a batch table: `all` (default of `history: changes`), or the columns that are compared with "
        "the current version of a key",
        "check: [name, city]",
        kinds=(TABLE,),
    ),
    ConfigKey(
        "deletes",
        ValueForm.TEXT,
        "`ignore`; with `history: changes` `close`",
        "with `history` of a batch table: whether a key that an extract does not have ends its current version, or is "
        "a change of type `delete`",
        "deletes: close",
        choices=("ignore", "close"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "on_empty_extract",
        ValueForm.TEXT,
        "`fail`",
        "with `deletes: close`: an extract without rows is an error, or ends the current version of each key",
        "on_empty_extract: close",
        choices=("fail", "close"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "exclude",
        ValueForm.TEXTS,
        NONE,
        "with `unique_key`: columns of the SELECT that the table does not have",
        "exclude: [op]",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "overwrite",
        ValueForm.TEXT,
        "`table`",
        "what a build replaces: all rows, or the partitions that the new rows fall into",
        "overwrite: partitions",
        choices=("table", "partitions"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "refresh",
        ValueForm.TEXT,
        "`auto`",
        "what is computed again when inputs changed: the least that is proven, at most the changes, or all",
        "refresh: incremental",
        choices=("auto", "incremental", "full"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "expectations",
        ValueForm.BLOCKS,
        NONE,
        "conditions on output rows",
        "expectations: [{name: paid, check: amount > 0, on_fail: quarantine}]",
        block="expectation",
        kinds=_TABLES,
    ),
    ConfigKey(
        "publish",
        ValueForm.TEXT,
        "`immediately`",
        "when readers see new rows; not with `complete` or `history`",
        "publish: on_tests_pass",
        choices=("immediately", "on_tests_pass"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "on_schema_change",
        ValueForm.TEXT,
        "`fail`",
        "what happens to a column that the table does not have",
        "on_schema_change: append_columns",
        choices=("fail", "append_columns", "ignore"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "full_refresh",
        ValueForm.BOOLEAN,
        "`true`",
        "`false`: `--full-refresh` is rejected",
        "full_refresh: false",
        kinds=_TABLES,
    ),
    ConfigKey(
        "keep_previous",
        ValueForm.DURATION,
        "7 days",
        "for how long `engine rollback` can undo a full refresh; `0 days`: not at all",
        "keep_previous: 14 days",
        kinds=_STREAMING,
    ),
)

_LAYOUT = (
    ConfigKey(
        "partition_by",
        ValueForm.TEXTS,
        NONE,
        "columns, `year(c)`, `month(c)`, `day(c)`, `hour(c)`, `bucket(n, c)`, `truncate(n, c)`, each with `as name`",
        'partition_by: ["day(ordered_at)", "bucket(16, id)"]',
        kinds=_TABLES,
    ),
    ConfigKey(
        "sort_by",
        ValueForm.TEXTS,
        NONE,
        "order of the rows in each file",
        "sort_by: [id, ordered_at desc nulls last]",
        kinds=_TABLES,
    ),
    ConfigKey(
        "table_properties",
        ValueForm.MAPPING,
        NONE,
        "Iceberg table properties; a change is applied to an existing table",
        "table_properties: {write.parquet.compression-codec: zstd}",
        kinds=_TABLES,
    ),
    ConfigKey(
        "write_options",
        ValueForm.MAPPING,
        NONE,
        "options of Iceberg's writer, checked by name and value",
        "write_options: {target-file-size-bytes: 134217728}",
        kinds=_TABLES,
    ),
    ConfigKey(
        "format_version",
        ValueForm.TEXT,
        "`2`",
        "version of the Iceberg table's format",
        "format_version: 3",
        choices=("2", "3"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "persist_docs",
        ValueForm.BOOLEAN,
        "`true`",
        "write descriptions to the table as comments",
        "persist_docs: {relation: true, columns: false}",
        also=(ValueForm.BLOCK,),
        block="persist_docs",
        kinds=_STORED,
    ),
)

_RUN = (
    ConfigKey(
        "trigger",
        ValueForm.TEXT,
        "`as fast as it goes`",
        "how often `engine start` gives a stream a turn at most; without it, whenever there is input. `once` reads "
        "all unread data in one micro-batch",
        "trigger: every 30 seconds",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "schedule",
        ValueForm.TEXT,
        NONE,
        "when `engine start` builds the model (cron, UTC); without it, when its input has changed",
        "schedule: 0 6 * * mon-fri",
        kinds=_TABLES,
    ),
    ConfigKey(
        "stalled_after",
        ValueForm.DURATION,
        "the target's",
        "`engine start` counts the model as stalled if it has had unread input for that long, and has read nothing and "
        "ended no micro-batch",
        "stalled_after: 2 hours",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "pre_hook",
        ValueForm.TEXTS,
        NONE,
        "SQL before the model is built, in its session",
        "pre_hook: [set spark.sql.ansi.enabled = true]",
        kinds=_STORED,
    ),
    ConfigKey(
        "post_hook",
        ValueForm.TEXTS,
        NONE,
        "SQL after the model was built, in its session",
        'post_hook: ["delete from {{ this }} where id is null"]',
        kinds=_STORED,
    ),
    ConfigKey(
        "explain",
        ValueForm.BOOLEAN,
        "`false`",
        "`true`: show Spark's plan of the query after a build",
        "explain: true",
        kinds=_STORED,
    ),
)

MODEL: Final = ConfigBlock(
    "model",
    "a model",
    "A model's header",
    "YAML between `/*---` and `---*/` at the top of a model's file; `{{ config(..) }}` takes the same keys.",
    (
        *ABOUT,
        *(replace(key, kinds=_STORED) for key in TABLE_TESTS),
        *_READ,
        *_WRITE,
        *_LAYOUT,
        *_RUN,
    ),
)

FOLDER: Final = ConfigBlock(
    "folder",
    "folder defaults",
    "project.yml: models",
    "Keys of a model's header with a plus are defaults of the folder; other keys are folders below it.",
    (),
    open=True,
)
