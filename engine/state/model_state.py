"""What is kept of a model between runs: paths, generations, model.json and facts.

Layout: `<state>/<catalog>/<schema>/<table>/<generation>/` with `checkpoint/` (Spark's), `model.json` and
`facts/<fingerprint>.json`. A generation is one checkpoint. All but the checkpoint is written through
`engine.state.blob_store`: a crash leaves the old or the new content of a file, never half.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from engine import kill_points
from engine.characters import whole_number
from engine.errors import StateError
from engine.state.blob_store import Store
from engine.state.lease import Lease, held_lease, while_away
from engine.state.object_path import ObjectPath, ReadOnce
from engine.state.operations import Journal
from engine.state.state_path import StatePath, store_of
from engine.state.taken_over import BATCHES, CHECKPOINT, continue_in_copies, folder_in_use

# Of model.json. A change of its meaning gets another number, and a new version of the package.
FORMAT = 1
MODEL_FILE = "model.json"
PREVIOUS_FILE = "previous.json"

# It is the name of a file.
_FINGERPRINT = re.compile(r"[\w-]{0,128}")
_RESTORE = "Restore the file from a backup of the state folder, or rebuild the table: engine build -f -s MODEL"


class Phase(StrEnum):
    BUILDING = "building"
    STAGED = "staged"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The content of model.json.

    `generation`: number of the checkpoint, from 1; `generation_id` is random, and in the markers of its commits.
    `phase`: `published` when the table exists and belongs to this generation; before that `building`, or `staged` if it
    is whole and waits for its tests. `fingerprint`: of the query that wrote last; `query_id`: Spark's, in its
    checkpoint too. `batch`: the last micro-batch that ended, with or without rows; `ends`: digests that `offsets/<n>`
    of the last ones may have. `snapshot`: the last that the model wrote.

    `inputs`: of batch tables, what was read; `pinned`: that was the same before and after the rows were computed.
    `starts`: of streams of tables, where each begins, by node (`engine.sources.iceberg.Start`); `sources`: what each
    source gave to be remembered (`engine.sources.spec.Resumption`); settled: what the first build pinned, by source.

    `begin`: of a reset checkpoint, from which time its sources are read (`at`, milliseconds since 1970; None: the first
    record), and the last micro-batch that read older files to skip them (`past`; -1: none; left out: not all are read
    yet). `remembers`: after a reset, the query that began the rows, for which deleted keys are remembered.
    `event_times`: of a query with several watermarks, by input.

    `made`: of a batch table or view, what it was when written, beside its rows (`TableFacts.made`, `ViewFacts.made`).
    `extracts`: of a history of full extracts, the taken files (`files`: modification time in milliseconds by URI) and
    the time of the last (`at`, microseconds since 1970). `environment`: `project`, `target` and `schema`, the target's
    own. `format`: of the file (docs/how-to/upgrade.md); another one is not read.
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
    pinned: bool = False
    ends: Mapping[str, Sequence[str]] = field(default_factory=dict)
    starts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    begin: Mapping[str, Any] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    remembers: str | None = None
    event_times: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)
    extracts: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[str] = ()
    model: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    engine_version: str = ""
    spark_version: str = ""
    generation_id: str = ""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class TableState:
    """The state folder of one table; `file_store` is where its small files are, if that is not the folder itself."""

    root: StatePath
    catalog: str
    schema: str
    table: str
    file_store: Store | None = None

    @property
    def folder(self) -> StatePath:
        return self.root / self.key

    def generation(self, number: int) -> StatePath:
        return self.root / f"{self.key}/{number}"

    def checkpoint(self, number: int) -> StatePath:
        return self.root / f"{self.key}/{number}/{self._in_use(number, CHECKPOINT)}"

    def batches(self, number: int) -> StatePath:
        """The micro-batches of a generation that are kept because they cannot be computed again."""
        return self.root / f"{self.key}/{number}/{self._in_use(number, BATCHES)}"

    def checkpoint_files(self, number: int) -> StatePath:
        """The checkpoint to be read: where files are read once, each of it is, too."""
        if isinstance(self.file_store, ReadOnce) and not isinstance(self.root, ObjectPath):
            return ObjectPath(self.file_store, f"{self.key}/{number}/{CHECKPOINT}")
        return self.checkpoint(number)

    def _in_use(self, number: int, base: str) -> str:
        if not isinstance(self.root, ObjectPath):
            return base
        lease = self.lease
        return folder_in_use(self._store.list(f"{self.key}/{number}"), base, lease.number if lease else None)

    def continue_in_copies(self, lease: Lease) -> None:
        """Leave the folders that Spark has written to whoever held the lease before (`engine.state.taken_over`)."""
        if isinstance(self.root, ObjectPath):
            for number in self.generations():
                continue_in_copies(self.root.store, (self.root / f"{self.key}/{number}").key, lease.number)

    @property
    def lease(self) -> Lease | None:
        """The lease of the table, if this process holds it; a table of local state has none."""
        return held_lease(str(self.root), self.key) if isinstance(self.root, ObjectPath) else None

    def generations(self) -> tuple[int, ...]:
        numbers = map(whole_number, self._store.list(self.key))
        return tuple(sorted(n for n in numbers if n is not None and self._model_files(n)))

    def replaced_generations(self) -> tuple[int, ...]:
        """Numbers of the generations that another one has replaced, and that are kept for a rollback, ascending.

        Their model.json is in PREVIOUS_FILE (see `engine.plan.deployed.generations`).
        """
        numbers = [n for n in map(whole_number, self._store.list(self.key)) if n is not None]
        if len(numbers) < 2:  # noqa: PLR2004 - the one that has replaced it is there too
            return ()
        files = {n: self._store.list(f"{self.key}/{n}") for n in numbers}
        candidates = (n for n, names in files.items() if PREVIOUS_FILE in names)
        return tuple(sorted(n for n in candidates if not any(name.startswith(MODEL_FILE) for name in files[n])))

    def _model_files(self, number: int) -> list[str]:
        """Return the names of what is model.json of a generation, the one that counts last.

        Each lease has a file of its own: a holder that was taken over may still write, and nobody reads it.
        """
        names = self._store.list(f"{self.key}/{number}")
        return sorted((name for name in names if name.startswith(MODEL_FILE)), key=_lease_number)

    def states(self) -> tuple[ModelState, ...]:
        """The content of each model.json, by generation. Raises StateError: `state-unreadable`."""
        return tuple(self._read(number) for number in self.generations())

    def load(self) -> ModelState | None:
        """The state of the table: the newest published generation, or the first one while it is being made.

        Returns:
            None if nothing was ever built.

        Raises StateError: `state-unreadable`.
        """
        return self.load_both()[0]

    def unpublished(self) -> ModelState | None:
        """A generation that is, or was being, built beside the published one (or a table whose state is lost)."""
        return self.load_both()[1]

    def load_both(self) -> tuple[ModelState | None, ModelState | None]:
        states = self.states()
        published = [state for state in states if state.phase is Phase.PUBLISHED]
        newest = states[-1] if states else None
        is_unpublished = newest is not None and newest.phase is not Phase.PUBLISHED and newest.table != self.name
        return published[-1] if published else next(iter(states), None), newest if is_unpublished else None

    @property
    def name(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"

    @property
    def _store(self) -> Store:
        return self.file_store or store_of(self.root)

    @property
    def key(self) -> str:
        return f"{self.catalog}/{self.schema}/{self.table}"

    def _read(self, number: int) -> ModelState:
        name = self._model_files(number)[-1] if isinstance(self.root, ObjectPath) else MODEL_FILE
        try:
            data = json.loads(self._store.get(f"{self.key}/{number}/{name}") or b"")
            state = msgspec.convert(data, ModelState)
            _check(state, number)
            return replace(state, columns=tuple(state.columns))
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            hint = "Restore the file from a backup: it records the content of the table."
            path = self.generation(number) / name
            raise StateError("state-unreadable", f"{path} cannot be read: {error}", hint) from error

    def save(self, state: ModelState) -> None:
        name = MODEL_FILE if (lease := self.lease) is None else f"{MODEL_FILE}.{lease.number}"
        content = as_json(asdict(state))
        while_away(lambda: self._store.put(f"{self.key}/{state.generation}/{name}", content))
        if state.generation > 1:
            kill_points.reach("renewed", self.table)

    def save_facts(self, generation: int, fingerprint: str, facts: Mapping[str, Any]) -> None:
        self._store.put_if_absent(f"{self.key}/{generation}/facts/{fingerprint}.json", as_json(facts))

    def facts(self, state: ModelState) -> Mapping[str, Any] | None:
        key = f"{self.key}/{state.generation}/facts/{state.fingerprint}.json"
        content = self._store.get(key)
        if content is None:
            return None
        return self._mapping(key, content)

    def has(self, number: int, name: str) -> bool:
        return name in self._store.list(f"{self.key}/{number}")

    def note(self, number: int, name: str) -> Mapping[str, Any] | None:
        """The content of a small JSON file of a generation, or None if there is none.

        Raises StateError: `state-unreadable`.
        """
        key = f"{self.key}/{number}/{name}"
        content = self._store.get(key)
        return None if content is None else self._mapping(key, content)

    @property
    def journal(self) -> Journal:
        return Journal(self._store, self.key, self.folder, self.name)

    def _mapping(self, key: str, content: bytes) -> Mapping[str, Any]:
        try:
            document = json.loads(content)
            if not isinstance(document, dict):
                raise ValueError("it is no JSON object")  # noqa: TRY301, TRY004
        except (ValueError, RecursionError) as error:
            raise StateError("state-unreadable", f"{self.root / key} cannot be read: {error}", _RESTORE) from error
        return document

    def save_note(self, number: int, name: str, data: Mapping[str, Any]) -> None:
        self._store.put(f"{self.key}/{number}/{name}", as_json(data))

    def discard(self, number: int) -> None:
        """Remove a generation as a whole; half a checkpoint would lose rows silently (measured).

        Without model.json it is not a generation: that goes first.
        """
        self.retire(number)
        if number == 1:
            kill_points.reach("half discarded", self.table)
        self._store.delete(f"{self.key}/{number}")
        if number == 1:
            kill_points.reach("discarded", self.table)

    def retire(self, number: int) -> None:
        for name in self._model_files(number) or (MODEL_FILE,):
            self._store.delete(f"{self.key}/{number}/{name}")

    def discard_before(self, number: int) -> None:
        """Remove the generations before one, and what a kill left of them; of one that is kept, model.json."""
        for name in self._store.list(self.key):
            if (generation := whole_number(name)) is None or generation >= number:
                continue
            if self._is_kept(generation):
                self.retire(generation)
            else:
                self.discard(generation)

    def _is_kept(self, number: int) -> bool:
        """Whether a generation is kept for a rollback, and has written nothing since that was decided."""
        note = self.note(number, PREVIOUS_FILE)
        if note is None:
            return False
        written_state = json.loads(as_json(asdict(self._read(number)))) if self._model_files(number) else None
        return written_state is None or written_state == note.get("state")

    def forget_previous(self, number: int) -> None:
        self._store.delete(f"{self.key}/{number}/{PREVIOUS_FILE}")


def _check(state: ModelState, number: int) -> None:
    """Check what paths are made of; raise ValueError if a run did not write it."""
    if state.format != FORMAT:
        raise ValueError(f"it has format {state.format}, and this version reads format {FORMAT}")
    if state.generation != number:
        raise ValueError("it is of another generation")
    if not _FINGERPRINT.fullmatch(state.fingerprint):
        raise ValueError("a name in it is none")


def _lease_number(name: str) -> int:
    return whole_number(name.removeprefix(f"{MODEL_FILE}.")) or 0


def as_json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, indent=1, sort_keys=True).encode()
