"""Tables that were built and that no model of the project has any more: it was renamed, moved or deleted.

They are known from the state alone: each table that was ever built has a folder there, and its model.json says which
model, project and target wrote last. A table without state is nobody's of this project, and never an orphan. Needs
neither Java nor PyIceberg.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.compile import Manifest, Model, Target
from engine.errors import Diagnostic, Level
from engine.plan.deployed.state_folder import KnownTable, built_tables
from engine.sources import answers_of, location

# After that many, one note says how many more there are.
_NOTES = 10


def orphans(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    return tuple(known for known in _without_model(manifest, target, root) if not _rebuilt(manifest, known))


def _rebuilt(manifest: Manifest, known: KnownTable) -> bool:
    return known.rebuild is not None and f"model.{known.rebuild.model}" in manifest.nodes


def _without_model(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    named = (location(s.spec) for s in manifest.sources if answers_of(s.spec.format).is_table)
    sources = {tuple(name.removeprefix(f"{target.catalog.name}.").rpartition(".")[::2]) for name in named}
    current = frozenset(str(model.deferred_from or model.relation) for model in manifest.models if model.in_catalog)
    found = built_tables(manifest, target, root, current)
    return tuple(known for known in found if (known.folder.schema, known.folder.table) not in sources)


def notes(manifest: Manifest, target: Target, root: Path) -> Iterator[Diagnostic]:
    tables = _without_model(manifest, target, root)
    yield from _begun(manifest, tables)
    found = [known for known in tables if not _rebuilt(manifest, known)]
    for known in found[:_NOTES]:
        yield Diagnostic("orphan-table", reason(manifest, known), _hint(known), Level.NOTE, node=known.model)
    if len(found) > _NOTES:
        message = f"{len(found) - _NOTES} more tables without a model"
        yield Diagnostic("orphan-table", message, "List them: engine ls --orphans", Level.NOTE)


def begun_rebuilds(manifest: Manifest, target: Target, root: Path) -> Iterator[Diagnostic]:
    """What a plan notes of rebuilds that were begun and not published; there is none where the state is in a bucket."""
    return _begun(manifest, _without_model(manifest, target, root) if isinstance(target.state, Path) else ())


def _begun(manifest: Manifest, tables: Iterable[KnownTable]) -> Iterator[Diagnostic]:
    rebuilds = (known.rebuild for known in tables if known.rebuild is not None and _rebuilt(manifest, known))
    for models, at in sorted({(one.models, one.at) for one in rebuilds}):
        names = " ".join(models)
        message = f"the rebuild of {', '.join(map(repr, models))} that was begun at {at} (UTC) is not published"
        hint = (
            f"Continue it: engine build --rebuild -s {names}. Or remove it: engine build --rebuild --discard -s {names}"
        )
        yield Diagnostic("rebuild-unfinished", message, hint, Level.NOTE, node=models[0] if models else "")


def reason(manifest: Manifest, known: KnownTable) -> str:
    if known.unfinished:
        return f"the drop of {known.name} was interrupted"
    model = manifest.nodes.get(f"model.{known.model}")
    if isinstance(model, Model) and model.in_catalog:
        return f"no model builds {known.name}: the table of '{known.model}' is {model.relation} now"
    if isinstance(model, Model):
        return f"no model builds {known.name}: '{known.model}' is {model.materialized.value} now"
    return f"no model builds {known.name}: the project has no model '{known.model}'"


def _hint(known: KnownTable) -> str:
    if known.unfinished:
        return f"Finish it: engine drop {known.name}"
    return (
        f"Remove it with its state: engine drop {known.name}. Or continue it: add to the model that has its query "
        f"now 'renamed_from: {known.folder.table}', which gives the table its name, or 'alias: {known.folder.table}'."
    )
