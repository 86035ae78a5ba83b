"""The lines of translations.txt."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fixtures import read_lists

_LISTS = {
    name: [line.replace("¶", "\n") for line in lines]
    for name, lines in read_lists(Path(__file__).with_name("translations.txt")).items()
}


def _parts(line: str) -> tuple[str, str, str]:
    adapter, text, result = re.fullmatch(r"(\w+): (.*) => (.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    return adapter, text, result


PAIRS, NOTED, DOCUMENTED = ([_parts(line) for line in _LISTS[name]] for name in ("pairs", "noted", "documented"))
UNCHANGED = _LISTS["unchanged"]
