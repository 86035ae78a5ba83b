"""Batch tables refreshed from what changed, beside the same tables computed in full, in one run.

    python -m benchmarks.incremental [--rows 1000000,10000000] [--rounds 3] [--tables by_day,..]

One table of orders, merged by its key and partitioned by day (100 days); tables over it, each twice:
`refresh: auto` and `refresh: full`. One of them is a log of changes, which with `full` compares all rows.

After each change the orders are built, then each pair, one after the other in
changing order, each by a command of its own, all in one process that keeps its Java. Seconds are those of the table in
the build's own report. What the least table costs is measured beside them: one row that reads nothing.
Results are kept as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._commands import keep
from engine.api.warm_session import WarmSession
from engine.cli.main import invoke
from engine.runtime.build import sessions_from

_DAYS = 100
_SCHEMA = "id bigint, seq int, at timestamp, customer bigint, country string, amount double, note string"
_PROJECT = "name: bench\ntargets:\n  dev: {schema: main, spark: {master: 'local[2]', driver_memory: 4g}}\n"
_SOURCE = f"""\
sources:
  - name: shop
    tables:
      - {{name: orders, format: parquet, path: landing, schema: "{_SCHEMA}"}}
"""
_ORDERS = """\
/*---
streams: {shop.orders: {max_files_per_trigger: 1000}}
unique_key: id
sequence_by: seq
partition_by: [day(at)]
---*/
select * from {{ source('shop', 'orders') }}
"""
_BY_DAY = """\
select date_trunc('day', at) as day, country, count(*) as n, sum(amount) as total
from {{ ref('orders') }} group by 1, 2"""
_BY_CUSTOMER = "select customer, count(*) as n, sum(amount) as total from {{ ref('orders') }} group by customer"
_RANKED_BY_DAY = """\
select id, date_trunc('day', at) as day, country, amount,
    row_number() over (partition by date_trunc('day', at), country order by amount desc, id) as place
from {{ ref('orders') }}"""
# Header and query.
_MODELS = {
    "by_day": ("partition_by: [day(day)]", _BY_DAY),
    "by_customer": ("", _BY_CUSTOMER),
    "ranked_by_day": ("partition_by: [day(day)]", _RANKED_BY_DAY),
    "changes": ("history: changes\nunique_key: id", "select id, customer, amount from {{ ref('orders') }}"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to the orders before a build.

    Attributes:
        work: in words.
        tables: those whose refresh is looked at.
        part: of the rows of the last day that change.
        column: that changes.
    """

    work: str
    tables: tuple[str, ...]
    part: float
    column: str


_ONE_ROW = "select 1 as one\n"
_SKIPPED = ("by_day", "by_customer", "ranked_by_day")
CHANGES = (
    Change("a column that is not read, on one day", (*_SKIPPED, "changes"), 0.5, "note"),
    Change("amounts of one day", ("by_day", "ranked_by_day", "changes"), 0.1, "amount"),
)


@dataclass(frozen=True, slots=True)
class Result:
    """A table after a change, both ways.

    Attributes:
        rows: of the orders.
        work: what had changed.
        table: that was built.
        said: of the refresh in the build's line.
        seconds: refreshed, the median.
        full: seconds in full, the median.
        ratio: the median of full by refreshed.
    """

    rows: int
    work: str
    table: str
    said: str
    seconds: float
    full: float
    ratio: float


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tables", default=",".join(_MODELS))
    chosen = parser.parse_args()
    tables = frozenset(chosen.tables.split(","))
    results: list[Result] = []
    for rows in map(int, chosen.rows.split(",")):
        with tempfile.TemporaryDirectory(prefix="incremental") as folder, _warm(Path(folder), tables):
            for result in _measured(Path(folder), rows, chosen.rounds, tables):
                print(json.dumps({name: getattr(result, name) for name in Result.__slots__}), flush=True)
                results.append(result)
    keep("incremental", results, chosen.rounds)


