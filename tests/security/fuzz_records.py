"""`python -m tests.security.fuzz_records --count 5000 --seed 1`: damaged files below target/, in the state and in the user's folders.

Each case damages one file that a command reads: the status of `engine start` (also with a seal of this user, so that
its form is read), the history of turns, an artifact, a file of the site, a log, the state of a table, a note of an
operation that was interrupted, what the user's cache and configuration hold. A file may also be a link, a pipe, a
folder, of 3 GB, or unreadable. A command reads it, and must end with an answer or a diagnostic, within ten seconds and
500 MB of memory beyond what the process had before.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

from engine.api import Project
from engine.cli.main import invoke
from engine.errors import EngineError
from engine.live import own_records, status_file, turn_history
from engine.live.lag import Lag
from engine.live.observer import observing
from engine.live.turn_history import TurnHistory
from engine.mcp import read_tools
from tests.live.sequences import ORDERS, started, turn
from tests.security import answers
from tests.security.answering import Answering
from tests.security.damage import damaged_bytes, damaged_json
from tests.security.fuzz_answers import Cases, main, run_command

STATUS = (("status",), ("status", "--watch"), ("status", "--output", "json"))
# Those that answer from files; `clean` and `drop` remove some.
COMMANDS = (
    *STATUS, ("ls",), ("ls", "-s", "result:error", "result:success+", "--state", "target"), ("compile", "-q"), ("parse",),
    ("ls", "-s", "state:modified", "--state", "target"), ("plan",), ("plan", "--output", "json"), ("docs", "generate"),
    ("lineage",), ("show", "m", "--table"), ("state", "m"), ("drop", "m", "--yes"), ("clean",), ("stop",), ("pause", "m"),
    ("trust", "--list"), ("ls", "-s", "source_status:fresher+", "--state", "target"), ("explain", "state-unreadable"),
    ("maintain", "--dry-run"), ("export", "dbt-sources"), ("test", "-s", "nothing"), ("retry",),
)  # fmt: skip
# Of operations that were interrupted, as far as their form is the same.
_NOTE = {
    "model": "m", "table": "lake.s.m", "generation": 1, "from": "m", "to": "n", "uuid": "u", "snapshot": 5, "steps": [], "columns": ["id"],
    "state": {"generation": 1, "phase": "published"}, "relation": {"catalog": "lake", "schema": "s", "name": "m"}, "begun": "2026-01-01",
    "was": {"schema": "s", "name": "m"}, "fingerprint": "f", "files": [], "tables": {}, "at": 5,
}  # fmt: skip
NOTES = (
    "drop.json",
    "refresh.json",
    "rollback.json",
    "rename.json",
    "rebuild.json",
    "operation.json",
    "lock",
    "1/previous.json",
    "1/facts/f.json",
    "2/model.json",
)
_MOST_OF_A_FILE = 3 << 30


class Place:
    """A project that was compiled, documented and kept running, with a table and state, and its user's folders."""

    def __init__(self, folder: Path, _: Answering) -> None:
        os.environ |= {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "user"),
            "ENGINE_TRUST": "",
        }
        os.environ["ENGINE_CACHE"] = str(folder / "projects")
        self.folder, self.project = folder, answers.built(folder / "project")
        for command in (("docs", "generate"), ("plan",), ("status",)):
            _run(command, self.project)
        results = [{"unique_id": "model.lab.m", "status": "error", "execution_time": 1.0, "message": "x",
                    "adapter_response": {"rows_in": 5, "late": 0, "watermark": "2026-01-01T00:00:00"}}]  # fmt: skip
        args = {"which": "build", "target": "dev", "threads": 2, "vars": {}, "select": ["m"]}
        (self.target / "run_results.json").write_text(
            json.dumps({"metadata": {"generated_at": "2026-11-24T00:00:00Z"}, "results": results, "args": args})
        )
        freshness = {"unique_id": "source.lab.shop.events", "status": "pass", "max_loaded_at": "2026-11-24T00:00:00Z",
                     "snapshotted_at": "2026-11-24T00:00:00Z", "criteria": {"warn_after": {"count": 1, "period": "day"}}}  # fmt: skip
        (self.target / "sources.json").write_text(json.dumps({"results": [freshness]}))
        with observing(self.target, {}, lambda: {ORDERS: (Lag("shop.orders", "files", 3),)}) as observer:
            for event in (
                started(at=time.time()),
                *turn(rows=5, bad={"shop.orders": 1}, watermark="2026-01-01T00:00:00"),
            ):
                observer.on_event(event)
        trust = folder / "config/headrace/trust.json"
        trust.parent.mkdir(parents=True, mode=0o700)
        trust.write_text(json.dumps({"projects": {str(self.project.resolve()): [["ENGINE_SECRET_X", "host:1"]]}}))
        trust.chmod(0o600)
        self.copied = [folder / name for name in ("project", "config", "user", "projects") if (folder / name).exists()]
        self.whole = folder / "whole"
        for one in self.copied:
            _copy(one, self.whole / one.name)

    @property
    def target(self) -> Path:
        return self.project / "target"

    def restore(self) -> None:
        """Everything as it was, at the same place."""
        for one in self.copied:
            if one.exists():
                _copy(one, self.folder / "gone")
                shutil.rmtree(self.folder / "gone")
                shutil.rmtree(one)
            _copy(self.whole / one.name, one)


