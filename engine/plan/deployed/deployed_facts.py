"""What is deployed, as records: no field reads anything.

Columns that the next build renames (`renamed_from`) already have their new names here: Iceberg knows columns by
numbers, so that no file changes and streams continue.
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

    `facts`: behind the fingerprint; None: they cannot be read, as `unknown_reason` says. `recorded_sources`: how its
    generation began; None for batch models, and where nothing was recorded. `frozen`: settings of Spark that the
    checkpoint keeps.
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

    `state` is as after the decision on a killed refresh; None: never built. `writer` None: nothing of its table was
    ever whole. `table`: what readers see; `written`: with staged rows, which its writer continues from.
    `initial_snapshots`: tables with the first rows of streamed tables, by node. `leftovers`: generations, tables or
    batches of a killed build. `open_operations` and `refresh` were begun and not finished. `renaming`: its table gets
    its name before it is built; `columns_renamed`: so do these; in all else they have the new names. `faults`: why
    something of it cannot be read or renamed.
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

    `fault`: why it cannot be read. `files`: those of a batch now, by name; None: only Spark knows. `parts`: catalog,
    namespace and name of the table. `topics` None: only Java's client knows.
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

    `streams`: what a selected model reads as a stream, in the order of its SQL, with places resolved. `built`: models
    with a state, among the selected and the streams from them, but for streams whose full refresh was begun. `passed`:
    when each test passed whose last pass counts.
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
