"""A table gets the name that its model has now (`renamed_from`), with those beside it and its state, without Java.

Steps: the names in the catalog (the model's own table last), what the state says of them, the folder of the state. The
next build finishes a killed one. Iceberg records absolute paths: the files stay where they are, and so do UUID and
history, by which streams continue.

Columns are renamed alike, with those of the keys and first rows beside the table; Iceberg keeps their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Manifest, Model, Target
from engine.compile.nodes.facts import plain, read_facts
from engine.errors import Diagnostic, Level, StateError
from engine.events import Diagnosed
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.table_facts import TableFacts
from engine.lake.table_writer import set_properties
from engine.plan.deployed.deployed_facts import DeployedModel, earlier_names
from engine.plan.deployed.generations import noted_previous, save_previous
from engine.plan.deployed.renamed_tables import BLOCKED, RenamedTable, Renaming, moved_facts, moved_state
from engine.plan.deployed.state_folder import role_beside, table_state
from engine.relations import Relation, quoted
from engine.runtime.sinks.deleted_keys import SUFFIX
from engine.state import ModelState, TableState, known_tables
from engine.state.operations import Rename, Step, carry_out
from engine.state.state_path import local

if TYPE_CHECKING:
    from engine.runtime.context.run_context import Run


_ATTEMPTS = 10
_MARK = "engine.model"


def rename_table(target: Target, renaming: Renaming) -> None:
    """Give a table its name; the locks of both names must be held.

    Raises:
        SetupError: `catalog-unusable`, `catalog-busy`, `catalog-unreachable`, `catalog-denied`.
        StateError: `rename-blocked`, `state-unwritable`, `state-unreadable`; the next build finishes it.
    """
    folder, to, old = renaming.folder, table_state(target, renaming.model), renaming.old.name
    tables_left = (table for table in reversed(renaming.tables) if table.uuid not in renaming.renamed_uuids)
    steps = [
        *(Step("renamed", partial(_rename, target.catalog, table), table.new.name) for table in tables_left),
        Step("rewritten", partial(_rewrite_state, folder, renaming)),
        Step("moved", partial(known_tables.move, folder, to)),
    ]
    note = Rename(str(renaming.tables[0].new), {t.old.name.removeprefix(old): t.uuid for t in renaming.tables})
    carry_out([(folder.journal, note)], steps, renaming.model.name, ends_in=to.journal)


def rename_note(renaming: Renaming) -> Diagnostic:
    hint = "'renamed_from' means nothing any more once each target was built."
    return Diagnostic("table-renamed", str(renaming), hint, Level.NOTE, node=renaming.model.name)


def sign_tables(run: Run, models: Iterable[Model], deployed: Mapping[str, DeployedModel]) -> None:
    for model in models:
        deployed_model = deployed.get(model.id, DeployedModel())
        table, state, own_relation = deployed_model.table, deployed_model.state, model.relation
        mark = table.properties.get(_MARK) if table is not None else None
        if table is None or state is None or table.uuid != state.uuid or mark in {None, model.name}:
            continue
        signed = [own_relation]
        for name in run.lake.names(own_relation.schema):
            table_beside = (
                run.lake.table(own_relation.schema, name) if name.startswith(f"{own_relation.name}__") else None
            )
            if table_beside is not None and role_beside(name.removeprefix(own_relation.name), table_beside.properties):
                signed += (
                    [Relation(own_relation.catalog, own_relation.schema, name)]
                    if table_beside.properties.get(_MARK) == mark
                    else []
                )
        # The model's own table last: by its mark the others are known.
        for relation in reversed(signed):
            set_properties(run.spark, relation.sql, {_MARK: model.name})


def _rename(config: CatalogConfig, table: RenamedTable) -> None:
    """Rename a table in the catalog; a commit of others moves its metadata file, and it stays what it is."""
    catalog, old = client(config), table.old
    for _ in range(_ATTEMPTS):
        entry = catalog.table(old.schema, old.name)
        if entry is None or table_removal.stored_relation(config, entry).uuid != table.uuid:
            break
        if catalog.rename(entry, table.new.schema, table.new.name):
            return
    message = f"{old} was changed while it was to become {table.new}"
    raise StateError(BLOCKED, message, "Build again when nothing else writes it.")


def _rewrite_state(folder: TableState, renaming: Renaming) -> None:
    for state in folder.states():
        folder.save(_moved_state(folder, renaming, state))
    for number in {*folder.generations(), *folder.replaced_generations()}:
        replaced_generation = noted_previous(folder, number)
        if replaced_generation is not None:
            save_previous(
                folder, replace(replaced_generation, state=_moved_state(folder, renaming, replaced_generation.state))
            )


def _moved_state(folder: TableState, renaming: Renaming, state: ModelState) -> ModelState:
    """A state with the new names; facts and rows that are kept for the query are known by its fingerprint."""
    moved, facts = moved_state(renaming, state), read_facts(folder.facts(state))
    if facts is None:
        return moved
    mark, facts = moved_facts(renaming, facts)
    folder.save_facts(state.generation, mark, plain(facts))
    batches = local(folder.batches(state.generation))
    for path in sorted(batches.glob(f"*-{state.fingerprint}*")) if state.fingerprint not in {"", mark} else ():
        path.rename(path.with_name(path.name.replace(state.fingerprint, mark)))
    return replace(moved, fingerprint=mark)


_DELETED = "engine.deleted"

if TYPE_CHECKING:
    from engine.runtime.context.run_context import Run


def rename_columns(run: Run, models: Iterable[Model], deployed: Mapping[str, DeployedModel]) -> None:
    for model in models:
        deployed_model = deployed.get(model.id, DeployedModel())
        for relation, names in _initial_snapshots(run.manifest, model, deployed_model):
            _rename_in_table(run, relation, names)
        if not deployed_model.columns_renamed:
            continue
        own_relation = model.relation
        for relation in (replace(own_relation, name=own_relation.name + SUFFIX), own_relation):
            was_renamed = _rename_in_table(run, relation, deployed_model.columns_renamed)
            kill_points.reach("columns renamed", model.name, where=relation.name)
        if was_renamed:
            run.emit(Diagnosed(_columns_note(model, deployed_model.columns_renamed)))


def _initial_snapshots(
    manifest: Manifest, model: Model, deployed_model: DeployedModel
) -> Iterator[tuple[Relation, Mapping[str, str]]]:
    """Yield the tables with the first rows of what a model streams, with the names that columns there have now."""
    for node, start in deployed_model.state.starts.items() if deployed_model.state is not None else ():
        upstream = manifest.nodes.get(node)
        name = str(start.get("seed") or "").removeprefix(f"{model.relation.catalog}.{model.relation.schema}.")
        if name and isinstance(upstream, Model):
            yield replace(model.relation, name=name), earlier_names(upstream)


def _rename_in_table(run: Run, relation: Relation, names: Mapping[str, str]) -> bool:
    facts = run.lake.table(relation.schema, relation.name)
    new_names = {old.lower(): new for old, new in names.items()}
    paths = [path for path in _columns(facts) if path[-1].lower() in new_names] if facts is not None else []
    for path in paths:
        column = ".".join(map(quoted, path))
        run.spark.sql(f"ALTER TABLE {relation.sql} RENAME COLUMN {column} TO {quoted(new_names[path[-1].lower()])}")
    return bool(paths)


def _columns(facts: TableFacts) -> Iterator[tuple[str, ...]]:
    deleted = facts.properties.get(_DELETED) == "true"
    for field in facts.fields:
        name, kind = str(field["name"]), field["type"]
        if not deleted:
            yield (name,)
        elif isinstance(kind, Mapping):
            yield from ((name, str(inner["name"])) for inner in kind.get("fields") or ())


def _columns_note(model: Model, names: Mapping[str, str]) -> Diagnostic:
    columns = ", ".join(f"'{old}' to '{new}'" for old, new in names.items())
    hint = "'renamed_from' means nothing any more once each target, and each model that reads the column, was built."
    return Diagnostic(
        "table-renamed", f"renamed columns of {model.relation}: {columns}", hint, Level.NOTE, node=model.name
    )
