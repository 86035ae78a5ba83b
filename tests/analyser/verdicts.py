"""The two verdicts on a query: that of compile, and that of Spark's analyser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.compile import compile_project
from engine.project import load_project
from tests.analyser.tables import TABLES, schema
from tests.project.small_projects import PROJECT

# What a table needs of its columns, beyond what the analyser asks.
OWN = {"column-storage", "duplicate-name"}
# What compile says of a query whether it reads streams or not; rules of streams are compared by tests/fuzz.
ANALYSED = {
    "agg-alias-key", "agg-not-grouped", "ambiguous-column", "argument-count", "argument-constant", "misplaced-expression",
    "column-count", "sql-syntax", "subquery-on-stream", "subquery-place", "type-mismatch", "union-columns", "unknown-column",
    "unknown-function",
}  # fmt: skip
# Spark's analyser itself failed.
BROKEN = "BROKEN"
_TABLE = re.compile(r"\[\[(\w+)\]\]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one of the two says of a query.

    Attributes:
        refused: the code of our error or Spark's error class; empty if the query is accepted.
        text: the message.
        columns: name and type of each column if it is accepted; None for what is not known.
        place: line and column of our error; None if it has none, or lies outside the query.
    """

    refused: str
    text: str = ""
    columns: tuple[tuple[str, str | None], ...] | None = None
    place: tuple[int, int] | None = None


def compiled(folder: Path, queries: Sequence[str], *, streams: bool = False) -> list[Verdict]:
    """What compile says of each query, all of them as models of one project; `streams`: as streaming tables."""
    return compiled_texts(folder, [model(sql, streams=streams) for sql in queries], _sources(), streams=streams)


def compiled_texts(folder: Path, texts: Sequence[str], sources: str, *, streams: bool = False) -> list[Verdict]:
    """What compile says of each of these models; `sources` is the file that declares what they read."""
    _write(folder, texts, sources)
    manifest = compile_project(load_project(folder), env={}).manifest
    models = {model.name: model for model in manifest.models}
    errors: dict[str, Any] = {}
    for found in manifest.errors:
        if found.code not in OWN and (not streams or found.code in ANALYSED):
            errors.setdefault(found.node or "", found)
    verdicts = []
    for number, text in enumerate(texts):
        error = errors.get(f"m{number}") or errors.get(f"model.m{number}")
        if error is not None:
            verdicts.append(Verdict(error.code, error.message, place=_place(error.location, text)))
        else:
            columns = tuple((c.name, c.type) for c in models[f"m{number}"].columns)
            verdicts.append(Verdict("", columns=columns if not streams else None))
    return verdicts


def _sources() -> str:
    tables = "".join(
        f'      - {{name: {name}, format: json, path: landing/{name}, schema: "{schema(name)}"}}\n' for name in TABLES
    )
    return f"sources:\n  - name: shop\n    tables:\n{tables}"


def _write(folder: Path, texts: Sequence[str], sources: str) -> None:
    (folder / "models").mkdir(parents=True, exist_ok=True)
    (folder / "sources").mkdir(exist_ok=True)
    (folder / "project.yml").write_text(PROJECT)
    (folder / "sources/shop.yml").write_text(sources)
    for number, text in enumerate(texts):
        (folder / f"models/m{number}.sql").write_text(text)


def model(sql: str, *, streams: bool = False) -> str:
    """The query as a model, of which `streams` reads every table as a stream."""
    listed = ", ".join(f"shop.{name}" for name in dict.fromkeys(_TABLE.findall(sql))) if streams else ""
    header = f"/*---\nstreams: [{listed}]\n---*/\n" if listed else ""
    return header + _TABLE.sub(r"{{ source('shop', '\1') }}", sql)


def plain(sql: str) -> str:
    """The query as Spark reads it."""
    return _TABLE.sub(r"\1", sql)


def _place(location: Any, text: str) -> tuple[int, int] | None:
    lines, first = text.splitlines(), 3 if text.startswith("/*---") else 0
    if location is None or not location.line or not location.column or not first < location.line <= len(lines):
        return None
    line = lines[location.line - 1]
    return (location.line, location.column) if location.column <= len(line) + 1 else None


def spark_verdict(spark: Any, sql: str) -> Verdict:
    """What the parser and analyser of a session say of a query."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        fields = spark.sql(sql).schema.fields
    except PySparkException as error:
        kind = error.getCondition() or type(error).__name__
        return Verdict(kind, " ".join(str(error).split())[:300])
    except Py4JJavaError as error:
        return Verdict(BROKEN, str(error.java_exception)[:300])
    return Verdict("", columns=tuple((f.name, f.dataType.simpleString()) for f in fields))


@dataclass(frozen=True, slots=True)
class Analyser:
    """Spark's analyser over empty views of the tables, or of streams of files in a folder."""

    spark: Any
    streams: Path | None = None

    def __post_init__(self) -> None:
        for name in TABLES:
            if self.streams is None:
                frame = self.spark.createDataFrame([], schema(name))
            else:
                (self.streams / name).mkdir(parents=True)
                frame = self.spark.readStream.schema(schema(name)).json(str(self.streams / name))
            frame.createOrReplaceTempView(name)

    def verdict(self, sql: str) -> Verdict:
        """What Spark's parser and analyser say of a query."""
        return spark_verdict(self.spark, plain(sql))

    def close(self) -> None:
        """Drop the views."""
        for name in TABLES:
            self.spark.catalog.dropTempView(name)
