"""The fixture pairs of the rules: a query, and the findings of each output mode.

`-- modes: append update` names the modes. A finding is `error code @ text`, where the text begins at its place; a
query without findings has a line `ok`. A line that begins with modes and a colon counts for these modes only. The
relations are those of the oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.compile.nodes.query_finding import QueryFinding
from tests.fixtures import read_pairs

FOLDER = Path(__file__).parent / "fixtures"
MODES = {"append", "update", "complete"}


@dataclass(frozen=True)
class Case:
    name: str
    mode: str
    sql: str
    expected: tuple[str, ...]


def read_cases() -> list[Case]:
    return [
        Case(pair.name, mode, pair.given, tuple(line for line in _lines(pair.expected, mode) if line != "ok"))
        for pair in read_pairs(FOLDER)
        for mode in pair.parts["modes"].split()
    ]


def _lines(expected: str, mode: str) -> Iterator[str]:
    for line in expected.splitlines():
        only, colon, rest = line.partition(": ")
        if not colon or not set(only.split()) <= MODES:
            yield line
        elif mode in only.split():
            yield rest


def shown(finding: QueryFinding, sql: str) -> str:
    """A finding as a fixture writes it: up to the end of its line, at most 40 characters."""
    text = sql[finding.offset :].split("\n", 1)[0][:40].strip()
    return f"{finding.level.value} {finding.code} @ {text}"
