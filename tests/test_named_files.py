"""Files and modules that docstrings, comments and design notes name are there."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
_PACKAGES = frozenset({"engine", "engine_import"})
# What may be a module or room of these: `plan/refresh`, `compile/sql/parse.py`, `engine.lake.commits`.
_QUOTED = re.compile(r"`+([\w.]+(?:/[\w.]+)*)/?`+")


class Places(NamedTuple):
    """What git has: modules without `.py`, folders, packages and their rooms, and each end of a path to one of them."""

    tracked: tuple[str, ...]
    modules: frozenset[str]
    folders: frozenset[str]
    rooms: frozenset[str]
    ends: frozenset[str]


@cache
def places() -> Places:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = tuple(name for name in listed.split("\0") if name)
    modules = frozenset(name.removesuffix(".py") for name in tracked if name.endswith(".py"))
    folders = frozenset(str(folder) for name in tracked for folder in Path(name).parents)
    rooms = frozenset(folder.split("/")[1] for folder in folders if folder.startswith("engine/")) | _PACKAGES
    ends = frozenset(
        place.split("/", first)[-1] for place in {*tracked, *modules, *folders} for first in range(place.count("/") + 1)
    )
    return Places(tracked, modules, folders, rooms, ends)


def gone(text: str) -> list[str]:
    """The modules and rooms that a text names and that are not there."""
    return [match[1] for match in _QUOTED.finditer(text) if not _known(match[1])]


def _known(name: str) -> bool:
    _, modules, folders, rooms, ends = places()
    if (name.startswith("engine.") and name.count(".") > 1) or name.startswith("engine_import."):
        path = name.replace(".", "/")
        within, _, last = path.rpartition("/")
        # Something in a module, in a class of one, or that a room gives.
        given = within in folders and last[0].isupper()
        return given or bool({path, within, within.rpartition("/")[0]} & modules) or path in folders
    if name.endswith(".py") or ("." not in name and "/" in name and name.partition("/")[0] in rooms):
        return name in ends
    return True


@pytest.mark.slow
def test_files_that_are_named_are_there() -> None:
    texts = [
        name for name in places().tracked
        if (name.startswith(("engine/", "engine_import/")) and name.endswith(".py")) or name.startswith("docs/design/")
    ]  # fmt: skip
    found = {name: gone((ROOT / name).read_text(encoding="utf-8")) for name in texts}
    assert not {name: missing for name, missing in found.items() if missing}


def test_what_is_gone_is_seen() -> None:
    assert gone("`plan/keys.py`, `engine.plan.keys`, `plan/nowhere`, `engine_import/plan`, `engine_import.plan`") == [
        "plan/keys.py", "engine.plan.keys", "plan/nowhere", "engine_import/plan", "engine_import.plan"
    ]  # fmt: skip
    assert not gone(
        "`engine.lake.commits.commit_with_retries`, `engine.api.Project`, `plan/refresh`, `lake/commits.py`, `engine.id`"
    )
