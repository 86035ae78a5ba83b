"""`engine start` runs and maintains, and another process works on its tables with Iceberg's own procedures meanwhile."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.live import status_file
from engine.spark.exceptions import spark_exceptions
from tests.cli.processes import engine
from tests.cli.test_start import Starting
from tests.lab import EVENTS, Lab, event

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

STREAM = "/*---\nstreams: [shop.events]\n{more}---*/\nselect id, kind, amount from {{{{ source('shop', 'events') }}}}\n"
MODELS = {
    "paid": STREAM.format(more=""),
    "latest": STREAM.format(more="unique_key: kind\nsequence_by: id\n"),
    "copied": "/*---\nstreams: [paid]\n---*/\nselect id, amount from {{ ref('paid') }}\n",
    "kinds": "select kind, count(*) as n from {{ ref('paid') }} group by kind\n",
}
FILES, ROWS = 14, 3
PROCEDURES = (
    "rewrite_data_files(table => '<table>', options => map('rewrite-all', 'true'))",
    "rewrite_manifests(table => '<table>')",
    # What streams have not read stays.
    "expire_snapshots(table => '<table>', older_than => timestamp '2100-01-01 00:00:00', retain_last => 6)",
    "rewrite_position_delete_files(table => '<table>')",
)
STATEMENTS = (
    "alter table lake.<table> set tblproperties ('write.parquet.compression-codec' = 'gzip')",
    "alter table lake.<table> alter column amount comment 'in euros'",
    "alter table lake.<table> create or replace tag others",
)


@dataclass(slots=True)
class Others:
    """What another process does to the tables, one thing after the other."""

    lab: Lab
    done: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)

    def sql(self, text: str, table: str = "") -> list[Any]:
        assert self.lab.session is not None
        spark = self.lab.session.spark.newSession()
        found: list[Any] = spark.sql(text.replace("<table>", f"{self.lab.schema}.{table}")).collect()
        return found

    @contextmanager
    def working(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._work, args=(ended,), name="others")
        thread.start()
        yield
        ended.set()
        thread.join(600)

    def _work(self, ended: threading.Event) -> None:
        # Each at least once, on a slow machine too.
        while not ended.is_set() or len(self.done) < len(PROCEDURES) + len(STATEMENTS):
            for text in (*(f"call lake.system.{one}" for one in PROCEDURES), *STATEMENTS):
                what = text.split("(")[0].split("<table>")[-1].removeprefix("call lake.system.").strip()
                for table in ("paid", "latest"):
                    try:
                        self.sql(text, table)
                    except spark_exceptions() as error:
                        # The table was changed by a turn at the same moment: Iceberg rejects this.
                        is_conflict = "org.apache.iceberg.exceptions." in str(error)
                        self.conflicts[what if is_conflict else str(error)] += 1
                    else:
                        self.done[what] += 1


def rows_of(first: int, files: int) -> list[dict[str, Any]]:
    return [
        event(number, kind="abc"[number % 3], amount=float(number)) for number in range(first, first + ROWS * files)
    ]


def expected(count: int) -> dict[str, set[tuple[Any, ...]]]:
    """The rows of all tables after so many records."""
    kinds = Counter("abc"[number % 3] for number in range(count))
    newest = {"abc"[number % 3]: number for number in range(count)}
    return {
        "paid": {(number, "abc"[number % 3], float(number)) for number in range(count)},
        "latest": {(number, kind, float(number)) for kind, number in newest.items()},
        "copied": {(number, float(number)) for number in range(count)},
        "kinds": set(kinds.items()),
    }


def rows(lab: Lab, name: str) -> set[tuple[Any, ...]]:
    columns = {"paid": "id kind amount", "latest": "id kind amount", "copied": "id amount", "kinds": "kind n"}[name]
    found = [tuple(row[column] for column in columns.split()) for row in lab.rows(name)]
    assert len(set(found)) == len(found), f"{name} has rows twice"
    return set(found)


def nodes(lab: Lab) -> dict[str, Any]:
    found = status_file.read(lab.root / "target")
    return {node["name"]: node for node in found["nodes"]} if found is not None else {}


def settled(lab: Lab, *names: str) -> bool:
    """Whether some models have read everything, and nothing is wrong with them."""
    known = nodes(lab)
    return all(
        name in known
        and known[name]["health"] == "healthy"
        and known[name]["state"] == "idle"
        and all(lag["count"] == 0 for lag in known[name]["lag"])
        for name in names
    )


@pytest.fixture
def started(lab: Lab) -> Iterator[Starting]:
    lab.write("sources/shop.yml", EVENTS)
    for name, text in MODELS.items():
        lab.model(name, text)
    lab.land("first", rows_of(0, 1))
    one = Starting(lab.root, "--maintain-after", "3")
    yield one
    one.close()


def right(lab: Lab, count: int) -> Callable[[], bool]:
    """Whether the rows of all tables are those of so many records, and the status says that all is well."""
    return lambda: settled(lab, *MODELS) and all(rows(lab, name) == wanted for name, wanted in expected(count).items())


def test_compaction_expiry_tags_and_properties_of_others_change_no_row(lab: Lab, started: Starting) -> None:
    others = Others(lab)
    started.until(right(lab, ROWS))
    with others.working():
        for number in range(1, FILES):
            lab.land(f"more{number}", rows_of(ROWS * number, 1))
            time.sleep(1.5)
    started.until(right(lab, ROWS * FILES))
    assert set(others.conflicts) <= set(others.done), others.conflicts
    assert len(others.done) == len(PROCEDURES) + len(STATEMENTS), others.done
    assert nodes(lab)["paid"]["rows_in"] == ROWS * FILES
    assert engine(lab.root, "status").returncode == 0
