"""Which tests without Java are slow: `make test-fast` leaves them out, `make test` does not.

`tests/slow_tests.txt` lists their functions. `make slow-tests` measures all of them and writes it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
_HEADER = "# Tests without Java that `make test-fast` leaves out. Written by `make slow-tests`.\n"


def listed() -> frozenset[str]:
    """The functions of the list, as pytest names them without their parameters."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def function_of(node_id: str) -> str:
    """The name of a test without its parameters."""
    return node_id.partition("[")[0]


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the listed ones as slow."""
    slow = listed()
    for item in items:
        if function_of(item.nodeid) in slow:
            item.add_marker(pytest.mark.slow)


class Stopwatch:
    """Times the functions of a run, also one in several processes, and writes the list when it has ended.

    A function is slow if its slowest case is, or if all of them take ten times as long together.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._cases: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._cases[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        functions: dict[str, list[float]] = defaultdict(list)
        for node_id, seconds in self._cases.items():
            functions[function_of(node_id)].append(seconds)
        slow = [name for name, took in functions.items() if max(took) > self._seconds or sum(took) > 10 * self._seconds]
        LIST.write_text(_HEADER + "".join(f"{name}\n" for name in sorted(slow)), encoding="utf-8")
