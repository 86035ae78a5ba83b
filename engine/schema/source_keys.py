"""The keys of sources: the file, a source, its tables, their freshness."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm
from engine.schema.data_test_keys import TABLE_TESTS
from engine.schema.stream_keys import ON_BAD_RECORD, STREAM

VERSION: Final = ConfigKey(
    "version", ValueForm.INTEGER, NONE, "Version of the file format in dbt: 2", "version: 2", choices=("2",)
)

AGE: Final = ConfigBlock(
    "age",
    "an age",
    "freshness: warn_after, error_after",
    "A duration such as `10 minutes`, as dbt writes it.",
    (
        ConfigKey("count", ValueForm.INTEGER, REQUIRED, "Number of units", "count: 10"),
        ConfigKey("period", ValueForm.TEXT, REQUIRED, "Unit", "period: minute", choices=("minute", "hour", "day")),
    ),
)

FRESHNESS: Final = ConfigBlock(
    "freshness",
    "freshness",
    "freshness",
    "Maximum age of the newest row of a source. `warn_after` or `error_after` is required.",
    (
        ConfigKey(
            "warn_after",
            ValueForm.DURATION,
            NONE,
            "Warn about older rows; in minutes, hours or days",
            "warn_after: 1 hour",
            also=(ValueForm.BLOCK,),
            block="age",
        ),
        ConfigKey(
            "error_after",
            ValueForm.DURATION,
            NONE,
            "Fail on older rows",
            "error_after: 1 day",
            also=(ValueForm.BLOCK,),
            block="age",
        ),
        ConfigKey(
            "max_future",
            ValueForm.DURATION,
            "`1 day`",
            "Maximum distance ahead of the clock; later times are ignored and shown",
            "max_future: 1 hour",
        ),
        ConfigKey("filter", ValueForm.SQL, "all rows", "Rows to check", "filter: \"status = 'done'\""),
    ),
)

_OF_ALL = (
    ConfigKey(
        "tags", ValueForm.TEXTS, NONE, "Labels for selection; a table also has the tags of its source", "tags: [raw]"
    ),
    ConfigKey(
        "meta",
        ValueForm.VALUES,
        NONE,
        "Any data; the docs site shows it; values of the table win",
        "meta: {owner: sales}",
    ),
    ConfigKey(
        "loaded_at_field",
        ValueForm.SQL,
        "the time of the file or record",
        "Column or SQL expression with the load time of a row",
        "loaded_at_field: ordered_at",
    ),
    ConfigKey(
        "freshness",
        ValueForm.BLOCK,
        NONE,
        "Maximum age of the newest row; leave it empty in a table to ignore the setting of its source",
        "freshness: {warn_after: 1 hour}",
        block="freshness",
    ),
)

SOURCE_FILE: Final = ConfigBlock(
    "source_file",
    "a source file",
    "A file under sources/",
    "YAML files under `sources/` declare the inputs of models.",
    (
        VERSION,
        ConfigKey(
            "sources",
            ValueForm.BLOCKS,
            NONE,
            "List of sources",
            "sources: [{name: shop, tables: [{name: orders, format: rate}]}]",
            block="source",
        ),
    ),
)

SOURCE: Final = ConfigBlock(
    "source",
    "a source",
    "sources",
    "A system that provides data, with its tables.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "First part of `source('shop', 'orders')`", "name: shop"),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "Text for the docs site, shown with each table",
            "description: The web shop.",
        ),
        ConfigKey(
            "tables",
            ValueForm.BLOCKS,
            REQUIRED,
            "Tables of the source: topics, folders of files, Iceberg tables",
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
        (
            "`json`, `csv`, `text`, `parquet`, `orc`, `avro`, `kafka`, `iceberg`, `rate`, `socket`, or "
            "`spark.<name>` for any other reader of Spark"
        ),
        "format: json",
    ),
    ConfigKey(
        "schema",
        ValueForm.TEXT,
        "the format's columns",
        "Columns and Spark types",
        'schema: "id string, ordered_at timestamp, item struct<name: string>"',
    ),
    ConfigKey(
        "options",
        ValueForm.MAPPING,
        NONE,
        "Options of Spark's reader; compile checks names and values",
        "options: {header: true}",
    ),
    ConfigKey(
        "allow_unknown_options",
        ValueForm.BOOLEAN,
        "`false`",
        "`true`: pass options that Headrace does not have to Spark, unchecked",
        "allow_unknown_options: true",
    ),
    ConfigKey(
        "timezone", ValueForm.TEXT, "UTC", "Time zone of timestamps without a zone", "timezone: America/New_York"
    ),
    ConfigKey(
        "stream",
        ValueForm.BOOLEAN,
        "by the format",
        "`false`: read the source in full, never as a stream",
        "stream: false",
    ),
    replace(ON_BAD_RECORD, default="`fail`"),
    ConfigKey(
        "max_bad_records",
        ValueForm.TEXT,
        "an error where all are bad, from 20 records on",
        (
            "Maximum number of bad records that a build may drop or quarantine before it fails: a number, or a "
            "percentage of the records read, which applies from 20 records on"
        ),
        "max_bad_records: 1%",
        also=(ValueForm.INTEGER,),
    ),
)

READING: Final = ConfigBlock(
    "reading",
    "a target of a source",
    "sources: targets",
    "Settings for one target, with the keys of the format. They replace the settings of the table.",
    _READING,
)

SOURCE_TABLE: Final = ConfigBlock(
    "source_table",
    "a source table",
    "sources: tables",
    "A topic, a folder of files, or a table. Each format adds more keys.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "Second part of `source('shop', 'orders')`", "name: orders"),
        ConfigKey("description", ValueForm.TEXT, NONE, "Text for the docs site", "description: One row per order."),
        *_READING,
        *(replace(key, default=NONE) for key in STREAM.keys if key.name in {"watermark", "dedup"}),
        ConfigKey(
            "columns",
            ValueForm.BY_NAME,
            NONE,
            "Descriptions, meta and tests of columns",
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
            "Codes of warnings of compile that you have accepted and do not want to see again",
            "acknowledge: [unknown-columns]",
            choices=("unknown-columns",),
        ),
        ConfigKey(
            "targets",
            ValueForm.BY_NAME,
            NONE,
            "Format, location and options for one target",
            "targets: {dev: {format: rate}}",
            block="reading",
        ),
    ),
)
