"""What all parts of one run share, and how a model's turn ends."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import __version__
from engine.compile import Manifest, Model, Target
from engine.events import Emit, Event
from engine.lake.fencing.table_fence import MARKER
from engine.lake.lake_reader import Lake
from engine.plan import Plan, Reset
from engine.plan.deployed import generations
from engine.plan.deployed.state_folder import environment, table_state
from engine.sources import Place
from engine.state import ModelState, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def command_run(manifest: Manifest, target: Target, root: Path, spark: SparkSession) -> Run:
    """Return the run of a command that builds nothing: without a plan, and nobody hears its events."""

    def unheard(_: Event) -> None: ...

    place, lake = target.place(root), Lake(target.catalog)
    return Run(str(uuid.uuid4()), manifest, target, place, Plan({}), spark, lake, unheard)


@dataclass(frozen=True, slots=True)
class Run:
    """A run under way.

    Attributes:
        id: of this run; it is in every commit.
        spark: the session from which each model gets one of its own.
        lake: the catalog, read without the JVM.
        until: when a turn of `engine start` ends between two micro-batches, on the monotonic clock; None: no bound.
    """

    id: str
    manifest: Manifest
    target: Target
    place: Place
    plan: Plan
    spark: SparkSession
    lake: Lake
    emit: Emit
    reset: Reset | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    until: float | None = None

    def state(self, model: Model) -> TableState:
        return table_state(self.target, model)

    @property
    def environment(self) -> Mapping[str, str]:
        """What distinguishes this build from those of other projects and targets with the same state folder."""
        return environment(self.manifest, self.target)

    def signed(self, model: Model, state: ModelState) -> ModelState:
        return replace(
            state,
            fingerprint=model.fingerprint,
            model=model.name,
            environment=self.environment,
            engine_version=__version__,
            spark_version=self.spark.version,
        )

    def lease_marker(self, model: Model) -> Mapping[str, str]:
        """The marker of commits that are made under a lease; none where the lock is the operating system's."""
        lease = self.state(model).lease
        return {MARKER: lease.token} if lease is not None else {}

    def markers(self, model: Model, state: ModelState, batch: int | None = None) -> Mapping[str, str]:
        """What a commit of the model's generation carries in its snapshot's summary, without the prefix `engine.`."""
        known = {
            "model": model.name,
            generations.NUMBER: str(state.generation),
            generations.ID: state.generation_id,
            "run-id": self.id,
            "fingerprint": model.fingerprint,
            "version": __version__,
            **self.lease_marker(model),
        }
        return known if batch is None else {**known, "batch-id": str(batch)}
