"""The mappings inside a model's header: streams, watermarks, expectations, state and the like."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

WATERMARK: Final = ConfigBlock(
    "watermark",
    "a watermark",
    "watermark",
    "Event time of a stream. In short: `<column> delay <duration>`, or `<SQL> as <column> delay <duration>`.",
    (
        ConfigKey("column", ValueForm.TEXT, REQUIRED, "the column with the event time", "column: ordered_at"),
        ConfigKey(
            "as",
            ValueForm.SQL,
            "the input has the column",
            "SQL that makes the column",
            "as: cast(data.at as timestamp)",
        ),
        ConfigKey(
            "delay", ValueForm.DURATION, REQUIRED, "how late rows may be; later ones are dropped", "delay: 30 minutes"
        ),
        ConfigKey(
            "max_future",
            ValueForm.DURATION,
            "no bound",
            "rows further ahead of the clock are bad records",
            "max_future: 1 hour",
        ),
        ConfigKey(
            "on_null",
            ValueForm.TEXT,
            "`bad_record`",
            "what happens to rows without a time where a stateful step needs one",
            "on_null: drop",
            choices=("bad_record", "drop"),
        ),
    ),
    plain=(ValueForm.TEXT,),
)

ON_BAD_RECORD: Final = ConfigKey(
    "on_bad_record",
    ValueForm.TEXT,
    "what the source sets; `fail` for models",
    "what happens to records that cannot be read as declared",
    "on_bad_record: quarantine",
    choices=("fail", "drop", "quarantine"),
)

STREAM: Final = ConfigBlock(
    "stream",
    "a stream",
    "streams",
    "Settings of an input that is read incrementally.",
    (
        ConfigKey(
            "watermark",
            ValueForm.TEXT,
            "what the source sets",
            "event time, and how late rows may be",
            "watermark: ordered_at delay 30 minutes",
            also=(ValueForm.BLOCK,),
            block="watermark",
        ),
        ConfigKey(
            "dedup",
            ValueForm.TEXTS,
            "what the source sets",
            "columns by which duplicates within the watermark's delay are dropped",
            "dedup: [id]",
        ),
        ConfigKey(
            "max_files_per_trigger",
            ValueForm.INTEGER,
            "what the source sets",
            "files in one micro-batch, for sources of files",
            "max_files_per_trigger: 4",
        ),
        ConfigKey(
            "on_upstream_delete",
            ValueForm.TEXT,
            "`fail`",
            "what the stream does at a snapshot of a model that only deletes rows",
            "on_upstream_delete: ignore",
            choices=("fail", "ignore"),
        ),
        ON_BAD_RECORD,
    ),
)

EXPECTATION: Final = ConfigBlock(
    "expectation",
    "an expectation",
    "expectations",
    "A condition on each output row. Only TRUE passes.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "name in reports and in the quarantine", "name: plausible_delay"),
        ConfigKey(
            "check",
            ValueForm.SQL,
            REQUIRED,
            "one SQL condition over the columns of the SELECT",
            "check: delay between -120 and 3000",
        ),
        ConfigKey(
            "on_fail",
            ValueForm.TEXT,
            "`warn`",
            "what happens to a row that fails",
            "on_fail: quarantine",
            choices=("warn", "drop", "quarantine", "fail"),
        ),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "for people: the docs site and manifest.json show it",
            "description: Delays outside of this are typing errors.",
        ),
    ),
)

STATE_STORE: Final = ConfigBlock(
    "state_store",
    "state_store",
    "state_store",
    "Where Spark keeps the state of a query. It is fixed at the query's first start.",
    (
        ConfigKey(
            "partitions",
            ValueForm.INTEGER,
            "`spark.sql.shuffle.partitions` of the target, else 2 with a local master and the cores of a cluster",
            "partitions of the state",
            "partitions: 8",
        ),
        ConfigKey(
            "provider",
            ValueForm.TEXT,
            "`rocksdb`",
            "Spark's state store",
            "provider: hdfs",
            choices=("rocksdb", "hdfs"),
        ),
    ),
)

CONTRACT: Final = ConfigBlock(
    "contract",
    "a contract",
    "contract",
    "dbt's form of `contract: true`.",
    (ConfigKey("enforced", ValueForm.BOOLEAN, "`false`", "the contract holds", "enforced: true"),),
)

PERSIST_DOCS: Final = ConfigBlock(
    "persist_docs",
    "persist_docs",
    "persist_docs",
    "Which descriptions are written to the table as comments.",
    (
        ConfigKey("relation", ValueForm.BOOLEAN, "`false`", "the description of the table", "relation: true"),
        ConfigKey("columns", ValueForm.BOOLEAN, "`false`", "the descriptions of the columns", "columns: true"),
    ),
)
