"""The keys that each format of a source adds to those of every source, and the formats of Kafka's values."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

_CONNECTION = ConfigKey(
    "connection", ValueForm.TEXT, NONE, "a connection of the target, for credentials", "connection: main"
)
_ON_UPSTREAM_DELETE = ConfigKey(
    "on_upstream_delete",
    ValueForm.TEXT,
    "`fail`",
    "what a stream does at a commit that only deletes rows",
    "on_upstream_delete: ignore",
    choices=("fail", "ignore"),
)

FILE_KEYS: Final = ConfigBlock(
    "files",
    "a source of files",
    "json, csv, text, parquet, orc, avro",
    "Files of a folder.",
    (
        ConfigKey(
            "path",
            ValueForm.PATH,
            REQUIRED,
            "a folder, a file or a pattern, relative to the project or absolute; or a URI",
            "path: landing/orders",
        ),
        ConfigKey(
            "max_files_per_trigger",
            ValueForm.INTEGER,
            "all unread",
            "files in one micro-batch of a stream",
            "max_files_per_trigger: 4",
        ),
        ConfigKey(
            "max_file_age",
            ValueForm.DURATION,
            NONE,
            "files further behind the newest one are skipped, counted and reported",
            "max_file_age: 30 days",
        ),
        ConfigKey(
            "on_changed_file",
            ValueForm.TEXT,
            "`fail`",
            "what happens when a file changed after it was read",
            "on_changed_file: ignore",
            choices=("fail", "ignore"),
        ),
        ConfigKey(
            "after_reading",
            ValueForm.TEXT,
            "the file stays",
            "what happens to a file whose rows are committed",
            "after_reading: delete",
            choices=("archive", "delete"),
        ),
        ConfigKey(
            "archive_path",
            ValueForm.PATH,
            "required for `after_reading: archive`",
            "a folder of the project, or one that the target allows, outside `path`",
            "archive_path: archive/orders",
        ),
        ConfigKey(
            "full_extracts",
            ValueForm.TEXT,
            NONE,
            "each file is a full extract: a batch table with `history: true` takes one after another, in the order of "
            "the dates in their names or of their modification times",
            "full_extracts: by_name",
            choices=("by_name", "by_time"),
        ),
        _CONNECTION,
    ),
)

KAFKA_KEYS: Final = ConfigBlock(
    "kafka",
    "a Kafka source",
    "kafka",
    "Topics of a Kafka broker. One of `topic`, `topics`, `topic_pattern` and `assign` is required.",
    (
        ConfigKey("topic", ValueForm.TEXT, NONE, "a topic", "topic: orders"),
        ConfigKey("topics", ValueForm.TEXTS, NONE, "several topics", "topics: [orders, returns]"),
        ConfigKey(
            "topic_pattern",
            ValueForm.TEXT,
            NONE,
            "a Java regular expression for whole names of topics",
            "topic_pattern: shop[.].*",
        ),
        ConfigKey("assign", ValueForm.TREE, NONE, "partitions by topic", "assign: {orders: [0, 1]}"),
        ConfigKey("connection", ValueForm.TEXT, REQUIRED, "a connection of the target", "connection: main"),
        ConfigKey(
            "value",
            ValueForm.TREE,
            "`json`",
            "how the values of records are read: the format, or a mapping",
            "value: {format: json, options: {allowComments: true}}",
            also=(ValueForm.TEXT,),
            block="value",
        ),
        ConfigKey(
            "starting_offsets",
            ValueForm.TREE,
            "`earliest`",
            "`earliest`, `latest`, `{0: 1200, 1: latest}` by partition, or such a mapping by topic",
            "starting_offsets: latest",
        ),
        ConfigKey(
            "starting_timestamp",
            ValueForm.TEXT,
            NONE,
            "instead of `starting_offsets`: records of that time (UTC) or later",
            "starting_timestamp: 2024-05-01 10:00:00",
        ),
        ConfigKey(
            "max_offsets_per_trigger",
            ValueForm.INTEGER,
            "all unread",
            "offsets in one micro-batch of a stream, all partitions together",
            "max_offsets_per_trigger: 100000",
        ),
        ConfigKey(
            "fail_on_data_loss",
            ValueForm.BOOLEAN,
            "`true`",
            "`false`: records that the broker deleted before they were read are counted and skipped",
            "fail_on_data_loss: false",
        ),
    ),
)

ICEBERG_KEYS: Final = ConfigBlock(
    "iceberg",
    "an Iceberg source",
    "iceberg",
    "A table of the target's catalog that no model of the project writes.",
    (
        ConfigKey("table", ValueForm.TEXT, REQUIRED, "`<namespace>.<name>`", "table: lab.results"),
        ConfigKey(
            "starting_timestamp",
            ValueForm.TEXT,
            "the first row",
            "the stream begins with the first commit of that time (UTC) or later",
            "starting_timestamp: 2024-05-01 10:00:00",
        ),
        ConfigKey(
            "starting_snapshot",
            ValueForm.TEXT,  # ids have up to 19 digits
            "the first row",
            "the stream begins with this snapshot",
            "starting_snapshot: 4358109269873137077",
        ),
        _ON_UPSTREAM_DELETE,
    ),
)

RATE_KEYS: Final = ConfigBlock(
    "rate",
    "a rate source",
    "rate",
    "Rows made by a clock, for development.",
    (
        ConfigKey("rows_per_second", ValueForm.INTEGER, "1", "rows made in a second", "rows_per_second: 100"),
        ConfigKey(
            "ramp_up_time", ValueForm.DURATION, NONE, "how long it takes to reach that rate", "ramp_up_time: 10 seconds"
        ),
    ),
)

SOCKET_KEYS: Final = ConfigBlock(
    "socket",
    "a socket source",
    "socket",
    "Lines of text from a TCP server, for development.",
    (
        ConfigKey("host", ValueForm.TEXT, REQUIRED, "host of the server", "host: localhost"),
        ConfigKey("port", ValueForm.INTEGER, REQUIRED, "port of the server", "port: 9999"),
        ConfigKey(
            "read_for",
            ValueForm.DURATION,
            "5 seconds",
            "how long a build listens; it ends earlier when the server closes the connection",
            "read_for: 30 seconds",
        ),
    ),
)

READER_KEYS: Final = ConfigBlock(
    "spark_reader",
    "a source of a Spark reader",
    "spark.&lt;name&gt;",
    "Any other reader of Spark, with a declared `schema`.",
    (
        ConfigKey(
            "path",
            ValueForm.PATH,
            NONE,
            "passed to the reader's `load()`: a folder of the project, an absolute path, or a URI",
            "path: landing/orders",
        ),
        _CONNECTION,
    ),
)

_FORMAT = ConfigKey(
    "format",
    ValueForm.TEXT,
    "`json`",
    "how a value is read; `string` and `bytes` give one column, `value`",
    "format: avro",
    choices=("json", "avro", "string", "bytes"),
)
_OPTIONS = ConfigKey(
    "options",
    ValueForm.MAPPING,
    NONE,
    "`json`: options of Spark's JSON reader",
    "options: {timestampFormat: yyyy-MM-dd}",
)
_AVRO = (
    ConfigKey(
        "schema_registry", ValueForm.TEXT, NONE, "`avro`: a schema registry of the target", "schema_registry: main"
    ),
    ConfigKey(
        "subject",
        ValueForm.TEXT,
        "`<topic>-value`",
        "`avro`: where the schemas are in the registry; a `topic_pattern` has no default",
        "subject: orders-value",
    ),
    ConfigKey(
        "schema_id",
        ValueForm.INTEGER,
        NONE,
        "`avro`: id of the reader's schema, instead of the newest version of the subject",
        "schema_id: 7",
    ),
    ConfigKey(
        "schema_file",
        ValueForm.TEXT,
        NONE,
        "`avro`: the reader's schema, an `.avsc` file under `sources/`",
        "schema_file: orders.avsc",
    ),
    ConfigKey(
        "framing",
        ValueForm.TEXT,
        "`confluent` with a registry, else `none`",
        "`avro`: the bytes before a value: a zero byte and the schema id, or nothing",
        "framing: none",
        choices=("confluent", "none"),
    ),
)


def _value(*keys: ConfigKey) -> ConfigBlock:
    text = "How the values of Kafka records are read."
    return ConfigBlock("value", "a value", "kafka: value", text, (_FORMAT, *keys))


VALUE: Final = _value(_OPTIONS, *_AVRO)
JSON_VALUE, PLAIN_VALUE, AVRO_VALUE = _value(_OPTIONS), _value(), _value(*_AVRO)

# The blocks by the formats that have their keys.
FORMATS: Final = {
    **dict.fromkeys(("json", "csv", "parquet", "avro", "orc", "text"), FILE_KEYS),
    "iceberg": ICEBERG_KEYS,
    "kafka": KAFKA_KEYS,
    "rate": RATE_KEYS,
    "socket": SOCKET_KEYS,
}
