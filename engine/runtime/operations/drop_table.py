"""`engine drop`: a table with its state, its quarantine, its deleted keys and what rebuilds left, without Java.

Steps: the table, the tables beside it, the state with the note of the drop last. A table leaves the catalog first and
its files follow. After a kill at any moment the same command finishes; a build of that table ends with
`drop-unfinished` until then.

Names of tables come from the state and from the catalog, which may come with a project that somebody else wrote: only
tables that carry the marks of the model, or the UUID that the state has, go, and only files that are theirs alone
(`engine.lake.clients.table_removal`).

What `engine drop` is asked for: which tables a name means, and why they must not go yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from engine.compile import Manifest, Materialized, Model, Target
from engine.compile.declarations.failing_rows import FAILING_ROWS, failing_rows
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

    Attributes:
        role: what it is to the model: table, view, quarantine, ...
        uuid: of the table or view; empty: its metadata is gone.
        folder: with its files, which go too; None: they stay.
        stored: what it is now; None: a drop before has taken it out of the catalog.
    """

    role: str
    schema: str
    name: str
    uuid: str
    folder: PurePath | None
    stored: StoredRelation | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """What is removed of a table that the state knows: `parts` in this order, then the state; `kept`: what stays."""

    known: KnownTable
    parts: tuple[Part, ...]
    kept: tuple[str, ...] = ()


def look(target: Target, known: KnownTable) -> Drop:
    """Find what a drop of a table removes.

    Raises:
        SetupError: `lake-outside`, `catalog-unusable`.
        StateError: `state-unreadable`.
    """
    config, folder = target.catalog, known.folder
    entries = {entry.name: entry for entry in client(config).entries(folder.schema)}
    begun = folder.journal.begun(operations.Drop) or operations.Drop()
    owners = {known.model, begun.model or known.model}
    parts: list[Part] = []
    kept: list[str] = []
    if (entry := entries.get(folder.table)) is not None:
        main = table_removal.stored(config, entry)
        if _is_ours(known, main, owners):
            owners |= {main.properties.get("engine.model", known.model)}
            parts.append(_part("view" if entry.view else "table", main))
        else:
            kept.append(f"{known.name} stays: the state belongs to another table of that name")
    for name, entry in sorted(entries.items()):
        if name.startswith(f"{folder.table}__") and not entry.view:
            beside = table_removal.stored(config, entry)
            role = role_beside(name.removeprefix(folder.table), beside.properties)
            if role and beside.properties.get("engine.model") in owners:
                parts.append(_part(role, beside))
    parts += _left(config, begun, {(part.schema, part.name, part.uuid) for part in parts})
    kept += [
        f"the files of {folder.catalog}.{part.schema}.{part.name} stay: {part.stored.kept}"
        for part in parts
        if part.stored is not None and part.stored.kept
    ]
    return Drop(known, tuple(parts), tuple(kept))


def look_at_failing_rows(target: Target) -> tuple[Part, ...]:
    """Find the tables that keep the failing rows of data tests; those of other programs carry no mark.

    Raises:
        SetupError: `lake-outside`, `catalog-unusable`.
    """
    config = target.catalog
    entries = client(config).entries(failing_rows(target, "").schema)
    found = [table_removal.stored(config, entry) for entry in entries if not entry.view]
    return tuple(_part("failing rows", one) for one in found if FAILING_ROWS in one.properties)


def drop_part(target: Target, part: Part) -> None:
    """Remove a table that has no state.

    Raises:
        SetupError: `catalog-unusable`, `catalog-busy`, `lake-outside`.
    """
    _remove(target.catalog, part)


def carry_out(
    target: Target, drop: Drop, environment: Mapping[str, str], tell: Callable[[Part], object] = lambda _: None
) -> None:
    """Remove what `look` found, and tell each part that is gone; the lock of the table must be held.

    Raises:
        SetupError: `catalog-unusable`, `catalog-busy`, `lake-outside`.
        StateError: `state-unwritable`.
    """
    known, journal = drop.known, drop.known.folder.journal

    def remove(part: Part) -> None:
        _remove(target.catalog, part)
        tell(part)

    steps = [Step("dropped", partial(remove, part), f"{part.name} {part.uuid}") for part in drop.parts]
    steps.append(Step("forgotten", partial(known_tables.remove, known.folder)))
    parts = (DroppedTable(p.role, p.schema, p.name, p.uuid, str(p.folder or "")) for p in drop.parts)
    built_in = known.state.environment if known.state is not None and known.state.environment else environment
    note = operations.Drop(known.model, dict(built_in), tuple(parts))
    operations.carry_out([(journal, note)], steps, known.folder.table)


def check_finished(states: Sequence[TableState]) -> None:
    """Check that no drop of these tables was begun and not finished.

    Raises:
        StateError: `drop-unfinished`.
    """
    for folder in states:
        if folder.journal.begun(operations.Drop) is not None:
            message = f"the drop of {folder.name} was interrupted"
            raise StateError("drop-unfinished", message, f"Finish it: engine drop {folder.name}", node=folder.table)


