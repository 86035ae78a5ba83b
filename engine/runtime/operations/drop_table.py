"""`engine drop`: a table with its state, its quarantine, its deleted keys and what rebuilds left, without Java.

Steps: the table, the tables beside it, the state with the note of the drop last; a table leaves the catalog first and
its files follow. After a kill the same command finishes; a build ends with `drop-unfinished` until then.

Names come from the state and the catalog, which somebody else may have written: only tables with the marks of the
model, or the UUID that the state has, go, and only files that are theirs alone (`engine.lake.clients.table_removal`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from engine.compile import Manifest, Materialized, Model, Target
from engine.compile.declarations.compile_context import FAILING_ROWS, failing_rows
from engine.errors import Diagnostic, Location, StateError, UsageError, near
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.clients.table_removal import StoredRelation
from engine.plan.actions.refresh_checks import DOWNSTREAM_STOPS, FILES_GONE, files_gone
from engine.plan.deployed.renamed_tables import interrupted, state_now
from engine.plan.deployed.state_folder import ROLES, KnownTable, built_tables, role_beside, table_state
from engine.state import ModelState, TableState, known_tables, operations
from engine.state.model_state import as_json
from engine.state.operations import DroppedTable, Rename, Step

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Part:
    """A table or view that goes.

    `role`: what it is to the model: table, view, quarantine, ... `uuid` empty: its metadata is gone. `folder`: with its
    files, which go too; None: they stay. `stored_relation` None: a drop before has taken it out of the catalog.
    """

    role: str
    schema: str
    name: str
    uuid: str
    folder: PurePath | None
    stored_relation: StoredRelation | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """What is removed of a table with a state: `parts` in this order, then the state; `retained`: what stays."""

    table: KnownTable
    parts: tuple[Part, ...]
    retained: tuple[str, ...] = ()


def plan_drop(target: Target, table: KnownTable) -> Drop:
    """Find what a drop of a table removes.

    Raises:
        SetupError: `lake-outside`, `catalog-unusable`.
        StateError: `state-unreadable`.
    """
    config, folder = target.catalog, table.folder
    entries = {entry.name: entry for entry in client(config).entries(folder.schema)}
    drop_note = folder.journal.open_operation(operations.Drop) or operations.Drop()
    owners = {table.model, drop_note.model or table.model}
    parts: list[Part] = []
    kept_notes: list[str] = []
    if (entry := entries.get(folder.table)) is not None:
        main = table_removal.stored_relation(config, entry)
        if _is_own(table, main, owners):
            owners |= {main.properties.get("engine.model", table.model)}
            parts.append(_part("view" if entry.view else "table", main))
        else:
            kept_notes.append(f"{table.name} stays: the state belongs to another table of that name")
    for name, entry in sorted(entries.items()):
        if name.startswith(f"{folder.table}__") and not entry.view:
            table_beside = table_removal.stored_relation(config, entry)
            role = role_beside(name.removeprefix(folder.table), table_beside.properties)
            if role and table_beside.properties.get("engine.model") in owners:
                parts.append(_part(role, table_beside))
    parts += _parts_of_interrupted_drop(config, drop_note, {(part.schema, part.name, part.uuid) for part in parts})
    kept_notes += [
        f"the files of {folder.catalog}.{part.schema}.{part.name} stay: {part.stored_relation.kept_reason}"
        for part in parts
        if part.stored_relation is not None and part.stored_relation.kept_reason
    ]
    return Drop(table, tuple(parts), tuple(kept_notes))


def find_failing_rows(target: Target) -> tuple[Part, ...]:
    """Find the tables that keep the failing rows of data tests; those of other programs carry no mark.

    Raises SetupError: `lake-outside`, `catalog-unusable`.
    """
    config = target.catalog
    entries = client(config).entries(failing_rows(target, "").schema)
    relations = [table_removal.stored_relation(config, entry) for entry in entries if not entry.view]
    return tuple(_part("failing rows", relation) for relation in relations if FAILING_ROWS in relation.properties)


def drop_part(target: Target, part: Part) -> None:
    """Remove a table that has no state. Raises SetupError: `catalog-unusable`, `catalog-busy`, `lake-outside`."""
    _remove(target.catalog, part)


def carry_out(
    target: Target, drop: Drop, environment: Mapping[str, str], tell: Callable[[Part], object] = lambda _: None
) -> None:
    """Remove what `plan_drop` found, and tell each part that is gone; the lock of the table must be held.

    Raises:
        SetupError: `catalog-unusable`, `catalog-busy`, `lake-outside`.
        StateError: `state-unwritable`.
    """
    table, journal = drop.table, drop.table.folder.journal

    def remove(part: Part) -> None:
        _remove(target.catalog, part)
        tell(part)

    steps = [Step("dropped", partial(remove, part), f"{part.name} {part.uuid}") for part in drop.parts]
    steps.append(Step("forgotten", partial(known_tables.remove, table.folder)))
    parts = (DroppedTable(p.role, p.schema, p.name, p.uuid, str(p.folder or "")) for p in drop.parts)
    built_in = table.state.environment if table.state is not None and table.state.environment else environment
    note = operations.Drop(table.model, dict(built_in), tuple(parts))
    operations.carry_out([(journal, note)], steps, table.folder.table)


def check_finished(states: Sequence[TableState]) -> None:
    """Check that no drop of these tables was begun and not finished. Raises StateError: `drop-unfinished`."""
    for folder in states:
        if folder.journal.open_operation(operations.Drop) is not None:
            message = f"the drop of {folder.name} was interrupted"
            raise StateError("drop-unfinished", message, f"Finish it: engine drop {folder.name}", node=folder.table)


def is_view(table: KnownTable, model: Model | None) -> bool:
    if table.state is None:
        return model is not None and model.computed_when_read
    facts = table.folder.facts(table.state)
    return isinstance(facts, Mapping) and facts.get("materialized") == Materialized.VIEW.value


def _is_own(table: KnownTable, main: StoredRelation, owners: set[str]) -> bool:
    if main.entry.view:
        # Views carry no marks.
        return is_view(table, None)
    uuid = table.state.uuid if table.state is not None else None
    if main.missing or (uuid and uuid == main.uuid):
        return True
    marked = main.properties.get("engine.model") in owners
    return marked and not any(role in main.properties for role in ROLES)


def _part(role: str, relation: StoredRelation) -> Part:
    return Part(role, relation.entry.schema, relation.entry.name, relation.uuid, relation.folder, relation)


def _parts_of_interrupted_drop(
    config: CatalogConfig, drop_note: operations.Drop, found_parts: set[tuple[str, str, str]]
) -> Iterator[Part]:
    for dropped in drop_note.parts:
        if (dropped.schema, dropped.name, dropped.uuid) not in found_parts:
            folder = table_removal.folder_of(config, dropped.folder) if dropped.folder else None
            yield Part(dropped.role, dropped.schema, dropped.name, dropped.uuid, folder)


def _remove(config: CatalogConfig, part: Part) -> None:
    catalog = client(config)
    for _ in range(_ATTEMPTS):
        entries = catalog.entries(part.schema) if part.stored_relation is not None else ()
        entry = next((entry for entry in entries if entry.name == part.name), None)
        # A commit of others moves the metadata file; the table stays what it is.
        if entry is None or table_removal.stored_relation(config, entry).uuid != part.uuid or catalog.remove(entry):
            break
    if part.folder is not None:
        table_removal.remove_folder(config, part.folder)


PROTECTED = "protected"
ACCEPTED = (DOWNSTREAM_STOPS, FILES_GONE, PROTECTED)


def resolve_tables(manifest: Manifest, target: Target, root: Path, names: Sequence[str]) -> tuple[KnownTable, ...]:
    """The tables that some names mean: of a model, or a table with or without its schema and catalog.

    Raises UsageError: a name means none, or several.
    """
    tables = all_tables(manifest, target, root)
    return tuple({table.name: table for name in names for table in [_resolve_table(name, tables)]}.values())


def all_tables(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    tables = {table.name: table for table in built_tables(manifest, target, root)}
    for model in manifest.models:
        if model.in_catalog:
            # The state may be lost; and a state without a note of its model may name another.
            built = tables.get(str(model.relation))
            state, unfinished = (built.state, built.unfinished) if built is not None else (None, False)
            tables[str(model.relation)] = KnownTable(table_state(target, model), model.name, state, unfinished)
    return tuple(tables.values())


def _resolve_table(name: str, candidates: Iterable[KnownTable]) -> KnownTable:
    tables = list(candidates)
    matching = [table for table in tables if name in _names(table)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        hint = f"Write one of them: {', '.join(f'engine drop {table.name}' for table in matching)}"
        raise UsageError("usage", f"'{name}' means {len(matching)} tables", hint)
    hint = near(name, {shorter for table in tables for shorter in (table.model, table.folder.table)})
    message = f"no table '{name}' was built by this project and target"
    raise UsageError("usage", message, f"{hint} engine ls --orphans lists tables without a model.".strip())


def _names(table: KnownTable) -> set[str]:
    folder = table.folder
    model = {table.model} if table.rebuild is None else set()
    return {table.name, f"{folder.schema}.{folder.table}", folder.table, *model}


def refusals(
    manifest: Manifest, target: Target, tables: Sequence[KnownTable], accept: Sequence[str]
) -> list[Diagnostic]:
    names = {table.name for table in tables}
    models = [model for model in manifest.models if model.in_catalog and str(model.relation) in names]
    protected = (model for model in models if model.operation.full_refresh is False and PROTECTED not in accept)
    faults = [_protected(model) for model in protected]
    faults += [
        interrupted(t.name, note.to) for t in tables if (note := t.folder.journal.open_operation(Rename)) is not None
    ]
    if FILES_GONE not in accept:
        faults += [d for m in models if table_state(target, m).load() for d in files_gone(manifest, m)]
    if DOWNSTREAM_STOPS not in accept:
        faults += _readers(manifest, target, tables, {model.id for model in models})
    return faults


def _protected(model: Model) -> Diagnostic:
    message = f"'{model.name}' is protected from starting over (full_refresh: false)"
    hint = f"Exclude it, remove 'full_refresh: false' from its header, or accept it: --accept {PROTECTED}"
    return Diagnostic("full-refresh-protected", message, hint, node=model.name, location=Location(model.file))


def _readers(
    manifest: Manifest, target: Target, tables: Sequence[KnownTable], dropped: set[str]
) -> Iterator[Diagnostic]:
    for model in manifest.models:
        if not model.in_catalog or model.id in dropped:
            continue
        state = state_now(target, model).load()
        if state is None:
            continue
        view = model.computed_when_read
        for table in tables:
            if (view or model.streaming) and _reads(manifest, model, state, table):
                yield _reader_diagnostic(model, table, view=view)


def _reads(manifest: Manifest, model: Model, state: ModelState, table: KnownTable) -> bool:
    for item in model.inputs:
        node = manifest.nodes[item.node]
        is_followed = item.stream or model.computed_when_read
        if is_followed and isinstance(node, Model) and str(node.relation) == table.name:
            return True
    uuid = table.state.uuid if table.state is not None else None
    # Whatever a version notes of a table that was read has its UUID.
    noted = as_json({"inputs": state.inputs, "starts": state.starts}).decode()
    return bool(uuid) and f'"{uuid}"' in noted


def _reader_diagnostic(model: Model, table: KnownTable, *, view: bool) -> Diagnostic:
    relation_kind = "is a view over" if view else "streams from"
    consequence = "fails without it" if view else "cannot resume without it"
    message = f"'{model.name}' {relation_kind} {table.name} and {consequence}"
    hint = (
        f"Drop both: engine drop {table.name} {model.relation}. If '{model.name}' reads another table by now, build it "
        f"first: engine build -s {model.name}. Or accept it: --accept {DOWNSTREAM_STOPS}"
    )
    return Diagnostic(DOWNSTREAM_STOPS, message, hint, node=model.name, location=Location(model.file))
