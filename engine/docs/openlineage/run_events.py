"""OpenLineage events, made from the events of a run: one job for each model, below the job of the command.

They have what the compiler knows: schemas, column lineage with its expressions, whether a job is a stream. Tables are
named by their location, topics by their brokers, files by path.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openlineage.client import event_v2, facet_v2

from engine import __version__, local_paths
from engine.compile.declarations.target import Target
from engine.compile.nodes.column_facts import Derivation, Origin
from engine.compile.nodes.manifest import Column, DataTest, Manifest, Model, Source
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.docs.site import format_values
from engine.errors import EngineError
from engine.events import (
    BatchCommitted,
    Event,
    ModelFinished,
    ModelStarted,
    RunFinished,
    RunStarted,
    Status,
    TestFinished,
)
from engine.lake.catalog import catalog_settings
from engine.object_store.s3_settings import bucket_and_key
from engine.relations import Relation
from engine.sources import location, source_traits
from engine.sources.listing import is_uri


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The name of a dataset.

    `namespace`: its system, such as kafka://host:9092, s3://bucket or file. `alias`: a table's name in the catalog,
    with the catalog's address.
    """

    namespace: str
    name: str
    alias: tuple[str, str] | None = None


class DatasetNames:
    def __init__(self, manifest: Manifest, target: Target, root: Path) -> None:
        self._manifest, self._target, self._root = manifest, target, root
        self._datasets_by_node: dict[str, tuple[DatasetName, ...]] = {}

    def datasets_of(self, node_id: str) -> tuple[DatasetName, ...]:
        """The datasets that a node is; a source of several topics is several."""
        if node_id not in self._datasets_by_node:
            node = self._manifest.nodes[node_id]
            if isinstance(node, Model):
                self._datasets_by_node[node_id] = (self._table(node.relation),)
            else:
                self._datasets_by_node[node_id] = self._source(node) if isinstance(node, Source) else ()
        return self._datasets_by_node[node_id]

    def _table(self, relation: Relation) -> DatasetName:
        catalog = self._target.catalog
        short = f"{relation.schema}.{relation.name}"
        if catalog.type != "sqlite":
            return DatasetName(f"iceberg://{catalog.name}", short)
        if catalog.objects:
            bucket, key = bucket_and_key(catalog.objects)
            name = "/".join(part for part in (key.rstrip("/"), relation.schema, relation.name) if part)
            return DatasetName(f"s3://{bucket}", name, (local_paths.encoded(catalog_settings.database(catalog)), short))
        folder = catalog.path / "warehouse" / relation.schema / relation.name
        return DatasetName("file", folder.as_posix(), (local_paths.encoded(catalog_settings.database(catalog)), short))

    def _source(self, source: Source) -> tuple[DatasetName, ...]:
        settings = source.spec.settings
        traits = source_traits(source.spec.format)
        if traits.connects:
            broker = self._broker(settings)
            return tuple(DatasetName(broker, topic) for topic in traits.topic_names(source.spec) or (source.name,))
        path = settings.get("path")
        if not isinstance(path, str) or not path:
            return (DatasetName(source.spec.format or "unknown", location(source.spec) or source.name),)
        local_path = local_paths.path_of_location(path)
        if local_path is None and is_uri(path):
            scheme, _, rest = path.partition(":")
            host, _, name = rest.removeprefix("//").partition("/")
            bucket = host.rpartition("@")[2].partition(":")[0].lower()
            return (DatasetName(f"{scheme}://{bucket}", name.strip("/")),)
        return (DatasetName("file", (self._root / (local_path or path)).as_posix()),)

    def _broker(self, settings: Mapping[str, Any]) -> str:
        """The first broker of the connection; the connection's name where its settings cannot be had."""
        name = str(settings.get("connection") or "")
        try:
            servers = self._target.connections[name].masked().get("bootstrap_servers")
        except (EngineError, KeyError):
            servers = None
        first = servers[0] if isinstance(servers, list) and servers else servers
        return f"kafka://{str(first).split(',')[0].strip() if first else name}"


State = event_v2.RunState
PRODUCER = f"urn:headrace:{__version__}"
# A long stream shows how far it is at most so often.
_RUNNING_SECONDS = 30.0
_DIRECT = {
    Derivation.COPY: "IDENTITY", Derivation.EXPRESSION: "TRANSFORMATION", Derivation.AGGREGATE: "AGGREGATION",
}  # fmt: skip
_SUBTYPES = {
    "filter": "FILTER", "having": "FILTER", "join": "JOIN", "group": "GROUP_BY", "sort": "SORT", "window": "WINDOW",
}  # fmt: skip


