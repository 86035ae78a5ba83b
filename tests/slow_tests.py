"""Which tests without Java are slow: `make test-fast` leaves them out, `make test` does not.

`tests/slow_tests.txt` lists their functions, and whole files whose tests share something that takes long to set up: without
the first of them the next would wait for it. `make slow-tests` measures all of them and writes it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow_tests.txt")
_HEADER = "# Tests without Java that `make test-fast` leaves out. Written by `make slow-tests`.\n"


def listed() -> frozenset[str]:
    """The functions and files of the list, as pytest names them without parameters."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def function_of(node_id: str) -> str:
    """The name of a test without its parameters."""
    return node_id.partition("[")[0]


def file_of(node_id: str) -> str:
    """The file of a test."""
    return node_id.partition("::")[0]


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the listed ones as slow."""
    slow = listed()
    for item in items:
        if not slow.isdisjoint((function_of(item.nodeid), file_of(item.nodeid))):
            item.add_marker(pytest.mark.slow)


class Stopwatch:
    """Times the functions of a run, also one in several processes, and writes the list when it has ended.

    A function is slow if its slowest case is, or if all of them take ten times as long together; a file, if what one of its
    tests needs takes ten times as long.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._cases: dict[str, float] = defaultdict(float)
        self._files: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._cases[report.nodeid] += report.duration
        if report.when == "setup" and report.duration > 10 * self._seconds:
            self._files.add(file_of(report.nodeid))

    def pytest_sessionfinish(self) -> None:
        functions: dict[str, list[float]] = defaultdict(list)
        for node_id, seconds in self._cases.items():
            functions[function_of(node_id)].append(seconds)
        slow = [name for name, took in functions.items() if max(took) > self._seconds or sum(took) > 10 * self._seconds]
        alone = (name for name in slow if file_of(name) not in self._files)
        LIST.write_text(_HEADER + "".join(f"{name}\n" for name in sorted([*alone, *self._files])), encoding="utf-8")
