"""The random attacks of `make hostile`: a few of them (`make nightly` runs 2,000 new ones), and that what they look for would be noticed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.security.fuzz import REPOSITORY
from tests.security.hostile_project import SECRET
from tests.security.mutations import mutations

pytestmark = pytest.mark.slow

FILES = ["macros/share.sql", "models/a.sql", "project.yml", "sources/s.yml"]
# What a command may not do, and what is said of it.
HARMS = {
    "return 2": "parse: exit code 2",
    "print('Traceback (most recent call last)'); return 1": "Traceback",
    "print('\\x1b[2J'); return 0": "prints",
    "open(arguments[-1] + '/models/new.sql', 'w').close(); return 0": "changed",
    "print(os.environ['ENGINE_SECRET_X'][::-1]); return 0": "shows the secret: reversed",
    "os.kill(os.getpid(), signal.SIGSEGV)": "ended by SIGSEGV",
    "os._exit(3)": "ended by exit code 3",
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_random_damage_does_no_harm():
    done = run("-m", "tests.security.fuzz", "--count", "6", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 cases of seed 1 did no harm" in done.stdout


def test_a_case_is_the_same_each_time():
    cases = [[[one.said for one in mutations(1, number, FILES)] for number in range(99)] for _ in range(2)]
    assert cases[0] == cases[1]
    assert len({str(case) for case in cases[0]}) > 90


def test_harm_is_noticed():
    """Command lines in the place of the engine's that do what no command may do."""
    script = """\
import os, signal, tempfile
from pathlib import Path
from tests.security import fuzz

with tempfile.TemporaryDirectory() as folder:
    original = fuzz.original(Path(folder) / "original")
"""
    for number, work in enumerate(HARMS):
        script += f"    def invoke(arguments):\n        {work}\n    fuzz.invoke = invoke\n"
        script += f"    print({number}, fuzz.harm(original, Path(folder) / 'case', []))\n"
    done = run("-c", script)
    lines = done.stdout.splitlines()
    assert len(lines) == len(HARMS), done.stderr
    for found, line in zip(HARMS.values(), lines, strict=True):
        assert found in line
    assert SECRET not in done.stdout


def test_damaged_answers_end_in_an_answer_or_a_diagnostic():
    done = run("-m", "tests.security.fuzz_answers", "--count", "25", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "25 of 25 cases of seed 1 ended in an answer or a diagnostic" in done.stdout


def test_damaged_records_end_in_an_answer_or_a_diagnostic():
    done = run("-m", "tests.security.fuzz_records", "--count", "40", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 of 40 cases of seed 1 ended in an answer or a diagnostic" in done.stdout


@pytest.mark.nightly
def test_what_is_no_diagnostic_is_noticed():
    """Cases that do what none may do: another error, an end of the process, no end, too much memory."""
    script = """\
import os, time
from tests.security import fuzz_answers as fuzz

fuzz.SECONDS, fuzz.MEGABYTES = 1, 100
works = (lambda *_: 1 / 0, lambda *_: os._exit(3), lambda *_: time.sleep(30), lambda *_: b"x" * 300_000_000)
for work in works:
    fuzz.SECONDS = 60 if work is works[-1] else 1
    fuzz.case = lambda works, place, seed, number: work(place) if number >= 0 else None
    print(repr(fuzz._batch(fuzz.Cases(fuzz.Place, ()), 1, [0])[1][-200:]))
"""
    lines = run("-c", script).stdout.splitlines()
    wanted = ("ZeroDivisionError", "code 3", "more than 1 seconds", "MB")
    assert [word in line for word, line in zip(wanted, lines, strict=True)] == [True] * 4, lines
