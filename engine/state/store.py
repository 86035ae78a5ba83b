"""What is kept of a model between runs: paths, generations, model.json and facts.

Layout: `<state>/<catalog>/<schema>/<table>/<generation>/` with `checkpoint/` (Spark's), `model.json` and
`facts/<fingerprint>.json`. A generation is one checkpoint. Files are written beside and moved into place,
after their bytes have reached the disk, so that a crash leaves the old or the new content, never half.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.errors import StateError

PRIVATE = 0o700
MODEL_FILE = "model.json"


class Phase(StrEnum):
    """Whether the generation's table is still being made, or stands."""

    BUILDING = "building"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The content of model.json.

    Attributes:
        table: full name of the Iceberg table or view.
        generation: number of the checkpoint, from 1.
        phase: `building` until the table exists and belongs to this generation.
        uuid: the table's UUID; a table that is dropped and made again has another one.
        fingerprint: of the query that wrote last.
        query_id: Spark's id of the streaming query, kept in its checkpoint too.
        batch: id of the last micro-batch that ended, with or without rows.
        snapshot: the last snapshot the model wrote.
        inputs: for batch tables, what was read (see `engine.runtime.batch`).
        upstreams: of generations that began before `starts`, the UUID of each table read as a stream.
        starts: for streams of tables, where each begins (see `engine.sources.iceberg.Start`), by node.
        sources: for streams of sources, what each gave to be remembered (see `engine.sources.spec.Resumption`).
        settled: by source, what the first build of the generation settled (see `engine.sources.spec.Place`).
        event_times: by input of a query with several watermarks, its newest event time and when that came.
        engine_version: that wrote last.
        spark_version: that wrote last.
    """

    table: str
    generation: int = 1
    phase: Phase = Phase.BUILDING
    uuid: str | None = None
    fingerprint: str = ""
    query_id: str | None = None
    batch: int | None = None
    snapshot: int | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    upstreams: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    event_times: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    engine_version: str = ""
    spark_version: str = ""


@dataclass(frozen=True, slots=True)
class TableState:
    """The state folder of one table."""

    root: Path
    catalog: str
    schema: str
    table: str

    @property
    def folder(self) -> Path:
        """Folder of all generations and the lock."""
        return self.root / self.catalog / self.schema / self.table

    def generation(self, number: int) -> Path:
        """Folder of one generation."""
        return self.folder / str(number)

    def checkpoint(self, number: int) -> Path:
        """Spark's checkpoint of a generation."""
        return self.generation(number) / "checkpoint"

    def generations(self) -> tuple[int, ...]:
        """Numbers of the generations that have a model.json, ascending."""
        found = (int(p.name) for p in self._children() if p.name.isdigit() and (p / MODEL_FILE).exists())
        return tuple(sorted(found))

    def load(self) -> ModelState | None:
        """The state of the table: the newest published generation, or the first one while it is being made.

        Returns:
            None if nothing was ever built.

        Raises:
            StateError: `state-unreadable`.
        """
        states = [self._read(number) for number in self.generations()]
        published = [state for state in states if state.phase is Phase.PUBLISHED]
        return published[-1] if published else next(iter(states), None)

    def pending(self) -> ModelState | None:
        """A generation that was being built beside the published one (or beside a table whose state is lost)."""
        states = [self._read(number) for number in self.generations()]
        newest = states[-1] if states else None
        beside = newest is not None and newest.phase is Phase.BUILDING and newest.table != self.name
        return newest if beside else None

    @property
    def name(self) -> str:
        """The table's full name."""
        return f"{self.catalog}.{self.schema}.{self.table}"

    def _read(self, number: int) -> ModelState:
        path = self.generation(number) / MODEL_FILE
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            known = {f.name for f in fields(ModelState)}
            state = ModelState(**{k: v for k, v in data.items() if k in known})
            return replace(state, phase=Phase(state.phase))
        except (OSError, ValueError, TypeError) as error:
            hint = "Restore the file from a backup; without it the engine cannot tell what the table holds."
            raise StateError("state-unreadable", f"{path} cannot be read: {error}", hint) from error

    def save(self, state: ModelState) -> None:
        """Write model.json."""
        folder = self.generation(state.generation)
        make_private(folder)
        write_json(folder / MODEL_FILE, asdict(state))

    def save_facts(self, generation: int, fingerprint: str, facts: Mapping[str, Any]) -> None:
        """Write the facts of a fingerprint, once."""
        folder = self.generation(generation) / "facts"
        path = folder / f"{fingerprint}.json"
        if not path.exists():
            make_private(folder)
            write_json(path, facts)

    def facts(self, state: ModelState) -> Mapping[str, Any] | None:
        """The facts of the query that wrote last."""
        path = self.generation(state.generation) / "facts" / f"{state.fingerprint}.json"
        try:
            known: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StateError("state-unreadable", f"{path} cannot be read: {error}") from error
        return known

    def discard(self, number: int) -> None:
        """Remove a generation as a whole; half a checkpoint would lose rows silently (measured)."""
        shutil.rmtree(self.generation(number), ignore_errors=True)

    def _children(self) -> list[Path]:
        try:
            return list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError("state-unreadable", f"{self.folder} cannot be read: {error.strerror}") from error


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for the owner only.

    Raises:
        StateError: `state-unwritable`.
    """
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(mode=PRIVATE, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file so that a crash leaves the old content or the new.

    Raises:
        StateError: `state-unwritable`, with the system's reason (a full disk, say).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            json.dump(data, stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> StateError:
    hint = "Make the folder writable (and see that the disk has room), or set 'state:' of the target to another one."
    return StateError("state-unwritable", f"{path} cannot be written: {error.strerror}", hint)
