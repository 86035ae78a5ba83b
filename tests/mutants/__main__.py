"""Put small faults into the engine, one at a time, and see whether a test notices.

    python -m tests.mutants [--count 300] [--from 1] [--seed 1] [--under engine/plan ...] [--again FILE]

Each fault is met by tests that run the function it is in (noted once, in build/mutants), first by those that run little
else. Printed is each fault that no test noticed, and the share that did. Faults in functions that none of the tests runs
are counted, and not tried.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from tests.mutants.asking import Run, collected, noticed, run_from_the_start
from tests.mutants.callers import ROOT, UNDER, python_files
from tests.mutants.mutations import Mutant, mutants

# Where the tests are that belong to these modules.
FILES = tuple(
    f"tests/{name}"
    for name in (
        "compile", "plan", "lake", "state", "runtime", "sources", "catalogs", "object_store", "refreshes", "spark", "cli",
        "unit_tests", "project", "api", "live",
    )
)  # fmt: skip
# Packages that the tests import anyway, so that each process finds them loaded.
_LOADED = ("sqlglot.optimizer", "yaml", "jinja2", "click", "rich.console", "pyiceberg.catalog.sql")
# So many tests that run little else are asked first.
_FIRST = 15
_QUICK_SECONDS = 0.1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many faults the sample has")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the fault of the sample to begin with")
    parser.add_argument("--to", type=int, help="the last fault of the sample to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", nargs="+", default=list(UNDER))
    parser.add_argument("--tests", default="not spark and not browser", help="as for pytest -m")
    parser.add_argument("--files", nargs="*", default=list(FILES), help="the tests to ask")
    parser.add_argument("--seconds", type=float, default=15, help="of quick tests, and of slow ones, to ask of a fault")
    parser.add_argument("--again", type=Path, help="only the faults that an earlier run printed, in this file")
    options = parser.parse_args()
    notes = _notes(options.tests, options.files, options.under)
    every = [one for under in options.under for path in python_files(under) for one in mutants(path)]
    if options.again is not None:
        printed = set(options.again.read_text(encoding="utf-8").splitlines())
        every = [one for one in every if _said(one) in printed]
    reached = [one for one in every if notes.of(one)]
    sample = random.Random(options.seed).sample(reached, min(options.count, len(reached)))
    chosen = sample[options.first - 1 : options.to]
    print(f"{len(every)} faults, {len(reached)} in functions that a test runs; {len(chosen)} are tried", flush=True)
    if chosen:
        _try(chosen, _Asked(notes, options.seconds), options.files, options.tests)
    return 0


def _try(chosen: list[Mutant], asked: _Asked, files: list[str], marks: str) -> None:
    survived: list[Mutant] = []
    began, tried = time.monotonic(), 0

    def meet(some: list[Mutant], run: Run) -> None:
        nonlocal tried
        for one in some:
            tried += 1
            if asked.survives(one, run):
                survived.append(one)
                print(_said(one), flush=True)
            if tried % 10 == 0:
                took = (time.monotonic() - began) / tried
                print(f"   {tried}: {1 - len(survived) / tried:.1%} noticed, {took:.1f} s each", flush=True)

    for name in _LOADED:
        __import__(name)
    meet([one for one in chosen if not one.function], run_from_the_start)
    if inside := [one for one in chosen if one.function]:
        collected(files, marks, lambda run: meet(inside, run))
    print(f"{tried - len(survived)} of {tried} noticed ({1 - len(survived) / tried:.1%})")


def _said(one: Mutant) -> str:
    return f"{one.path.relative_to(ROOT)}:{one.line}: {one.shown}"


@dataclass(frozen=True, slots=True)
class _Notes:
    """What one run of all tests noted.

    Attributes:
        called: the tests that run each function, by its file and first line.
        seconds: that each test takes.
        widths: how many functions each test runs.
    """

    called: dict[str, list[str]]
    seconds: dict[str, float]
    widths: Counter[str]

    def of(self, one: Mutant) -> list[str]:
        """Those that run its function, of a module's own lines those that run anything in it."""
        path = str(one.path.relative_to(ROOT))
        places = [f"{path}:{one.function}"] if one.function else [p for p in self.called if p.startswith(f"{path}:")]
        return sorted({test for place in places for test in self.called.get(place, [])})


def _notes(marks: str, files: list[str], under: list[str]) -> _Notes:
    asked = " ".join([marks, *files, *under])
    kept = ROOT / "build" / "mutants" / f"callers-{hashlib.sha256(asked.encode()).hexdigest()[:12]}.json"
    newest = max(
        path.stat().st_mtime for top in ("engine", "engine_import", "tests") for path in (ROOT / top).rglob("*.py")
    )
    if not kept.exists() or kept.stat().st_mtime < newest:
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.mutants.callers"]
        command += ["--callers", str(kept), *(f"--callers-under={one}" for one in under)]
        subprocess.run([*command, "-m", marks, *files], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    noted = json.loads(kept.read_text(encoding="utf-8"))
    return _Notes(**noted, widths=Counter(test for tests in noted["called"].values() for test in tests))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The tests, and what is known of them by now.

    Attributes:
        notes: of a run without faults.
        limit: how many seconds of quick tests, and of slow ones, meet a fault.
        sound: tests that were run without a fault and passed.
        failing: tests that fail without a fault too: they are asked no more.
        noticing: by module, tests that noticed a fault in it.
    """

    notes: _Notes
    limit: float
    sound: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    noticing: dict[Path, list[str]] = field(default_factory=lambda: defaultdict(list))

    def survives(self, one: Mutant, run: Run) -> bool:
        for some in self._order(one):
            while tests := [test for test in some if test not in self.failing]:
                found, by = noticed(one, tests, run, self.notes.seconds)
                if found and not self._fails_anyway(one, by or tests[0], run):
                    if by and by not in self.noticing[one.path]:
                        self.noticing[one.path].append(by)
                    return False
                if not found:
                    break
        return True

    def _fails_anyway(self, one: Mutant, test: str, run: Run) -> bool:
        if test not in self.sound:
            unchanged = replace(one, source=one.path.read_text(encoding="utf-8"))
            fails, _ = noticed(unchanged, [test], run, self.notes.seconds)
            (self.failing if fails else self.sound).add(test)
        return test in self.failing

    def _order(self, one: Mutant) -> Iterator[list[str]]:
        """First what noticed a fault in the same module or runs little else, then all quick ones, slow ones last."""
        found, chance = self.notes.of(one), random.Random(0)
        slow = {test for test in found if self.notes.seconds.get(test, 0) > _QUICK_SECONDS}
        quick = [test for test in found if test not in slow]
        narrow = sorted(quick, key=self.notes.widths.__getitem__)[:_FIRST]
        first = dict.fromkeys([*narrow, *(test for test in self.noticing[one.path] if test in set(found) - slow)])
        yield list(first)
        yield self._within([test for test in quick if test not in first], chance)
        yield self._within(sorted(slow), chance)

    def _within(self, tests: list[str], chance: random.Random) -> list[str]:
        """As many as the limit allows, a few of each kind; one file's after another, as they share what they set up."""
        mixed = chance.sample(tests, len(tests))
        ends = accumulate(self.notes.seconds.get(test, 0.1) + 0.005 for test in mixed)
        return sorted(test for test, end in zip(mixed, ends, strict=True) if end <= self.limit)


if __name__ == "__main__":
    sys.exit(main())
