"""What decides the meaning of a query beside its text: settings of the session, and what `pre_hook` prepares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from engine.compile.config.spark_settings import DEFAULTS, changes_nothing

TIME_ZONE = "spark.sql.session.timeZone"
# With several watermarks a checkpoint keeps the policy it began with, whatever the session's setting is (measured).
FROZEN = "spark.sql.streaming.multipleWatermarkPolicy"
# Spellings of the one time zone in which all times are.
_UTC = re.compile(r"(etc/)?(utc|gmt|uct|zulu|greenwich|universal)|z|(utc|gmt)?[+-]0?0(:?00)?", re.IGNORECASE)
# The settings that versions of the engine recorded which knew few: their values have no case, and hold no secret.
_FIRST = (
    "spark.sql.ansi.", "spark.sql.storeAssignmentPolicy", "spark.sql.caseSensitive", "spark.sql.timestampType",
    "spark.sql.mapKeyDedupPolicy", "spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.parser.escapedString",
    "spark.sql.parser.quotedRegexColumnNames", "spark.sql.groupBy", "spark.sql.orderByOrdinal",
    "spark.sql.charAsVarchar",
    "spark.sql.readSideCharPadding", "spark.sql.session.collation.default", "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp", "spark.sql.variable.substitute", FROZEN, "spark.sql.legacy.",
    "spark.sql.parquet.datetimeRebase", "spark.sql.avro.datetimeRebase",
)  # fmt: skip
_BY_LOWER = {key.lower(): key for key in DEFAULTS}
# Rows go to a branch or wait as a snapshot of nobody: Iceberg's streams ignore the one and obey the other (measured).
WAP = "spark.wap."
_SET_WAP = re.compile(r"\s*set\s+`?spark\.wap\.", re.IGNORECASE)
WAP_MESSAGE = "{} writes rows that readers do not see, in commits that Headrace cannot recognize"
WAP_HINT = "Remove it; 'publish: on_tests_pass' of a model keeps rows from readers until its tests have passed."
# A secret where its value will be; the last part is another one in each process.
_PLACEHOLDER = re.compile(r"<secret (\S+) [0-9a-f]+/\d+>")
# Statements that change tables, and nothing that the query of the model could see by another name.
_OF_TABLES = re.compile(
    r"\s*(insert|delete|update|merge|call|select|with|values|alter|drop\s+table|truncate|refresh|analyze|optimize|show"
    r"|describe|explain|comment|create\s+(or\s+replace\s+)?table|create\s+(namespace|schema|database))\b",
    re.IGNORECASE,
)


def is_utc(zone: str) -> bool:
    """Whether a time zone is UTC under one of its names."""
    return bool(_UTC.fullmatch(zone.strip().strip("'\"")))


def sets_wap(statement: str) -> bool:
    """Whether a statement sets one of Iceberg's settings for write-audit-publish."""
    return bool(_SET_WAP.match(statement))


def recorded_first(key: str) -> bool:
    """Whether a setting is one of the few that every version of the engine has recorded."""
    return _BY_LOWER.get(key.lower(), key).startswith(_FIRST)


def meaning(conf: Mapping[str, str], pre_hook: Iterable[str]) -> dict[str, Any]:
    """The settings among the facts of a model: those that may change rows and differ from their default."""
    effective_conf = {}
    for key, value in conf.items():
        if changes_nothing(key) or key.lower() == TIME_ZONE.lower():
            continue
        name, text = _BY_LOWER.get(key.lower(), key), _PLACEHOLDER.sub(r"<secret \1>", str(value).strip())
        default = DEFAULTS.get(name, "")
        if recorded_first(name) or text.lower() in {"true", "false"}:
            text, default = text.lower(), default.lower()
        if name not in DEFAULTS or text != default:
            effective_conf[name] = text
    # Late: targets are read where nothing is compiled, and it imports sqlglot.
    from engine.compile.sql.normalize import spelling_of

    hooks = [spelling_of(text) for text in pre_hook if not _OF_TABLES.match(text)]
    settings: dict[str, Any] = {"conf": effective_conf, "pre_hook": hooks}
    return {key: value for key, value in settings.items() if value}
