"""Marks of single cases: `nightly_cases("a", "b")` and `nightly_except("a")` of a test with parameters, likewise for the gate.

`make test` keeps at least one test of each promise; what is nightly looks at the same part in further ways, and takes long.
The gate (`make gate`) has what kills, fences or suspends a writer, and all of Spark's recorded verdicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

_OF_CASES = ("nightly", "gate")


def mark_cases(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that a mark of their function names."""
    for item in items:
        for mark in _OF_CASES:
            named = {case for found in item.iter_markers(f"{mark}_cases") for case in found.args}
            kept = {case for found in item.iter_markers(f"{mark}_except") for case in found.args}
            if _case(item) in named or (kept and _case(item) not in kept):
                item.add_marker(mark)


def unknown_cases(items: Iterable[pytest.Item]) -> list[str]:
    """What names a case that its test does not have, as lines for people. All cases of the tests are to be among the items."""
    cases, named = defaultdict(set), defaultdict(set)
    for item in items:
        function = item.nodeid.partition("[")[0]
        cases[function].add(_case(item))
        for mark in (f"{mark}_{kind}" for mark in _OF_CASES for kind in ("cases", "except")):
            named[function] |= {case for found in item.iter_markers(mark) for case in found.args}
    lost = ((function, case) for function, names in named.items() for case in sorted(names - cases[function]))
    return [f"{function} has no case '{case}', which one of its marks names" for function, case in lost]


def _case(item: pytest.Item) -> str:
    # Not of `callspec`: the name has what is not printable written out.
    return item.name.partition("[")[2].removesuffix("]")


class Stopwatch:
    """Times the functions of a run, also one in several processes, and prints whose mark `slow` is missing when it has ended.

    A function is slow if its slowest case is, or if all of them take ten times as long together, or if what it needs does.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._cases: dict[str, float] = defaultdict(float)
        self._marked: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._cases[report.nodeid] += report.duration
        if "slow" in report.keywords:
            self._marked.add(report.nodeid.partition("[")[0])

    def slow(self) -> list[str]:
        """The slow functions without the mark, the slowest first."""
        functions: dict[str, list[float]] = defaultdict(list)
        for node_id, seconds in self._cases.items():
            functions[node_id.partition("[")[0]].append(seconds)
        slow = (name for name, took in functions.items() if max(took) > self._seconds or sum(took) > 10 * self._seconds)
        return sorted(set(slow) - self._marked, key=lambda name: -sum(functions[name]))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("slow without @pytest.mark.slow")
        for name in self.slow():
            terminalreporter.line(name)
