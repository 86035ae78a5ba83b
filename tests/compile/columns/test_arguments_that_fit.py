"""Expressions with each type in each place: what Spark's analyser said, and what compile says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import bind
from engine.compile.output.clause_checks import misplaced_calls
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.streaming.parse_statement import parse
from tests.compile.columns.asked import answered_otherwise
from tests.lab import LabSession

TYPES = {
    "id": "string", "n": "int", "b": "bigint", "d": "double", "dc": "decimal(10,2)", "ok": "boolean", "dy": "date",
    "ts": "timestamp", "ntz": "timestamp_ntz", "bin": "binary", "tags": "array<string>", "nums": "array<int>",
    "m": "map<string,int>", "item": "struct<name:string,price:double>", "v": "variant", "f": "float",
    "sm": "smallint", "gap": "interval day to second", "mon": "interval year to month",
    "rows": "array<struct<a:int,b:string>>", "dcc": "decimal(20,4)", "nul": "void",
}  # fmt: skip
TEXT = (Path(__file__).parent / "fixtures" / "refused_arguments.txt").read_text(encoding="utf-8")
_PLACE = re.compile(r"(?<![\w'])_(?!\w)")


def asked() -> Iterator[tuple[str, bool]]:
    """Queries, and whether Spark refuses them."""
    for line in TEXT.splitlines():
        if line and not line.startswith("#"):
            form, _, names = line.rpartition(" |")
            refused = set(names.split())
            for name in TYPES:
                yield f"select {_PLACE.sub(name, form)} as x from t", name in refused


ASKED = list(asked())


def faults(sql: str) -> list[str]:
    tree = parse(sql).tree
    assert tree is not None, sql
    bound = bind(tree, {"t": InputColumns("model.t", tuple(TYPES.items()))}, {}, sql)
    found = bound.columns
    missing = [f"no column {name.name}" for name in found.unresolved]
    return [
        *missing,
        *(fault.message for fault in (*found.faults, *misplaced_calls(QueryNodes.of_tree(tree), bound.noted.key_of))),
    ]


@pytest.mark.slow
def test_compile_refuses_the_types_that_spark_refuses() -> None:
    different = {sql: told for sql, refused in ASKED if bool(told := faults(sql)) != refused}
    assert different == {}
    assert len(ASKED) > 9_000


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_says_so_still(lab_session: LabSession) -> None:
    assert answered_otherwise(lab_session.spark, TYPES, ASKED[::50]) == []
