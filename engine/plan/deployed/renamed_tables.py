"""The tables that the next build gives another name: `renamed_from` of a model names what the state knows.

The catalog, the state and the state's folder change (`engine.runtime.lifecycle.rename_table`); until the folder is
moved all is found from the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec.structs import replace as changed

from engine.compile import Manifest, Model, Relation, Target
from engine.compile.nodes.facts import Facts
from engine.compile.nodes.fingerprint import fingerprint
from engine.errors import Diagnostic, Location, StateError
from engine.lake.clients.catalog_client import client
from engine.lake.lake_reader import Lake
from engine.plan.deployed.state_folder import KnownTable, built_tables, role_beside, table_state
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Drop, Refresh, Rename, Rollback

BLOCKED = "rename-blocked"


@dataclass(frozen=True, slots=True)
class RenamedTable:
    old: Relation
    new: Relation
    uuid: str


@dataclass(frozen=True, slots=True)
class Renaming:
    """What becomes another name of a model's table."""

    model: Model
    folder: TableState
    state: ModelState
    tables: tuple[RenamedTable, ...]
    renamed_uuids: frozenset[str] = frozenset()

    @property
    def old(self) -> Relation:
        return self.tables[0].old

    @property
    def now(self) -> Relation:
        return self.tables[0].new if self.tables[0].uuid in self.renamed_uuids else self.old

    def __str__(self) -> str:
        more = ", ".join(table.old.name.removeprefix(self.old.name) for table in self.tables[1:])
        beside = f" (also {more})" if more else ""
        return f"renamed from {self.old} to {self.tables[0].new}, with its state{beside}"


def renamings(
    manifest: Manifest, target: Target, root: Path, models: Iterable[Model], lake: Lake
) -> dict[str, Renaming | Diagnostic]:
    """Return what is to be renamed before some models are built, or why it cannot be, by id of the model.

    Raises SetupError: the catalog cannot be read.
    """
    renamed_models = [model for model in models if model.operation.renamed_from and model.in_catalog]
    if not renamed_models:
        return {}
    current = frozenset(str(model.deferred_from or model.relation) for model in manifest.models if model.in_catalog)
    built = tuple(table for table in built_tables(manifest, target, root, current) if table.rebuild is None)
    results = ((model.id, _renaming(target, model, built, lake)) for model in renamed_models)
    return {node: one for node, one in results if one is not None}


def _renaming(target: Target, model: Model, built: Sequence[KnownTable], lake: Lake) -> Renaming | Diagnostic | None:
    earlier_tables = [table for table in built if model.operation.renamed_from.lower() in _names(table)]
    if len(earlier_tables) > 1:
        names = ", ".join(table.name for table in earlier_tables)
        hint = "Write the table that the model continues, with its schema: renamed_from: <schema>.<table>."
        return _blocked(model, f"'{model.operation.renamed_from}' was {len(earlier_tables)} tables: {names}", hint)
    try:
        if earlier_tables:
            return _renaming_of_table(target, model, earlier_tables[0], lake)
        # The state of a table that is named and not known may be damaged.
        earlier = _earlier(table_state(target, model), model)
        earlier.load()
        earlier.journal.open_operations()
    except StateError as error:
        return error.diagnostic.at(Location(model.file), model.name)
    return None


def _names(table: KnownTable) -> set[str]:
    folder = table.folder
    names = (table.name, f"{folder.schema}.{folder.table}", folder.table, table.model)
    return {name.lower() for name in names}


def state_now(target: Target, model: Model, *, once: bool = False) -> TableState:
    """Return the state folder of a table, before a rename that of its earlier name; `once` as in `table_state`."""
    own = table_state(target, model, once=once)
    earlier = _earlier(own, model) if model.operation.renamed_from else own
    return earlier if earlier.generations() and not own.generations() else own


def _earlier(own: TableState, model: Model) -> TableState:
    schema, _, name = model.operation.renamed_from.rpartition(".")
    return replace(own, schema=schema.removeprefix(f"{own.catalog}.") or own.schema, table=name)


def _renaming_of_table(target: Target, model: Model, earlier_table: KnownTable, lake: Lake) -> Renaming | Diagnostic:
    folder, state = earlier_table.folder, earlier_table.state
    note = folder.journal.open_operation(Rename)
    if note is not None and note.to != str(model.relation):
        return interrupted(folder.name, note.to).at(Location(model.file), model.name)
    reason = unfinished(folder)
    if state is None or reason:
        hint = (
            f"Finish that first: give '{model.name}' its previous table (alias: {folder.table}) and build it, or "
            f"remove the table: engine drop {folder.name}. Then build again."
        )
        return _blocked(model, f"{folder.name} cannot become {model.relation}: {reason}", hint)
    if not isinstance(target.state, Path):
        hint = f"Keep the name of the table: replace 'renamed_from' by 'alias: {folder.table}'."
        return _blocked(model, f"the state of {folder.name} is in a bucket, where a checkpoint cannot be moved", hint)
    return _tables(target, model, folder, state, note, lake)


def unfinished(folder: TableState) -> str:
    states = folder.states()
    unmade = states[:1] if not any(state.uuid or state.phase is Phase.PUBLISHED for state in states) else ()
    kinds = {type(one) for one in folder.journal.open_operations()}
    interruptions = {
        "its first build": bool(unmade),
        "a drop of it": Drop in kinds,
        "a rollback of it": Rollback in kinds,
        "a full refresh of it": Refresh in kinds or folder.unpublished() is not None,
    }
    return next((f"{operation} was interrupted" for operation, interrupted in interruptions.items() if interrupted), "")


