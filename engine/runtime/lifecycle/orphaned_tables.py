"""Tables that were built and that no model of the project has any more: it was renamed, moved or deleted.

They are known from the state alone, which says which model, project and target wrote last; without state a table is
never an orphan. Needs neither Java nor PyIceberg.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.compile import Manifest, Model, Target
from engine.errors import Diagnostic, Level
from engine.plan.deployed.state_folder import KnownTable, built_tables
from engine.sources import location, source_traits

# After that many, one note says how many more there are.
_NOTES = 10


def orphans(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    return tuple(table for table in _without_model(manifest, target, root) if not _is_rebuilt(manifest, table))


def _is_rebuilt(manifest: Manifest, table: KnownTable) -> bool:
    return table.rebuild is not None and f"model.{table.rebuild.model}" in manifest.nodes


def _without_model(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    source_names = (location(s.spec) for s in manifest.sources if source_traits(s.spec.format).is_table)
    sources = {tuple(name.removeprefix(f"{target.catalog.name}.").rpartition(".")[::2]) for name in source_names}
    current = frozenset(str(model.deferred_from or model.relation) for model in manifest.models if model.in_catalog)
    tables = built_tables(manifest, target, root, current)
    return tuple(table for table in tables if (table.folder.schema, table.folder.table) not in sources)


def notes(manifest: Manifest, target: Target, root: Path) -> Iterator[Diagnostic]:
    tables = _without_model(manifest, target, root)
    yield from _unfinished_rebuilds(manifest, tables)
    orphan_tables = [table for table in tables if not _is_rebuilt(manifest, table)]
    for table in orphan_tables[:_NOTES]:
        yield Diagnostic("orphan-table", reason(manifest, table), _hint(table), Level.NOTE, node=table.model)
    if len(orphan_tables) > _NOTES:
        message = f"{len(orphan_tables) - _NOTES} more tables without a model"
        yield Diagnostic("orphan-table", message, "List them: engine ls --orphans", Level.NOTE)


def unfinished_rebuilds(manifest: Manifest, target: Target, root: Path) -> Iterator[Diagnostic]:
    """What a plan notes of rebuilds that were begun and not published; there is none where the state is in a bucket."""
    return _unfinished_rebuilds(
        manifest, _without_model(manifest, target, root) if isinstance(target.state, Path) else ()
    )


def _unfinished_rebuilds(manifest: Manifest, tables: Iterable[KnownTable]) -> Iterator[Diagnostic]:
    rebuilds = (table.rebuild for table in tables if table.rebuild is not None and _is_rebuilt(manifest, table))
    for models, at in sorted({(rebuild.models, rebuild.at) for rebuild in rebuilds}):
        names = " ".join(models)
        message = f"the rebuild of {', '.join(map(repr, models))} that was begun at {at} (UTC) is not published"
        hint = (
            f"Continue it: engine build --rebuild -s {names}. Or remove it: engine build --rebuild --discard -s {names}"
        )
        yield Diagnostic("rebuild-unfinished", message, hint, Level.NOTE, node=models[0] if models else "")


def reason(manifest: Manifest, table: KnownTable) -> str:
    if table.unfinished:
        return f"the drop of {table.name} was interrupted"
    model = manifest.nodes.get(f"model.{table.model}")
    if isinstance(model, Model) and model.in_catalog:
        return f"no model builds {table.name}: the table of '{table.model}' is {model.relation} now"
    if isinstance(model, Model):
        return f"no model builds {table.name}: '{table.model}' is {model.materialized.value} now"
    return f"no model builds {table.name}: the project has no model '{table.model}'"


def _hint(table: KnownTable) -> str:
    if table.unfinished:
        return f"Finish it: engine drop {table.name}"
    return (
        f"Remove it with its state: engine drop {table.name}. Or continue it: add to the model that has its query "
        f"now 'renamed_from: {table.folder.table}', which gives the table its name, or 'alias: {table.folder.table}'."
    )
