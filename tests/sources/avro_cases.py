"""Reads the fixtures of Avro: `-- case: name`, then parts that begin with `-- word`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "fixtures" / "avro"


@dataclass(frozen=True)
class Case:
    name: str
    given: str
    parts: dict[str, str]

    @property
    def expected(self) -> str:
        return self.parts["expect"]

    @property
    def values(self) -> list[tuple[Any, Any]]:
        """What was written, and what is read; a text for what cannot be read."""
        pairs = (line.split(" -> ") for line in self.parts["values"].splitlines())
        return [(json.loads(wrote), json.loads(reads)) for wrote, reads in pairs]

    def __str__(self) -> str:
        return self.name


def read_cases(name: str) -> list[Case]:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    _, *found = re.split(r"^-- case: (.*)$", text, flags=re.MULTILINE)
    cases = []
    for title, body in zip(found[::2], found[1::2], strict=True):
        given, *parts = re.split(r"^-- (\w+)$", body, flags=re.MULTILINE)
        named = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
        cases.append(Case(title, given.strip("\n"), named))
    return cases
