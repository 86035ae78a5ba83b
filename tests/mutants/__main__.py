"""Put small faults into the engine, one at a time, and see whether a test notices.

    python -m tests.mutants [--count 300] [--seed 1] [--under engine/plan ...] [--again FILE]

Each fault is met by the tests that run the function it is in (noted once, in build/mutants), first by those that run
little else, in a process of its own that reads the changed module in place of the file. Printed is each fault that no
test noticed, and the share that did. Faults in functions that none of the tests runs are counted, and not tried.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.callers import ROOT, UNDER, Instead, module_name, python_files
from tests.mutants.mutations import Mutant, mutants
from tests.slow_tests import file_of, function_of, listed

# Where the tests are that belong to these modules.
FILES = tuple(
    f"tests/{name}"
    for name in (
        "compile", "plan", "lake", "state", "runtime", "sources", "catalogs", "object_store", "refreshes", "spark", "cli",
        "unit_tests", "project",
    )
)  # fmt: skip
# Packages that the tests import anyway, so that each process finds them loaded.
_LOADED = ("sqlglot.optimizer", "yaml", "jinja2", "click", "rich.console", "pyiceberg.catalog.sql")
# So many tests are asked first, and so many more, slow ones last, if those notice nothing.
_FIRST, _MOST, _SLOW = 30, 2500, 20
_SECONDS = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", nargs="+", default=list(UNDER))
    parser.add_argument("--tests", default="not spark and not browser", help="as for pytest -m")
    parser.add_argument("--files", nargs="*", default=list(FILES), help="the tests to ask")
    parser.add_argument("--again", type=Path, help="only the faults that an earlier run printed, in this file")
    options = parser.parse_args()
    called = _callers(options.tests, options.files, options.under)
    chance = random.Random(options.seed)
    every = [one for under in options.under for path in python_files(under) for one in mutants(path)]
    if options.again is not None:
        printed = set(options.again.read_text(encoding="utf-8").splitlines())
        every = [one for one in every if _said(one) in printed]
    reached = [one for one in every if _tests_of(one, called)]
    chosen = chance.sample(reached, min(options.count, len(reached)))
    print(f"{len(every)} faults, {len(reached)} in functions that a test runs; {len(chosen)} are tried", flush=True)
    for name in _LOADED:
        __import__(name)
    unchanged = replace(chosen[0], source=chosen[0].path.read_text(encoding="utf-8"))
    if not _survives(unchanged, _tests_of(unchanged, called)):
        raise SystemExit("the tests cannot be run")
    survived = []
    for number, one in enumerate(chosen, start=1):
        if _survives(one, _tests_of(one, called)):
            survived.append(one)
            print(_said(one), flush=True)
        if number % 10 == 0:
            print(f"   {number}: {1 - len(survived) / number:.1%} noticed", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} noticed ({1 - len(survived) / max(len(chosen), 1):.1%})")
    return 0


def _said(one: Mutant) -> str:
    return f"{one.path.relative_to(ROOT)}:{one.line}: {one.shown}"


def _tests_of(one: Mutant, called: dict[str, list[str]]) -> list[str]:
    """Those that run its function, of a module's own lines those that run anything in it; first what runs little else."""
    path = str(one.path.relative_to(ROOT))
    places = [f"{path}:{one.function}"] if one.function else [p for p in called if p.startswith(f"{path}:")]
    found = sorted({test for place in places for test in called.get(place, [])})
    width, slow = _widths(called), listed()
    quick = [test for test in found if slow.isdisjoint((function_of(test), file_of(test)))]
    near = sorted(quick, key=width.__getitem__)[: _FIRST // 2]
    rest = [test for test in quick if test not in near]
    last = [test for test in found if test not in set(quick)]
    chance = random.Random(0)
    return [*near, *chance.sample(rest, min(_MOST, len(rest))), *chance.sample(last, min(_SLOW, len(last)))]


def _widths(called: dict[str, list[str]]) -> Counter[str]:
    """How many functions each test runs."""
    if not _WIDTHS:
        _WIDTHS.update(test for tests in called.values() for test in tests)
    return _WIDTHS


_WIDTHS: Counter[str] = Counter()


def _callers(marks: str, files: list[str], under: list[str]) -> dict[str, list[str]]:
    asked = " ".join([marks, *files, *under])
    kept = ROOT / "build" / "mutants" / f"callers-{hashlib.sha256(asked.encode()).hexdigest()[:12]}.json"
    newest = max(path.stat().st_mtime for top in ("engine", "tests") for path in (ROOT / top).rglob("*.py"))
    if not kept.exists() or kept.stat().st_mtime < newest:
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.mutants.callers"]
        command += ["--callers", str(kept), *(f"--callers-under={one}" for one in under)]
        subprocess.run([*command, "-m", marks, *files], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    called: dict[str, list[str]] = json.loads(kept.read_text(encoding="utf-8"))
    return called


def _survives(one: Mutant, tests: list[str]) -> bool:
    for some in (tests[:_FIRST], tests[_FIRST:]):
        while asked := [test for test in some if test not in _FAILING]:
            noticed, by = _noticed(one, asked)
            if noticed and not (by and _fails_anyway(one, by)):
                return False
            if not noticed:
                break
    return True


def _fails_anyway(one: Mutant, test: str) -> bool:
    """Whether a test fails without a fault too: it is asked no more."""
    if test not in _SOUND:
        unchanged = replace(one, source=one.path.read_text(encoding="utf-8"))
        (_FAILING if _noticed(unchanged, [test])[0] else _SOUND).add(test)
    return test in _FAILING


_SOUND: set[str] = set()
_FAILING: set[str] = set()


def _noticed(one: Mutant, tests: list[str]) -> tuple[bool, str]:
    """Whether a test fails in a process that has the fault, and which one."""
    with tempfile.NamedTemporaryFile() as told:
        process = os.fork()
        if process == 0:
            os.setsid()
            _run(one, tests, Path(told.name))
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status) != 0, Path(told.name).read_text(encoding="utf-8")
            time.sleep(0.05)
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return True, ""


class _Told:
    """Notes the first test that fails."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._file.write_text(report.nodeid, encoding="utf-8")


def _run(one: Mutant, tests: list[str], told: Path) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.meta_path.insert(0, Instead({module_name(one.path): one.path}, lambda _: ast.parse(one.source)))
    code = 1
    try:
        # Where pytest rewrites assertions its own finder comes first, for the engine too, and gives the file as it is.
        options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
        code = int(pytest.main([*options, *tests], plugins=[_Told(told)]))
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
