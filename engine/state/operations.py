"""Operations on a table that were begun and not finished (`operation.json`), and the steps that carry one out.

An operation is noted before anything of it is done, and ended when all of it is. Several may be open: a table that is
being rebuilt can be refreshed, and dropped. After a kill the steps are carried out again from the first that is not
noted as completed; the kill may have come between its effect and the note, so that an effect must do no harm twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar, get_args

import msgspec

from engine import kill_points
from engine.errors import StateError
from engine.state.blob_store import Store
from engine.state.state_path import StatePath

# Of operation.json. Version 0.1.0 had a file of its own for each kind, which is read until the operation is ended.
FORMAT = 1
FILE = "operation.json"
_RESTORE = "Restore the file from a backup of the state folder, or rebuild the table: engine build -f -s MODEL"
# Of a rebuild: from the first of these steps on nothing is written to the tables that it makes.
PUBLISHING, PUBLISHED = "rebuild noted", "rebuild published"


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table or view that goes with a drop; `folder`: of its files, which go too; empty: they stay."""

    role: str = ""
    schema: str = ""
    name: str = ""
    uuid: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """A table goes with its state.

    Attributes:
        environment: of the build that wrote it last.
        clone: it is dropped unless a clone of it is finished, whose first table has this name; empty: it is that one.
    """

    model: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[DroppedTable, ...] = ()
    clone: str | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """A full refresh of a table.

    Attributes:
        at: when it was begun, UTC.
        accept: the consequences that the user accepted (see `engine.plan.actions.refresh_checks`).
        before: the generation of the table that is to be replaced; 0: there is none.
        attempt: the last generation that was begun instead, whose number does not come again: a run on another machine
            that was taken over may still be at it.
    """

    at: str = ""
    accept: tuple[str, ...] = ()
    before: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Rollback:
    """A table goes back to a generation, from another one that takes its place."""

    to: int
    other: int


