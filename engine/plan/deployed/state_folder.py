"""Where the state of a model's table is, and which build wrote it: each table ever built has a folder.

Its model.json says which model, project and target wrote last. Needs neither Java nor PyIceberg.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from engine.compile import Manifest, Model, Relation, Target
from engine.errors import StateError
from engine.object_store.s3_client import s3_client
from engine.object_store.s3_settings import S3Settings, bucket_and_key
from engine.state import ModelState, TableState
from engine.state.blob_store import Folder, S3Store
from engine.state.known_tables import tables_in
from engine.state.object_path import ObjectPath, ReadOnce
from engine.state.operations import Drop, Rebuild
from engine.state.state_path import StatePath, local

# Of the tables that `engine build --rebuild` makes beside those of models, and that are like others until then.
REBUILT = "__next"


def state_root(target: Target) -> StatePath:
    if isinstance(target.state, Path):
        return target.state
    bucket, key = bucket_and_key(target.state)
    return ObjectPath(S3Store(bucket, partial(_client, target)), key)


def _client(target: Target) -> Any:
    return s3_client(target.s3() if target.s3 is not None else S3Settings())


def table_state(target: Target, model: Model, *, once: bool = False) -> TableState:
    """Return the state folder of a model's table; `once`: each file is read once and then remembered."""
    relation, root, file_cache = model.relation, state_root(target), None
    if once and isinstance(root, ObjectPath):
        root = ObjectPath(ReadOnce(root.store), root.key)
    elif once:
        file_cache = ReadOnce(Folder(local(root)))
    return TableState(root, relation.catalog, relation.schema, relation.name, file_cache)


def next_relation(relation: Relation) -> Relation:
    return replace(relation, name=f"{relation.name}{REBUILT}")


def next_state(target: Target, model: Model) -> TableState:
    folder = table_state(target, model)
    return replace(folder, table=f"{folder.table}{REBUILT}")


def environment(manifest: Manifest, target: Target) -> Mapping[str, str]:
    return {"project": manifest.project, "target": target.name, "schema": target.schema}


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that the state knows.

    `model` built it last. `state` None: only an unfinished drop is left. `rebuild`: the rebuild that it is made for.
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

    Raises StateError: `state-unreadable`.
    """
    state, open_drop, rebuild = (
        folder.load(),
        folder.journal.open_operation(Drop),
        folder.journal.open_operation(Rebuild),
    )
    if state is None and open_drop is None and rebuild is None:
        return None
    model = next((one.model for one in (state, open_drop, rebuild) if one is not None and one.model), folder.table)
    built_in = next((one.environment for one in (state, open_drop) if one is not None), {})
    return KnownTable(folder, model, state, open_drop is not None, rebuild), built_in


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
            known_facts = known_table(folder)
        except StateError:
            continue
        if known_facts is None:
            continue
        table, built_in = known_facts
        if not built_in:
            ours = inside and folder.schema in schemas
        else:
            same = built_in.get("target") == now["target"] and (inside or built_in.get("project") == now["project"])
            # A schema that is a template's is another environment; one that is written was changed.
            ours = same and (built_in.get("schema") == now["schema"] or not target.schema_varies)
        if ours:
            yield table


STAGING, SEED = "engine.staging", "engine.seed"
# What a table beside a model's table is, and how its name ends.
_BESIDE = {
    STAGING: ("staging table", re.compile(r"__g\d+")),
    SEED: ("initial snapshot", re.compile(r"__seed\d+_\w+")),
    "engine.quarantine": ("quarantine", re.compile("__quarantine")),
    "engine.deleted": ("deleted keys", re.compile("__deleted")),
}
ROLES = tuple(_BESIDE)


def made_by(model: Model, properties: Mapping[str, str]) -> bool:
    return properties.get("engine.model") == model.name and not any(role in properties for role in ROLES)


def role_beside(ending: str, properties: Mapping[str, str]) -> str:
    """What a table beside a model's table is, by its marks and by the end of its name; empty: something else."""
    for mark, (role, name) in _BESIDE.items():
        if properties.get(mark) == "true" and name.fullmatch(ending):
            return role
    return ""
