"""Which tests compile without a forked process, and that what they get is what would come from one."""

from __future__ import annotations

import os
from pickle import PicklingError
from types import SimpleNamespace
from typing import Any

import pytest

from engine.compile.templates import confined_process
from engine.errors import Diagnostic, Location, ProjectError
from tests.compiling_here import FORKED, compiles_here, sent
from tests.lab import REPOSITORY


def item(node_id: str, *marks: str) -> Any:
    return SimpleNamespace(nodeid=node_id, get_closest_marker=lambda name: name if name in marks else None)


def test_this_test_compiles_here_but_at_night() -> None:
    assert (confined_process.run_confined is sent) != bool(os.environ.get("FORKED"))


@pytest.mark.parametrize("path", FORKED)
def test_what_has_the_process_exists(path: str) -> None:
    assert (REPOSITORY / path).exists()
    assert (REPOSITORY / path).is_dir() == path.endswith("/")


def test_tests_with_spark_and_those_of_the_process_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORKED", raising=False)
    assert compiles_here(item("tests/plan/test_plan.py::test_a"))
    assert not compiles_here(item("tests/plan/test_plan.py::test_a", "spark"))
    assert not compiles_here(item("tests/security/test_bombs.py::test_a[x]"))


def test_at_night_all_tests_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKED", "1")
    assert not compiles_here(item("tests/plan/test_plan.py::test_a"))
    rules = (REPOSITORY / "Makefile").read_text(encoding="utf-8").split("\n\n")
    assert "@FORKED=1 $(MAKE) --no-print-directory test NIGHTLY=\n" in next(r for r in rules if "\nnightly: " in r)


def test_what_comes_back_is_a_copy() -> None:
    given = [1, {"a": 2}]
    back = sent(lambda value: value, given)
    assert back == given
    assert back is not given


def test_an_error_comes_back_with_all_it_carries() -> None:
    raised = ProjectError("sql-syntax", "one", "do", location=Location("a.sql", 3, 4), node="a")
    raised.diagnostics = (*raised.diagnostics, Diagnostic("sql-syntax", "two"))

    def fails() -> None:
        raise raised

    with pytest.raises(ProjectError) as caught:
        sent(fails)
    assert caught.value is not raised
    assert caught.value.diagnostics == raised.diagnostics


def test_what_could_not_be_sent_is_an_error_here_too() -> None:
    with pytest.raises((PicklingError, AttributeError, TypeError)):
        sent(lambda: lambda: None)
