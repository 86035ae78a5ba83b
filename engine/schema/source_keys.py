"""The keys of sources: the file, a source, its tables, their freshness."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm
from engine.schema.data_test_keys import TABLE_TESTS
from engine.schema.stream_keys import ON_BAD_RECORD, STREAM

VERSION: Final = ConfigKey(
    "version", ValueForm.INTEGER, NONE, "dbt's version of the file's form: 2", "version: 2", choices=("2",)
)

AGE: Final = ConfigBlock(
    "age",
    "an age",
    "freshness: warn_after, error_after",
    "dbt's form of a duration such as `10 minutes`.",
    (
        ConfigKey("count", ValueForm.INTEGER, REQUIRED, "how many", "count: 10"),
        ConfigKey("period", ValueForm.TEXT, REQUIRED, "the unit", "period: minute", choices=("minute", "hour", "day")),
    ),
)

FRESHNESS: Final = ConfigBlock(
    "freshness",
    "freshness",
    "freshness",
    "How old the newest row of a source may be. `warn_after` or `error_after` is required.",
    (
        ConfigKey(
            "warn_after",
            ValueForm.DURATION,
            NONE,
            "an older row is a warning; in minutes, hours or days",
            "warn_after: 1 hour",
            also=(ValueForm.BLOCK,),
            block="age",
        ),
        ConfigKey(
            "error_after",
            ValueForm.DURATION,
            NONE,
            "an older row is an error",
            "error_after: 1 day",
            also=(ValueForm.BLOCK,),
            block="age",
        ),
        ConfigKey(
            "max_future",
            ValueForm.DURATION,
            "`1 day`",
            "times further ahead of the clock do not count, and are shown",
            "max_future: 1 hour",
        ),
        ConfigKey("filter", ValueForm.SQL, "all rows", "the rows that count", "filter: \"status = 'done'\""),
    ),
)

_OF_ALL = (
    ConfigKey("tags", ValueForm.TEXTS, NONE, "for selection; those of source and table add up", "tags: [raw]"),
    ConfigKey(
        "meta", ValueForm.VALUES, NONE, "anything; the docs site shows it; the table's wins", "meta: {owner: sales}"
    ),
    ConfigKey(
        "loaded_at_field",
        ValueForm.SQL,
        "the time of the file or record",
        "a column or SQL: when a row was written",
        "loaded_at_field: ordered_at",
    ),
    ConfigKey(
        "freshness",
        ValueForm.BLOCK,
        NONE,
        "how old the newest row may be; empty in a table: not that of its source",
        "freshness: {warn_after: 1 hour}",
        block="freshness",
    ),
)

SOURCE_FILE: Final = ConfigBlock(
    "source_file",
    "a source file",
    "A file under sources/",
    "YAML files under `sources/` declare what models read.",
    (
        VERSION,
        ConfigKey(
            "sources",
            ValueForm.BLOCKS,
            NONE,
            "the sources",
            "sources: [{name: shop, tables: [{name: orders, format: rate}]}]",
            block="source",
        ),
    ),
)

SOURCE: Final = ConfigBlock(
    "source",
    "a source",
    "sources",
    "A system that data comes from, with its tables.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "the first part of `source('shop', 'orders')`", "name: shop"),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "for the docs: shown with each of its tables",
            "description: The web shop.",
        ),
        ConfigKey(
            "tables",
            ValueForm.BLOCKS,
            REQUIRED,
            "its tables: topics, folders of files, Iceberg tables",
            "tables: [{name: orders, format: rate}]",
            block="source_table",
        ),
        *_OF_ALL,
    ),
)

# What says how a table is read; a target may replace each.
_READING = (
    ConfigKey(
        "format",
        ValueForm.TEXT,
        "required, here or under `targets`",
        "`json`, `csv`, `text`, `parquet`, `orc`, `avro`, `kafka`, `iceberg`, `rate`, `socket`, or `spark.<name>` for "
        "any other reader of Spark",
        "format: json",
    ),
    ConfigKey(
        "schema",
        ValueForm.TEXT,
        "what the format brings",
        "columns and Spark types",
        'schema: "id string, ordered_at timestamp, item struct<name: string>"',
    ),
    ConfigKey(
        "options",
        ValueForm.MAPPING,
        NONE,
        "options of Spark's reader, checked by name and value",
        "options: {header: true}",
    ),
    ConfigKey(
        "allow_unknown_options",
        ValueForm.BOOLEAN,
        "`false`",
        "`true`: options that the engine does not know are passed unchecked",
        "allow_unknown_options: true",
    ),
    ConfigKey("timezone", ValueForm.TEXT, "UTC", "how times without a zone are read", "timezone: America/New_York"),
    ConfigKey(
        "stream",
        ValueForm.BOOLEAN,
        "by the format",
        "`false`: it is read in full, never as a stream",
        "stream: false",
    ),
    replace(ON_BAD_RECORD, default="`fail`"),
    ConfigKey(
        "max_bad_records",
        ValueForm.TEXT,
        "an error where all are bad, from 20 records on",
        "how many bad records a build takes out, by `drop` or `quarantine`, before it fails: a number, or a share of "
        "the records that it has read, which counts from 20 records on",
        "max_bad_records: 1%",
        also=(ValueForm.INTEGER,),
    ),
)

READING: Final = ConfigBlock(
    "reading",
    "a target of a source",
    "sources: targets",
    "How a table is read for one target, with the keys of its format: what is here replaces what the table sets.",
    _READING,
)

SOURCE_TABLE: Final = ConfigBlock(
    "source_table",
    "a source table",
    "sources: tables",
    "A topic, a folder of files, a table. Each format adds keys of its own.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "the second part of `source('shop', 'orders')`", "name: orders"),
        ConfigKey("description", ValueForm.TEXT, NONE, "for the docs", "description: One row an order."),
        *_READING,
        *(replace(key, default=NONE) for key in STREAM.keys if key.name in {"watermark", "dedup"}),
        ConfigKey(
            "columns",
            ValueForm.BY_NAME,
            NONE,
            "descriptions, meta and tests of columns",
            "columns: {id: The number of the order.}",
            also=(ValueForm.BLOCKS,),
            block="column",
        ),
        *TABLE_TESTS,
        *_OF_ALL,
        ConfigKey(
            "acknowledge",
            ValueForm.TEXTS,
            NONE,
            "warnings of compile that were seen and are accepted: they are not reported",
            "acknowledge: [unknown-columns]",
            choices=("unknown-columns",),
        ),
        ConfigKey(
            "targets",
            ValueForm.BY_NAME,
            NONE,
            "format, location and options for one target",
            "targets: {dev: {format: rate}}",
            block="reading",
        ),
    ),
)