def _tables(
    target: Target, model: Model, folder: TableState, state: ModelState, note: Rename | None, lake: Lake
) -> Renaming | Diagnostic:
    old = Relation(folder.catalog, folder.schema, folder.table)
    renamed_tables = tuple(_noted(folder, model, note) if note is not None else _beside(lake, model, old, state))
    entries = {schema: client(target.catalog).entries(schema) for schema in (old.schema, model.relation.schema)}
    existing_entries = {(schema, entry.name): entry for schema, listed in entries.items() for entry in listed}
    renamed_uuids = set()
    for table in renamed_tables:
        before, after = (existing_entries.get((one.schema, one.name)) for one in (table.old, table.new))
        if after is not None and not after.view and _uuid(lake, table.new) == table.uuid:
            renamed_uuids.add(table.uuid)
        elif after is not None:
            return _name_taken(model, table, both_exist=before is not None)
        elif before is None or not table.uuid or _uuid(lake, table.old) != table.uuid:
            # Of a view nothing is kept.
            message = f"{table.old} cannot become {table.new}: it is not a table, or was dropped and recreated"
            hint = f"Restore it. Or begin with a new table: remove 'renamed_from', and engine drop {old}."
            return _blocked(model, message, hint)
    if table_state(target, model).generations():
        return _name_taken(model, renamed_tables[0], both_exist=True)
    if len(renamed_uuids) < len(renamed_tables) and not client(target.catalog).renames:
        return _elsewhere(target, model, [table for table in renamed_tables if table.uuid not in renamed_uuids])
    return Renaming(model, folder, state, renamed_tables, frozenset(renamed_uuids))


def _noted(folder: TableState, model: Model, note: Rename) -> Iterator[RenamedTable]:
    old, new = Relation(folder.catalog, folder.schema, folder.table), model.relation
    # The model's own table first.
    for end, uuid in sorted(note.tables.items()):
        yield RenamedTable(replace(old, name=old.name + end), replace(new, name=new.name + end), uuid)


def _beside(lake: Lake, model: Model, old: Relation, state: ModelState) -> Iterator[RenamedTable]:
    """The table of a model and those beside it, by their marks; another program may have renamed some of them."""
    new = model.relation
    tables_by_ending: dict[str, tuple[Relation, str]] = {}
    yield RenamedTable(old, new, state.uuid or _uuid(lake, old))
    owners = {state.model or old.name}
    for own in (new, old):
        facts = lake.table(own.schema, own.name)
        if facts is not None and facts.uuid == state.uuid:
            owners |= {facts.properties.get("engine.model", "")}
        # What has its old name counts where both are there.
        tables_by_ending |= {end: (own, name) for name in lake.names(own.schema) if (end := _ending(own, name))}
    for end, (own, name) in sorted(tables_by_ending.items()):
        facts = lake.table(own.schema, name)
        if facts is not None and role_beside(end, facts.properties) and facts.properties.get("engine.model") in owners:
            yield RenamedTable(replace(old, name=old.name + end), replace(new, name=new.name + end), facts.uuid)


def _ending(own: Relation, name: str) -> str:
    return name.removeprefix(own.name) if name.startswith(f"{own.name}__") else ""


def _uuid(lake: Lake, relation: Relation) -> str:
    facts = lake.table(relation.schema, relation.name)
    return facts.uuid if facts is not None else ""


def _name_taken(model: Model, table: RenamedTable, *, both_exist: bool) -> Diagnostic:
    old, new = table.old, table.new
    if not both_exist:
        return _blocked(model, f"{new} exists and is not {old}", "Drop or rename it, or choose another 'alias'.")
    hint = (
        f"Keep one of them. To continue the old one: engine drop {new}, then build. To keep the new one: remove "
        f"'renamed_from', then engine drop {old}."
    )
    return _blocked(model, f"{old} cannot become {new}: both exist", hint)


def _elsewhere(target: Target, model: Model, tables: Sequence[RenamedTable]) -> Diagnostic:
    statements = "; ".join(f"ALTER TABLE {table.old.sql} RENAME TO {table.new.sql}" for table in tables)
    hint = (
        f"Rename it with a program of the catalog, in Spark: {statements}. The next build continues it. Or keep its "
        f"name: replace 'renamed_from' by 'alias: {tables[0].old.name}'."
    )
    return _blocked(model, f"no table of a catalog of type {target.catalog.type} is renamed without Java", hint)


def interrupted(old: str, new: str) -> Diagnostic:
    hint = f"Finish it: build the model whose table is {new}, with renamed_from: {old.rpartition('.')[2]}."
    return Diagnostic(BLOCKED, f"a rename of {old} to {new} was begun and not finished", hint)


def _blocked(model: Model, message: str, hint: str) -> Diagnostic:
    return Diagnostic(BLOCKED, message, hint, node=model.name, location=Location(model.file))


def moved_state(one: Renaming, state: ModelState) -> ModelState:
    names = {str(table.old): str(table.new) for table in one.tables}
    starts = {
        node: {**start, "seed": names.get(str(start["seed"]), start["seed"])} if start.get("seed") else start
        for node, start in state.starts.items()
    }
    return replace(state, table=names.get(state.table, state.table), starts=starts)


def moved_facts(one: Renaming, facts: Facts) -> tuple[str, Facts]:
    """Return facts and fingerprint as if the table always had its new name, which hooks and checks use as `this`."""
    moved = changed(facts, relation=str(one.tables[0].new))
    return fingerprint(moved), moved
