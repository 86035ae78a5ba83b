"""The keys of sinks."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

SINK_TO: Final = ConfigBlock(
    "sink_to",
    "'to' of a sink",
    "sinks: to",
    "The table or topic that gets the rows.",
    (
        ConfigKey("connection", ValueForm.TEXT, REQUIRED, "Name of a connection of the target", "connection: crm"),
        ConfigKey(
            "table",
            ValueForm.TEXT,
            "required for a database",
            "Table in the database, with its schema",
            "table: public.customers",
        ),
        ConfigKey(
            "topic", ValueForm.TEXT, "required for Kafka", "Topic that gets a record per change", "topic: shop.orders"
        ),
    ),
)

SINK: Final = ConfigBlock(
    "sink",
    "a sink",
    "sinks",
    "A delivery of a table's committed rows to another system. See [sinks](../sinks.md).",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "Unique name of the sink", "name: customers_to_crm"),
        ConfigKey("from", ValueForm.TEXT, REQUIRED, "Model whose table the sink delivers", "from: ref('customers')"),
        ConfigKey(
            "to",
            ValueForm.BLOCK,
            REQUIRED,
            "Destination of the rows",
            "to: {connection: crm, table: public.customers}",
            block="sink_to",
        ),
        ConfigKey(
            "changes",
            ValueForm.TEXT,
            "`upserts` with a key, else `rows`",
            "`rows`: insert each appended row; `upserts`: insert, update and delete rows by their key",
            "changes: rows",
            choices=("rows", "upserts"),
        ),
        ConfigKey(
            "key",
            ValueForm.TEXTS,
            "the model's `unique_key`",
            "Columns that identify a row in the other system",
            "key: [customer_id]",
        ),
        ConfigKey(
            "columns",
            ValueForm.TEXTS,
            "all that are not personal data",
            "Columns to deliver; columns with personal data are delivered only if they are listed here",
            "columns: [customer_id, name]",
        ),
        ConfigKey("exclude", ValueForm.TEXTS, NONE, "Columns to leave out", "exclude: [raw]"),
        ConfigKey(
            "start",
            ValueForm.TEXT,
            "`earliest`",
            "First delivery: `earliest` delivers all rows of the table, `now` only later changes",
            "start: now",
            choices=("earliest", "now"),
        ),
        ConfigKey(
            "create",
            ValueForm.BOOLEAN,
            "`false`",
            "Create the table or topic at the first delivery if it does not exist",
            "create: true",
        ),
        ConfigKey("description", ValueForm.TEXT, NONE, "Text for people", "description: Read by the CRM."),
        ConfigKey("tags", ValueForm.TEXTS, NONE, "Tags for `--select tag:...`", "tags: [daily]"),
        ConfigKey("meta", ValueForm.VALUES, NONE, "Values for other tools", "meta: {team: crm}"),
        ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false` disables the sink", "enabled: false"),
    ),
)
