"""What `engine drop` is asked for: which tables a name means, and why they must not go yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engine.compile import Manifest, Model, Target
from engine.errors import Diagnostic, Location, UsageError, near
from engine.plan.actions.refresh_checks import DOWNSTREAM_STOPS, FILES_GONE, files_gone
from engine.plan.deployed.renamed_tables import interrupted, state_now
from engine.plan.deployed.state_folder import table_state
from engine.plan.deployed.tables_in_state import KnownTable, built_tables
from engine.state import ModelState
from engine.state.model_state import as_json
from engine.state.operations import Rename

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
