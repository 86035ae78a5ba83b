"""The keys of exposures."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm
from engine.schema.source_keys import VERSION

OWNER: Final = ConfigBlock(
    "owner",
    "an owner",
    "owner",
    "Whom to ask. `name` or `email` is required; further keys are your own.",
    (
        ConfigKey("name", ValueForm.TEXT, NONE, "a person or a team", "name: Operations"),
        ConfigKey("email", ValueForm.TEXT, NONE, "an address", "email: ops@example.com"),
    ),
    open=True,
)

_TAGS = ConfigKey("tags", ValueForm.TEXTS, NONE, "for `--select tag:...`", "tags: [daily]")
_META = ConfigKey("meta", ValueForm.VALUES, NONE, "anything, for other tools", "meta: {tool: superset}")
_ENABLED = ConfigKey("enabled", ValueForm.BOOLEAN, "`true`", "`false`: as if it were not there", "enabled: false")

EXPOSURE_CONFIG: Final = ConfigBlock(
    "exposure_config",
    "config",
    "config",
    "dbt's form: the same keys under `config:`.",
    (_TAGS, _META, _ENABLED),
)

EXPOSURE: Final = ConfigBlock(
    "exposure",
    "an exposure",
    "exposures",
    "Something outside the project that reads its tables: a dashboard, a notebook, a service.",
    (
        ConfigKey("name", ValueForm.NAME, REQUIRED, "unique among the exposures", "name: departures_board"),
        ConfigKey(
            "type",
            ValueForm.TEXT,
            REQUIRED,
            "what it is",
            "type: dashboard",
            choices=("dashboard", "notebook", "analysis", "ml", "application"),
        ),
        ConfigKey("owner", ValueForm.BLOCK, REQUIRED, "whom to ask", "owner: {name: Operations}", block="owner"),
        ConfigKey(
            "depends_on",
            ValueForm.TEXTS,
            NONE,
            "the models and sources that it reads",
            "depends_on: [ref('departures_hourly')]",
        ),
        ConfigKey("label", ValueForm.TEXT, "its name", "a title for people", "label: Departures board"),
        ConfigKey("description", ValueForm.TEXT, NONE, "what it shows", "description: Shown in the hall."),
        ConfigKey("url", ValueForm.TEXT, NONE, "where it is", "url: https://bi.example.com/departures"),
        ConfigKey(
            "maturity",
            ValueForm.TEXT,
            NONE,
            "how far people may rely on it",
            "maturity: high",
            choices=("high", "medium", "low"),
        ),
        _TAGS,
        _META,
        _ENABLED,
        ConfigKey(
            "config", ValueForm.BLOCK, NONE, "dbt's form of tags, meta, enabled", "config: {tags: [daily]}",
            block="exposure_config",
        ),
    ),
)  # fmt: skip

EXPOSURE_FILE: Final = ConfigBlock(
    "exposure_file",
    "a file of exposures",
    "A YAML file under models/",
    "Any name; a project may have several.",
    (
        VERSION,
        ConfigKey(
            "exposures",
            ValueForm.BLOCKS,
            NONE,
            "what reads the project's tables",
            "exposures: [{name: board, type: dashboard, owner: {name: ops}, depends_on: [ref('flights')]}]",
            block="exposure",
        ),
    ),
)
