"""What is deployed, as records: no field reads anything.

Columns of a table that the next build gives another name: `renamed_from` of a column names what the table has.

Iceberg knows columns by numbers: a rename changes no file, and streams that read the table continue. Until it is done
the plan looks at the table as it will be then.

How much a build could have to read, as far as files and the catalog tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.characters import whole_number
from engine.compile import Manifest, Model, Source
from engine.compile.nodes.facts import FORM, Facts, read_facts
from engine.errors import Diagnostic
from engine.lake.table_facts import TableFacts, ViewFacts
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.renamed_tables import Renaming
from engine.plan.source_changes import Recorded, StreamSource
from engine.sources.listing import Listed, position_of
from engine.state import ModelState
from engine.state.operations import Operation, Refresh

if TYPE_CHECKING:
    from engine.sources.spec import ClusterOffsets


@dataclass(frozen=True, slots=True)
class LastWriter:
    """The query that wrote a model's table last.

    Attributes:
        facts: behind the fingerprint; None: they cannot be read, as `unknown_reason` says.
        recorded_sources: how its generation began; None for batch models, and where nothing was recorded.
        frozen: settings of Spark that the checkpoint keeps.
    """

    fingerprint: str
    facts: Facts | None
    recorded_sources: Recorded | None = None
    frozen: Mapping[str, str] = field(default_factory=dict)
    unknown_reason: str = "the query that wrote the table is unknown"

    @classmethod
    def from_record(
        cls,
        fingerprint: str,
        record: Mapping[str, Any] | None,
        recorded_sources: Recorded | None = None,
        frozen: Mapping[str, str] | None = None,
    ) -> LastWriter:
        """Read the facts that are stored under a fingerprint."""
        writer = cls(fingerprint, read_facts(record), recorded_sources, frozen or {})
        if not record or (form := record.get("form", FORM)) == FORM:
            return writer
        text = f"the query that wrote the table is recorded in format {form}, and this version reads format {FORM}"
        return replace(writer, unknown_reason=text)


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
        open_operations: operations on the table that were begun and not finished.
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
    open_operations: tuple[Operation, ...] = ()
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
        offsets = {}
        for id_, source in self.sources.items():
            if source.topics is not None and isinstance(node := manifest.nodes[id_], Source):
                offsets[node.spec.name] = source.topics
        return offsets


def earlier_names(model: Model) -> dict[str, str]:
    """Return the names that columns of a model have now, by those that they had, in lower case."""
    return {column.renamed_from.lower(): column.name for column in model.columns if column.renamed_from}


def with_column_names(model: Model, deployed_model: DeployedModel) -> DeployedModel:
    new_names = earlier_names(model)
    if (
        not new_names
        or deployed_model.table is None
        or deployed_model.state is None
        or deployed_model.table.uuid != deployed_model.state.uuid
    ):
        return deployed_model
    column_names = {name.lower(): name for name, _ in deployed_model.table.columns}
    names = {
        column_names[old]: new
        for old, new in new_names.items()
        if old in column_names and new.lower() not in column_names
    }
    if not names:
        return deployed_model
    now = {old.lower(): new for old, new in names.items()}
    written = deployed_model.written.with_names(names) if deployed_model.written is not None else None
    state = replace(
        deployed_model.state, columns=tuple(now.get(name.lower(), name) for name in deployed_model.state.columns)
    )
    return replace(
        deployed_model,
        table=deployed_model.table.with_names(names),
        written=written,
        state=state,
        columns_renamed=names,
    )


# 111 MB took 121 s with both of Java's compilers and longer with the first alone; this is a third of them.
LITTLE: Final = 32_000_000


def is_little(deployed: Deployed) -> bool:
    """Return whether all that a build could read, old and new, is at most `LITTLE` bytes; False if unknown."""
    sizes = [_size_of_source(source) for source in deployed.sources.values()]
    sizes += [_size_of_table(model.written or model.table) for model in deployed.models.values()]
    return None not in sizes and sum(size for size in sizes if size is not None) <= LITTLE


def _size_of_source(source: DeployedSource) -> int | None:
    """The bytes of its files or of its table; None for topics, clocks and file systems of others."""
    if source.files is not None:
        return sum(file.size for file in source.files)
    return _size_of_table(source.table) if source.table is not None else None


def _size_of_table(table: TableFacts | None) -> int | None:
    if table is None or not table.history:
        return 0
    return whole_number(table.history[0].summary.get("total-files-size", ""))
