"""Put small faults into the engine, one at a time, and see whether a test notices.

    python -m tests.mutants [--count 300] [--seed 1] [--under engine/plan ...] [--tests 'not spark and not browser']

Each fault is met by the tests that run the function it is in (noted once, in build/mutants), in a process of its own
that reads the changed module in place of the file. Printed is each fault that no test noticed, and the share that did.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.callers import ROOT
from tests.mutants.mutations import Mutant, mutants

UNDER = (
    "engine/plan", "engine/compile/stateful", "engine/compile/streaming", "engine/lake", "engine/state",
    "engine/runtime/lifecycle", "engine/runtime/writer",
)  # fmt: skip
# Packages that the tests import anyway, so that each process finds them loaded.
_LOADED = ("sqlglot.optimizer", "yaml", "jinja2", "click", "rich.console", "pyiceberg.catalog.sql")
_MOST = 150
_SECONDS = 300


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        relative = mutant.path.relative_to(ROOT).with_suffix("")
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        self._name, self._mutant = ".".join(parts), mutant
        self._package = relative.name == "__init__"

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        spec = spec_from_loader(name, self, origin=str(self._mutant.path), is_package=self._package)
        if spec is not None and self._package:
            spec.submodule_search_locations = [str(self._mutant.path.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._mutant.path)
        exec(compile(self._mutant.source, str(self._mutant.path), "exec"), module.__dict__)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", nargs="+", default=list(UNDER))
    parser.add_argument("--tests", default="not spark and not browser", help="as for pytest -m")
    parser.add_argument("--files", nargs="*", default=[], help="the tests to ask, instead of all")
    options = parser.parse_args()
    called = _callers(options.tests, options.files)
    chance = random.Random(options.seed)
    every = [one for under in options.under for path in _modules(under) for one in mutants(path)]
    reached = [one for one in every if _tests_of(one, called)]
    chosen = chance.sample(reached, min(options.count, len(reached)))
    print(f"{len(every)} faults, {len(reached)} in functions that a test runs; {len(chosen)} are tried", flush=True)
    for name in _LOADED:
        __import__(name)
    unchanged = replace(chosen[0], source=chosen[0].path.read_text(encoding="utf-8"))
    if not _survives(unchanged, _tests_of(unchanged, called)):
        raise SystemExit("the tests fail without a fault")
    survived = []
    for number, one in enumerate(chosen, start=1):
        if _survives(one, _tests_of(one, called)):
            survived.append(one)
            print(f"{one.path.relative_to(ROOT)}:{one.line}: {one.shown}", flush=True)
        if number % 25 == 0:
            print(f"   {number}: {1 - len(survived) / number:.1%} noticed", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} noticed ({1 - len(survived) / max(len(chosen), 1):.1%})")
    return 0


def _modules(under: str) -> list[Path]:
    return [ROOT / under] if under.endswith(".py") else sorted((ROOT / under).rglob("*.py"))


def _tests_of(one: Mutant, called: dict[str, list[str]]) -> list[str]:
    """Those that run its function, few of each file first; of a module's own lines those that run anything in it."""
    path = str(one.path.relative_to(ROOT))
    if one.function:
        found = called.get(f"{path}:{one.function}", [])
    else:
        found = sorted({test for place, tests in called.items() if place.startswith(f"{path}:") for test in tests})
    return random.Random(0).sample(found, min(_MOST, len(found)))


def _callers(marks: str, files: list[str]) -> dict[str, list[str]]:
    kept = ROOT / "build" / "mutants" / f"callers-{_name(' '.join([marks, *files]))}.json"
    newest = max(path.stat().st_mtime for top in ("engine", "tests") for path in (ROOT / top).rglob("*.py"))
    if not kept.exists() or kept.stat().st_mtime < newest:
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.callers", "--callers", str(kept)]
        subprocess.run([*command, "-m", marks, *files], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    called: dict[str, list[str]] = json.loads(kept.read_text(encoding="utf-8"))
    return called


def _name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def _survives(one: Mutant, tests: list[str]) -> bool:
    process = os.fork()
    if process == 0:
        os.setsid()
        _run(one, tests)
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return False


def _run(one: Mutant, tests: list[str]) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.meta_path.insert(0, _Changed(one))
    code = 1
    try:
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
