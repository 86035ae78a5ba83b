"""The tables in which models are rebuilt: what is noted of them, what is built there, and their end."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, Relation, Target
from engine.compile.nodes.model_settings import Publish
from engine.errors import EngineError, StateError
from engine.events import Emit, RunResults
from engine.plan.deployed.state_folder import KnownTable, environment, next_relation, next_state
from engine.runtime.build import Options, Turn, build
from engine.runtime.operations.drop_table import Part, carry_out, look
from engine.state import locked, operations
from engine.state.operations import PUBLISHED, Journal
from engine.times import time_text

if TYPE_CHECKING:
    from engine.runtime.run_nodes import RunUnit

# Runs that follow each other, until one had little to read.
_RUNS, _ENOUGH_SECONDS = 10, 60.0
_DISCARD = "engine build --rebuild --discard -s {0}"


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Models that are rebuilt beside their tables.

    Attributes:
        manifest: of the project, with the tables that are read and written by others.
        beside: the same with the tables in which the models are rebuilt.
        models: their ids, in the order of their references.
    """

    manifest: Manifest
    beside: Manifest
    target: Target
    root: Path
    target_dir: Path
    models: tuple[str, ...]
    units: tuple[str, ...]
    tests: tuple[str, ...]
    threads: int
    emit: Emit

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.model(i).name for i in self.models)

    def model(self, node: str) -> Model:
        found = self.manifest.nodes[node]
        if not isinstance(found, Model):
            raise TypeError(node)
        return found

    def made(self, node: str) -> Model:
        found = self.beside.nodes[node]
        if not isinstance(found, Model):
            raise TypeError(node)
        return found

    def journal(self, node: str) -> Journal:
        return next_state(self.target, self.model(node)).journal

    def notes(self) -> dict[str, operations.Rebuild]:
        read = ((i, self.journal(i).begun(operations.Rebuild)) for i in self.models)
        return {i: note for i, note in read if note is not None and note.model == self.model(i).name}


def beside(manifest: Manifest, models: Iterable[Model]) -> Manifest:
    """Return a project that was compiled with the tables of a rebuild (`deferred`) as one that builds them.

    The models keep the facts of the project, which name other tables: they are the same queries. Rows wait for no tests
    there: nobody reads those tables yet.
    """
    made = {}
    for own in models:
        model = manifest.model(own.name)
        write = replace(model.write, publish=Publish.IMMEDIATELY)
        # A table that has another name is the one that is read and written, not the one that is made here.
        operation = replace(model.operation, renamed_from="")
        made[own.id] = replace(
            model, deferred_from=None, write=write, operation=operation, facts=own.facts, fingerprint=own.fingerprint
        )
    return replace(manifest, nodes={**manifest.nodes, **made}, records={})


def instead(models: Iterable[Model]) -> dict[str, Relation]:
    return {model.name: next_relation(model.relation) for model in models}


def steps_completed(one: Rebuild) -> frozenset[str]:
    return frozenset(step for node in one.notes() for step in one.journal(node).completed(operations.Rebuild))


def is_publishing(one: Rebuild) -> bool:
    """Return whether nothing is built beside the tables any more, as the rebuild is being published.

    Raises:
        StateError: `rebuild-unfinished`: it is of other models, or it is being published with other queries.
    """
    notes = one.notes()
    for node, note in notes.items():
        if set(note.models) != set(one.names):
            names = " ".join(note.models)
            message = f"a rebuild of {', '.join(map(repr, note.models))} was begun at {note.at} (UTC)"
            hint = f"Continue it: engine build --rebuild -s {names}. Or discard it: {_DISCARD.format(names)}"
            raise StateError("rebuild-unfinished", message, hint, node=one.model(node).name)
    completed = steps_completed(one)
    if completed and PUBLISHED not in completed and (changed := edited(one)):
        names = " ".join(one.names)
        message = f"the query of {', '.join(map(repr, changed))} was edited while its rebuild is being published"
        hint = f"Undo the edit and run the command again, or discard the rebuild: {_DISCARD.format(names)}"
        raise StateError("rebuild-unfinished", message, hint, node=changed[0])
    return bool(completed)


def edited(one: Rebuild) -> list[str]:
    found, notes = [], one.notes()
    for node in (i for i in one.models if i in notes):
        state = next_state(one.target, one.model(node)).load()
        if state is not None and state.fingerprint and state.fingerprint != one.model(node).fingerprint:
            found.append(one.model(node).name)
    return found


def begin_rebuild(one: Rebuild) -> None:
    """Note a rebuild in each state, against the order of references; locked, or nobody builds yet."""
    at = min((known.at for known in one.notes().values()), default=time_text(int(time.time()) * 1000))
    for node in reversed(one.models):
        one.journal(node).begin(operations.Rebuild(at, one.model(node).name, one.names))


def run_once(one: Rebuild, nodes: Sequence[str], run_unit: RunUnit | None = None) -> RunResults:
    """Build some of the tables, or run tests against them, once.

    Raises:
        EngineError: nothing could be started.
    """
    # Notes about tables without a model are those of the project's own build.
    turn = Turn(math.inf, threading.Event())
    how = Options("build", one.threads, fail_fast=False, target_dir=one.target_dir, turn=turn)
    return build(one.beside, one.target, one.root, nodes, how, one.emit, run_unit)


def catch_up(one: Rebuild, run_unit: RunUnit | None = None) -> bool:
    """Build the tables in bounded runs until one had little to read, with the tests; False: something failed.

    Unit tests run before the first; no table of a model is made whose unit test fails.

    Raises:
        EngineError: nothing could be started.
    """
    with locked([next_state(one.target, one.model(node)) for node in one.models]):
        begin_rebuild(one)
    for number in range(_RUNS):
        begin, units = time.monotonic(), one.units if number == 0 else ()
        if run_once(one, [*units, *one.models, *one.tests], run_unit).failed:
            return False
        if time.monotonic() - begin < _ENOUGH_SECONDS:
            break
    return True


def discard(one: Rebuild) -> tuple[str, ...]:
    """Remove the tables of a rebuild with their state, streams before what they read; return their names.

    Raises:
        StateError: `table-locked`, `state-unwritable`.
        SetupError: the catalog cannot be changed.
    """
    with locked([next_state(one.target, one.model(node)) for node in one.models]):
        return drop(one)


def drop(one: Rebuild) -> tuple[str, ...]:
    """Remove the tables of a rebuild whose locks are held; tables of such a name that are not noted as its own stay."""
    gone: list[Part] = []
    where: Mapping[str, str] = environment(one.manifest, one.target)
    notes = one.notes()
    for node in (node for node in reversed(one.models) if node in notes):
        model = one.model(node)
        folder = next_state(one.target, model)
        try:
            state = folder.load()
        except EngineError:
            state = None
        known = KnownTable(folder, model.name, state, folder.journal.begun(operations.Drop) is not None)
        carry_out(one.target, look(one.target, known), where, gone.append)
    return tuple(f"{one.target.catalog.name}.{part.schema}.{part.name}" for part in gone)
