"""Settings of Spark that no target and no hook can change: by them a text is read as it was checked and written.

With variable substitution Spark replaces `${env:X}` in every statement, also in a value that came from a record, by a
secret of the environment. The others change where a string or a name ends, or whether `Id` is `id`; texts are compiled
and compared for these values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PINNED: Final[Mapping[str, str]] = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.parseQueryWithoutEof": "false",
}
_BY_LOWER: Final = {key.lower(): key for key in PINNED}


def pinned(key: str) -> tuple[str, str] | None:
    """The name and the value of a setting that is pinned, in whatever case it is written; None: it is free."""
    known = _BY_LOWER.get(key.lower())
    return (known, PINNED[known]) if known else None
