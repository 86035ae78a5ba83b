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
    ConfigKey("title", ValueForm.TEXT, "the name", "Heading on the docs site", "title: Sales per hour"),
    ConfigKey(
        "description",
        ValueForm.TEXT,
        NONE,
        "Text for the docs site and the comment of the table",
        "description: One row per hour.",
    ),
    ConfigKey(
        "tags",
        ValueForm.TEXTS,
        NONE,
        "Labels for selection; a model also has the tags of its folders",
        "tags: [hourly]",
    ),
    ConfigKey(
        "meta",
        ValueForm.VALUES,
        NONE,
        "Any data; the docs site shows it, merged with the `meta` of the folders",
        "meta: {owner: sales}",
    ),
    ConfigKey(
        "acknowledge",
        ValueForm.TEXTS,
        NONE,
        (
            "Codes of warnings of compile that you have accepted and do not want to see again; cannot be a folder "
            "default"
        ),
        "acknowledge: [unbounded-complete]",
        choices=WARNINGS,
    ),
    ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: ignore the model", "enabled: false"),
    ConfigKey(
        "columns",
        ValueForm.BY_NAME,
        NONE,
        "Descriptions, types and tests of columns",
        "columns: {id: {type: string, tests: [unique]}}",
        also=(ValueForm.BLOCKS,),
        block="column",
    ),
    ConfigKey(
        "contract",
        ValueForm.BOOLEAN,
        "`false`",
        "`true`: the query must return exactly the listed columns, with their types",
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
        "Kind of table or view to build",
        "materialized: view",
        choices=(STREAMING_TABLE, TABLE, VIEW, EPHEMERAL),
    ),
    ConfigKey(
        "schema",
        ValueForm.NAME,
        "the target's",
        "Suffix of the schema: `<target schema>_<schema>`",
        "schema: marts",
        kinds=_STORED,
    ),
    ConfigKey("alias", ValueForm.NAME, "the file's name", "Name of the table", "alias: sales", kinds=_STORED),
    ConfigKey(
        "renamed_from",
        ValueForm.TEXT,
        NONE,
        "Former name of the model or table: the next build renames the table and continues it",
        "renamed_from: old_orders",
        kinds=_TABLES,
    ),
    ConfigKey(
        "streams",
        ValueForm.BY_NAME,
        NONE,
        "Inputs to read incrementally: a list of names, or a mapping of names to settings",
        "streams: {orders: {watermark: ordered_at delay 30 minutes}}",
        also=(ValueForm.TEXTS,),
        block="stream",
        kinds=(STREAMING_TABLE, EPHEMERAL),
    ),
    ConfigKey(
        "windows",
        ValueForm.MAPPING,
        NONE,
        "Named windows: `tumbling(ts, size[, start])`, `sliding(ts, size, slide[, start])`, `session(ts, gap)`",
        'windows: {hour: "tumbling(ordered_at, 1 hour)"}',
    ),
)

