"""What goes into the checker, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from engine.diagnostics.codes import CODES
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
        streamable: `STREAM name` makes a stream of it.
        alias: the name of its columns where the query gives none; empty: its own.
    """

    streaming: bool
    columns: Mapping[str, str | None] | None = None
    watermark: str | None = None
    delay: float | None = None
    dedup: bool = False
    streamable: bool = True
    alias: str = ""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A rule that the query breaks.

    Attributes:
        code: one of `engine.diagnostics.codes.CODES`.
        message: what is wrong, and the reason, in one sentence.
        hint: what to write instead.
        level: errors are what Spark rejects; warnings are what runs and grows, or is not what it seems.
        node: the part of the tree concerned; None if the text does not parse.
        start: its offset in the text.
    """

    code: str
    message: str
    hint: str
    level: Level = Level.ERROR
    node: exp.Expr | None = None
    start: int = 0

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(self.code)

    @property
    def is_error(self) -> bool:
        """Whether Spark would reject the query."""
        return self.level is Level.ERROR


def error(code: str, message: str, hint: str, node: exp.Expr) -> RuleFinding:
    """A finding that Spark would reject."""
    return RuleFinding(code, message, hint, Level.ERROR, node, offset(node))


def warning(code: str, message: str, hint: str, node: exp.Expr) -> RuleFinding:
    """A finding that Spark accepts."""
    return RuleFinding(code, message, hint, Level.WARNING, node, offset(node))


def offset(node: exp.Expr) -> int:
    """Where a part of the tree begins in the text; clauses begin with their first name or literal."""
    at: exp.Expr | None = node
    while at is not None:
        starts = [n.meta["start"] for n in at.walk() if "start" in n.meta]
        if starts:
            return int(min(starts))
        at = at.parent
    return 0
