"""What goes into the checker, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from engine.compile.nodes.query_finding import QueryFinding
from engine.errors import Level

Mode = Literal["append", "update", "complete"]
MODES: tuple[Mode, ...] = ("append", "update", "complete")


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What is known of a relation that the query reads.

    Attributes:
        streaming: read as a stream.
        columns: name -> Spark type (None: the type is not known); None: the columns are not known.
        watermark: the column that carries the watermark.
        delay: of the watermark, in seconds.
        dedup: repeats are dropped within the watermark's delay.
        alias: the name of its columns where the query gives none; empty: its own.
    """

    streaming: bool
    columns: Mapping[str, str | None] | None = None
    watermark: str | None = None
    delay: float | None = None
    dedup: bool = False
    alias: str = ""


def error(code: str, message: str, hint: str, node: exp.Expr) -> QueryFinding:
    """A finding that Spark would reject."""
    return QueryFinding(code, message, hint, offset(node))


def warning(code: str, message: str, hint: str, node: exp.Expr) -> QueryFinding:
    """A finding that Spark accepts."""
    return QueryFinding(code, message, hint, offset(node), Level.WARNING)


def offset(node: exp.Expr) -> int:
    """Where a part of the tree begins in the text; clauses begin with their first name or literal."""
    at: exp.Expr | None = node
    while at is not None:
        starts = [n.meta["start"] for n in at.walk() if "start" in n.meta]
        if starts:
            return int(min(starts))
        at = at.parent
    return 0