_WRITE = (
    ConfigKey(
        "output_mode",
        ValueForm.TEXT,
        "`update` with a `unique_key` and an aggregate that allows it, else `append`",
        "Rows that the query emits in a micro-batch",
        "output_mode: complete",
        choices=("append", "update", "complete"),
        kinds=_STREAMING,
    ),
    ConfigKey(
        "state_store",
        ValueForm.BLOCK,
        NONE,
        "State store of the query; fixed at its first start",
        "state_store: {partitions: 8}",
        block="state_store",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "unique_key",
        ValueForm.TEXTS,
        "none; in update mode the grouping columns",
        (
            "Columns that identify a row, so that Headrace writes with MERGE; a batch table needs `history: true` "
            "as well"
        ),
        "unique_key: id",
        kinds=_TABLES,
    ),
    ConfigKey(
        "sequence_by",
        ValueForm.TEXTS,
        "the row that comes last",
        "With `unique_key`: columns that decide which row is newer",
        "sequence_by: [updated_at]",
        kinds=_TABLES,
    ),
    ConfigKey(
        "delete_when",
        ValueForm.SQL,
        NONE,
        "With `sequence_by`: condition that deletes the key",
        "delete_when: op = 'd'",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "deletes_remembered",
        ValueForm.DURATION,
        "7 days",
        "With `delete_when`: time during which an older row cannot restore a deleted key",
        "deletes_remembered: 30 days",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "history",
        ValueForm.TEXT,
        "`false`",
        (
            "`true` stores every version of a key, with `valid_from`, `valid_to` and `is_current`: for a stream "
            "with `sequence_by`, or for a batch table whose query returns a full extract, with `check` or "
            "`sequence_by`. `changes` stores every change of a key, with `change_type` and `changed_at`: for a "
            "batch table; streams can read it"
        ),
        "history: true",
        choices=("true", "false", "changes"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "check",
        ValueForm.TEXTS,
        NONE,
        (
            "With `history` of a batch table: `all` (default of `history: changes`), or the columns to compare "
            "with the current version of a key"
        ),
        "check: [name, city]",
        kinds=(TABLE,),
    ),
    ConfigKey(
        "deletes",
        ValueForm.TEXT,
        "`ignore`; with `history: changes` `close`",
        (
            "With `history` of a batch table: `close` ends the current version of a key that is missing in an "
            "extract, or records a change of type `delete`"
        ),
        "deletes: close",
        choices=("ignore", "close"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "on_empty_extract",
        ValueForm.TEXT,
        "`fail`",
        (
            "With `deletes: close`: whether an extract without rows is an error, or ends the current version of "
            "every key"
        ),
        "on_empty_extract: close",
        choices=("fail", "close"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "exclude",
        ValueForm.TEXTS,
        NONE,
        "With `unique_key`: columns of the SELECT to leave out of the table",
        "exclude: [op]",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "overwrite",
        ValueForm.TEXT,
        "`table`",
        "Rows that a build replaces: all rows, or the partitions that the new rows belong to",
        "overwrite: partitions",
        choices=("table", "partitions"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "refresh",
        ValueForm.TEXT,
        "`auto`",
        (
            "Work to repeat when inputs changed: `auto` recomputes as little as Headrace can prove correct, "
            "`incremental` only the changes, `full` all rows"
        ),
        "refresh: incremental",
        choices=("auto", "incremental", "full"),
        kinds=(TABLE,),
    ),
    ConfigKey(
        "expectations",
        ValueForm.BLOCKS,
        NONE,
        "Conditions on output rows",
        "expectations: [{name: paid, check: amount > 0, on_fail: quarantine}]",
        block="expectation",
        kinds=_TABLES,
    ),
    ConfigKey(
        "publish",
        ValueForm.TEXT,
        "`immediately`",
        "When readers see new rows; not with `complete` or `history`",
        "publish: on_tests_pass",
        choices=("immediately", "on_tests_pass"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "on_schema_change",
        ValueForm.TEXT,
        "`fail`",
        "Reaction to a column that the table does not have",
        "on_schema_change: append_columns",
        choices=("fail", "append_columns", "ignore"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "full_refresh",
        ValueForm.BOOLEAN,
        "`true`",
        "`false`: reject `--full-refresh`",
        "full_refresh: false",
        kinds=_TABLES,
    ),
    ConfigKey(
        "keep_previous",
        ValueForm.DURATION,
        "7 days",
        "Time during which `engine rollback` can undo a full refresh; `0 days` disables it",
        "keep_previous: 14 days",
        kinds=_STREAMING,
    ),
)

_LAYOUT = (
    ConfigKey(
        "partition_by",
        ValueForm.TEXTS,
        NONE,
        (
            "Columns, `year(c)`, `month(c)`, `day(c)`, `hour(c)`, `bucket(n, c)` or `truncate(n, c)`, each "
            "optionally with `as name`"
        ),
        'partition_by: ["day(ordered_at)", "bucket(16, id)"]',
        kinds=_TABLES,
    ),
    ConfigKey(
        "sort_by",
        ValueForm.TEXTS,
        NONE,
        "Order of the rows in each file",
        "sort_by: [id, ordered_at desc nulls last]",
        kinds=_TABLES,
    ),
    ConfigKey(
        "table_properties",
        ValueForm.MAPPING,
        NONE,
        "Iceberg table properties; Headrace applies a change to an existing table",
        "table_properties: {write.parquet.compression-codec: zstd}",
        kinds=_TABLES,
    ),
    ConfigKey(
        "write_options",
        ValueForm.MAPPING,
        NONE,
        "Options of the Iceberg writer; compile checks names and values",
        "write_options: {target-file-size-bytes: 134217728}",
        kinds=_TABLES,
    ),
    ConfigKey(
        "format_version",
        ValueForm.TEXT,
        "`2`",
        "Format version of the Iceberg table",
        "format_version: 3",
        choices=("2", "3"),
        kinds=_TABLES,
    ),
    ConfigKey(
        "persist_docs",
        ValueForm.BOOLEAN,
        "`true`",
        "Write descriptions to the table as comments",
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
        (
            "Minimum time between two runs of a stream under `engine start`; without it, a stream runs whenever it "
            "has input. `once` reads all unread data in one micro-batch"
        ),
        "trigger: every 30 seconds",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "schedule",
        ValueForm.TEXT,
        NONE,
        "Times at which `engine start` builds the model (cron, UTC); without it, when an input has changed",
        "schedule: 0 6 * * mon-fri",
        kinds=_TABLES,
    ),
    ConfigKey(
        "stalled_after",
        ValueForm.DURATION,
        "the target's",
        (
            "Time after which `engine start` reports the model as stalled: it has unread input, but has read "
            "nothing and finished no micro-batch"
        ),
        "stalled_after: 2 hours",
        kinds=_STREAMING,
    ),
    ConfigKey(
        "pre_hook",
        ValueForm.TEXTS,
        NONE,
        "SQL to run before the build of the model, in the same session",
        "pre_hook: [set spark.sql.ansi.enabled = true]",
        kinds=_STORED,
    ),
    ConfigKey(
        "post_hook",
        ValueForm.TEXTS,
        NONE,
        "SQL to run after the build of the model, in the same session",
        'post_hook: ["delete from {{ this }} where id is null"]',
        kinds=_STORED,
    ),
    ConfigKey(
        "explain",
        ValueForm.BOOLEAN,
        "`false`",
        "`true`: print Spark's plan of the query after a build",
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