def _copy(one: Path, to: Path) -> None:
    shutil.copytree(one, to, symlinks=True, ignore=shutil.ignore_patterns("*.sock"), copy_function=_copy_file)


def _copy_file(source: str, to: str) -> object:
    # A file that a case made into a pipe, or very large, is not read.
    with suppress(OSError):
        if os.path.isfile(source) and os.path.getsize(source) < 1 << 27:  # noqa: PTH113, PTH202
            return shutil.copy2(source, to, follow_symlinks=False)
    return to


def status(place: Place, chance: random.Random) -> object:
    """A damaged status, sealed by this user or not."""
    path = place.target / "live/status.json"
    content = (place.whole / "project/target/live/status.json").read_bytes()
    plain = own_records.verified(content, place.target, status_file.FILE)
    if plain is None:
        raise AssertionError("the status is not proven")
    act = chance.random()
    if act < 0.6:
        made = own_records.sealed(damaged_json(chance, json.loads(plain)), place.target, status_file.FILE)
    elif act < 0.75:
        made = own_records.sealed(damaged_bytes(chance, plain), place.target, status_file.FILE)
    else:
        made = damaged_bytes(chance, content)
    path.write_bytes(made)
    try:
        if chance.random() < 0.1:
            return read_tools.status(Project(place.project))
        return run_command(chance.choice(STATUS), place.project, (0, 1, 2, 3))
    finally:
        path.write_bytes(content)


def history(place: Place, chance: random.Random) -> object:
    """A damaged history that is this user's, and the proof of it."""
    path = place.target / turn_history.FILE
    content, proof = path.read_bytes(), path.with_suffix(".json").read_bytes()
    changed = path if chance.random() < 0.8 else path.with_suffix(".json")
    changed.write_bytes(damaged_bytes(chance, changed.read_bytes()))
    try:
        found = TurnHistory(place.target)
        for event in turn(rows=1):
            found.add(event)
        found.close()
        return [
            turn_history.turns(path),
            turn_history.series(path, ORDERS, since=0),
            turn_history.state_changes(path, ORDERS),
        ]
    finally:
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        path.with_suffix(".json").write_bytes(proof)
        path.write_bytes(content)
        TurnHistory(place.target).close()


def records(place: Place, chance: random.Random) -> object:
    """A command that reads, where one file below target/ or of the user is damaged."""
    folders = [place.target, place.target, *(one for one in place.copied if one.name != "project")]
    return _damaged(place, chance, [path for path in chance.choice(folders).rglob("*") if path.is_file()])


def state(place: Place, chance: random.Random) -> object:
    """The same, where a file of the state is, or a note of an interrupted operation."""
    root = place.project / ".engine/state"
    if chance.random() < 0.5:
        note = root / "lake/s/m" / chance.choice(NOTES)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(_NOTE))
        return _damaged(place, chance, [note])
    return _damaged(place, chance, [path for path in root.rglob("*") if path.is_file()])


def _damaged(place: Place, chance: random.Random, paths: list[Path]) -> object:
    path = chance.choice(sorted(paths))
    content = path.read_bytes()
    act = chance.random()
    if act < 0.12:
        chance.choice(_KINDS)(path)
    else:
        made = damaged_bytes(chance, content)
        if act < 0.7:
            with suppress(ValueError):
                made = damaged_json(chance, json.loads(content))
        path.write_bytes(made)
    try:
        return run_command(chance.choice(COMMANDS), place.project, (0, 1, 2, 3))
    finally:
        place.restore()


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _large(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(_MOST_OF_A_FILE)


_KINDS: tuple[Callable[[Path], None], ...] = (_link, _pipe, _folder, _large)
CASES = Cases(Place, (status, status, status, history, records, records, records, state, state))
STATUS_CASES = Cases(Place, (status,))


def _run(command: tuple[str, ...], root: Path) -> None:
    text = StringIO()
    with redirect_stdout(text), redirect_stderr(text), suppress(EngineError):
        invoke([*command, "--project-dir", str(root)])


if __name__ == "__main__":
    only_status = "--status" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--status"]
    sys.exit(main("fuzz_records", __doc__, STATUS_CASES if only_status else CASES))