@contextmanager
def _warm(root: Path, tables: frozenset[str]) -> Iterator[None]:
    """The project with some tables, and a Java that its commands share."""
    for name, text in {"project.yml": _PROJECT, "sources/shop.yml": _SOURCE, "models/orders.sql": _ORDERS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for name, (header, sql) in ((name, _MODELS[name]) for name in sorted(tables)):
        for way in ("auto", "full"):
            lines = "\n".join(filter(None, ["/*---", f"refresh: {way}", header, "---*/", sql]))
            (root / f"models/{name}_{way}.sql").write_text(lines + "\n", encoding="utf-8")
    (root / "models/one_row.sql").write_text(_ONE_ROW, encoding="utf-8")
    (root / "landing").mkdir()
    with WarmSession(lambda reason: print(reason, file=sys.stderr)) as session, sessions_from(session.run):
        yield


def _measured(root: Path, rows: int, rounds: int, tables: frozenset[str]) -> Iterator[Result]:
    _land(root, 0, rows, range(_DAYS), 1.0, "")
    _build(root)
    number = 0
    one_row: list[float] = []
    for change in CHANGES:
        looked_at = [table for table in change.tables if table in tables]
        if not looked_at:
            continue
        took: dict[str, list[tuple[float, float]]] = {table: [] for table in looked_at}
        said: dict[str, str] = {}
        for turn in range(rounds):
            number += 1
            _land(root, number, rows, range(_DAYS - 1, _DAYS), change.part, change.column)
            _build(root, "orders")
            for table in looked_at:
                found = _build(root, *sorted((f"{table}_auto", f"{table}_full"), reverse=bool(turn % 2)))
                took[table].append((found[f"{table}_auto"]["seconds"], found[f"{table}_full"]["seconds"]))
                said[table] = found[f"{table}_auto"]["note"] or found[f"{table}_auto"]["message"]
            one_row.append(_build(root, "one_row", full=True)["one_row"]["seconds"])
            # What is not looked at is brought up to date, so that the next change is the only one.
            _build(root)
        for table, pairs in took.items():
            seconds, full = (round(statistics.median(column), 3) for column in zip(*pairs, strict=True))
            ratio = round(statistics.median(b / a for a, b in pairs), 2)
            yield Result(rows, change.work, table, said[table], seconds, full, ratio)
    least = round(statistics.median(one_row), 3)
    yield Result(rows, "all of it", "one_row", "", least, least, 1.0)


def _build(root: Path, *models: str, full: bool = False) -> dict[str, Any]:
    """Build, and return what was said of each table."""
    found: dict[str, Any] = {}
    for wanted in [models] if len(models) < 2 else [(one,) for one in models]:
        selection = ["-s", *wanted] if wanted else []
        selection += ["--full-refresh"] if full else []
        printed = _engine(root, "build", *selection, "--log-format", "json")
        events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        found |= {e["node"].removeprefix("model."): e for e in events if e["event"] == "ModelFinished"}
    return found


def _engine(root: Path, *arguments: str) -> str:
    """What a command prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = invoke([*arguments, "--project-dir", str(root)])
    if code:
        sys.exit(out.getvalue()[-3000:] + err.getvalue()[-3000:])
    return out.getvalue()


def _land(root: Path, number: int, rows: int, days: range, part: float, column: str) -> None:
    """Write a file for each day: all its orders, or the first part of them with other values."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    per_day = rows // _DAYS
    folder = root / "landing"
    for day in days:
        ids = pa.array(range(day * per_day, day * per_day + max(1, int(per_day * part))), pa.int64())
        count = len(ids)
        first = 1_704_067_200_000_000 + day * 86_400_000_000
        step = 86_400_000_000 // per_day
        at = pa.array([first + row * step for row in range(count)], pa.timestamp("us", tz="UTC"))
        amount = pc.multiply(
            pc.cast(pc.bit_wise_and(ids, 1023), pa.float64()), 1.5 + (number if column == "amount" else 0)
        )
        note = pa.array([f"note {number if column == 'note' else 0}"] * count)
        country = pa.array([f"c{row % 40}" for row in range(count)])
        values = [ids, pa.array([number] * count, pa.int32()), at, pc.divide(ids, 20), country, amount, note]
        names = [field.split()[0] for field in _SCHEMA.split(", ")]
        hidden = folder / f"_{number:04}-{day:03}.parquet"
        parquet.write_table(pa.table(dict(zip(names, values, strict=True))), hidden)
        hidden.rename(folder / hidden.name[1:])


if __name__ == "__main__":
    main()
