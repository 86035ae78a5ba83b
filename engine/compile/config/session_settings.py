"""What decides the meaning of a query beside its text: settings of the session, and what `pre_hook` prepares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

TIME_ZONE = "spark.sql.session.timeZone"
# With several watermarks a checkpoint keeps the policy it began with, whatever the session's setting is (measured).
FROZEN = "spark.sql.streaming.multipleWatermarkPolicy"
# Spellings of the one time zone in which all times are.
_UTC = re.compile(r"(etc/)?(utc|gmt|uct|zulu|greenwich|universal)|z|(utc|gmt)?[+-]0?0(:?00)?", re.IGNORECASE)
# Settings with which the same SQL gives other rows, and their values in Spark 4.1.
_DEFAULTS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.storeAssignmentPolicy": "ansi",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.mapKeyDedupPolicy": "exception",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.session.collation.default": "utf8_binary",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.variable.substitute": "true",
    FROZEN: "min",
}  # fmt: skip
_MEANING = (*_DEFAULTS, "spark.sql.legacy.", "spark.sql.parquet.datetimeRebase", "spark.sql.avro.datetimeRebase")
_BY_LOWER = {key.lower(): key for key in _DEFAULTS}
# Statements that change tables, and nothing that the query of the model could see by another name.
_OF_TABLES = re.compile(
    r"\s*(insert|delete|update|merge|call|select|with|values|alter|drop\s+table|truncate|refresh|analyze|optimize|show"
    r"|describe|explain|comment|create\s+(or\s+replace\s+)?table|create\s+(namespace|schema|database))\b",
    re.IGNORECASE,
)


def is_utc(zone: str) -> bool:
    """Whether a time zone is UTC under one of its names."""
    return bool(_UTC.fullmatch(zone.strip().strip("'\"")))


def meaning(conf: Mapping[str, str], pre_hook: Iterable[str]) -> dict[str, Any]:
    """The settings among the facts of a model, as plain JSON; what is left at its default is not among them."""
    chosen = {}
    for key, value in conf.items():
        default, text = _BY_LOWER.get(key.lower(), key), str(value).strip().lower()
        if default.startswith(_MEANING) and _DEFAULTS.get(default) != text:
            chosen[default] = text
    # Late: targets are read where nothing is compiled, and it imports sqlglot.
    from engine.compile.sql.normalize import spelling_of

    hooks = [spelling_of(text) for text in pre_hook if not _OF_TABLES.match(text)]
    settings: dict[str, Any] = {"conf": chosen, "pre_hook": hooks}
    return {key: value for key, value in settings.items() if value}
