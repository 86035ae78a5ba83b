"""Somebody else's project is parsed, compiled, listed, documented and drawn: it reads, writes and runs nothing of ours."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import engine
from tests.security.hostile_project import CALLABLE, KINDS, SECRET, SHADOWED, disguises, write

pytestmark = pytest.mark.slow

COMMANDS = (
    ("parse",), ("compile",), ("ls",), ("ls", "--output", "json"), ("ls", "--output", "path"), ("docs", "generate"),
    ("lineage",), ("lineage", "fine.a"), ("show", "fine", "--table"),
)  # fmt: skip
# Of the kind whose tables are read: with the others they end before that, as the one above does.
OF_TABLES = (("show", "calls", "--table"), ("show", "over_http", "--table"), ("show", "users", "--table"))
REPOSITORY = Path(engine.__file__).parent.parent


@dataclass(frozen=True)
class Walk:
    """What the commands left behind: their exit codes, all they printed, the log of their events."""

    codes: Mapping[str, int]
    printed: str
    events: tuple[str, ...]
    root: Path
    before: Mapping[str, str]
    after: Mapping[str, str]


def contents(folder: Path) -> dict[str, str]:
    """All that is below a folder: links by their aim, files by a hash; links are not followed."""
    found: dict[str, str] = {}
    for below, folders, files in os.walk(folder):
        for path in (Path(below, name) for name in (*folders, *files)):
            if path.is_symlink():
                found[str(path)] = f"link to {path.readlink()}"
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[str(path)] = "folder"
    return found


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.nightly if kind == "names and links" else ()) for kind in KINDS],
)
def walk(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Walk:
    """The hostile project, after all commands that run nothing, called from inside it as a reviewer would."""
    base = tmp_path_factory.mktemp("hostile")
    root, outside, home, log = base / "work" / "project", base / "work" / "outside", base / "home", base / "events"
    (outside / "precious").mkdir(parents=True)
    (outside / "precious" / "file.txt").write_text("precious")
    (outside / "trusted").mkdir()
    home.mkdir()
    write(root, outside, request.param)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "ENGINE_SECRET_DB": SECRET, "PYTHONPATH": str(REPOSITORY)}
    before = contents(base / "work")
    commands = [*COMMANDS, *(OF_TABLES if request.param == "tables" else ())]
    # -P: this process's own `-m` would put the project's folder on the path; the installed command does not.
    call = [sys.executable, "-P", "-m", "tests.security.audited", str(log), json.dumps(commands)]
    done = subprocess.run(call, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=600)
    lines = log.read_text().splitlines()
    ended = [line.split(" ", 2) for line in lines if line.startswith("code ")]
    codes = {command: int(code) for _, code, command in ended}
    assert len(ended) == len(commands), done.stderr
    events = tuple(line for line in lines if not line.startswith("code "))
    return Walk(codes, done.stdout + done.stderr, events, root, before, contents(base / "work"))


def test_each_command_ends_with_errors_and_not_with_a_traceback(walk: Walk) -> None:
    assert set(walk.codes.values()) <= {0, 1}, walk.codes
    assert "Traceback" not in walk.printed
    # It was read at all.
    assert (walk.root / "target" / "manifest.json").exists()
    assert "fine.a" in walk.printed


def test_nothing_outside_target_is_written_changed_or_removed(walk: Walk) -> None:
    target = str(walk.root / "target")
    changed = {path for path in {*walk.before, *walk.after} if walk.before.get(path) != walk.after.get(path)}
    assert not {path for path in changed if not path.startswith(target)}
    # The links in target/ are refused where they are, not replaced unseen or followed.
    assert all(walk.after[path] == what for path, what in walk.before.items() if path.startswith(target))


def test_no_disguise_of_a_secret_is_printed_or_written(walk: Walk) -> None:
    texts = {"output": walk.printed}
    for path in walk.root.parent.parent.rglob("*"):
        if path.is_file() and not path.is_symlink():
            texts[str(path)] = path.read_bytes().decode("utf-8", errors="replace")
    for name, form in disguises(SECRET).items():
        assert not [where for where, text in texts.items() if form in text], name


def test_nothing_is_started_connected_to_or_imported_from_the_project(walk: Walk) -> None:
    kinds = {line.partition(" ")[0] for line in walk.events}
    assert "exec" in kinds  # the hook was there
    own = [line for line in walk.events if line.startswith(f"exec {walk.root}")]
    named = [line for line in walk.events if CALLABLE.partition(".")[0] in line]
    assert not own + named
    started = [line for line in walk.events if not line.startswith("exec ") and "dlopen (None,)" not in line]
    assert not started


@pytest.mark.parametrize("module", SHADOWED)
def test_a_module_of_the_project_shadows_none_of_ours(walk: Walk, module: str) -> None:
    assert f"{module} of the project was imported" not in walk.printed


def test_what_an_object_is_at_in_memory_reaches_no_text(walk: Walk) -> None:
    assert " at 0x" not in walk.printed
    for path in (walk.root / "target").rglob("*.sql"):
        assert " at 0x" not in path.read_text()
