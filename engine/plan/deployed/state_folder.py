"""Where the state of a model's table is, and which build wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from engine.compile import Manifest, Model, Relation, Target
from engine.object_store.s3_client import s3_client
from engine.object_store.s3_settings import S3Settings, bucket_and_key
from engine.state import TableState
from engine.state.blob_store import Folder
from engine.state.object_path import ObjectPath
from engine.state.read_once import ReadOnce
from engine.state.s3_store import S3Store
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
    relation, root, kept = model.relation, state_root(target), None
    if once and isinstance(root, ObjectPath):
        root = ObjectPath(ReadOnce(root.store), root.key)
    elif once:
        kept = ReadOnce(Folder(local(root)))
    return TableState(root, relation.catalog, relation.schema, relation.name, kept)


def next_relation(relation: Relation) -> Relation:
    return replace(relation, name=f"{relation.name}{REBUILT}")


def next_state(target: Target, model: Model) -> TableState:
    folder = table_state(target, model)
    return replace(folder, table=f"{folder.table}{REBUILT}")


def environment(manifest: Manifest, target: Target) -> Mapping[str, str]:
    return {"project": manifest.project, "target": target.name, "schema": target.schema}
