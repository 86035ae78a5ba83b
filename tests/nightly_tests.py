"""Which tests only `make nightly` runs: tests/nightly_tests.txt.

`make test` keeps at least one test of each promise; what is listed looks at the same part in further ways, and takes long.
A line is a file, a test, or one case of a test.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.slow_tests import file_of, function_of

LIST = Path(__file__).with_name("nightly_tests.txt")


def listed() -> frozenset[str]:
    """The files, tests and cases of the list, as pytest names them."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the listed ones."""
    names = listed()
    for item in items:
        if not names.isdisjoint((item.nodeid, function_of(item.nodeid), file_of(item.nodeid))):
            item.add_marker(pytest.mark.nightly)
