"""No template takes all memory or all time: what takes too much is an error at its place, also in a program's threads.

`attacks()` has some thirteen thousand; here are some of each kind, `make hostile` runs a few hundred more.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import threading

import pytest

from engine.compile import compile_project
from engine.errors import Diagnostic, ProjectError
from engine.project import load_project
from tests.security import template_attacks
from tests.security.test_bombs import PROJECT, TABLE, compiled

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="templates are rendered without limits of the system")

ATTACKS = template_attacks.special()
# Each took more than 6 seconds or 500 MB when it was first tried; the rest of ATTACKS did, or grows like one of these.
CHOSEN = (
    "doubled: '{0}{0}'.format(ns.x)", "doubled: ns.x.join([ns.x, ns.x])", "kept: 'x' * 1900000 ~ i",
    "kept: i.to_bytes(1900000, 'big')", "a list that grows as it is filtered", "nested lists, compared",
    "a percent with a name in brackets", "equal hashes", "division of large numbers", "nested lists, in a warning",
)  # fmt: skip
MOST = 600_000  # kilobytes, with those of the interpreter and the loaded modules
SECONDS = 20  # of processor time


def ends(root, text: str) -> list[Diagnostic]:
    """What is found in a project with one model, whose process kept to its bounds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        found = list(compiled(root, {"models/a.sql": f"{TABLE}select {text} as a"}).errors)
    except ProjectError as error:
        found = list(error.diagnostics)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS
    assert after.ru_maxrss < MOST or after.ru_maxrss == before.ru_maxrss
    assert {d.location.file for d in found if d.location} <= {"models/a.sql"}
    return found


@pytest.mark.parametrize("name", CHOSEN)
def test_what_takes_too_much_is_an_error_at_its_place(tmp_path, name):
    found = ends(tmp_path, ATTACKS[name])
    assert [d.code for d in found] == ["template-too-large"]
    assert "seconds" in found[0].message or "MB" in found[0].message
    assert found[0].location is not None


def test_the_limits_hold_in_any_thread_of_a_program(tmp_path):
    found: list[Diagnostic] = []
    thread = threading.Thread(target=lambda: found.extend(ends(tmp_path, ATTACKS["kept: 'x' * 1900000 ~ i"])))
    thread.start()
    thread.join()
    assert [d.code for d in found] == ["template-too-large"]


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
def test_everything_that_is_rendered_has_limits(tmp_path, files):
    for name, text in {"project.yml": PROJECT, "models/a.sql": TABLE + "select 1 as a", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        found = list(compile_project(load_project(tmp_path), target="dev").manifest.errors)
    except ProjectError as error:
        found = list(error.diagnostics)
    assert "template-too-large" in {d.code for d in found}
    assert all(d.location for d in found if d.code == "template-too-large")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - own < 100_000


def test_what_a_template_logs_reaches_the_program(tmp_path, caplog):
    caplog.set_level("INFO", logger="engine")
    assert compiled(tmp_path, {"models/a.sql": TABLE + "{{ log('hello', info=true) }}select 1 as a"}).errors == ()
    assert "hello" in caplog.text


@pytest.mark.skipif("HEADRACE_HOSTILE" not in os.environ, reason="make hostile")
def test_some_hundred_attacks_keep_to_the_bounds(tmp_path):
    seed = int(os.environ["HEADRACE_HOSTILE"])
    every = template_attacks.attacks()
    for name in [*ATTACKS, *random.Random(seed).sample(sorted(every), 300)]:
        try:
            ends(tmp_path, every[name])
        except AssertionError as error:
            error.add_note(name)
            raise