def is_view(known: KnownTable, model: Model | None) -> bool:
    if known.state is None:
        return model is not None and model.computed_when_read
    facts = known.folder.facts(known.state)
    return isinstance(facts, Mapping) and facts.get("materialized") == Materialized.VIEW.value


def _is_ours(known: KnownTable, main: StoredRelation, owners: set[str]) -> bool:
    if main.entry.view:
        # Views carry no marks.
        return is_view(known, None)
    uuid = known.state.uuid if known.state is not None else None
    if main.missing or (uuid and uuid == main.uuid):
        return True
    marked = main.properties.get("engine.model") in owners
    return marked and not any(role in main.properties for role in ROLES)


def _part(role: str, found: StoredRelation) -> Part:
    return Part(role, found.entry.schema, found.entry.name, found.uuid, found.folder, found)


def _left(config: CatalogConfig, begun: operations.Drop, found: set[tuple[str, str, str]]) -> Iterator[Part]:
    for one in begun.parts:
        if (one.schema, one.name, one.uuid) not in found:
            folder = table_removal.folder_of(config, one.folder) if one.folder else None
            yield Part(one.role, one.schema, one.name, one.uuid, folder)


def _remove(config: CatalogConfig, part: Part) -> None:
    catalog = client(config)
    for _ in range(_ATTEMPTS):
        entries = catalog.entries(part.schema) if part.stored is not None else ()
        entry = next((entry for entry in entries if entry.name == part.name), None)
        # A commit of others moves the metadata file; the table stays what it is.
        if entry is None or table_removal.stored(config, entry).uuid != part.uuid or catalog.remove(entry):
            break
    if part.folder is not None:
        table_removal.remove_folder(config, part.folder)


PROTECTED = "protected"
ACCEPTED = (DOWNSTREAM_STOPS, FILES_GONE, PROTECTED)


def named(manifest: Manifest, target: Target, root: Path, names: Sequence[str]) -> tuple[KnownTable, ...]:
    """The tables that some names mean: of a model, or a table with or without its schema and catalog.

    Raises:
        UsageError: a name means none, or several.
    """
    known = everything(manifest, target, root)
    return tuple({table.name: table for name in names for table in [_one(name, known)]}.values())


def everything(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    """The tables that this project and target have built, and those of its models, which may not exist."""
    known = {table.name: table for table in built_tables(manifest, target, root)}
    for model in manifest.models:
        if model.in_catalog:
            # The state may be lost; and a state without a note of its model may name another.
            found = known.get(str(model.relation))
            state, unfinished = (found.state, found.unfinished) if found is not None else (None, False)
            known[str(model.relation)] = KnownTable(table_state(target, model), model.name, state, unfinished)
    return tuple(known.values())


def _one(name: str, known: Iterable[KnownTable]) -> KnownTable:
    tables = list(known)
    meant = [table for table in tables if name in _names(table)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        hint = f"Write one of them: {', '.join(f'engine drop {table.name}' for table in meant)}"
        raise UsageError("usage", f"'{name}' means {len(meant)} tables", hint)
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
    found = [_protected(model) for model in protected]
    found += [interrupted(t.name, note.to) for t in tables if (note := t.folder.journal.begun(Rename)) is not None]
    if FILES_GONE not in accept:
        found += [d for m in models if table_state(target, m).load() for d in files_gone(manifest, m)]
    if DOWNSTREAM_STOPS not in accept:
        found += _readers(manifest, target, tables, {model.id for model in models})
    return found


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
                yield _read(model, table, view=view)


def _reads(manifest: Manifest, model: Model, state: ModelState, table: KnownTable) -> bool:
    for item in model.inputs:
        node = manifest.nodes[item.node]
        wanted = item.stream or model.computed_when_read
        if wanted and isinstance(node, Model) and str(node.relation) == table.name:
            return True
    uuid = table.state.uuid if table.state is not None else None
    # Whatever a version notes of a table that was read has its UUID.
    read = as_json({"inputs": state.inputs, "starts": state.starts}).decode()
    return bool(uuid) and f'"{uuid}"' in read


def _read(model: Model, table: KnownTable, *, view: bool) -> Diagnostic:
    what = "is a view over" if view else "streams from"
    after = "fails without it" if view else "cannot resume without it"
    message = f"'{model.name}' {what} {table.name} and {after}"
    hint = (
        f"Drop both: engine drop {table.name} {model.relation}. If '{model.name}' reads another table by now, build it "
        f"first: engine build -s {model.name}. Or accept it: --accept {DOWNSTREAM_STOPS}"
    )
    return Diagnostic(DOWNSTREAM_STOPS, message, hint, node=model.name, location=Location(model.file))
