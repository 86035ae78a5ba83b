"""Stage 2: Jinja, SQL, windows, the graph. Knows neither Spark nor catalogs."""

from engine.compile.compiler import Compiled, compile_project
from engine.compile.manifest import (
    DataTest,
    Input,
    Manifest,
    Materialized,
    Model,
    Node,
    Partition,
    Relation,
    Severity,
    Source,
    Watermark,
    Write,
)
from engine.compile.target import Catalog, Target

__all__ = [
    "Catalog",
    "Compiled",
    "DataTest",
    "Input",
    "Manifest",
    "Materialized",
    "Model",
    "Node",
    "Partition",
    "Relation",
    "Severity",
    "Source",
    "Target",
    "Watermark",
    "Write",
    "compile_project",
]
