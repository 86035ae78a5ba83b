"""The rows that a build makes of cases, and those of Spark's own reader, against what they should be."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.lab import Lab
from tests.values.cases import ATOMIC, Case, schema, types
from tests.values.oracle import BAD, RANGES

_MODEL = """/*---
streams: {{values.{way}: {{on_bad_record: quarantine}}}}
---*/
select id, {columns} from {{{{ source('values', '{way}') }}}}
"""
# What each type is read as, in a text from which Python has the same value again.
_AS_TEXT = {
    # The text of a float has as many digits as tell it from its neighbours.
    "float": "cast(cast({} as double) as string)",
    "binary": "hex({})",
    "date": "cast(unix_date({}) as string)",
    "timestamp": "cast(unix_micros({}) as string)",
    "timestamp_ntz": "cast(unix_micros(cast({} as timestamp)) as string)",
}
_BACK: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys((*RANGES, "date", "timestamp", "timestamp_ntz"), int),
    **dict.fromkeys(("float", "double"), float),
    "decimal": Decimal,
    "boolean": lambda text: text == "true",
    "string": str,
    "binary": str.lower,
}


@dataclass(slots=True)
class Count:
    """How many cases of each way were compared, and what Spark's reader makes of them."""

    ways: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    by_spark: Counter[str] = field(default_factory=Counter)


def declare(lab: Lab, ways: Iterable[str], topic: str = "") -> None:
    """Write a project with a source and a model for each way."""
    tables = []
    for way in ways:
        where = {
            "kafka": f"format: kafka\n        connection: main\n        topic: {topic}",
            "folder": "format: json\n        path: landing/folder",
        }.get(way, f"format: {way}\n        path: landing/{way}")
        more = "\n        max_bad_records: 100%\n"
        tables.append(f'      - name: {way}\n        {where}\n        schema: "{schema(way)}"{more}')
        columns = (f"{_as_text(type_, f'v{number}')} as v{number}" for number, type_ in enumerate(types(way)))
        lab.model(way, _MODEL.format(way=way, columns=", ".join(columns)))
    lab.write("sources/values.yml", "sources:\n  - name: values\n    tables:\n" + "".join(tables))


def land(lab: Lab, cases: Iterable[Case]) -> None:
    """Write the files of cases; those of Kafka are sent by the caller."""
    lines: dict[Path, list[str]] = {}
    for case in cases:
        folder = lab.root / "landing" / case.way
        place = folder / case.folder if case.way == "folder" else folder
        lines.setdefault(place / f"a.{'csv' if case.way == 'csv' else 'json'}", []).append(case.record)
    for path, records in lines.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        header = [",".join(["id", *(f"v{i}" for i in range(len(ATOMIC)))])] if path.suffix == ".csv" else []
        path.write_text("".join(f"{line}\n" for line in [*header, *records]), encoding="utf-8")


def _as_text(type_: str, column: str) -> str:
    if "<" in type_:
        # Values of structs are not in the table, where they are NULL.
        return f"to_json({column}, map('ignoreNullFields', 'false'))"
    return _AS_TEXT.get(type_, "cast({} as string)").format(column)


def built(lab: Lab, way: str) -> dict[int, Any]:
    """What a build made of each case: a row of texts, or BAD."""
    found: dict[int, Any] = {row["id"]: row for row in lab.rows(way)}
    if lab.table(f"{way}__quarantine") is not None:
        for row in lab.rows(f"{way}__quarantine"):
            text = bytes(row["raw"]).decode("utf-8", "surrogatepass")
            number = re.match(r'\{"id": (\d+)|(\d+),', text)
            assert number is not None, text
            place = int(number[1] or number[2])
            assert place not in found, f"case {place} is a row and a bad record, or twice one of them"
            found[place] = BAD
    return found


def faults(cases: Iterable[Case], found: Mapping[str, Mapping[int, Any]], count: Count) -> list[str]:
    """Cases that are not as they should be."""
    said = []
    for case in cases:
        count.ways[case.way] += 1
        expected = case.expected
        count.bad += expected is BAD
        if case.number not in found[case.way]:
            said.append(f"{_shown(case)} is lost")
        elif not same(got := value(case, found[case.way][case.number]), expected, case.type):
            said.append(f"{_shown(case)} is {got!r} and should be {expected!r}")
    return said


def _shown(case: Case) -> str:
    return f"{case.way}: {case.type}: {case.folder if case.way == 'folder' else case.record}"


def value(case: Case, row: Any) -> Any:
    """The value of a case in a row of texts."""
    text = row if row is BAD else row[f"v{case.column}"]
    if text is BAD or text is None:
        return text
    if "<" in case.type:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return _BACK[case.type.partition("(")[0]](text)


def same(got: Any, expected: Any, type_: str) -> bool:
    """Whether two values are one; those of nested types came through JSON."""
    if got is BAD or expected is BAD:
        return got is expected
    if "<" in type_:
        return _same_inside(got, expected)
    if isinstance(expected, float):
        return isinstance(got, float) and (got == expected or (math.isnan(got) and math.isnan(expected)))
    return type(got) is type(expected) and bool(got == expected)


def _same_inside(got: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(_same_inside, got, expected))
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(_same_inside(got[key], one) for key, one in expected.items())
    if isinstance(expected, float):
        return got is not None and same(float(got), expected, "double")
    return bool(got == expected)


def by_spark(spark: Any, lab: Lab, cases: Iterable[Case], count: Count) -> None:
    """Count what Spark's own reader of files makes of the cases in files."""
    chosen = [case for case in cases if case.way in {"json", "csv"}]
    for way in ("json", "csv"):
        columns = [f"{_as_text(type_, f'v{number}')} as v{number}" for number, type_ in enumerate(types(way))]
        options = {"header": "true", "escape": '"'} if way == "csv" else {}
        reader = spark.read.options(columnNameOfCorruptRecord="bad", **options)
        frame = reader.schema(f"{schema(way)}, bad string").format(way).load(f"file:{lab.root}/landing/{way}")
        rows = {row["id"]: row.asDict() for row in frame.selectExpr("id", "bad", *columns).collect()}
        for case in chosen:
            if case.way == way:
                count.by_spark[f"{way}: {_by_spark(case, rows.get(case.number))}"] += 1


def _by_spark(case: Case, row: Mapping[str, Any] | None) -> str:
    expected = case.expected
    is_bad = row is None or row["bad"] is not None
    if is_bad:
        return "rightly bad" if expected is BAD else "bad, and it is a value"
    if expected is BAD:
        return "another value, or NULL, for what is none"
    return "as it is written" if same(value(case, row), expected, case.type) else "another value"
