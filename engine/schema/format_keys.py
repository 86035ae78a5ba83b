"""The keys that each format of a source adds to those of every source, and the formats of Kafka's values."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

_CONNECTION = ConfigKey(
    "connection", ValueForm.TEXT, NONE, "Connection of the target, for credentials", "connection: main"
)
_VALUE = ConfigKey(
    "value",
    ValueForm.TREE,
    NONE,
    "`json`: format of a line; `debezium` reads change records, each an object of `key` and `value`",
    "value: {format: debezium, key: [id]}",
    also=(ValueForm.TEXT,),
    block="value",
)
_ON_UPSTREAM_DELETE = ConfigKey(
    "on_upstream_delete",
    ValueForm.TEXT,
    "`fail`",
    "Reaction of a stream to a commit that only deletes rows",
    "on_upstream_delete: ignore",
    choices=("fail", "ignore"),
)

FILE_KEYS: Final = ConfigBlock(
    "files",
    "a source of files",
    "json, csv, text, parquet, orc, avro",
    "Files in a folder.",
    (
        ConfigKey(
            "path",
            ValueForm.PATH,
            REQUIRED,
            "Folder, file or pattern, relative to the project or absolute; or a URI",
            "path: landing/orders",
        ),
        ConfigKey(
            "max_files_per_trigger",
            ValueForm.INTEGER,
            "all unread",
            "Maximum number of files in one micro-batch of a stream",
            "max_files_per_trigger: 4",
        ),
        ConfigKey(
            "max_file_age",
            ValueForm.DURATION,
            NONE,
            "Maximum age relative to the newest file; Headrace skips, counts and reports older files",
            "max_file_age: 30 days",
        ),
        ConfigKey(
            "on_changed_file",
            ValueForm.TEXT,
            "`fail`",
            "Reaction to a file that changes after the stream has read it",
            "on_changed_file: ignore",
            choices=("fail", "ignore"),
        ),
        ConfigKey(
            "after_reading",
            ValueForm.TEXT,
            "the file stays",
            "Action on a file after its rows are committed",
            "after_reading: delete",
            choices=("archive", "delete"),
        ),
        ConfigKey(
            "archive_path",
            ValueForm.PATH,
            "required for `after_reading: archive`",
            "Folder of the project outside `path`, or a folder that the target allows",
            "archive_path: archive/orders",
        ),
        ConfigKey(
            "full_extracts",
            ValueForm.TEXT,
            NONE,
            (
                "Each file is a full extract: a batch table with `history: true` merges one after another, in the "
                "order of the dates in their names or of their modification times"
            ),
            "full_extracts: by_name",
            choices=("by_name", "by_time"),
        ),
        _VALUE,
        _CONNECTION,
    ),
)

KAFKA_KEYS: Final = ConfigBlock(
    "kafka",
    "a Kafka source",
    "kafka",
    "Topics of a Kafka broker. One of `topic`, `topics`, `topic_pattern` and `assign` is required.",
    (
        ConfigKey("topic", ValueForm.TEXT, NONE, "Name of one topic", "topic: orders"),
        ConfigKey("topics", ValueForm.TEXTS, NONE, "Names of several topics", "topics: [orders, returns]"),
        ConfigKey(
            "topic_pattern",
            ValueForm.TEXT,
            NONE,
            "Java regular expression that must match the full name of a topic",
            "topic_pattern: shop[.].*",
        ),
        ConfigKey("assign", ValueForm.TREE, NONE, "Partitions per topic", "assign: {orders: [0, 1]}"),
        ConfigKey("connection", ValueForm.TEXT, REQUIRED, "Connection of the target", "connection: main"),
        ConfigKey(
            "value",
            ValueForm.TREE,
            "`json`",
            "Format of the record values: a format name, or a mapping",
            "value: {format: json, options: {allowComments: true}}",
            also=(ValueForm.TEXT,),
            block="value",
        ),
        ConfigKey(
            "on_tombstone",
            ValueForm.TEXT,
            "`bad_record`; `debezium` always ignores them",
            (
                "Treatment of a record that has a key and no value: a bad record, skipped and counted, or the delete "
                "of the row with that key"
            ),
            "on_tombstone: ignore",
            choices=("ignore", "delete", "bad_record"),
        ),
        ConfigKey(
            "key",
            ValueForm.TEXTS,
            "required for `on_tombstone: delete`",
            "Columns of the record's key: a JSON object with them, or the text of one column",
            "key: [id]",
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
            "Start time (UTC) of the first record to read, instead of `starting_offsets`",
            "starting_timestamp: 2024-05-01 10:00:00",
        ),
        ConfigKey(
            "max_offsets_per_trigger",
            ValueForm.INTEGER,
            "all unread",
            "Maximum number of offsets in one micro-batch of a stream, over all partitions",
            "max_offsets_per_trigger: 100000",
        ),
        ConfigKey(
            "fail_on_data_loss",
            ValueForm.BOOLEAN,
            "`true`",
            "`false`: count and skip records that the broker deleted before the stream read them",
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
            "Time (UTC) from which the stream reads commits",
            "starting_timestamp: 2024-05-01 10:00:00",
        ),
        ConfigKey(
            "starting_snapshot",
            ValueForm.TEXT,  # ids have up to 19 digits
            "the first row",
            "Snapshot from which the stream reads",
            "starting_snapshot: 4358109269873137077",
        ),
        _ON_UPSTREAM_DELETE,
    ),
)

RATE_KEYS: Final = ConfigBlock(
    "rate",
    "a rate source",
    "rate",
    "Rows that Spark generates at a fixed rate, for development.",
    (
        ConfigKey("rows_per_second", ValueForm.INTEGER, "1", "Number of rows per second", "rows_per_second: 100"),
        ConfigKey(
            "ramp_up_time",
            ValueForm.DURATION,
            NONE,
            "Time until the source reaches that rate",
            "ramp_up_time: 10 seconds",
        ),
    ),
)

SOCKET_KEYS: Final = ConfigBlock(
    "socket",
    "a socket source",
    "socket",
    "Lines of text from a TCP server, for development.",
    (
        ConfigKey("host", ValueForm.TEXT, REQUIRED, "Host of the server", "host: localhost"),
        ConfigKey("port", ValueForm.INTEGER, REQUIRED, "Port of the server", "port: 9999"),
        ConfigKey(
            "read_for",
            ValueForm.DURATION,
            "5 seconds",
            "Time that a build listens; it ends earlier if the server closes the connection",
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
            "Argument of the reader's `load()`: a folder of the project, an absolute path, or a URI",
            "path: landing/orders",
        ),
        _CONNECTION,
    ),
)

_FORMAT = ConfigKey(
    "format",
    ValueForm.TEXT,
    "`json`",
    "Format of a value; `string` and `bytes` give one column, `value`",
    "format: avro",
    choices=("json", "debezium", "avro", "string", "bytes"),
)
_OPTIONS = ConfigKey(
    "options",
    ValueForm.MAPPING,
    NONE,
    "`json`: options of Spark's JSON reader",
    "options: {timestampFormat: yyyy-MM-dd}",
)
_KEY = ConfigKey(
    "key",
    ValueForm.TEXTS,
    "required for `debezium`",
    "`debezium`: columns of the record's key, the primary key; `[]` if the table has none",
    "key: [id]",
)
_ON_TRUNCATE = ConfigKey(
    "on_truncate",
    ValueForm.TEXT,
    "`reject`",
    "`debezium`: treatment of a TRUNCATE of the table: a bad record, or the older rows of the merged table are deleted",
    "on_truncate: apply",
    choices=("reject", "apply"),
)
_FLATTENED = ConfigKey(
    "flattened",
    ValueForm.BOOLEAN,
    "`false`",
    "`debezium`: the connector uses ExtractNewRecordState, so a value is the row itself",
    "flattened: true",
)
_AVRO = (
    ConfigKey(
        "schema_registry", ValueForm.TEXT, NONE, "`avro`: schema registry of the target", "schema_registry: main"
    ),
    ConfigKey(
        "subject",
        ValueForm.TEXT,
        "`<topic>-value`",
        "`avro`: subject of the schemas in the registry; a `topic_pattern` has no default",
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
        "`avro`: reader's schema, an `.avsc` file under `sources/`",
        "schema_file: orders.avsc",
    ),
    ConfigKey(
        "framing",
        ValueForm.TEXT,
        "`confluent` with a registry, else `none`",
        "`avro`: bytes in front of a value: a zero byte and the schema id, or none",
        "framing: none",
        choices=("confluent", "none"),
    ),
)


def _value(*keys: ConfigKey) -> ConfigBlock:
    text = "How the values of Kafka records, or lines of JSON files, are read."
    return ConfigBlock("value", "a value", "kafka: value", text, (_FORMAT, *keys))


VALUE: Final = _value(_OPTIONS, _KEY, _ON_TRUNCATE, _FLATTENED, *_AVRO)
JSON_VALUE, PLAIN_VALUE, AVRO_VALUE = _value(_OPTIONS), _value(), _value(*_AVRO)
DEBEZIUM_VALUE = _value(_KEY, _ON_TRUNCATE, _FLATTENED)

# The blocks by the formats that have their keys.
FORMATS: Final = {
    **dict.fromkeys(("json", "csv", "parquet", "avro", "orc", "text"), FILE_KEYS),
    "iceberg": ICEBERG_KEYS,
    "kafka": KAFKA_KEYS,
    "rate": RATE_KEYS,
    "socket": SOCKET_KEYS,
}
