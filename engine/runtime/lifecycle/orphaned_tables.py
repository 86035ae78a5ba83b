"""Tables that were built and that no model of the project has any more: it was renamed, moved or deleted.

They are known from the state alone: each table that was ever built has a folder there, and its model.json says which
model, project and target wrote last. A table without state is nobody's of this project, and never an orphan. Needs
neither Java nor PyIceberg.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.compile import Manifest, Model, Target
from engine.errors import Diagnostic, Level, StateError
from engine.plan.deployed.begun_rebuild import BegunRebuild, begun_rebuild
from engine.plan.deployed.state_folder import environment, state_root
from engine.sources import location
from engine.state import ModelState, TableState
from engine.state.known_tables import tables_in

# After that many, one note says how many more there are.
_NOTES = 10


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that the state knows.

    Attributes:
        folder: of its state.
        model: that built it last; a version that did not note it named most tables as their models.
        state: what is kept of it; None: nothing is left but a drop that was not finished.
        unfinished: a drop of it was begun and not finished.
        rebuild: the rebuild that it is made for; None: it is a table like others.
    """

    folder: TableState
    model: str
    state: ModelState | None = None
    unfinished: bool = False
    rebuild: BegunRebuild | None = None

    @property
    def name(self) -> str:
        """The table's full name."""
        return self.folder.name


def known_table(folder: TableState) -> tuple[KnownTable, Mapping[str, str]] | None:
    """What the state knows of a table, and the environment that it was built in; None: nothing.

    Raises:
        StateError: `state-unreadable`.
    """
    state, begun, rebuild = folder.load(), folder.drop(), begun_rebuild(folder)
    if state is None and begun is None and rebuild is None:
        return None
    said = begun if isinstance(begun, Mapping) else {}
    model = (
        (state.model if state is not None else "")
        or str(said.get("model") or "")
        or (rebuild.model if rebuild is not None else folder.table)
    )
    built_in = state.environment if state is not None else said.get("environment")
    where = {str(k): str(v) for k, v in built_in.items()} if isinstance(built_in, Mapping) else {}
    return KnownTable(folder, model, state, begun is not None, rebuild), where


def tables_of(manifest: Manifest, target: Target, root: Path) -> Iterator[KnownTable]:
    """The tables that this project and target have built, as far as their state can be read."""
    yield from _tables(manifest, target, root, frozenset())


def orphans(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    """Those of them that no model of the project has, and no source names."""
    return tuple(known for known in _without_model(manifest, target, root) if not _rebuilt(manifest, known))


def _rebuilt(manifest: Manifest, known: KnownTable) -> bool:
    """Whether a model of the project is being rebuilt in a table."""
    return known.rebuild is not None and f"model.{known.rebuild.model}" in manifest.nodes


def _without_model(manifest: Manifest, target: Target, root: Path) -> tuple[KnownTable, ...]:
    named = (location(s.spec) for s in manifest.sources if s.spec.format == "iceberg")
    sources = {tuple(name.removeprefix(f"{target.catalog.name}.").rpartition(".")[::2]) for name in named}
    current = frozenset(str(model.deferred_from or model.relation) for model in manifest.models if model.stored)
    found = _tables(manifest, target, root, current)
    return tuple(known for known in found if (known.folder.schema, known.folder.table) not in sources)


def _tables(manifest: Manifest, target: Target, root: Path, without: frozenset[str]) -> Iterator[KnownTable]:
    inside = isinstance(target.state, Path) and target.state.resolve().is_relative_to(root.resolve())
    schemas = {target.schema, *((model.deferred_from or model.relation).schema for model in manifest.models)}
    now = environment(manifest, target)
    for folder in tables_in(state_root(target), target.catalog.name):
        # Those of models are not read: a build without changes looks at thousands.
        if folder.name in without:
            continue
        try:
            found = known_table(folder)
        except StateError:
            continue
        if found is None:
            continue
        known, built_in = found
        if not built_in:
            ours = inside and folder.schema in schemas
        else:
            same = built_in.get("target") == now["target"] and (inside or built_in.get("project") == now["project"])
            # A schema that is a template's is another environment; one that is written was changed.
            ours = same and (built_in.get("schema") == now["schema"] or not target.schema_varies)
        if ours:
            yield known


def notes(manifest: Manifest, target: Target, root: Path) -> Iterator[Diagnostic]:
    """What a build notes of tables that nothing builds any more."""
    tables = _without_model(manifest, target, root)
    yield from _begun(known.rebuild for known in tables if known.rebuild is not None and _rebuilt(manifest, known))
    found = [known for known in tables if not _rebuilt(manifest, known)]
    for known in found[:_NOTES]:
        yield Diagnostic("orphan-table", reason(manifest, known), _hint(known), Level.NOTE, node=known.model)
    if len(found) > _NOTES:
        message = f"{len(found) - _NOTES} more tables without a model"
        yield Diagnostic("orphan-table", message, "List them: engine ls --orphans", Level.NOTE)


def _begun(rebuilds: Iterable[BegunRebuild]) -> Iterator[Diagnostic]:
    """Note each rebuild once, however many tables it has."""
    for models, at in sorted({(one.models, one.at) for one in rebuilds}):
        names = " ".join(models)
        message = f"the rebuild of {', '.join(map(repr, models))} that was begun at {at} (UTC) is not published"
        hint = (
            f"Continue it: engine build --rebuild -s {names}. Or remove it: engine build --rebuild --discard -s {names}"
        )
        yield Diagnostic("rebuild-unfinished", message, hint, Level.NOTE, node=models[0] if models else "")


def reason(manifest: Manifest, known: KnownTable) -> str:
    """Why nothing builds a table any more."""
    if known.unfinished:
        return f"the drop of {known.name} was interrupted"
    model = manifest.nodes.get(f"model.{known.model}")
    if isinstance(model, Model) and model.stored:
        return f"no model builds {known.name}: the table of '{known.model}' is {model.relation} now"
    if isinstance(model, Model):
        return f"no model builds {known.name}: '{known.model}' is {model.materialized.value} now"
    return f"no model builds {known.name}: the project has no model '{known.model}'"


def _hint(known: KnownTable) -> str:
    if known.unfinished:
        return f"Finish it: engine drop {known.name}"
    return (
        f"Remove it with its state: engine drop {known.name}. Or continue it: add to the model that has its query "
        f"now 'alias: {known.folder.table}'."
    )
