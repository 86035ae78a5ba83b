"""Operations on a table that were begun and not finished (`operation.json`), and the steps that carry one out.

An operation is noted before anything of it is done, and ended when all is; several may be open. After a kill the steps
are carried out from the first that is not noted as completed, so that an effect must do no harm twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

import msgspec

from engine import kill_points
from engine.errors import StateError
from engine.state.blob_store import Store
from engine.state.state_path import StatePath

# Of operation.json. Version 0.1.0 had a file of its own for each kind, which is read until the operation is ended.
FORMAT = 1
FILE = "operation.json"
# Of a rebuild: from the first of these steps on nothing is written to the tables that it makes.
PUBLISHING, PUBLISHED = "rebuild noted", "rebuild published"


class _Operation(msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower):
    pass


class DroppedTable(msgspec.Struct, frozen=True):
    """A table or view that goes with a drop; `folder`: of its files, which go too; empty: they stay."""

    role: str = ""
    schema: str = ""
    name: str = ""
    uuid: str = ""
    folder: str = ""


class Drop(_Operation, frozen=True):
    """A table goes with its state.

    `environment`: of the build that wrote it last. `clone`: it is dropped unless a clone of it is finished, whose first
    table has this name; empty: it is that one.
    """

    model: str = ""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    parts: tuple[DroppedTable, ...] = ()
    clone: str | None = None


class Refresh(_Operation, frozen=True):
    """A full refresh of a table, begun `at` (UTC), with the consequences that the user accepted.

    `before`: the generation to be replaced; 0: there is none. `attempt`: the last generation begun instead, whose
    number does not come again: a run on another machine that was taken over may still be at it.
    """

    at: str = ""
    accept: tuple[str, ...] = ()
    before: int = 0
    attempt: int = 0


class Rollback(_Operation, frozen=True, rename={"other": "from"}):
    to: int
    other: int


class Rename(_Operation, frozen=True):
    """A table gets another full name; of each table that moves its UUID, by what follows the name of the main one."""

    to: str
    tables: Mapping[Annotated[str, msgspec.Meta(pattern=r"\A(__\w+)?\Z")], str]


class Rebuild(_Operation, frozen=True):
    """A table is made beside the one of a model; `models`: all that are rebuilt together; `at`: when, UTC."""

    at: str = ""
    model: str = ""
    models: tuple[str, ...] = ()


Operation = Drop | Refresh | Rollback | Rename | Rebuild
_Form = TypeVar("_Form")
_Kind = TypeVar("_Kind", Drop, Refresh, Rollback, Rename, Rebuild)
_EARLIER = {f"{kind.__name__.lower()}.json": kind for kind in get_args(Operation)}
FILES = (*_EARLIER, FILE)


class _Noted(msgspec.Struct, frozen=True):
    operation: Operation
    completed: tuple[str, ...] = ()


class _Content(msgspec.Struct, frozen=True):
    format: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    operations: tuple[_Noted, ...]


@dataclass(frozen=True, slots=True)
class Journal:
    """The operations that are open for a table; `folder` is its state, whose small files `store` has under `key`.

    What is read raises StateError, `state-unreadable`.
    """

    store: Store
    key: str
    folder: StatePath
    table: str

    def open_operations(self) -> tuple[Operation, ...]:
        operations = (noted.operation for noted in self._read().values())
        # In the folder of the new name a rename is finished.
        return tuple(
            operation for operation in operations if not isinstance(operation, Rename) or operation.to != self.table
        )

    def open_operation(self, kind: type[_Kind]) -> _Kind | None:
        return next((operation for operation in self.open_operations() if isinstance(operation, kind)), None)

    def completed(self, kind: type[Operation]) -> tuple[str, ...]:
        noted = self._read().get(kind)
        return noted.completed if noted is not None else ()

    def begin(self, operation: Operation) -> None:
        """Note an operation, or other arguments of it, for which its completed steps stay."""
        noted, kind = self._read(), type(operation)
        if kind not in noted or noted[kind].operation != operation:
            completed = noted[kind].completed if kind in noted else ()
            self._write({**noted, kind: _Noted(operation, completed)})

    def complete(self, kind: type[Operation], step: str) -> None:
        """Note that a step is completed; nothing is noted of an operation that is not open here (any more)."""
        noted = self._read()
        if (open_operation := noted.get(kind)) is not None and step not in open_operation.completed:
            self._write({**noted, kind: _Noted(open_operation.operation, (*open_operation.completed, step))})

    def end(self, kind: type[Operation]) -> None:
        noted = self._read()
        if noted.pop(kind, None) is not None:
            self._write(noted)

    def _read(self) -> dict[type[Operation], _Noted]:
        names = self.store.list(self.key)
        noted = [self._earlier(name, kind) for name, kind in _EARLIER.items() if name in names]
        noted += self._decoded(FILE, _Content, _Content(FORMAT, ())).operations if FILE in names else ()
        return {type(entry.operation): entry for entry in noted}

    def _earlier(self, name: str, kind: type[Operation]) -> _Noted:
        steps = {"publishing": (PUBLISHING,), "published": (PUBLISHING, PUBLISHED)}
        document = self._decoded(name, dict[str, Any], {})
        try:
            operation = msgspec.convert({**document, "kind": kind.__name__.lower()}, kind)
        except msgspec.MsgspecError as error:
            raise self._unreadable(name, error) from error
        return _Noted(operation, steps.get(str(document.get("step")), ()))

    def _decoded(self, name: str, form: type[_Form], default: _Form) -> _Form:
        # It may have gone since the names were listed: a build writes here while others look.
        content = self.store.get(f"{self.key}/{name}")
        try:
            return msgspec.json.decode(content, type=form) if content is not None else default
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            raise self._unreadable(name, error) from error

    def _unreadable(self, name: str, error: Exception) -> StateError:
        hint = "Restore the file from a backup of the state folder, or rebuild the table: engine build -f -s MODEL"
        return StateError("state-unreadable", f"{self.folder / name} cannot be read: {error}", hint)

    def _write(self, noted: Mapping[type[Operation], _Noted]) -> None:
        if noted:
            content = msgspec.json.encode(_Content(FORMAT, tuple(noted.values())))
            self.store.put(f"{self.key}/{FILE}", msgspec.json.format(content, indent=1))
        obsolete_files, names = _EARLIER if noted else FILES, self.store.list(self.key)
        for name in (name for name in obsolete_files if name in names):
            self.store.delete(f"{self.key}/{name}")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an operation, and its kill point (`engine.kill_points`); `subject`: which one of that name."""

    name: str
    effect: Callable[[], object] = lambda: None
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.subject}".rstrip()


def carry_out(
    noted: Sequence[tuple[Journal, Operation]], steps: Sequence[Step], table: str, *, ends_in: Journal | None = None
) -> None:
    """Carry out what is left of an operation on some tables, whose locks are held.

    `noted`: where it is noted, in order; `ends_in`: in the end, if the steps move that.
    """
    for journal, operation in noted:
        journal.begin(operation)
    kill_points.reach("begun", table)
    completed_steps = {step for journal, operation in noted for step in journal.completed(type(operation))}
    for step in (step for step in steps if str(step) not in completed_steps):
        step.effect()
        kill_points.reach(step.name, table, where=step.subject)
        for journal, operation in noted:
            journal.complete(type(operation), str(step))
    for journal, operation in noted:
        (ends_in or journal).end(type(operation))
