"""The faults that `python -m tests.mutants` puts into the engine, and that a test which cannot fail lets one survive."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import REPOSITORY
from tests.mutants import gate
from tests.mutants.mutations import mutants

CODE = '''
"""Words are not changed: a == b."""
LIMITS = {1, 2}


class Kept(Base, frozen=True):
    pairs: Iterable = zip((), (), strict=True)


def first(a: int, b: bool = True) -> int | None:
    """Neither are these: not a."""
    if a < 3 and not b:
        return min(a, 3) + 1 if a in LIMITS else 0
    raise ValueError(f"{a == 3}")
'''


def test_each_fault_is_one_change_of_what_runs(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(CODE)
    shown = [(one.line, one.shown) for one in mutants(path)]
    assert shown == [
        (3, "{1, 2}  ->  {1}"),
        (12, "a < 3 and (not b)  ->  a < 3 or not b"),
        (12, "a < 3  ->  a <= 3"),
        (12, "not b  ->  not not b"),
        (13, "min(a, 3) + 1 if a in LIMITS else 0  ->  0 if a in LIMITS else min(a, 3) + 1"),
        (13, "min(a, 3)  ->  max(a, 3)"),
        (13, "a in LIMITS  ->  a not in LIMITS"),
    ]
    assert len({ast.dump(ast.parse(one.source)) for one in mutants(path)}) == len(shown)


@pytest.mark.slow
def test_a_fault_is_met_by_the_tests_that_run_it() -> None:
    """The numbers of intervals are tested."""
    command = [sys.executable, "-m", "tests.mutants", "--count", "2", "--under", "engine/times.py"]
    ended = subprocess.run(
        [*command, "--files", "tests/test_times.py"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "2 of 2 noticed" in ended.stdout, ended.stdout


def test_the_faults_of_the_gate_are_in_the_code() -> None:
    assert [one.name for one in gate.FAULTS if gate._source(one).count(one.before) != 1] == []