@dataclass(slots=True)
class _Sums:
    rows_out: int = 0
    told_at: float = 0.0


@dataclass(slots=True)
class Teller:
    manifest: Manifest
    names: DatasetNames
    namespace: str
    run: RunStarted | None = None
    failed: bool = False
    running: dict[str, _Sums] = field(default_factory=dict)

    def tell(self, event: Event, at: str, clock: float) -> Iterator[event_v2.RunEvent]:
        """Yield the events to send for one of the run's; `clock`, in seconds, holds back what comes too often."""
        match event:
            case RunStarted():
                self.run = event
                yield self._of_run(State.START, at)
            case ModelStarted():
                self.running[event.node] = _Sums(told_at=clock)
                yield self._of_model(State.START, event.node, at)
            case BatchCommitted():
                yield from self._batch(event, at, clock)
            case ModelFinished() if self.running.pop(event.node, None):
                yield self._finished(event, at)
            case TestFinished() if event.status is not Status.SKIPPED:
                yield self._test(event, at)
            case RunFinished():
                yield self._of_run(State.FAIL if self.failed else State.COMPLETE, at)
                self.run = None
            case _:
                pass

    def abort(self, at: str) -> Iterator[event_v2.RunEvent]:
        """The events of a run that ended without saying so."""
        yield from (self._of_model(State.ABORT, node, at) for node in self.running)
        if self.run is not None:
            yield self._of_run(State.ABORT, at)

    def _batch(self, event: BatchCommitted, at: str, clock: float) -> Iterator[event_v2.RunEvent]:
        sums = self.running.setdefault(event.node, _Sums())
        sums.rows_out += event.rows_out
        if clock - sums.told_at >= _RUNNING_SECONDS:
            sums.told_at = clock
            yield self._of_model(State.RUNNING, event.node, at, rows=sums.rows_out, snapshot=event.snapshot_id)

    def _finished(self, event: ModelFinished, at: str) -> event_v2.RunEvent:
        bad = event.status.failed
        self.failed = self.failed or bad
        state = State.FAIL if bad else State.COMPLETE
        facets = {"errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet(event.message, "SQL")} if bad else {}
        return self._of_model(
            state, event.node, at, rows=None if bad else event.rows_out, snapshot=event.snapshot_id, facets=facets
        )

    def _of_run(self, state: State, at: str) -> event_v2.RunEvent:
        run = self.run
        name = f"{self.manifest.project}.{run.command if run else 'build'}"
        job = event_v2.Job(self.namespace, name, {"jobType": _job_type("BATCH", "JOB")})
        return event_v2.RunEvent(
            eventTime=at, eventType=state, run=event_v2.Run(run.run_id if run else "", _engine()), job=job,
            producer=PRODUCER,
        )  # fmt: skip

    def _run_of(self, node_id: str, facets: dict[str, Any]) -> event_v2.Run:
        """The run of a node within the run: the same id in all its events."""
        parent = self.run.run_id if self.run else str(uuid.UUID(int=0))
        above = facet_v2.parent_run
        name = f"{self.manifest.project}.{self.run.command if self.run else 'build'}"
        link = above.ParentRunFacet(above.Run(parent), above.Job(self.namespace, name))
        own = str(uuid.uuid5(uuid.UUID(parent), node_id))
        return event_v2.Run(own, {"parent": link, **_engine(), **facets})

    def _of_model(
        self,
        state: State,
        node_id: str,
        at: str,
        *,
        rows: int | None = None,
        snapshot: int | None = None,
        facets: dict[str, Any] | None = None,
    ) -> event_v2.RunEvent:
        model = self.manifest.nodes[node_id]
        if not isinstance(model, Model):
            raise TypeError(node_id)
        return event_v2.RunEvent(
            eventTime=at,
            eventType=state,
            run=self._run_of(node_id, facets or {}),
            job=event_v2.Job(self.namespace, f"{self.manifest.project}.{model.name}", _job_facets(model)),
            inputs=[
                self._input(name, node)
                for node in dict.fromkeys(model.depends_on)
                for name in self.names.datasets_of(node)
            ],
            outputs=[self._output(model, rows, snapshot)],
            producer=PRODUCER,
        )

    def _input(self, name: DatasetName, node_id: str) -> event_v2.InputDataset:
        return event_v2.InputDataset(name.namespace, name.name, facets=self._dataset_facets(node_id, name))

    def _output(self, model: Model, rows: int | None, snapshot: int | None) -> event_v2.OutputDataset:
        (name,) = self.names.datasets_of(model.id)
        facets = self._dataset_facets(model.id, name)
        facets["columnLineage"] = self._column_lineage(model)
        if snapshot is not None:
            facets["version"] = facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet(str(snapshot))
        statistics = facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        counted: dict[str, Any] = {"outputStatistics": statistics(rowCount=rows)} if rows is not None else {}
        return event_v2.OutputDataset(name.namespace, name.name, outputFacets=counted, facets=facets)

    def _dataset_facets(self, node_id: str, name: DatasetName) -> dict[str, Any]:
        node = self.manifest.nodes[node_id]
        columns = node.columns if isinstance(node, Model | Source) else ()
        description = node.description if isinstance(node, Model | Source) else ""
        facets: dict[str, Any] = {"schema": facet_v2.schema_dataset.SchemaDatasetFacet([_field(c) for c in columns])}
        if description:
            facets["documentation"] = facet_v2.documentation_dataset.DocumentationDatasetFacet(description)
        if name.alias:
            catalog, short = name.alias
            identifier = facet_v2.symlinks_dataset.Identifier(catalog, short, "TABLE")
            facets["symlinks"] = facet_v2.symlinks_dataset.SymlinksDatasetFacet([identifier])
        return facets

    def _column_lineage(self, model: Model) -> Any:
        module = facet_v2.column_lineage_dataset
        fields = {}
        for column in model.columns:
            kind = module.Transformation("DIRECT", _DIRECT[column.derivation], column.sql)
            inputs = [i for origin in column.origins for i in self._field_of(origin, kind)]
            fields[column.name] = module.Fields(inputFields=inputs)
        rows = [
            item
            for origin in model.indirect
            for item in self._field_of(
                origin, module.Transformation("INDIRECT", _SUBTYPES.get(origin.kind, "CONDITIONAL"))
            )
        ]
        return module.ColumnLineageDatasetFacet(fields=fields, dataset=rows)

    def _field_of(self, origin: Origin, how: Any) -> Iterator[Any]:
        for name in self.names.datasets_of(origin.node):
            yield facet_v2.column_lineage_dataset.InputField(name.namespace, name.name, origin.column, [how])

    def _test(self, event: TestFinished, at: str) -> event_v2.RunEvent:
        test = self.manifest.nodes[event.node]
        if not isinstance(test, DataTest | UnitTest):
            raise TypeError(event.node)
        self.failed = self.failed or event.status.failed
        # A unit test reads its own rows, and no dataset.
        checked = self._assertions(test, event) if isinstance(test, DataTest) else []
        bad = isinstance(test, UnitTest) and event.status.failed
        return event_v2.RunEvent(
            eventTime=at,
            eventType=State.FAIL if bad else State.COMPLETE,
            run=self._run_of(event.node, {}),
            job=event_v2.Job(
                self.namespace, f"{self.manifest.project}.{test.name}", {"jobType": _job_type("BATCH", "TEST")}
            ),
            inputs=checked,
            producer=PRODUCER,
        )

    def _assertions(self, test: DataTest, event: TestFinished) -> list[event_v2.InputDataset]:
        module = facet_v2.data_quality_assertions_dataset
        assertion = module.Assertion(
            assertion=test.kind, success=event.status is Status.PASS, column=test.column, severity=test.severity.value,
            name=test.name,
        )  # fmt: skip
        checked: dict[str, Any] = {"dataQualityAssertions": module.DataQualityAssertionsDatasetFacet([assertion])}
        # A source of several topics is several datasets.
        names = self.names.datasets_of(test.model)
        return [event_v2.InputDataset(name.namespace, name.name, checked, facets={}) for name in names]


def _engine() -> dict[str, Any]:
    return {"processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet(__version__, "headrace")}


def _job_type(processing: str, kind: str) -> Any:
    return facet_v2.job_type_job.JobTypeJobFacet(processing, "SPARK", kind)


def _job_facets(model: Model) -> dict[str, Any]:
    facets = {
        "jobType": _job_type("STREAMING" if model.streaming else "BATCH", "MODEL"),
        "sql": facet_v2.sql_job.SQLJobFacet(model.sql, "spark"),
        "documentation": facet_v2.documentation_job.DocumentationJobFacet(
            model.description or format_values.summary(model)
        ),
    }
    if model.tags:
        module = facet_v2.tags_job
        tags = [module.TagsJobFacetFields(tag, "true", "HEADRACE") for tag in model.tags]
        facets["tags"] = module.TagsJobFacet(tags)
    return facets


def _field(column: Column) -> Any:
    module = facet_v2.schema_dataset
    return module.SchemaDatasetFacetFields(column.name, column.type, column.description or None)
