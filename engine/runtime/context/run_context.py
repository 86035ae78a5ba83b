"""What all parts of one run share: the session, jars, locks, checkpoints in a bucket, and how a model's turn ends."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import __version__
from engine.compile import DataTest, Manifest, Model, Source, Target
from engine.errors import StateError
from engine.events import Emit, Event
from engine.lake.lake_reader import Lake
from engine.lake.table_fence import MARKER
from engine.object_store.s3_settings import S3Settings, hadoop_conf
from engine.plan import Plan, Reset
from engine.plan.deployed import generations
from engine.plan.deployed.state_folder import environment, table_state
from engine.sources import KINDS, Place
from engine.spark.checkpoint_files import OBJECT_SETTINGS
from engine.state import ModelState, TableState, locked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def command_run(manifest: Manifest, target: Target, root: Path, spark: SparkSession) -> Run:
    def unheard(_: Event) -> None: ...

    place, lake = target.place(root), Lake(target.catalog)
    return Run(str(uuid.uuid4()), manifest, target, place, Plan({}), spark, lake, unheard)


@dataclass(frozen=True, slots=True)
class Run:
    """A run under way; its id is in every commit.

    Each model gets a session of its own from `spark`; `lake` is the catalog, read without the JVM. `ends_at`: when a
    turn of `engine start` ends between two micro-batches, on the monotonic clock; None: no bound.
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
    ends_at: float | None = None

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
        commit_markers = {
            "model": model.name,
            generations.NUMBER: str(state.generation),
            generations.ID: state.generation_id,
            "run-id": self.id,
            "fingerprint": model.fingerprint,
            "version": __version__,
            **self.lease_marker(model),
        }
        return commit_markers if batch is None else {**commit_markers, "batch-id": str(batch)}


CORE = ("core",)


def jar_sets(manifest: Manifest, nodes: Iterable[Model | DataTest]) -> tuple[str, ...]:
    inputs = (manifest.nodes[i] for node in nodes for i in _read_by(node))
    specs = [node.spec for node in inputs if isinstance(node, Source)]
    return (*CORE, *sorted({name for spec in specs for name in KINDS[spec.format].jars(spec)}))


def _read_by(node: Model | DataTest) -> Iterable[str]:
    return node.depends_on if isinstance(node, DataTest) else (item.node for item in node.inputs)


JARS = ("s3",)


def state_jars(target: Target) -> tuple[str, ...]:
    return () if isinstance(target.state, Path) else JARS


def state_conf(target: Target) -> Mapping[str, str]:
    if isinstance(target.state, Path):
        return {}
    return {**hadoop_conf(target.s3() if target.s3 is not None else S3Settings()), **OBJECT_SETTINGS}


_log = logging.getLogger("engine.runtime")

# How long to wait for a turn of `engine start`, or for a build.
_WAIT_SECONDS, _POLL_SECONDS = 600.0, 1.0


@contextmanager
def locked_when_free(states: Sequence[TableState]) -> Iterator[tuple[int, ...]]:
    """Hold the locks of tables, after the turn of whoever writes them. Raises StateError: `table-locked`."""
    deadline, waits = time.monotonic() + _WAIT_SECONDS, False
    with ExitStack() as stack:
        while True:
            try:
                locks = stack.enter_context(locked(states))
                break
            except StateError as error:
                if error.diagnostic.code != "table-locked" or time.monotonic() > deadline:
                    raise
                if not waits:
                    _log.info("waiting: %s", error.diagnostic.message)
                waits = True
                time.sleep(_POLL_SECONDS)
        yield locks
