"""Reads the fixtures of the rules.

A file holds cases: `-- case: name`, `-- modes: append update`, the SQL, `-- expect`, then the findings of each
mode: `error code @ text`, where the text begins at the finding's place; a line without findings says `ok`. A
line that begins with modes and a colon counts for these modes only. The relations are those of the oracle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.compile.streaming import RuleFinding

FOLDER = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Case:
    name: str
    mode: str
    sql: str
    expected: tuple[str, ...]


def read_cases() -> list[Case]:
    cases = []
    for path in sorted(FOLDER.glob("*.sql")):
        _, *parts = re.split(r"^-- case: (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            cases += _case(f"{path.stem}: {name}", body)
    return cases


def _case(name: str, body: str) -> list[Case]:
    head, expected = re.split(r"^-- expect$", body, flags=re.MULTILINE)
    modes_line, sql = re.fullmatch(r"\s*-- modes: (.*?)\n(.*)", head, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    cases = []
    for mode in modes_line.split():
        lines = []
        for line in expected.strip().splitlines():
            only, colon, rest = line.partition(": ")
            if colon and set(only.split()) <= {"append", "update", "complete"}:
                lines += [rest] if mode in only.split() else []
            else:
                lines.append(line)
        cases.append(Case(name, mode, sql.strip(), tuple(line for line in lines if line != "ok")))
    return cases


def shown(finding: RuleFinding, sql: str) -> str:
    """A finding as a fixture writes it: up to the end of its line, at most 40 characters."""
    text = sql[finding.start :].split("\n", 1)[0][:40].strip()
    return f"{finding.level.value} {finding.code} @ {text}"
