"""Where the two verdicts on a query differ, and the shortest form of it that still does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlglot.errors import TokenError

from engine.compile.sql.dialect import tokenize
from tests.analyser.verdicts import BROKEN, Analyser, Verdict, compiled

_OVER_GROUPS = re.compile(
    r"over \((?:partition|order) by [^)]*\b(?:any_value|avg|bool_or|count|every|first|max|min|sum)\("
)
# How many words are taken out at once.
_SIZES = (40, 25, 16, 12, 9, 8, 7, 6, 5, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class Difference:
    """A query on which the two do not agree; `kind` says how, in one word."""

    sql: str
    kind: str
    here: Verdict
    spark: Verdict

    def __str__(self) -> str:
        lines = [self.sql]
        if self.kind in {"columns", "place"}:
            lines += [f"  {self.kind}: {text}" for text in _unlike(self.here, self.spark)]
            return "\n".join([*lines, f"  here: {self.here}"] if self.kind == "place" else lines)
        lines.append(f"  here:  {self.here.refused or 'accepted'} {self.here.text}")
        lines.append(f"  spark: {self.spark.refused or 'accepted'} {self.spark.text}")
        return "\n".join(lines)


def difference(sql: str, here: Verdict, spark: Verdict) -> Difference | None:
    """How two verdicts differ; None if they do not."""
    if known(sql, here, spark):
        return None
    if bool(here.refused) != bool(spark.refused):
        return Difference(sql, "refused" if here.refused else "accepted", here, spark)
    if here.refused and here.place is None:
        return Difference(sql, "place", here, spark)
    if not here.refused and here.columns is not None and _unlike(here, spark):
        return Difference(sql, "columns", here, spark)
    return None


def known(sql: str, here: Verdict, spark: Verdict) -> str:
    """Why a difference is a fault of Spark itself; empty if it is none."""
    if spark.refused == BROKEN:
        return "the analyser fails with an internal error"
    if not any(word in sql for word in ("rollup", "cube", "grouping sets")) or " over (" not in sql:
        return ""
    if not spark.refused and here.text == "a function with OVER is in GROUP BY":
        return "a function with OVER in a grouping set passes the analyser, and cannot be computed"
    if not here.refused and spark.refused.startswith("MISSING_ATTRIBUTES") and " having " in sql:
        return "an internal error (XX000): HAVING over grouping sets loses the result of a function with OVER"
    if not here.refused and spark.refused == "MISSING_AGGREGATION" and _OVER_GROUPS.search(sql):
        return "beside grouping sets a key counts as ungrouped in a function whose window holds an aggregate"
    return ""


def _unlike(here: Verdict, spark: Verdict) -> list[str]:
    """Columns that compile claims to know and Spark has otherwise."""
    ours, theirs = here.columns or (), spark.columns or ()
    if ours and len(ours) != len(theirs):
        return [f"{len(ours)} columns here, {len(theirs)} in Spark"]
    return [
        f"{a} {x} here, {b} {y} in Spark"
        for (a, x), (b, y) in zip(ours, theirs, strict=False)
        if a != b or (x is not None and x != y)
    ]


def differences(queries: Sequence[str], analyser: Analyser, folder: Path) -> Iterator[Difference]:
    """The queries on which compile and Spark differ."""
    ours = compiled(folder, queries, streams=analyser.streams is not None)
    for sql, here in zip(queries, ours, strict=True):
        found = difference(sql, here, analyser.verdict(sql))
        if found is not None:
            yield found


def shortest(found: Difference, analyser: Analyser) -> Difference:
    """A shorter query with the same difference: parts are taken out, large ones first, as long as it stays."""
    shorter: Difference | None = found
    for size in (0, *_SIZES):
        while shorter is not None:
            found, shorter = shorter, _first(shorter, list(dict.fromkeys(_without(shorter.sql, size))), analyser)
        shorter = found
    return found


def _first(found: Difference, candidates: list[str], analyser: Analyser) -> Difference | None:
    """The first of the candidates that has the same difference."""
    with tempfile.TemporaryDirectory(prefix="analyser", ignore_cleanup_errors=True) as folder:
        verdicts = compiled(Path(folder), candidates, streams=analyser.streams is not None)
    for sql, here in zip(candidates, verdicts, strict=True):
        if here.refused == found.here.refused:
            seen = difference(sql, here, analyser.verdict(sql))
            if seen is not None and seen.kind == found.kind and seen.spark.refused == found.spark.refused:
                return seen
    return None


def _without(sql: str, size: int) -> Iterator[str]:
    """The query without a pair of brackets (and perhaps what is in front or around), or without some words."""
    hidden = sql.replace("[[", " `@").replace("]]", "@` ")
    try:
        tokens = [hidden[t.start : t.end + 1] for t in tokenize(hidden)]
    except TokenError:
        return
    tokens = [t.replace("`@", "[[").replace("@`", "]]") for t in tokens]
    if not size:
        for start, end in sorted(_brackets(tokens).items(), key=lambda pair: pair[0] - pair[1]):
            if tokens[start + 1] == "select":
                yield _text(tokens[start + 1 : end])
            yield _text(tokens[:start] + tokens[start + 1 : end] + tokens[end + 1 :])
            if start and tokens[start - 1].isidentifier():
                yield _text(tokens[: start - 1] + tokens[start + 1 : end] + tokens[end + 1 :])
                yield _text([*tokens[: start - 1], "1", *tokens[end + 1 :]])
        return
    for start in range(len(tokens) - size + 1):
        part = tokens[start : start + size]
        if part.count("(") == part.count(")") and tokens[start - 1] != "." and part[0] != ".":
            yield _text(tokens[:start] + tokens[start + size :])


def _brackets(tokens: list[str]) -> dict[int, int]:
    found, waiting = {}, []
    for position, token in enumerate(tokens):
        if token == "(":
            waiting.append(position)
        elif token == ")" and waiting:
            found[waiting.pop()] = position
    return found


def _text(tokens: list[str]) -> str:
    text = " ".join(tokens)
    for wide, narrow in ((" . ", "."), ("( ", "("), (" )", ")"), (" ,", ","), (" (", "(")):
        text = text.replace(wide, narrow)
    return text
