"""The fixture pairs of Avro: schemas and their columns; a writer's and a reader's schema and what is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fixtures import Pair, read_pairs

FOLDER = Path(__file__).parent / "fixtures" / "avro"


def read_cases(name: str) -> list[Pair]:
    return read_pairs(FOLDER, f"{name}.txt")


def values_of(case: Pair) -> list[tuple[Any, Any]]:
    """What was written, and what is read; a string for what cannot be read."""
    pairs = (line.split(" -> ") for line in case.expected.splitlines())
    return [(json.loads(wrote), json.loads(reads)) for wrote, reads in pairs]
