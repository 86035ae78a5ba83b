"""Operators, functions and casts with every type: what Spark's analyser said, and what compile says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import columns_of
from engine.compile.streaming.parse_statement import parse
from tests.compile.columns.asked import answered_otherwise
from tests.lab import LabSession

TYPES = {
    "id": "string", "n": "int", "b": "bigint", "d": "double", "dc": "decimal(10,2)", "ok": "boolean", "dy": "date",
    "ts": "timestamp", "ntz": "timestamp_ntz", "bin": "binary", "tags": "array<string>", "nums": "array<int>",
    "m": "map<string,int>", "item": "struct<name:string,price:double>", "v": "variant", "f": "float",
    "sm": "smallint", "gap": "interval day", "mon": "interval month", "span": "interval day to second",
    "rows": "array<struct<a:int>>",
}  # fmt: skip
PAIRED = [name for name in TYPES if name not in {"sm", "span", "rows"}]
RANKED = {"lag", "lead", "first_value", "last_value", "nth_value"}
TEXT = (Path(__file__).parent / "fixtures" / "refused_types.txt").read_text(encoding="utf-8")


def calls() -> Iterator[tuple[str, bool]]:
    """Queries, and whether Spark refuses them."""
    for line in TEXT.splitlines():
        if not line or line.startswith("#"):
            continue
        form, _, names = line.partition(":")
        refused = set(names.split())
        call = re.fullmatch(r"(\w+)\((.*)\) (\d+)", form)
        for name in TYPES if call else PAIRED:
            yield (called(call, name) if call else f"select {paired(form, name)} from t"), name in refused


def called(call: re.Match[str], name: str) -> str:
    arguments = re.findall(r"(?:[^,()]|\([^)]*\))+", call[2])
    arguments[int(call[3])] = name
    return f"select {call[1]}({', '.join(arguments)}){' over (order by n)' if call[1] in RANKED else ''} from t"


def paired(form: str, name: str) -> str:
    return re.sub(r"\b_(?=\)|$)", TYPES[name] if form.startswith("cast") else name, form)


ASKED = list(calls())


def faults(sql: str) -> list[str]:
    tree = parse(sql).tree
    assert tree is not None, sql
    return [
        fault.message
        for fault in columns_of(tree, {"t": InputColumns("model.t", tuple(TYPES.items()))}, {}, sql).faults
    ]


@pytest.mark.slow
def test_what_spark_takes_is_no_fault_and_most_of_what_it_refuses_is_one() -> None:
    told = {sql: faults(sql) for sql, _ in ASKED}
    assert [(sql, told[sql]) for sql, refused in ASKED if told[sql] and not refused] == []
    refused = [sql for sql, refused in ASKED if refused]
    found = [sql for sql in refused if told[sql]]
    assert len(ASKED) > 11_000
    assert len(found) / len(refused) > 0.85, sorted(set(refused) - set(found))[:50]


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_says_so_still(lab_session: LabSession) -> None:
    assert answered_otherwise(lab_session.spark, TYPES, ASKED[::40]) == []
