"""What is deployed, as records: no field reads anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.compile import Manifest, Source
from engine.errors import Diagnostic
from engine.lake.table_facts import TableFacts, ViewFacts
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.renamed_tables import Renaming
from engine.plan.source_changes import Recorded, StreamSource
from engine.sources.files.listing import Listed, position_of
from engine.state import ModelState
from engine.state.operations import Operation, Refresh

if TYPE_CHECKING:
    from engine.sources.kafka.native_client import ClusterOffsets


@dataclass(frozen=True, slots=True)
class LastWriter:
    """The query that wrote a model's table last.

    Attributes:
        facts: behind the fingerprint; None: lost.
        recorded: how its generation began; None for batch models, and where nothing was recorded.
        frozen: settings of Spark that the checkpoint keeps.
    """

    fingerprint: str
    facts: Mapping[str, Any] | None
    recorded: Recorded | None = None
    frozen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeployedModel:
    """What there is of a model.

    Attributes:
        state: of its table, as it is once a refresh that was killed is decided; None: it was never built.
        writer: of its table; None: nothing of it was ever whole.
        table: what readers see; None: there is no table.
        written: the same with staged rows, which its writer continues from.
        quarantine: the table `<model>__quarantine`; None: there is none.
        initial_snapshots: tables with the first rows of tables that a stream reads, by node read.
        leftovers: generations, tables or batches that a killed build left, to be removed by the next.
        begun: operations on the table that were begun and not finished.
        refresh: a full refresh of it that was begun and not finished; None: there is none.
        renaming: its table has its earlier name still, and gets its name before it is built; None: it has it.
        columns_renamed: columns of its table that have their earlier names still, with the names that they get before
            it is built; in all else that is said of it they have these.
        faults: why something of it cannot be read, or its table not be renamed.
    """

    state: ModelState | None = None
    writer: LastWriter | None = None
    table: TableFacts | None = None
    written: TableFacts | None = None
    view: ViewFacts | None = None
    quarantine: TableFacts | None = None
    checkpoint: CheckpointFacts | None = None
    initial_snapshots: Mapping[str, TableFacts] = field(default_factory=dict)
    leftovers: bool = False
    begun: tuple[Operation, ...] = ()
    refresh: Refresh | None = None
    renaming: Renaming | None = None
    columns_renamed: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class DeployedSource:
    """What there is of a source.

    Attributes:
        fault: why it cannot be read; None: there is something to read.
        files: those that a batch would read now, by name; None: that is known to Spark only.
        parts: catalog, namespace and name of that table.
        topics: of a Kafka source; None: they are known to Java's client only.
    """

    fault: Diagnostic | None = None
    files: tuple[Listed, ...] | None = None
    table: TableFacts | None = None
    parts: tuple[str, str, str] = ("", "", "")
    columns: Mapping[str, str] = field(default_factory=dict)
    topics: ClusterOffsets | None = None

    def position(self) -> dict[str, Any] | None:
        """What a batch would read, as its kind says it in `position`; None: only Spark knows."""
        if self.table is not None:
            return self.table.position()
        return position_of(self.files) if self.files is not None else None


@dataclass(frozen=True, slots=True)
class Deployed:
    """What there is of a selection.

    Attributes:
        streams: by id of a selected model, what it reads as a stream, in the order of its SQL, with places resolved.
        built: ids of the models that have a state, among the selected ones and the streams from them; not of those
            streams that a full refresh was begun of.
        passed: by id, when each test passed whose last pass was of what it would look at now.
    """

    models: Mapping[str, DeployedModel] = field(default_factory=dict)
    sources: Mapping[str, DeployedSource] = field(default_factory=dict)
    streams: Mapping[str, tuple[StreamSource, ...]] = field(default_factory=dict)
    built: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
    spark_version: str = ""
    root: Path = Path()
    passed: Mapping[str, str] = field(default_factory=dict)

    def topics(self, manifest: Manifest) -> dict[str, ClusterOffsets]:
        found = {}
        for id_, source in self.sources.items():
            if source.topics is not None and isinstance(node := manifest.nodes[id_], Source):
                found[node.spec.name] = source.topics
        return found
