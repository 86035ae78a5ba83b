"""No template takes all memory or all time: what takes too much is an error at its place, also in a program's threads.

`attacks()` has some thirteen thousand; here are some of each kind, `make hostile` runs a few hundred more.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.errors import Diagnostic, ProjectError
from engine.project import load_project
from tests.projects import write_files
from tests.security import template_attacks
from tests.security.test_bombs import PROJECT, TABLE, compiled

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="templates are rendered without limits of the system"),
    pytest.mark.slow,
]

ATTACKS = template_attacks.special()
# Each took more than 6 seconds or 500 MB when it was first tried; the rest of ATTACKS did, or grows like one of these.
CHOSEN = (
    "doubled: '{0}{0}'.format(ns.x)", "doubled: ns.x.join([ns.x, ns.x])", "kept: 'x' * 1900000 ~ i",
    "kept: i.to_bytes(1900000, 'big')", "a list that grows as it is filtered", "nested lists, compared",
    "a percent with a name in brackets", "equal hashes", "division of large numbers", "nested lists, in a warning",
)  # fmt: skip
# Kilobytes that a confined process takes beyond what came with the fork; 400 MB of them are for a rendering.
MOST = 450_000
# Kilobytes of a command, with its processes.
MOST_OF_A_COMMAND = 500_000
SECONDS = 10  # of processor time


class Children:
    """What each process that is forked takes: the sums and maxima of RUSAGE_CHILDREN are of earlier children, too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kilobytes: list[int] = []
        self.seconds: list[float] = []
        forked: dict[int, int] = {}
        fork = os.fork

        def measured_fork() -> int:
            before = resident()
            if pid := fork():
                forked[pid] = before
            return pid

        def measured_wait(pid: int, options: int) -> tuple[int, int]:
            ended, status, took = os.wait4(pid, options)
            if ended in forked:
                # Pages that came with the fork count as the child's.
                self.kilobytes.append(took.ru_maxrss - forked.pop(ended))
                self.seconds.append(took.ru_utime + took.ru_stime)
            return ended, status

        monkeypatch.setattr(os, "fork", measured_fork)
        monkeypatch.setattr(os, "waitpid", measured_wait)


@pytest.fixture
def children(monkeypatch) -> Children:
    return Children(monkeypatch)


def resident() -> int:
    """Kilobytes of this process that are in memory now (proc(5))."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def largest_from_now_on() -> None:
    """Forget what this process has taken before (proc(5): 5 in clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def largest() -> int:
    """The most kilobytes of this process that were in memory at a time."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def ends(root: Path, text: str, children: Children) -> list[Diagnostic]:
    """What is found in a project with one model, whose processes kept to their bounds."""
    try:
        found = list(compiled(root, {"models/a.sql": f"{TABLE}select {text} as a"}).errors)
    except ProjectError as error:
        found = list(error.diagnostics)
    assert children.kilobytes, "nothing was forked"
    assert max(children.kilobytes) < MOST
    assert max(children.seconds) < SECONDS
    assert {d.location.file for d in found if d.location} <= {"models/a.sql"}
    return found


@pytest.mark.nightly_except(
    "doubled: '{0}{0}'.format(ns.x)", "kept: 'x' * 1900000 ~ i", "a percent with a name in brackets", "equal hashes"
)
@pytest.mark.parametrize("name", CHOSEN)
def test_what_takes_too_much_is_an_error_at_its_place(tmp_path, children, name):
    found = ends(tmp_path, ATTACKS[name], children)
    assert [d.code for d in found] == ["template-too-large"]
    # Which limit comes first depends on the machine.
    assert any(limit in found[0].message for limit in ("seconds", "MB", "rounds of loops"))
    assert found[0].location is not None


def test_the_limits_hold_in_any_thread_of_a_program(tmp_path, children):
    found: list[Diagnostic] = []
    attack = ATTACKS["kept: 'x' * 1900000 ~ i"]
    thread = threading.Thread(target=lambda: found.extend(ends(tmp_path, attack, children)))
    thread.start()
    thread.join()
    assert [d.code for d in found] == ["template-too-large"]


_MEASURED = """\
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_a_command_keeps_to_the_bounds_with_all_its_processes(tmp_path):
    text = ATTACKS["kept: 'x' * 1900000 ~ i"]
    write_files(tmp_path, {"project.yml": PROJECT, "models/a.sql": f"{TABLE}select {text} as a"})
    with (tmp_path / "output").open("w+") as output:
        # A process begins with the largest size of the one that started it: that is a small one here, and not the tests'.
        command = [sys.executable, "-c", _MEASURED, sys.executable, "-P", "-m", "engine", "compile"]
        measured = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=output, text=True, check=True)
        output.seek(0)
        assert "template-too-large" in output.read()
    code, largest = map(int, measured.stdout.split())
    assert code == 1
    # Of the command or of the largest of those that it has waited for.
    assert largest < MOST_OF_A_COMMAND


