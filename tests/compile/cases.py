"""Reads fixture files of input and expected output.

A file has comment lines, then `-- header` with the YAML of every case's header, then cases: `-- case: name`,
the model's SQL, `-- expect`, the SQL that runs. Blank lines around a part do not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Case:
    name: str
    header: str
    given: str
    expected: str


def read_cases(kind: str) -> list[Case]:
    cases = []
    for path in sorted((FOLDER / kind).glob("*.sql")):
        before, *parts = re.split(r"^-- case: (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        header = before.split("-- header\n", 1)[1].strip()
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            given, expected = re.split(r"^-- expect$", body, flags=re.MULTILINE)
            cases.append(Case(f"{path.stem}: {name}", header, given.strip(), expected.strip()))
    return cases
