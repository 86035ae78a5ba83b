"""Marks of single cases, and what each target of the Makefile chooses by marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import REPOSITORY
from tests.marks import Stopwatch, mark_cases, unknown_cases


class _Case:
    """What of a `pytest.Item` is looked at."""

    def __init__(self, name: str, *marks: pytest.Mark) -> None:
        self.name, self.nodeid, self._marks = name, f"tests/test_x.py::{name}", list(marks)

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark for mark in self._marks if mark.name == name)

    def add_marker(self, name: str) -> None:
        self._marks.append(getattr(pytest.mark, name).mark)

    @property
    def marks(self) -> set[str]:
        return {mark.name for mark in self._marks} & {"nightly", "gate"}


def _cases(*marks: pytest.MarkDecorator) -> Any:
    return [_Case(f"test_a[{case}]", *(mark.mark for mark in marks)) for case in ("a", "b[0]", "c")]


def test_cases_are_marked_by_their_names() -> None:
    some = _cases(pytest.mark.nightly_cases("b[0]"), pytest.mark.gate_cases("c"))
    mark_cases(some)
    assert [case.marks for case in some] == [set(), {"nightly"}, {"gate"}]
    all_but_one = _cases(pytest.mark.nightly_except("a"))
    mark_cases(all_but_one)
    assert [case.marks for case in all_but_one] == [set(), {"nightly"}, {"nightly"}]


def test_a_case_that_there_is_not_is_named() -> None:
    assert unknown_cases(_cases(pytest.mark.nightly_cases("a"), pytest.mark.gate_except("b[0]"))) == []
    (fault,) = unknown_cases(_cases(pytest.mark.nightly_except("d")))
    assert fault == "tests/test_x.py::test_a has no case 'd', which one of its marks names"


def test_targets_choose_by_marks() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    rules = {rule.partition(":")[0]: rule for rule in ("\n" + text).split("\n\n")}
    assert "\nNIGHTLY ?= and not nightly and not gate\n" in text
    nightly = next(rule for rule in text.split("\n\n") if "\nnightly: " in rule)
    assert "test NIGHTLY=\n" in nightly
    assert "slow" not in next(line for line in text.splitlines() if line.startswith("FAST :="))
    assert "$(PYTEST_FAST) $(PYTEST_ARGS)" in next(rule for rule in rules.values() if "\ntest: " in rule)
    assert "not slow" in next(line for line in text.splitlines() if line.startswith("INNER :="))
    assert 'make PYTHON="$python" check test gate\n' in (REPOSITORY / ".ci/run").read_text(encoding="utf-8")


def test_a_function_is_slow_by_its_slowest_case_or_by_all_together() -> None:
    class Report:
        def __init__(self, nodeid: str, duration: float, *keywords: str) -> None:
            self.nodeid, self.duration, self.keywords = nodeid, duration, keywords

    watch = Stopwatch(0.1)
    for name, seconds in [("t.py::a[1]", 0.05), ("t.py::a[2-x[0]]", 0.06), ("t.py::a[2-x[0]]", 0.05), ("t.py::b", 0.1)]:
        watch.pytest_runtest_logreport(Report(name, seconds))
    for number in range(30):
        watch.pytest_runtest_logreport(Report(f"t.py::many[{number}]", 0.04))
        watch.pytest_runtest_logreport(Report(f"t.py::quick[{number}]", 0.03))
    watch.pytest_runtest_logreport(Report("t.py::marked", 5, "slow"))
    assert watch.slow() == ["t.py::many", "t.py::a"]