@dataclass(frozen=True, slots=True)
class Rename:
    """A table gets another full name; of each table that moves its UUID, by what follows the name of the main one."""

    to: str
    tables: Mapping[Annotated[str, msgspec.Meta(pattern=r"\A(__\w+)?\Z")], str]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A table is made beside the one of a model; `models`: all that are rebuilt together; `at`: when, UTC."""

    at: str = ""
    model: str = ""
    models: tuple[str, ...] = ()


Operation = Drop | Refresh | Rollback | Rename | Rebuild
_Kind = TypeVar("_Kind", Drop, Refresh, Rollback, Rename, Rebuild)
_KINDS: Mapping[str, type[Operation]] = {kind.__name__.lower(): kind for kind in get_args(Operation)}
_EARLIER = tuple(f"{kind}.json" for kind in _KINDS)
FILES = (*_EARLIER, FILE)


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    arguments: Mapping[str, Any]
    completed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Content:
    format: int
    operations: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True)
class _Noted:
    operation: Operation
    completed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Journal:
    """The operations that are open for a table; `folder` is its state, whose small files `store` has under `key`."""

    store: Store
    key: str
    folder: StatePath
    table: str

    def all(self) -> tuple[Operation, ...]:
        """Return what was begun and is not finished.

        Raises:
            StateError: `state-unreadable`.
        """
        found = (noted.operation for noted in self._read().values())
        # In the folder of the new name a rename is finished.
        return tuple(one for one in found if not isinstance(one, Rename) or one.to != self.table)

    def begun(self, kind: type[_Kind]) -> _Kind | None:
        return next((one for one in self.all() if isinstance(one, kind)), None)

    def completed(self, kind: type[Operation]) -> tuple[str, ...]:
        noted = self._read().get(kind)
        return noted.completed if noted is not None else ()

    def begin(self, operation: Operation) -> None:
        """Note an operation, or other arguments of it, for which its completed steps stay."""
        noted, kind = self._read(), type(operation)
        before = noted.get(kind)
        if before is None or before.operation != operation:
            self._write({**noted, kind: _Noted(operation, before.completed if before is not None else ())})

    def complete(self, kind: type[Operation], step: str) -> None:
        """Note that a step is completed; nothing is noted of an operation that is not open here (any more)."""
        noted = self._read()
        if kind in noted and step not in noted[kind].completed:
            self._write({**noted, kind: replace(noted[kind], completed=(*noted[kind].completed, step))})

    def end(self, kind: type[Operation]) -> None:
        noted = self._read()
        if noted.pop(kind, None) is not None:
            self._write(noted)

    def _read(self) -> dict[type[Operation], _Noted]:
        names, found = self.store.list(self.key), dict[type[Operation], _Noted]()
        for name in (name for name in _EARLIER if name in names):
            found |= self._earlier(name)
        if FILE in names:
            content = self._decoded(FILE, _Content)
            for entry in content.operations if content is not None else ():
                if content.format != FORMAT or entry.kind not in _KINDS:
                    raise self._unreadable(FILE, f"it has '{entry.kind}' of format {content.format}, not {FORMAT}")
                kind = _KINDS[entry.kind]
                found[kind] = _Noted(self._converted(FILE, entry.arguments, kind), entry.completed)
        return found

    def _earlier(self, name: str) -> dict[type[Operation], _Noted]:
        """What version 0.1.0 noted of one kind."""
        said = self._decoded(name, dict[str, Any])
        if said is None:
            return {}
        kind = _KINDS[name.removesuffix(".json")]
        steps = {"publishing": (PUBLISHING,), "published": (PUBLISHING, PUBLISHED)}.get(str(said.get("step")), ())
        return {kind: _Noted(self._converted(name, {**said, "other": said.get("from")}, kind), steps)}

    def _decoded(self, name: str, form: type[Any]) -> Any:
        # It may have gone since the names were listed: a build writes here while others look.
        content = self.store.get(f"{self.key}/{name}")
        try:
            return msgspec.json.decode(content, type=form) if content is not None else None
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            raise self._unreadable(name, str(error)) from error

    def _converted(self, name: str, arguments: Mapping[str, Any], kind: type[Operation]) -> Operation:
        try:
            return msgspec.convert(arguments, kind)
        except msgspec.MsgspecError as error:
            raise self._unreadable(name, str(error)) from error

    def _unreadable(self, name: str, reason: str) -> StateError:
        return StateError("state-unreadable", f"{self.folder / name} cannot be read: {reason}", _RESTORE)

    def _write(self, noted: Mapping[type[Operation], _Noted]) -> None:
        entries = (
            _Entry(kind.__name__.lower(), msgspec.to_builtins(one.operation), one.completed)
            for kind, one in noted.items()
        )
        if noted:
            content = msgspec.json.encode(_Content(FORMAT, tuple(entries)))
            self.store.put(f"{self.key}/{FILE}", msgspec.json.format(content, indent=1))
        gone, names = _EARLIER if noted else FILES, self.store.list(self.key)
        for name in (name for name in gone if name in names):
            self.store.delete(f"{self.key}/{name}")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an operation, and the point that it reaches (`engine.kill_points`); `of`: which one of that name."""

    name: str
    effect: Callable[[], object] = lambda: None
    of: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.of}".rstrip()


def carry_out(
    noted: Sequence[tuple[Journal, Operation]], steps: Sequence[Step], table: str, *, ends_in: Journal | None = None
) -> None:
    """Carry out what is left of an operation on some tables, whose locks are held.

    Args:
        noted: where it is noted, in this order.
        table: that its points name.
        ends_in: where it is noted in the end, if the steps move that.
    """
    for journal, operation in noted:
        journal.begin(operation)
    kill_points.reach("begun", table)
    done = {step for journal, operation in noted for step in journal.completed(type(operation))}
    for step in (step for step in steps if str(step) not in done):
        step.effect()
        kill_points.reach(step.name, table, where=step.of)
        for journal, operation in noted:
            journal.complete(type(operation), str(step))
    for journal, operation in noted:
        (ends_in or journal).end(type(operation))
