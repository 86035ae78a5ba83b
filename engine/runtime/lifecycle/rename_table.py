"""A table gets the name that its model has now (`renamed_from`), with those beside it and its state, without Java.

Steps: the names in the catalog (the model's own table last), what the state says of them, the folder of the state. A
build that was killed is finished by the next, which finds the folder under the old name until the last step. Iceberg
records absolute paths: the files stay where they are, and so do UUID and history, by which streams continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from engine.compile import Model, Target
from engine.errors import Diagnostic, Level, StateError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.table_writer import set_properties
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.plan.deployed.ownership_marks import role_beside
from engine.plan.deployed.previous_generation import noted_previous, save_previous
from engine.plan.deployed.renamed_tables import BLOCKED, RenamedTable, Renaming, moved_facts, moved_state
from engine.plan.deployed.state_folder import table_state
from engine.relations import Relation
from engine.state import ModelState, TableState, known_tables
from engine.state.operations import Rename, Step, carry_out
from engine.state.state_path import local

if TYPE_CHECKING:
    from engine.runtime.context.run_context import Run

_ATTEMPTS = 10
_MARK = "engine.model"


def rename_table(target: Target, one: Renaming) -> None:
    """Give a table its name; the locks of both names must be held.

    Raises:
        SetupError: `catalog-unusable`, `catalog-busy`, `catalog-unreachable`, `catalog-denied`.
        StateError: `rename-blocked`, `state-unwritable`, `state-unreadable`; the next build finishes it.
    """
    folder, to, old = one.folder, table_state(target, one.model), one.old.name
    left = (table for table in reversed(one.tables) if table.uuid not in one.done)
    steps = [
        *(Step("renamed", partial(_rename, target.catalog, table), table.new.name) for table in left),
        Step("rewritten", partial(_rewrite, folder, one)),
        Step("moved", partial(known_tables.move, folder, to)),
    ]
    note = Rename(str(one.tables[0].new), {t.old.name.removeprefix(old): t.uuid for t in one.tables})
    carry_out([(folder.journal, note)], steps, one.model.name, ends_in=to.journal)


def told(one: Renaming) -> Diagnostic:
    hint = "'renamed_from' means nothing any more once each target was built."
    return Diagnostic("table-renamed", str(one), hint, Level.NOTE, node=one.model.name)


def sign_tables(run: Run, models: Iterable[Model], deployed: Mapping[str, DeployedModel]) -> None:
    for model in models:
        known = deployed.get(model.id, DeployedModel())
        table, state, own = known.table, known.state, model.relation
        mark = table.properties.get(_MARK) if table is not None else None
        if table is None or state is None or table.uuid != state.uuid or mark in {None, model.name}:
            continue
        signed = [own]
        for name in run.lake.names(own.schema):
            beside = run.lake.table(own.schema, name) if name.startswith(f"{own.name}__") else None
            if beside is not None and role_beside(name.removeprefix(own.name), beside.properties):
                signed += [Relation(own.catalog, own.schema, name)] if beside.properties.get(_MARK) == mark else []
        # The model's own table last: by its mark the others are known.
        for relation in reversed(signed):
            set_properties(run.spark, relation.sql, {_MARK: model.name})


def _rename(config: CatalogConfig, table: RenamedTable) -> None:
    """Rename a table in the catalog; a commit of others moves its metadata file, and it stays what it is."""
    catalog, old = client(config), table.old
    for _ in range(_ATTEMPTS):
        entry = catalog.table(old.schema, old.name)
        if entry is None or table_removal.stored(config, entry).uuid != table.uuid:
            break
        if catalog.rename(entry, table.new.schema, table.new.name):
            return
    message = f"{old} was changed while it was to become {table.new}"
    raise StateError(BLOCKED, message, "Build again when nothing else writes it.")


def _rewrite(folder: TableState, one: Renaming) -> None:
    """Have the state name the tables as they are called now, that of generations which are kept, too."""
    for state in folder.states():
        folder.save(_moved(folder, one, state))
    for number in {*folder.generations(), *folder.replaced()}:
        previous = noted_previous(folder, number)
        if previous is not None:
            save_previous(folder, replace(previous, state=_moved(folder, one, previous.state)))


def _moved(folder: TableState, one: Renaming, state: ModelState) -> ModelState:
    """A state with the new names; facts and rows that are kept for the query are known by its fingerprint."""
    moved, facts = moved_state(one, state), folder.facts(state)
    if facts is None:
        return moved
    mark, facts = moved_facts(one, facts)
    folder.save_facts(state.generation, mark, facts)
    kept = local(folder.batches(state.generation))
    for path in sorted(kept.glob(f"*-{state.fingerprint}*")) if state.fingerprint not in {"", mark} else ():
        path.rename(path.with_name(path.name.replace(state.fingerprint, mark)))
    return replace(moved, fingerprint=mark)
