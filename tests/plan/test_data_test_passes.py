"""Which data tests need not run again, decided from the catalog and from listings: what they read makes the key."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engine.api import Project
from engine.compile import DataTest
from engine.node_ids import data_test_id
from engine.plan import Plan
from engine.plan.deployed.read_deployed import read_sources
from engine.plan.deployed.state_folder import table_state
from engine.plan.test_passes.known_passes import KnownPasses
from engine.state import ModelState, Phase
from tests.plan.test_unit_test_passes import write
from tests.projects import sources_yaml

pytestmark = pytest.mark.slow

PROJECT = "name: s\n"
SOURCES = sources_yaml(
    kinds={
        "format": "csv",
        "path": "landing/kinds",
        "schema": "kind string",
        "stream": False,
        "columns": {"kind": {"tests": ["unique"]}},
    },
    topic={"format": "rate", "columns": {"value": {"tests": ["not_null"]}}},
    orders={
        "format": "iceberg",
        "table": "others.orders",
        "schema": "id int",
        "columns": {"id": {"tests": ["not_null"]}},
    },
)
PAID = """/*---
materialized: table
columns: {id: {tests: [not_null, {expression: {expression: "> 0", name: positive, store_failures: true}}]}}
---*/
select 1 as id
"""
SEEN = """/*---
materialized: view
columns: {id: {tests: [unique]}}
---*/
select id from {{ ref('paid') }}
"""
FILES = {
    "project.yml": PROJECT,
    "sources/shop.yml": SOURCES,
    "landing/kinds/a.csv": "x\n",
    "models/paid.sql": PAID,
    "models/seen.sql": SEEN,
    "tests/few.sql": "select * from {{ ref('paid') }} where id > 100",
}
NOT_NULL, POSITIVE, SEEN_ONCE = (
    "test.not_null_paid_id.9bebb71ca0",
    "test.positive.7b4f14d10b",
    "test.unique_seen_id.cfef96dc43",
)
KINDS, TOPIC, ORDERS = (
    data_test_id(f"source_{kind}_shop_{table}_{column}", f"source.shop.{table}")
    for kind, table, column in (
        ("unique", "kinds", "kind"),
        ("not_null", "topic", "value"),
        ("not_null", "orders", "id"),
    )
)
OF_PAID = {NOT_NULL, POSITIVE, SEEN_ONCE, "test.few"}
_COLUMNS = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"


class LakeByHand:
    """Tables and views of a catalog, whose metadata tests change as another engine would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lake = root / ".engine/lake"
        self.made: dict[tuple[str, str], dict[str, Any]] = {}
        self._number = 0

    def table(self, schema: str, name: str, **changes: Any) -> None:
        """Write a table, or another version of one."""
        folder = self.lake / "warehouse" / schema / name
        fields = [{"id": 1, "name": "id", "type": "int", "required": False, "doc": "Its number."}]
        content = self.made.get((schema, name)) or {
            "format-version": 2,
            "table-uuid": str(uuid4()),
            "location": folder.as_uri(),
            "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
            "current-schema-id": 0,
            "snapshots": [_snapshot(1)],
            "current-snapshot-id": 1,
            "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        }
        self._publish(schema, name, folder, {**content, **changes}, "TABLE")

    def view(self, schema: str, name: str, **changes: Any) -> None:
        folder = self.lake / "warehouse" / schema / name
        version, other = (
            {"version-id": i, "schema-id": 0, "representations": [{"type": "sql", "sql": f"select {i} as id from x"}]}
            for i in (1, 2)
        )
        content = self.made.get((schema, name)) or {
            "view-uuid": str(uuid4()),
            "location": folder.as_uri(),
            "schemas": [{"schema-id": 0, "fields": []}],
            "versions": [version, other],
            "current-version-id": 1,
        }
        self._publish(schema, name, folder, {**content, **changes}, "VIEW")

    def drop(self, schema: str, name: str) -> None:
        del self.made[schema, name]
        with closing(sqlite3.connect(self.lake / "catalog.db")) as connection, connection:
            connection.execute("delete from iceberg_tables where table_name = ?", (name,))

    def _publish(self, schema: str, name: str, folder: Path, content: dict[str, Any], kind: str) -> None:
        self.made[schema, name] = content
        self._number += 1
        path = folder / "metadata" / f"v{self._number}.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        with closing(sqlite3.connect(self.lake / "catalog.db")) as connection, connection:
            connection.execute(f"create table if not exists iceberg_tables ({_COLUMNS})")
            connection.execute("delete from iceberg_tables where table_name = ?", (name,))
            row = ("lake", schema, name, path.as_uri(), None, kind)
            connection.execute("insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", row)


def _snapshot(number: int, schema: int = 0) -> dict[str, Any]:
    parent = {"parent-snapshot-id": number - 1} if number > 1 else {}
    summary = {"operation": "append"}
    return {"snapshot-id": number, "timestamp-ms": number, "summary": summary, "schema-id": schema, **parent}


def at(*numbers: int, **refs: int) -> dict[str, Any]:
    """A table whose main is at the last of some snapshots, with other branches."""
    main = {"main": {"snapshot-id": numbers[-1], "type": "branch"}}
    others = {name: {"snapshot-id": number, "type": "branch"} for name, number in refs.items()}
    every = sorted({*numbers, *refs.values()})
    return {"snapshots": [_snapshot(n) for n in every], "current-snapshot-id": numbers[-1], "refs": main | others}


def schema(*fields: tuple[int, str], number: int = 1, doc: str = "") -> dict[str, Any]:
    made = [{"id": i, "name": name, "type": "int", "required": False, "doc": doc} for i, name in fields]
    return {"schemas": [{"schema-id": number, "type": "struct", "fields": made}], "current-schema-id": number}


@pytest.fixture
def lake(tmp_path: Path) -> LakeByHand:
    write(tmp_path, FILES)
    made = LakeByHand(tmp_path)
    made.table("s", "paid")
    made.table("others", "orders")
    made.table("s_test_failures", "positive")
    made.view("s", "seen")
    _built(tmp_path, "seen")
    return made


def _built(root: Path, name: str) -> None:
    """Note a model as it is in its file as the one that was built last."""
    compiled = Project(root).compile()
    model = compiled.manifest.model(name)
    table_state(compiled.target, model).save(
        ModelState(str(model.relation), 1, Phase.PUBLISHED, fingerprint=model.fingerprint)
    )


def passes(root: Path) -> KnownPasses:
    project = Project(root)
    compiled = project.compile()
    assert compiled.manifest.errors == ()
    manifest = compiled.manifest
    sources = read_sources(manifest, compiled.target.place(root), manifest.order)
    kept = project._passes(compiled, project._versions(manifest))
    return KnownPasses(manifest, compiled.target, root, sources, kept)


def passed(lake: LakeByHand, during: Callable[[], object] = lambda: None) -> None:
    """What a run leaves in which all data tests passed."""
    known = passes(lake.root)
    tests = [test for node in known.manifest.order if isinstance(test := known.manifest.nodes[node], DataTest)]
    for test in tests:
        known.passed_at(test)
    during()
    for test in tests:
        known.ended(test, "2026-11-23T10:00:00+00:00", passed=True)
    known.save()


def counting(lake: LakeByHand) -> set[str]:
    known = passes(lake.root)
    return set(known.counting(known.manifest.order))


def plan(lake: LakeByHand) -> Plan:
    return Project(lake.root).plan()


def test_what_can_be_known_of_what_is_read_counts(lake: LakeByHand) -> None:
    assert counting(lake) == set()
    passed(lake)
    # Of a rate source nobody knows which rows it gives.
    assert counting(lake) == {*OF_PAID, KINDS, ORDERS}


CHANGES: dict[str, Callable[[LakeByHand], object]] = {
    "a new snapshot, by whomever": lambda lake: lake.table("s", "paid", **at(1, 2)),
    "the table dropped": lambda lake: lake.drop("s", "paid"),
    "the table dropped and recreated with a snapshot of the same id": lambda lake: (
        lake.drop("s", "paid"), lake.table("s", "paid")),
    "another name mapping": lambda lake: lake.table("s", "paid", properties={"schema.name-mapping.default": "[]"}),
    "a new column": lambda lake: lake.table("s", "paid", **schema((1, "id"), (2, "more"))),
    "a column that is dropped and added again": lambda lake: lake.table("s", "paid", **schema((2, "id"))),
    "a column of another type": lambda lake: lake.table("s", "paid", schemas=[
        {"schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}]),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_table_that_changed_is_tested_again_and_all_that_reads_it(lake: LakeByHand, what: str) -> None:
    passed(lake)
    CHANGES[what](lake)
    assert counting(lake) == {KINDS, ORDERS}


def test_a_tag_that_moved_counts_for_the_tests_that_may_read_it(lake: LakeByHand) -> None:
    lake.table("s", "paid", **at(1, audit=1))
    write(lake.root, {"tests/tagged.sql": "select * from {{ ref('paid') }} version as of 'audit' where id > 100"})
    passed(lake)
    assert counting(lake) >= {*OF_PAID, "test.tagged"}
    lake.table("s", "paid", **{**at(1, 2, audit=2), "current-snapshot-id": 1})
    lake.table("s", "paid", **at(1, audit=1))
    assert "test.tagged" in counting(lake)
    lake.table("s", "paid", **at(1, audit=2))
    assert counting(lake) & {*OF_PAID, "test.tagged"} == OF_PAID


def test_a_table_that_was_rolled_back_has_passed_as_it_is(lake: LakeByHand) -> None:
    passed(lake)
    lake.table("s", "paid", **at(1, 2))
    assert not OF_PAID & counting(lake)
    lake.table("s", "paid", **at(1))
    assert counting(lake) >= OF_PAID


def test_comments_and_properties_are_no_rows(lake: LakeByHand) -> None:
    passed(lake)
    lake.table("s", "paid", properties={"comment": "What was paid."}, **schema((1, "id"), doc="Another comment."))
    assert counting(lake) >= OF_PAID


def test_a_table_that_changed_while_it_was_tested_is_tested_again(lake: LakeByHand) -> None:
    passed(lake, during=lambda: lake.table("s", "paid", **at(1, 2)))
    assert counting(lake) == {KINDS, ORDERS}
    # Nobody knows which of the two it saw.
    lake.table("s", "paid", **at(1))
    assert counting(lake) == {KINDS, ORDERS}


def test_a_test_that_fails_has_not_passed_any_more(lake: LakeByHand) -> None:
    passed(lake)
    assert NOT_NULL in counting(lake)
    known = passes(lake.root)
    test = known.manifest.nodes[NOT_NULL]
    assert isinstance(test, DataTest)
    known.passed_at(test)
    known.ended(test, "2026-11-23T10:00:00+00:00", passed=False)
    known.save()
    assert NOT_NULL not in counting(lake)
    assert ORDERS in counting(lake), "the others are kept"


def test_tests_of_one_query_are_looked_at_before_it(lake: LakeByHand) -> None:
    known = passes(lake.root)
    first, second = (test for i in (NOT_NULL, "test.few") if isinstance(test := known.manifest.nodes[i], DataTest))
    known.passed_at(first, [first, second])
    lake.table("s", "paid", **at(1, 2))
    # Its turn comes after the commit, but what decides on it was read before.
    known.passed_at(second, [first, second])
    for test in (first, second):
        known.ended(test, "2026-11-23T10:00:00+00:00", passed=True)
    known.save()
    assert counting(lake) == set()


def test_a_source_is_the_files_that_are_there(lake: LakeByHand) -> None:
    passed(lake)
    new = lake.root / "landing/kinds/b.csv"
    new.write_text("y\n")
    assert KINDS not in counting(lake)
    new.unlink()
    assert KINDS in counting(lake)
    old = lake.root / "landing/kinds/a.csv"
    os.utime(old, (1, 1))
    assert KINDS not in counting(lake)
    passed(lake, during=lambda: new.write_text("y\n"))
    assert KINDS not in counting(lake), "a file came while it was read"


def test_how_a_source_is_read_counts(lake: LakeByHand) -> None:
    passed(lake)
    write(lake.root, {"sources/shop.yml": SOURCES.replace("format: csv", "format: csv, options: {sep: ';'}")})
    assert KINDS not in counting(lake)
    lake.table("others", "orders", **at(1, 2))
    assert counting(lake) == OF_PAID


def test_a_view_is_what_the_catalog_has_of_it_and_what_it_reads(lake: LakeByHand) -> None:
    passed(lake)
    assert SEEN_ONCE in counting(lake)
    # Somebody replaced it.
    lake.view("s", "seen", **{"current-version-id": 2})
    assert SEEN_ONCE not in counting(lake)
    lake.view("s", "seen", **{"current-version-id": 1})
    assert SEEN_ONCE in counting(lake)
    # Its file was edited; the catalog has the old one until it is built.
    write(lake.root, {"models/seen.sql": SEEN.replace("select id", "select id + 1 as id")})
    assert SEEN_ONCE not in counting(lake)
    passed(lake)
    assert SEEN_ONCE not in counting(lake), "what was tested is not what the file says"
    _built(lake.root, "seen")
    assert SEEN_ONCE not in counting(lake)


def test_a_view_that_reads_the_clock_is_tested_each_time(lake: LakeByHand) -> None:
    write(lake.root, {"models/seen.sql": SEEN.replace("select id", "select id, now() as at")})
    _built(lake.root, "seen")
    passed(lake)
    assert OF_PAID & counting(lake) == OF_PAID - {SEEN_ONCE}


OPTIONS = ("severity: warn", "warn_if: '> 1'", "error_if: '> 1'", "limit: 5", "where: id > 1")


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_a_test_count(lake: LakeByHand, option: str) -> None:
    passed(lake)
    assert NOT_NULL in counting(lake)
    write(lake.root, {"models/paid.sql": PAID.replace("not_null,", f"not_null: {{{option}}},")})
    assert NOT_NULL not in counting(lake)


def test_the_table_of_failing_rows_is_as_the_test_left_it(lake: LakeByHand) -> None:
    passed(lake)
    assert POSITIVE in counting(lake)
    # A run that failed, of other rows, left some.
    lake.table("s_test_failures", "positive", **at(1, 2))
    assert POSITIVE not in counting(lake)
    lake.drop("s_test_failures", "positive")
    assert POSITIVE not in counting(lake)


def test_a_test_that_reads_the_clock_runs_each_time(lake: LakeByHand) -> None:
    text = PAID.replace("not_null,", "not_null, {recency: {within: 1 day, name: recent}},")
    write(lake.root, {"models/paid.sql": text, "tests/few.sql": "select id from {{ ref('paid') }} where rand() > 2"})
    passed(lake)
    assert counting(lake) & {"test.recent.a8b7d0f5fd", "test.few"} == set()
    assert NOT_NULL in counting(lake)


def test_a_failure_is_forgotten(lake: LakeByHand) -> None:
    passed(lake)
    known = passes(lake.root)
    test = known.manifest.nodes[NOT_NULL]
    assert isinstance(test, DataTest)
    known.ended(test, "2026-11-23T11:00:00+00:00", passed=False)
    known.save()
    assert NOT_NULL not in counting(lake)
    assert POSITIVE in counting(lake)


def test_the_plan_has_a_test_as_unchanged_only_where_nothing_is_built_before_it(lake: LakeByHand) -> None:
    passed(lake)
    actions = plan(lake).actions
    assert actions[KINDS].unchanged
    assert "it passed at 2026-11-23T10:00:00+00:00" in actions[KINDS].reasons[0]
    # `paid` was not built by this project, and a view of it is no better known.
    assert not actions["model.paid"].unchanged
    assert {node: actions[node].unchanged for node in OF_PAID} == dict.fromkeys(OF_PAID)
    alone = Project(lake.root).plan(select="not_null_paid_id").actions
    assert list(alone) == [NOT_NULL]
    assert alone[NOT_NULL].unchanged


def test_staged_rows_are_decided_on_by_tests_that_run(lake: LakeByHand) -> None:
    write(lake.root, {"models/paid.sql": PAID.replace("materialized", "publish: on_tests_pass\nmaterialized")})
    lake.table("s", "paid", **at(1, engine_staged=2))
    passed(lake)
    assert not {NOT_NULL, POSITIVE, "test.few", SEEN_ONCE} & counting(lake)
    # They were published: what readers see now is what was tested.
    lake.table("s", "paid", **at(1, 2))
    assert {NOT_NULL, POSITIVE, "test.few"} <= counting(lake)


def test_rows_that_were_staged_with_other_columns_are_other_rows(lake: LakeByHand) -> None:
    write(lake.root, {"models/paid.sql": PAID.replace("materialized", "publish: on_tests_pass\nmaterialized")})
    # The column came behind the staged snapshot: a query of that by its id does not see it, one of main does.
    (added,) = schema((1, "id"), (2, "more"))["schemas"]
    lake.table("s", "paid")
    (first,) = lake.made["s", "paid"]["schemas"]
    columns = {"schemas": [first, added], "current-schema-id": 1}
    lake.table("s", "paid", **at(1, engine_staged=2), **columns)
    passed(lake)
    lake.table("s", "paid", **at(1, 2), **columns)
    assert not {NOT_NULL, POSITIVE, "test.few"} & counting(lake)


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def none(*_: object) -> None:
        raise AssertionError("Java was looked for")

    monkeypatch.setattr("engine.runtime.build.find_java", none)
    return


def test_tests_that_passed_end_without_java(lake: LakeByHand) -> None:
    passed(lake)
    chosen = [node.partition(".")[2] for node in (NOT_NULL, SEEN_ONCE, ORDERS)]
    results = Project(lake.root).test(chosen)
    assert {(r.node, r.status.value, r.passed_at) for r in results.results} == {
        (node, "pass", "2026-11-23T10:00:00+00:00") for node in (NOT_NULL, SEEN_ONCE, ORDERS)
    }
    assert results.cached == len(chosen)
    written = json.loads((lake.root / "target/run_results.json").read_text())["results"]
    assert {(r["status"], r["adapter_response"]["cached"]) for r in written} == {("pass", True)}
    assert {r["adapter_response"]["passed_at"] for r in written} == {"2026-11-23T10:00:00+00:00"}
    with pytest.raises(AssertionError, match="Java was looked for"):
        Project(lake.root).test(chosen, no_cache=True)
