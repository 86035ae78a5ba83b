"""The keys of exposures, and of the files that declare exposures and sinks."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm
from engine.schema.source_keys import VERSION

OWNER: Final = ConfigBlock(
    "owner",
    "an owner",
    "owner",
    "Person or team to contact. `name` or `email` is required. You can add other keys.",
    (
        ConfigKey("name", ValueForm.TEXT, NONE, "Person or team", "name: Operations"),
        ConfigKey("email", ValueForm.TEXT, NONE, "Email address", "email: ops@example.com"),
    ),
    open=True,
)

_TAGS = ConfigKey("tags", ValueForm.TEXTS, NONE, "Labels for `--select tag:...`", "tags: [daily]")
_META = ConfigKey("meta", ValueForm.VALUES, NONE, "Any data, for other tools", "meta: {tool: superset}")
_ENABLED = ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: ignore the exposure", "enabled: false")

EXPOSURE_CONFIG: Final = ConfigBlock(
    "exposure_config",
    "config",
    "config",
    "The same keys under `config:`, as in dbt.",
    (_TAGS, _META, _ENABLED),
)

EXPOSURE: Final = ConfigBlock(
    "exposure",
    "an exposure",
    "exposures",
    "A consumer of the project's tables outside the project: a dashboard, a notebook, a service.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "Unique name of the exposure", "name: departures_board"),
        ConfigKey(
            "type",
            ValueForm.TEXT,
            REQUIRED,
            "Kind of the consumer",
            "type: dashboard",
            choices=("dashboard", "notebook", "analysis", "ml", "application"),
        ),
        ConfigKey("owner", ValueForm.BLOCK, REQUIRED, "Person or team", "owner: {name: Operations}", block="owner"),
        ConfigKey(
            "depends_on",
            ValueForm.TEXTS,
            NONE,
            "Models and sources that the exposure reads",
            "depends_on: [ref('departures_hourly')]",
        ),
        ConfigKey("label", ValueForm.TEXT, "its name", "Title for people", "label: Departures board"),
        ConfigKey("description", ValueForm.TEXT, NONE, "Text for people", "description: Shown in the hall."),
        ConfigKey("url", ValueForm.TEXT, NONE, "Address of the exposure", "url: https://bi.example.com/departures"),
        ConfigKey(
            "maturity",
            ValueForm.TEXT,
            NONE,
            "Degree to which people can rely on it",
            "maturity: high",
            choices=("high", "medium", "low"),
        ),
        _TAGS,
        _META,
        _ENABLED,
        ConfigKey(
            "config", ValueForm.BLOCK, NONE, "The same keys under `config:`, as in dbt", "config: {tags: [daily]}",
            block="exposure_config",
        ),
    ),
)  # fmt: skip

EXPOSURE_FILE: Final = ConfigBlock(
    "exposure_file",
    "a file of exposures and sinks",
    "A YAML file under models/",
    "The files can have any name.",
    (
        VERSION,
        ConfigKey(
            "exposures",
            ValueForm.BLOCKS,
            NONE,
            "List of consumers of the project's tables",
            "exposures: [{name: board, type: dashboard, owner: {name: ops}, depends_on: [ref('flights')]}]",
            block="exposure",
        ),
        ConfigKey(
            "sinks",
            ValueForm.BLOCKS,
            NONE,
            "List of deliveries of committed rows",
            "sinks: [{name: crm, from: ref('customers'), to: {connection: crm, table: public.customers}}]",
            block="sink",
        ),
    ),
)
