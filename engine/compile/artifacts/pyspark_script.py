"""The stream of a model as a PySpark script, for people who want to see what happens.

It writes by Iceberg's own streaming sink instead of the engine's writer: no markers, no checks, no tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from engine.compile.nodes.manifest import Input, Manifest, Model, Source
from engine.sources import KINDS, limited


def script(model: Model, manifest: Manifest) -> str:
    """The script of a streaming model; empty if it is none, or if it or a source of it is wrong."""
    if not model.streaming or not model.sql or model.broken or _unreadable(model, manifest):
        return ""
    lines = [
        f"# The query that `engine build` runs for {model.relation}, without its markers, checks and tests.",
        "# Run it in the project's folder, in a session that has the Iceberg catalog.",
        "from pyspark.sql import SparkSession, functions",
        "",
        "spark = SparkSession.builder.getOrCreate()",
        "",
    ]
    for number, item in enumerate(model.inputs, 1):
        if not item.stream and not isinstance(manifest.nodes[item.node], Source):
            continue
        lines += [*_input(item, manifest, f"input_{number}"), ""]
    lines += [
        f'result = spark.sql("""\n{_escaped(model.sql)}\n""")',
        "query = (",
        f'    result.writeStream.format("iceberg").outputMode("{model.write.output_mode}")',
        "    .trigger(availableNow=True)",
        f'    .option("checkpointLocation", {_text(f"checkpoints/{model.name}")})',
        f"    .toTable({_text(str(model.relation))})",
        ")",
        "query.awaitTermination()",
    ]
    return "\n".join(lines) + "\n"


def _unreadable(model: Model, manifest: Manifest) -> bool:
    nodes = (manifest.nodes[item.node] for item in model.inputs)
    return any(isinstance(node, Source) and node.broken for node in nodes)


def _input(item: Input, manifest: Manifest, name: str) -> Iterator[str]:
    node = manifest.nodes[item.node]
    yield f"{name} = ("
    if isinstance(node, Source):
        spec = limited(node.spec, item.max_files_per_trigger)
        yield from (f"    {line}" for line in KINDS[spec.format].script(spec, stream=item.stream))
    elif isinstance(node, Model):
        yield f'    spark.readStream.format("iceberg").load({_text(str(node.relation))})'
    mark = item.watermark if item.stream else None
    if mark is not None and mark.expression is not None:
        yield f"    .withColumn({_text(mark.column)}, functions.expr({_text(mark.expression)}))"
    if mark is not None:
        yield f"    .withWatermark({_text(mark.column)}, {_text(mark.delay)})"
    if item.stream and item.dedup:
        yield f"    .dropDuplicatesWithinWatermark({json.dumps(list(item.dedup))})"
    yield ")"
    yield f"{name}.createOrReplaceTempView({_text(item.view.strip('`'))})"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _escaped(sql: str) -> str:
    # Python reads a carriage return as the end of a line, and no NUL at all.
    text = sql.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return text.replace("\r", "\\r").replace("\0", "\\x00")
