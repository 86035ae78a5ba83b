"""Sinks of a project: a build delivers what its tables have committed, after the model and its tests."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.lab import PROJECT, Lab, event
from tests.services.postgres import USER, Postgres

pytestmark = pytest.mark.spark
TABLE = "/*---\nmaterialized: table\n---*/\n"
MERGED = "/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: at\n{more}---*/\nselect {columns} from {{{{ source('shop', 'events') }}}}\n"


class Project:
    """A project with a connection to a schema of its own in the database."""

    def __init__(self, lab: Lab, server: Postgres) -> None:
        self.lab, self.server, self.schema = lab, server, f"s{uuid.uuid4().hex[:8]}"
        server.execute(f"CREATE SCHEMA {self.schema}")
        where = f'{{uri: "{server.jdbc}", username: {USER}, password: "{{{{ env_var(\'ENGINE_SECRET_CRM\') }}}}"}}'
        text = PROJECT.format(lake=lab.lake_text, schema=lab.schema)
        lab.write("project.yml", f"{text}    connections: {{crm: {where}}}\n")

    def sinks(self, *sinks: dict[str, Any]) -> None:
        to = {"connection": "crm"}
        listed = [{"create": True, **sink, "to": {**to, "table": f"{self.schema}.{sink['name']}"}} for sink in sinks]
        self.lab.write("models/sinks.yml", json.dumps({"sinks": listed}))

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return self.server.execute(f"SELECT {columns} FROM {self.schema}.{table} ORDER BY 1")

    def sink(self, result: Any, name: str) -> dict[str, Any]:
        (found,) = [one for one in result.events if one["event"] == "SinkFinished" and one["node"] == f"sink.{name}"]
        return found


@pytest.fixture
def project(lab: Lab, database: Postgres, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("ENGINE_SECRET_CRM", database.password)
    return Project(lab, database)


@pytest.mark.slow
@pytest.mark.nightly_cases("format 3")
@pytest.mark.parametrize("more", ["", "format_version: 3\n"], ids=["format 2", "format 3"])
def test_merged_and_appended_rows_reach_the_database(more: str, project: Project) -> None:
    lab = project.lab
    lab.model("merged", MERGED.format(more=f"delete_when: kind = 'gone'\n{more}", columns="id, at, kind, amount"))
    lab.model("appended", "/*---\nstreams: [shop.events]\n---*/\nselect id, kind from {{ source('shop', 'events') }}\n")
    lab.model("summed", f"{TABLE}select kind, count(*) as n from {{{{ ref('merged') }}}} group by kind\n")
    project.sinks(
        {"name": "merged", "from": "ref('merged')"},
        {"name": "appended", "from": "appended"},
        {"name": "summed", "from": "summed", "key": "kind"},
    )
    lab.land("one", [event(number, number) for number in range(1, 6)])
    first = lab.build()
    assert [one["status"] for one in first.events if one["event"] == "SinkFinished"] == ["success"] * 3
    lab.land("two", [event(1, 10, "open", 2.5), event(2, 11, "gone"), event(9, 12, "open")])
    second = lab.build()
    assert project.rows("merged", "id, kind, amount") == [
        (1, "open", 2.5), (3, "paid", 1.0), (4, "paid", 1.0), (5, "paid", 1.0), (9, "open", 1.0),
    ]  # fmt: skip
    assert [project.sink(second, "merged")[key] for key in ("rows_out", "rows_deleted")] == [2, 1]
    assert len(project.rows("appended")) == 8
    assert project.rows("summed") == [("open", 2), ("paid", 3)]
    third = lab.build()
    assert [one["status"] for one in third.events if one["event"] == "SinkFinished"] == ["unchanged"] * 3
    lab.build("-f", "-s", "merged")
    assert project.rows("merged", "id, kind") == sorted((row["id"], row["kind"]) for row in lab.rows("merged"))
    only = lab.build("-s", "sink:merged")
    assert project.sink(only, "merged")["status"] == "success"
    assert project.rows("merged", "id, kind") == sorted((row["id"], row["kind"]) for row in lab.rows("merged"))


@pytest.mark.slow
def test_values_of_each_type(project: Project) -> None:
    lab = project.lab
    lab.model(
        "typed",
        f"""{TABLE}select 1 as id, true as flag, cast(2 as smallint) as small, cast(3 as bigint) as big,
        cast(1.5 as float) as half, cast('NaN' as double) as odd, cast(12.34 as decimal(6, 2)) as price,
        'a "quoted", text' as words, cast('x' as binary) as bytes, date '2024-02-29' as day,
        timestamp '2024-05-01 10:00:00.123456' as at, timestamp_ntz '2024-05-01 10:00:00' as local,
        array(1, null) as list, map('k', 1.5) as pairs, named_struct('d', date '2024-01-01', 'n', cast(2 as decimal(4, 1)))
        as record, cast(null as string) as nothing
        """,
    )
    project.sinks({"name": "typed", "from": "typed", "key": "id"})
    lab.build()
    (row,) = project.rows("typed")
    assert [str(value) if isinstance(value, float) else value for value in row] == [
        1, True, 2, 3, "1.5", "nan", Decimal("12.34"), 'a "quoted", text', b"x", date(2024, 2, 29),
        datetime(2024, 5, 1, 10, 0, 0, 123456, UTC), datetime(2024, 5, 1, 10, tzinfo=UTC).replace(tzinfo=None), [1, None], {"k": "1.5"},
        {"d": "2024-01-01", "n": "2.0"}, None,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_sink_waits_for_the_tests_of_its_model_and_leaves_personal_data_out(project: Project) -> None:
    lab = project.lab
    header = "columns:\n  kind: {tests: [not_null]}\n  amount: {meta: {pii: true}}\n"
    lab.model("merged", MERGED.format(more=header, columns="id, at, kind, amount"))
    project.sinks({"name": "merged", "from": "merged"})
    lab.land("one", [event(1, 1, None)])
    failed = lab.run("build")
    assert failed.code == 1
    assert project.sink(failed, "merged")["status"] == "skipped"
    assert project.server.execute(f"SELECT to_regclass('{project.schema}.merged')") == [(None,)]
    lab.land("two", [event(1, 2, "paid")])
    lab.build()
    assert [row[0] for row in project.rows("merged")] == [1]
    names = project.server.execute(
        f"SELECT column_name FROM information_schema.columns WHERE table_schema = '{project.schema}' "
        "AND table_name = 'merged' ORDER BY ordinal_position"
    )
    assert names == [("id",), ("at",), ("kind",)]


@pytest.mark.slow
def test_show_and_reset(project: Project) -> None:
    lab = project.lab
    lab.model("merged", MERGED.format(more="", columns="id, at, kind"))
    project.sinks({"name": "merged", "from": "merged", "start": "now", "columns": ["id", "kind"]})
    lab.land("one", [event(1, 1)])
    lab.build()
    assert project.rows("merged") == []
    assert lab.run("sink", "reset", "merged", "--to", "earliest").code == 0
    shown = lab.run("sink", "show", "merged", "--output", "json")
    assert json.loads(shown.out)["sample"] == [{"id": 1, "kind": "paid"}]
    text = lab.run("sink", "show", "merged").out
    assert "position: before the first row" in text
    assert "waiting: 1 commit, 1 added row" in text
    lab.build("-s", "sink:merged")
    assert project.rows("merged") == [(1, "paid")]
    assert "waiting: 0 commits" in lab.run("sink", "show", "merged").out
    assert lab.run("sink", "reset", "merged", "--to", "7").code == 2
    assert lab.run("sink", "show", "mergd").code == 2


@pytest.mark.slow
def test_what_failed_is_delivered_by_a_retry(project: Project) -> None:
    lab = project.lab
    lab.model("merged", MERGED.format(more="", columns="id, at, kind"))
    project.sinks({"name": "merged", "from": "merged", "create": False})
    lab.land("one", [event(1, 1)])
    failed = lab.run("build")
    assert (failed.code, failed.codes()) == (1, ["sink-table"])
    results = json.loads((lab.root / "target" / "run_results.json").read_text())["results"]
    assert [one["status"] for one in results if one["unique_id"] == "sink.lab.merged"] == ["error"]
    hint = next(one["hint"] for one in failed.events if one["event"] == "Diagnosed")
    project.server.execute(hint[hint.index("CREATE") : hint.index(";")])
    assert lab.run("retry").code == 0
    assert len(project.rows("merged")) == 1


@pytest.mark.slow
def test_an_edit_that_changes_delivered_columns_is_rejected_until_it_is_accepted(project: Project) -> None:
    lab = project.lab
    query = "select id, {kind}, amount from (select 1 as id, 'open' as kind, 2.5D as amount)"
    lab.model("paid", TABLE + query.format(kind="kind"))
    project.sinks({"name": "crm", "from": "paid", "key": "id"})
    lab.build("-s", "paid")
    plan = lab.run("plan", "--output", "text").out
    assert f"sink crm (crm: {project.schema}.crm): 1 commit with 1 added row wait" in plan
    record = json.loads(lab.run("plan", "--output", "json").out.splitlines()[-1])
    assert (record["name"], record["action"], record["waiting"]) == ("crm", "deliver", "1 commit with 1 added row wait")
    lab.build()
    assert "nothing waits" in lab.run("plan", "--output", "text").out
    lab.model("paid", TABLE + query.format(kind="cast(length(kind) as int) as kind").replace(", amount from", " from"))
    rejected = lab.run("plan", "--output", "text")
    assert rejected.code == 1
    for text in ("drops the column 'amount'", "changes the column 'kind' from string to int", "--accept sink-schema"):
        assert text in rejected.out + rejected.err
    assert lab.run("build").codes()[0] == "sink-schema"
    assert project.rows("crm") == [(1, "open", 2.5)]
    project.sinks({"name": "crm", "from": "paid", "key": "id", "columns": ["id"]})
    assert lab.run("plan").code == 0
    project.sinks({"name": "crm", "from": "paid", "key": "id"})
    project.server.execute(f"DROP TABLE {project.schema}.crm")
    lab.build("--accept", "sink-schema")
    assert project.rows("crm") == [(1, 4)]
    assert lab.run("plan").code == 0


@pytest.mark.slow
def test_maintenance_keeps_the_snapshots_that_a_sink_has_not_delivered(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = project.lab
    properties = 'table_properties: {history.expire.min-snapshots-to-keep: "1"}\n'
    query = "select id from {{ source('shop', 'events') }}\n"
    lab.model("appended", f"/*---\nstreams: [shop.events]\n{properties}---*/\n{query}")
    project.sinks({"name": "out", "from": "appended"})
    expire = ("maintain", "-s", "appended", "--older-than", "0 seconds")

    def commits(first: int) -> None:
        for number in (first, first + 1):
            lab.land(str(number), [event(number, number)])
            lab.build("-s", "appended")

    def snapshots() -> list[int]:
        """Oldest first."""
        table = lab.table("appended")
        assert table is not None
        return [snapshot.id for snapshot in reversed(table.history)]

    commits(1)
    lab.build("-s", "sink:out")
    commits(3)
    first, *needed = snapshots()
    kept = lab.run(*expire)
    assert kept.code == 0, kept.err
    assert '"kept_for": ["sink out"]' in kept.out
    # The first commit goes; the delivered one and the two after it stay.
    assert first not in snapshots()
    assert set(needed) <= set(snapshots())
    lab.build("-s", "sink:out")
    assert project.rows("out") == [(1,), (2,), (3,), (4,)]
    commits(5)
    # A database that does not answer may be anywhere in the last seven days.
    with monkeypatch.context() as patch:
        patch.setenv("ENGINE_SECRET_CRM", "wrong")
        needed = snapshots()
        assert lab.run(*expire).code == 0
        assert set(needed) <= set(snapshots())
    lab.build("-s", "sink:out")
    assert [row[0] for row in project.rows("out")] == [1, 2, 3, 4, 5, 6]
    # After seven days the sink is on its own.
    lab.land("7", [event(7, 7)])
    lab.build("-s", "appended")
    needed = snapshots()
    monkeypatch.setattr("engine.runtime.lifecycle.expire_snapshots._SINK_RETAIN_MS", 0)
    assert lab.run(*expire).code == 0
    assert not set(needed[:-1]) & set(snapshots())