@pytest.mark.nightly_cases("a macro file")
@pytest.mark.parametrize(
    "files",
    [
        {"macros/m.sql": "{% set n = ('f' * 1900000) | int(base=16) % (('7' * 900000) | int(base=16)) %}"},
        {"macros/m.sql": "{% macro m() %}{{ 'x'.ljust(10**10) }}{% endmacro %}", "models/b.sql": "select {{ m() }}"},
        {"sources/s.yml": "sources: [{name: s, tables: [{name: t, path: \"{{ 'x'.ljust(10**10) }}\", format: csv}]}]"},
        {"project.yml": PROJECT.replace("lake, path: ", "\"{{ 'x'.ljust(10**10) }}\", path: ")},
        {"project.yml": PROJECT + "vars: {a: \"{{ 'x'.ljust(10**10) }}\"}\n", "models/b.sql": "select {{ var('a') }}"},
    ],
    ids=["a macro file", "a macro", "a source", "a target", "a variable"],
)
def test_everything_that_is_rendered_has_limits(tmp_path, children, files):
    write_files(tmp_path, {"project.yml": PROJECT, "models/a.sql": TABLE + "select 1 as a", **files})
    largest_from_now_on()
    own = resident()
    try:
        found = list(compile_project(load_project(tmp_path), target="dev").manifest.errors)
    except ProjectError as error:
        found = list(error.diagnostics)
    assert "template-too-large" in {d.code for d in found}
    assert all(d.location for d in found if d.code == "template-too-large")
    assert largest() - own < 100_000
    assert max(children.kilobytes) < MOST


def test_what_macro_files_keep_counts_for_all_together(tmp_path, children):
    kept = "{% set kept = [] %}{% for i in range(140) %}{% do kept.append('x' * 1900000 ~ i) %}{% endfor %}"
    files = {f"macros/m{n}.sql": f"{kept}{{% macro m{n}() %}}1{{% endmacro %}}" for n in range(4)}
    found = compiled(tmp_path, {**files, "models/a.sql": f"{TABLE}select 1 as a"}).errors
    assert [(d.code, d.location.file) for d in found if d.location] == [
        ("template-too-large", f"macros/m{n}.sql") for n in (1, 2, 3)
    ]
    assert "MB that earlier ones keep" in found[0].message
    assert max(children.kilobytes) < MOST


def test_what_a_template_logs_reaches_the_program(tmp_path, caplog):
    caplog.set_level("INFO", logger="engine")
    assert compiled(tmp_path, {"models/a.sql": TABLE + "{{ log('hello', info=true) }}select 1 as a"}).errors == ()
    assert "hello" in caplog.text


@pytest.mark.skipif("HEADRACE_HOSTILE" not in os.environ, reason="make hostile")
def test_some_hundred_attacks_keep_to_the_bounds(tmp_path, children):
    seed = int(os.environ["HEADRACE_HOSTILE"])
    every = template_attacks.attacks()
    for name in [*ATTACKS, *random.Random(seed).sample(sorted(every), 300)]:
        try:
            ends(tmp_path, every[name], children)
        except AssertionError as error:
            error.add_note(name)
            raise
