"""The mappings inside a model's header: streams, watermarks, expectations, state and the like."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

WATERMARK: Final = ConfigBlock(
    "watermark",
    "a watermark",
    "watermark",
    "Event time of a stream. Short form: `<column> delay <duration>`, or `<SQL> as <column> delay <duration>`.",
    (
        ConfigKey("column", ValueForm.TEXT, REQUIRED, "Column with the event time", "column: ordered_at"),
        ConfigKey(
            "as",
            ValueForm.SQL,
            "the input has the column",
            "SQL that computes the column",
            "as: cast(data.at as timestamp)",
        ),
        ConfigKey(
            "delay",
            ValueForm.DURATION,
            REQUIRED,
            "Maximum lateness of a row; Spark drops later ones",
            "delay: 30 minutes",
        ),
        ConfigKey(
            "max_future",
            ValueForm.DURATION,
            "no bound",
            "Maximum distance ahead of the clock; rows further ahead are bad records",
            "max_future: 1 hour",
        ),
        ConfigKey(
            "on_null",
            ValueForm.TEXT,
            "`bad_record`",
            "Treatment of rows without an event time in front of a stateful step",
            "on_null: drop",
            choices=("bad_record", "drop"),
        ),
    ),
    plain=(ValueForm.TEXT,),
)

ON_BAD_RECORD: Final = ConfigKey(
    "on_bad_record",
    ValueForm.TEXT,
    "the source's setting; `fail` for models",
    "Treatment of records that do not match their declaration",
    "on_bad_record: quarantine",
    choices=("fail", "drop", "quarantine"),
)

STREAM: Final = ConfigBlock(
    "stream",
    "a stream",
    "streams",
    "Settings of an input that Headrace reads incrementally.",
    (
        ConfigKey(
            "watermark",
            ValueForm.TEXT,
            "the source's setting",
            "Event time of the stream, and the maximum lateness of a row",
            "watermark: ordered_at delay 30 minutes",
            also=(ValueForm.BLOCK,),
            block="watermark",
        ),
        ConfigKey(
            "dedup",
            ValueForm.TEXTS,
            "the source's setting",
            "Columns that identify duplicates within the delay of the watermark, which Spark drops",
            "dedup: [id]",
        ),
        ConfigKey(
            "max_files_per_trigger",
            ValueForm.INTEGER,
            "the source's setting",
            "Maximum number of files in one micro-batch, for file sources",
            "max_files_per_trigger: 4",
        ),
        ConfigKey(
            "on_upstream_delete",
            ValueForm.TEXT,
            "`fail`",
            "Reaction of the stream to a snapshot of a model that only deletes rows",
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
        ConfigKey("name", ValueForm.NAME, REQUIRED, "Name in reports and in the quarantine", "name: plausible_delay"),
        ConfigKey(
            "check",
            ValueForm.SQL,
            REQUIRED,
            "One SQL condition over the columns of the SELECT",
            "check: delay between -120 and 3000",
        ),
        ConfigKey(
            "on_fail",
            ValueForm.TEXT,
            "`warn`",
            "Treatment of a row that fails",
            "on_fail: quarantine",
            choices=("warn", "drop", "quarantine", "fail"),
        ),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "Text for people; the docs site and manifest.json show it",
            "description: Delays outside of this are typing errors.",
        ),
    ),
)

STATE_STORE: Final = ConfigBlock(
    "state_store",
    "state_store",
    "state_store",
    "Spark's state store for a query. You cannot change it after the first start of the query.",
    (
        ConfigKey(
            "partitions",
            ValueForm.INTEGER,
            "`spark.sql.shuffle.partitions` of the target, else 2 with a local master and the cores of a cluster",
            "Number of state partitions",
            "partitions: 8",
        ),
        ConfigKey(
            "provider",
            ValueForm.TEXT,
            "`rocksdb`",
            "State store of Spark",
            "provider: hdfs",
            choices=("rocksdb", "hdfs"),
        ),
    ),
)

CONTRACT: Final = ConfigBlock(
    "contract",
    "a contract",
    "contract",
    "`contract: true`, as dbt writes it.",
    (ConfigKey("enforced", ValueForm.BOOLEAN, "`false`", "`true`: enforce the contract", "enforced: true"),),
)

PERSIST_DOCS: Final = ConfigBlock(
    "persist_docs",
    "persist_docs",
    "persist_docs",
    "Descriptions that Headrace writes to the table as comments.",
    (
        ConfigKey("relation", ValueForm.BOOLEAN, "`false`", "Write the description of the table", "relation: true"),
        ConfigKey("columns", ValueForm.BOOLEAN, "`false`", "Write the descriptions of the columns", "columns: true"),
    ),
)
