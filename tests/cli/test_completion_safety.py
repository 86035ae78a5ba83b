"""A foreign project in a shell: neither Tab nor Enter after it runs what the project's names say."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.processes import read_until
from tests.cli.test_completion import completed
from tests.lab import REPOSITORY
from tests.project.small_projects import compiled, line, lines
from tests.projects import write_files

pytestmark = pytest.mark.slow

# Bash and zsh run them as they stand, fish those with parentheses.
HOSTILE = (
    "a$(touch pwned_a)",
    "b;touch${IFS}pwned_b",
    "c`touch pwned_c`",
    "d(touch pwned_d)",
    "e|touch pwned_e",
    "f\ntouch pwned_f",
)
SETUP = {
    "bash": ('eval "$(engine completion bash)"', ["bash", "--norc", "--noprofile", "-i"]),
    "zsh": ('autoload -Uz compinit; compinit -u -D; eval "$(engine completion zsh)"', ["zsh", "-f", "-i"]),
    "fish": ("engine completion fish | source", ["fish", "--no-config", "-i"]),
}
READY = dict.fromkeys(SETUP, b"echo rea''dy\n")
LINES = (
    *(f"engine ls -t {name[0]}" for name in HOSTILE),
    "engine source inspect a",
    "engine source inspect good.b",
    "engine ls -s source:c",
    "engine show a",
    "engine ls --project-dir sub",
)


def project(root: Path) -> Path:
    """A project with such names for targets, sources, tables, models and folders, beside good ones."""
    quoted = [json.dumps(name) for name in HOSTILE]
    targets = ", ".join(f"{name}: {{schema: c}}" for name in ("dev", "zz-1", *quoted))
    tables = ", ".join(f"{{name: {name}, format: rate}}" for name in ("zz", *quoted))
    files = {
        "project.yml": f"name: shop\ntarget: dev\ntargets: {{{targets}}}\n",
        "sources/s.yml": "sources:\n"
        + "".join(f"- {{name: {name}, tables: [{tables}]}}\n" for name in ("good", *quoted)),
        "models/ok.sql": "select 1 as id\n",
        **{f"models/{name}.sql": "select 1 as id\n" for name in HOSTILE},
        "sub$(touch pwned_g)/file": "",
    }
    write_files(root, files)
    return root


# The command line of the engine; with names that are not checked.
ENGINE = "from engine.cli.main import main; main()"
UNCHECKED = f"from engine.project import yaml_section as y; y.is_target_name = y.is_name = lambda _: True; {ENGINE}"


@contextmanager
def shell(name: str, folder: Path, programs: Path, code: str = ENGINE) -> Iterator[int]:
    """The terminal of an interactive shell with completion of `engine`."""
    program = programs / "engine"
    # What a line runs at Enter is of no interest, only what is run beside it.
    asked = '[ -n "$_ENGINE_COMPLETE" ] || [ "$1" = completion ]'
    program.write_text(f'#!/bin/sh\n{asked} && exec "{sys.executable}" -P -c "{code}" "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": path, "TERM": "dumb", "HOME": str(programs)}
    setup, command = SETUP[name]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, env)
    try:
        time.sleep(0.5)
        os.write(terminal, f"{setup}\n".encode() + READY[name])
        assert b"ready" in read_until(terminal, b"ready")
        yield terminal
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def quiet(terminal: int) -> bytes:
    """What a terminal shows until nothing comes for a while."""
    shown = b""
    while select.select([terminal], [], [], 1.5)[0]:
        shown += os.read(terminal, 4096)
    return shown


def typed(terminal: int, line: str) -> bytes:
    """Type a line, Tab and Enter, and wait until the shell has run what is there."""
    os.write(terminal, line.encode())
    time.sleep(0.2)
    os.write(terminal, b"\t")
    shown = quiet(terminal)
    os.write(terminal, b"\necho en''ded\n")
    return shown + read_until(terminal, b"ended")


@pytest.mark.nightly_except("zsh")
@pytest.mark.parametrize("name", sorted(SETUP))
def test_no_name_of_a_project_is_run(tmp_path, tmp_path_factory, name):
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    folder = project(tmp_path)
    with shell(name, folder, tmp_path_factory.mktemp("bin")) as terminal:
        assert b"engine ls -t zz-1" in typed(terminal, "engine ls -t zz")
        assert b"good.zz" in typed(terminal, "engine source inspect good.z")
        for line in LINES:
            typed(terminal, line)
    assert sorted(path.name for path in folder.glob("pwned*")) == []


def test_bash_quotes_whatever_it_is_offered(tmp_path, tmp_path_factory):
    """zsh and fish do so themselves; valid names need no quotes, which are a second line of defence."""
    folder = project(tmp_path)
    with shell("bash", folder, tmp_path_factory.mktemp("bin"), UNCHECKED) as terminal:
        assert rb"a\$\(touch\ pwned_a\)" in typed(terminal, "engine ls -t a")
        for line in LINES[1:6]:
            typed(terminal, line)
    assert sorted(path.name for path in folder.glob("pwned*")) == []


def test_only_valid_names_are_offered(tmp_path):
    folder = project(tmp_path)
    assert completed(folder, "engine ls -t ") == ["dev", "zz-1"]
    assert completed(folder, "engine source inspect ") == ["good.zz"]
    assert completed(folder, "engine ls -s ") == ["ok", "source:good.zz"]


def test_what_has_an_invalid_name_is_used_nowhere(tmp_path):
    files = {"sources/s.yml": "sources:\n- {name: '$(id)', tables: [{name: t, format: avro, path: d}]}\n"
             "- {name: good, tables: [{name: '`id`', format: avro, path: d}]}\n",
             "models/a.sql": "select * from {{ source('$(id)', 't') }}\n"}  # fmt: skip
    manifest = compiled(tmp_path, files).manifest
    assert lines(manifest.diagnostics) == [
        "bad-name sources/s.yml:2:10 '$(id)' is not a valid name", "bad-name sources/s.yml:3:32 '`id`' is not a valid name"]  # fmt: skip
    assert [source.source for source in manifest.sources] == ["shop", "shop"]


def test_a_target_has_a_name_that_a_shell_reads_as_one_word(tmp_path):
    text = "name: shop\ntarget: dev\ntargets: {dev: {schema: a}, pr-12.x: {schema: b}, 'a b': {schema: c}}\n"
    (found,) = compiled(tmp_path, {"project.yml": text, "models/a.sql": "select 1 as a\n"}).manifest.errors
    assert line(found) == "bad-name project.yml:3:51 'a b' is not the name of a target"
    other = compiled(tmp_path, {"project.yml": text}, target="$(id)").manifest.errors
    assert all("$(id)" not in finding.hint for finding in other)
