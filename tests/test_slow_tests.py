"""The list of slow tests names tests that there are, and only the inner loop leaves them out."""

from __future__ import annotations

import ast

from tests.lab import REPOSITORY
from tests.slow_tests import Stopwatch, function_of, listed


def functions(path: str) -> set[str]:
    """The tests of a file, as pytest names them."""
    tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {f"{path}::{node.name}" for node in tree.body if isinstance(node, kinds)}
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        found |= {f"{path}::{group.name}::{node.name}" for node in group.body if isinstance(node, kinds)}
    return found


def test_each_of_the_list_exists():
    gone = {name for name in listed() if not (REPOSITORY / name.partition("::")[0]).is_file()}
    paths = {name.partition("::")[0] for name in listed() - gone}
    gone |= listed() - gone - {name for path in paths for name in (path, *functions(path))}
    assert gone == set(), "make slow-tests writes the list again"


def test_only_the_inner_loop_leaves_them_out():
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    rules = {rule.partition(":")[0]: rule for rule in text.split("\n\n")}
    assert "slow" not in next(line for line in text.splitlines() if line.startswith("FAST :="))
    assert "$(PYTEST_FAST) $(PYTEST_ARGS)" in next(rule for rule in rules.values() if "\ntest: " in rule)
    assert "not slow" in next(line for line in text.splitlines() if line.startswith("INNER :="))


def test_a_function_is_slow_by_its_slowest_case_or_by_all_together(tmp_path, monkeypatch):
    class Report:
        def __init__(self, nodeid: str, duration: float, when: str = "call") -> None:
            self.nodeid, self.duration, self.when = nodeid, duration, when

    monkeypatch.setattr("tests.slow_tests.LIST", tmp_path / "list")
    watch = Stopwatch(0.1)
    for name, seconds in [("t.py::a[1]", 0.05), ("t.py::a[2-x[0]]", 0.06), ("t.py::a[2-x[0]]", 0.05), ("t.py::b", 0.1)]:
        watch.pytest_runtest_logreport(Report(name, seconds))
    for number in range(30):
        watch.pytest_runtest_logreport(Report(f"t.py::many[{number}]", 0.04))
        watch.pytest_runtest_logreport(Report(f"t.py::quick[{number}]", 0.03))
    # Whoever comes first waits for what a file shares: all of its tests are left out.
    watch.pytest_runtest_logreport(Report("shared.py::first", 1.5, "setup"))
    watch.pytest_runtest_logreport(Report("t.py::quick[0]", 0.05, "setup"))
    watch.pytest_sessionfinish()
    assert listed() == {"shared.py", "t.py::a", "t.py::many"}
    assert function_of("t.py::a[x[0]]") == "t.py::a"
