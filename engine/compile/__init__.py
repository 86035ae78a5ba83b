"""Stage 2: Jinja, SQL, windows, the graph. Knows neither Spark nor catalogs."""

from engine.compile.declarations.catalog_config import Catalog
from engine.compile.declarations.target import Target
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import (
    DataTest,
    Input,
    Manifest,
    Model,
    Node,
    Severity,
    Source,
    Watermark,
)
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import (
    Expectation,
    OnFail,
    OnNull,
    OnSchemaChange,
    OnUpstreamDelete,
    Operation,
    OutputMode,
    Overwrite,
    PersistDocs,
    Publish,
    StateProvider,
    Trigger,
    TriggerKind,
    Write,
)
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.compile.pipeline.compile_project import Compiled, compile_project
from engine.relations import Partition, Relation, SortColumn

__all__ = [
    "Catalog",
    "Compiled",
    "DataTest",
    "Expectation",
    "Exposure",
    "Input",
    "Manifest",
    "Materialized",
    "Model",
    "Node",
    "OnFail",
    "OnNull",
    "OnSchemaChange",
    "OnUpstreamDelete",
    "Operation",
    "OutputMode",
    "Overwrite",
    "Partition",
    "PersistDocs",
    "Publish",
    "Relation",
    "Severity",
    "Sink",
    "SortColumn",
    "Source",
    "StateProvider",
    "Target",
    "Trigger",
    "TriggerKind",
    "UnitTest",
    "Watermark",
    "Write",
    "compile_project",
]
