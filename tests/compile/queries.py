"""The queries of fixtures/queries, with Spark's verdict on each (asked of 4.1).

A refused query has the code of our error and the mark » where the fault is. A `failing` one is refused only as it runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.fixtures import read_lists, unescape

FOLDER = Path(__file__).parent / "fixtures" / "queries"


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of a file: accepted ones, and pairs of a code and a query with its mark."""

    accepted: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    failing: tuple[tuple[str, str], ...] = ()

    @property
    def refused_texts(self) -> list[str]:
        """The refused queries without their marks."""
        return [marked.replace("»", "") for _, marked in self.refused]


def read_queries(name: str) -> Queries:
    lines = {part: [*map(unescape, found)] for part, found in read_lists(FOLDER / f"{name}.txt").items()}
    pairs = {part: tuple(_pair(line) for line in lines.get(part, ())) for part in ("refused", "failing")}
    return Queries(tuple(lines["accepted"]), **pairs)


def _pair(line: str) -> tuple[str, str]:
    code, _, sql = line.partition(" | ")
    return (code, sql) if re.fullmatch(r"[a-z-]+", code) else ("", line)


BATCH, FOREIGN, RANDOM, STREAMS = (read_queries(name) for name in ("batch", "foreign", "random", "streams"))
