"""The tables that this project and target have built: each has a folder in the state, whatever its model is called now.

Its model.json says which model, project and target wrote last. Needs neither Java nor PyIceberg.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.compile import Manifest, Target
from engine.errors import StateError
from engine.plan.deployed.state_folder import environment, state_root
from engine.state import ModelState, TableState
from engine.state.known_tables import tables_in
from engine.state.operations import Drop, Rebuild


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that the state knows.

    Attributes:
        model: that built it last; a version that did not note it named most tables as their models.
        state: what is kept of it; None: nothing is left but a drop that was not finished.
        rebuild: the rebuild that it is made for; None: it is a table like others.
    """

    folder: TableState
    model: str
    state: ModelState | None = None
    unfinished: bool = False
    rebuild: Rebuild | None = None

    @property
    def name(self) -> str:
        return self.folder.name


def known_table(folder: TableState) -> tuple[KnownTable, Mapping[str, str]] | None:
    """What the state knows of a table, and the environment that it was built in; None: nothing.

    Raises:
        StateError: `state-unreadable`.
    """
    state, begun, rebuild = folder.load(), folder.journal.begun(Drop), folder.journal.begun(Rebuild)
    if state is None and begun is None and rebuild is None:
        return None
    model = next((one.model for one in (state, begun, rebuild) if one is not None and one.model), folder.table)
    built_in = next((one.environment for one in (state, begun) if one is not None), {})
    return KnownTable(folder, model, state, begun is not None, rebuild), built_in


def built_tables(manifest: Manifest, target: Target, root: Path, without: Collection[str] = ()) -> Iterator[KnownTable]:
    """The tables that this project and target have built, as far as their state can be read."""
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
