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
from engine.runtime.operations.drop_table import Part, carry_out, plan_drop
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
    """Models that are rebuilt beside their tables, by id in the order of their references.

    `manifest` has the tables that others read and write, `next_project` those in which the models are rebuilt.
    """

    manifest: Manifest
    next_project: Manifest
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
        project_model = self.manifest.nodes[node]
        if not isinstance(project_model, Model):
            raise TypeError(node)
        return project_model

    def rebuilt_model(self, node: str) -> Model:
        model = self.next_project.nodes[node]
        if not isinstance(model, Model):
            raise TypeError(node)
        return model

    def journal(self, node: str) -> Journal:
        return next_state(self.target, self.model(node)).journal

    def notes(self) -> dict[str, operations.Rebuild]:
        noted = ((i, self.journal(i).open_operation(operations.Rebuild)) for i in self.models)
        return {i: note for i, note in noted if note is not None and note.model == self.model(i).name}


def project_with_next_tables(manifest: Manifest, models: Iterable[Model]) -> Manifest:
    """Return a project that was compiled with the tables of a rebuild (`deferred`) as one that builds them.

    The models keep the project's facts: they are the same queries. Rows wait for no tests there.
    """
    rebuilt_nodes = {}
    for project_model in models:
        model = manifest.model(project_model.name)
        write = replace(model.write, publish=Publish.IMMEDIATELY)
        # A table that has another name is the one that is read and written, not the one that is made here.
        operation = replace(model.operation, renamed_from="")
        rebuilt_nodes[project_model.id] = replace(
            model,
            deferred_from=None,
            write=write,
            operation=operation,
            facts=project_model.facts,
            fingerprint=project_model.fingerprint,
        )
    return replace(manifest, nodes={**manifest.nodes, **rebuilt_nodes}, records={})


def next_relations(models: Iterable[Model]) -> dict[str, Relation]:
    return {model.name: next_relation(model.relation) for model in models}


def steps_completed(rebuild: Rebuild) -> frozenset[str]:
    return frozenset(step for node in rebuild.notes() for step in rebuild.journal(node).completed(operations.Rebuild))


def is_publishing(rebuild: Rebuild) -> bool:
    """Return whether nothing is built beside the tables any more, as the rebuild is being published.

    Raises StateError: `rebuild-unfinished`: it is of other models, or it is being published with other queries.
    """
    notes = rebuild.notes()
    for node, note in notes.items():
        if set(note.models) != set(rebuild.names):
            names = " ".join(note.models)
            message = f"a rebuild of {', '.join(map(repr, note.models))} was begun at {note.at} (UTC)"
            hint = f"Continue it: engine build --rebuild -s {names}. Or discard it: {_DISCARD.format(names)}"
            raise StateError("rebuild-unfinished", message, hint, node=rebuild.model(node).name)
    completed = steps_completed(rebuild)
    if completed and PUBLISHED not in completed and (edited_names := edited(rebuild)):
        names = " ".join(rebuild.names)
        message = f"the query of {', '.join(map(repr, edited_names))} was edited while its rebuild is being published"
        hint = f"Undo the edit and run the command again, or discard the rebuild: {_DISCARD.format(names)}"
        raise StateError("rebuild-unfinished", message, hint, node=edited_names[0])
    return bool(completed)


def edited(rebuild: Rebuild) -> list[str]:
    names, notes = [], rebuild.notes()
    for node in (i for i in rebuild.models if i in notes):
        state = next_state(rebuild.target, rebuild.model(node)).load()
        if state is not None and state.fingerprint and state.fingerprint != rebuild.model(node).fingerprint:
            names.append(rebuild.model(node).name)
    return names


def begin_rebuild(rebuild: Rebuild) -> None:
    """Note a rebuild in each state, against the order of references; locked, or nobody builds yet."""
    at = min((note.at for note in rebuild.notes().values()), default=time_text(int(time.time()) * 1000))
    for node in reversed(rebuild.models):
        rebuild.journal(node).begin(operations.Rebuild(at, rebuild.model(node).name, rebuild.names))


def run_once(rebuild: Rebuild, nodes: Sequence[str], run_unit: RunUnit | None = None) -> RunResults:
    # Notes about tables without a model are those of the project's own build.
    turn = Turn(math.inf, threading.Event())
    options = Options("build", rebuild.threads, fail_fast=False, target_dir=rebuild.target_dir, turn=turn)
    return build(rebuild.next_project, rebuild.target, rebuild.root, nodes, options, rebuild.emit, run_unit)


def catch_up(rebuild: Rebuild, run_unit: RunUnit | None = None) -> bool:
    """Build the tables in bounded runs until one had little to read, with the tests; False: something failed.

    Unit tests run before the first; no table of a model is made whose unit test fails.

    Raises EngineError: nothing could be started.
    """
    with locked([next_state(rebuild.target, rebuild.model(node)) for node in rebuild.models]):
        begin_rebuild(rebuild)
    for number in range(_RUNS):
        begin, units = time.monotonic(), rebuild.units if number == 0 else ()
        if run_once(rebuild, [*units, *rebuild.models, *rebuild.tests], run_unit).failed:
            return False
        if time.monotonic() - begin < _ENOUGH_SECONDS:
            break
    return True


def discard(rebuild: Rebuild) -> tuple[str, ...]:
    """Remove the tables of a rebuild with their state, streams before what they read; return their names.

    Raises:
        StateError: `table-locked`, `state-unwritable`.
        SetupError: the catalog cannot be changed.
    """
    with locked([next_state(rebuild.target, rebuild.model(node)) for node in rebuild.models]):
        return drop(rebuild)


def drop(rebuild: Rebuild) -> tuple[str, ...]:
    """Remove the tables of a rebuild whose locks are held; tables of such a name that are not noted as its own stay."""
    dropped_parts: list[Part] = []
    where: Mapping[str, str] = environment(rebuild.manifest, rebuild.target)
    notes = rebuild.notes()
    for node in (node for node in reversed(rebuild.models) if node in notes):
        model = rebuild.model(node)
        folder = next_state(rebuild.target, model)
        try:
            state = folder.load()
        except EngineError:
            state = None
        table = KnownTable(folder, model.name, state, folder.journal.open_operation(operations.Drop) is not None)
        carry_out(rebuild.target, plan_drop(rebuild.target, table), where, dropped_parts.append)
    return tuple(f"{rebuild.target.catalog.name}.{part.schema}.{part.name}" for part in dropped_parts)
