"""What is deployed of a small project, made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import __version__
from engine.compile import Manifest, Model
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan import Deployed, DeployedModel, DeployedSource, LastWriter
from engine.plan.actions.descriptions import comments_of, table_properties
from engine.plan.deployed.checkpoint_facts import CheckpointFacts, FileLog
from engine.plan.source_changes import Recorded, StreamSource, of_facts
from engine.sources.listing import Listed
from engine.state import ModelState, Phase
from engine.state.file_log import Logged

ENVIRONMENT = {"project": "lab", "target": "dev", "schema": "s"}
QUERY = "a-query"
SOURCE = "source.shop.events"


def file(name: str, modified: int = 1000) -> Listed:
    return Listed(f"file:/landing/events/{name}.json", 10, modified)


def table(model: Model, *, uuid: str = "u", snapshots: int = 1, **changes: Any) -> TableFacts:
    history = tuple(SnapshotFacts(n, n - 1 if n > 1 else None, "append", {}, n) for n in range(snapshots, 0, -1))
    comment = comments_of(model).table
    properties = {**table_properties(model, 1), **({"comment": comment} if comment else {})}
    docs = tuple((column.name, column.description) for column in model.columns)
    columns = tuple((column.name, "int") for column in model.columns)
    return replace(TableFacts(uuid, properties, history, columns, docs=docs), **changes)


def streaming(model: Model, files: list[Listed], **changes: Any) -> DeployedModel:
    """A stream that has read some files in micro-batch 0."""
    state = ModelState(
        str(model.relation), 1, Phase.PUBLISHED, "u", model.fingerprint, QUERY, 0, 1, model=model.name,
        environment=ENVIRONMENT, engine_version=__version__, spark_version="4",
    )  # fmt: skip
    read = tuple(Logged(f.uri.replace("file:/", "file:///"), f.modified, 0) for f in files)
    log = FileLog(0, read, 0, 0)
    checkpoint = CheckpointFacts(Path("c"), QUERY, 0, 0, has_beginnings=True, logs=(log,))
    streams = tuple(StreamSource(SOURCE, s.name, s.kind, s.identity) for s in of_facts(model.facts))
    writer = LastWriter(model.fingerprint, model.facts, Recorded(streams))
    known = table(model)
    return replace(DeployedModel(state, writer, known, known, checkpoint=checkpoint), **changes)


def batch(model: Model, inputs: dict[str, Any], **changes: Any) -> DeployedModel:
    """A batch table that was computed from some inputs."""
    state = ModelState(
        str(model.relation), 1, Phase.PUBLISHED, "u", model.fingerprint, None, None, 1, inputs, model=model.name,
        environment=ENVIRONMENT, engine_version=__version__, spark_version="4",
    )  # fmt: skip
    known = table(model)
    return replace(DeployedModel(state, LastWriter(model.fingerprint, model.facts), known, known), **changes)


def deployed(manifest: Manifest, models: dict[str, DeployedModel], files: list[Listed] | None) -> Deployed:
    known = {f"model.{name}": found for name, found in models.items()}
    built = frozenset(node for node, found in known.items() if found.state is not None)
    sources = {SOURCE: DeployedSource(files=tuple(files) if files is not None else None)}
    assert manifest.project == ENVIRONMENT["project"]
    return Deployed(known, sources, {}, built, ENVIRONMENT, "4")
