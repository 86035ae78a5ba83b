"""What a source of Iceberg may say: every mistake has one message, at its place, with a way out."""

from __future__ import annotations

import pytest

from engine.compile.nodes.guarantee import GuaranteeLevel, guarantees
from engine.compile.nodes.model_settings import OnUpstreamDelete
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.sources.iceberg.snapshot_history import first_read, from_first_row
from tests.project.small_projects import clean, compiled, findings, line, lines, only

STREAM = "/*---\nstreams: [s.t]\n---*/\nselect * from {{ source('s', 't') }}"
WHOLE = "select id from {{ source('s', 't') }}"


def files(body: str, sql: str = STREAM) -> dict[str, str | bytes]:
    indented = "".join(f"        {text}\n" for text in body.split("\n"))
    return {
        "sources/x.yml": f"sources:\n  - name: s\n    tables:\n      - name: t\n{indented}",
        "models/a.sql": sql,
    }


GOOD = "format: iceberg\nschema: id int\n"
FAULTS = [
    (GOOD.rstrip(), "missing-key sources/x.yml:4:9 source 's.t' has no 'table'", "table: <namespace>.<name>"),
    (GOOD + "table: orders", "bad-value sources/x.yml:7:16 'orders' is not a table name", "<namespace>.<name>"),
    (GOOD + "table: a..d", "bad-value sources/x.yml:7:16 'a..d' is not a table name", "<namespace>.<name>"),
    (GOOD + "table: other.shop.orders",
     "not-supported sources/x.yml:7:16 'other.shop.orders' is in a catalog 'other', and the target 'dev' has 'lake'", "<namespace>.<name>"),
    (GOOD + "table: shop.orders.branch_audit",
     "not-supported sources/x.yml:7:16 'shop.orders.branch_audit' names a branch, tag or snapshot: a stream of it would silently read main",
     "Set the table itself"),
    (GOOD + "table: shop.orders\noptions: {branch: audit}",
     "not-supported sources/x.yml:8:19 the option 'branch' is not supported in this version: a stream would silently read main", "Remove it"),
    (GOOD + "table: shop.orders\noptions: {streaming-skip-overwrite-snapshots: true}",
     "bad-value sources/x.yml:8:19 the option 'streaming-skip-overwrite-snapshots' is set by the engine", "on_upstream_delete"),
    (GOOD + "table: shop.orders\nstarting_timestamp: soon", "bad-value sources/x.yml:8:29 'soon' is not a timestamp", "2024-05-01"),
    (GOOD + "table: shop.orders\nstarting_timestamp: 2024-05-01\nstarting_snapshot: 5",
     "setting-conflict sources/x.yml:9:9 'starting_timestamp' and 'starting_snapshot' exclude each other", "Remove one"),
    (GOOD + "table: shop.orders\nstarting_snapshot: first", "bad-value sources/x.yml:8:28 'first' is not a snapshot id", "snapshot_id"),
    (GOOD + "table: shop.orders\non_upstream_delete: skip", "bad-value sources/x.yml:8:29 'on_upstream_delete' cannot be 'skip'", "fail, ignore"),
    (GOOD + "table: shop.orders\ntimezone: UTC", "setting-conflict sources/x.yml:8:9 'timezone' does not apply to tables, whose timestamps have a type", ""),
    (GOOD + "table: shop.orders\npath: x", "unknown-key sources/x.yml:8:9 a source table has no key 'path'", ""),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("body", "finding", "hint"), FAULTS, ids=[fault[1][:70] for fault in FAULTS])
def test_a_mistake_is_named_at_its_place(body, finding, hint, tmp_path):
    found = only(tuple(d for d in findings(tmp_path, files(body, WHOLE)) if d.is_error))
    assert line(found) == finding
    assert hint in found.hint


def test_what_is_for_streams_is_refused_where_there_are_none(tmp_path):
    body = GOOD + "table: shop.orders\nstream: false\nstarting_snapshot: 5"
    assert lines(findings(tmp_path, files(body, WHOLE))) == [
        "setting-conflict sources/x.yml:9:9 'starting_snapshot' is for streams, but 's.t' has stream: false"
    ]


def test_columns_are_declared_or_not_known_before_the_build(tmp_path):
    known = clean(tmp_path / "1", files(GOOD + "table: lake.shop.orders"))
    assert [(c.name, c.type) for c in known.model("a").columns] == [("id", "int")]
    unknown = compiled(tmp_path / "2", files("format: iceberg\ntable: shop.orders")).manifest
    assert {d.code for d in unknown.diagnostics} == {"unknown-columns"}
    assert not unknown.errors


def test_a_table_can_be_read_again(tmp_path):
    made = clean(tmp_path, files(GOOD + "table: shop.orders"))
    assert guarantees(made)["model.a"].level is GuaranteeLevel.EXACTLY_ONCE


def test_a_model_says_for_itself_what_becomes_of_deletions(tmp_path):
    body = GOOD + "table: shop.orders\non_upstream_delete: ignore"
    assert clean(tmp_path / "1", files(body)).model("a").inputs[0].on_upstream_delete is OnUpstreamDelete.IGNORE
    own = STREAM.replace("[s.t]", "{s.t: {on_upstream_delete: fail}}")
    assert clean(tmp_path / "2", files(body, own)).model("a").inputs[0].on_upstream_delete is OnUpstreamDelete.FAIL


def snapshots(*made: tuple[int, str, int]) -> tuple[SnapshotFacts, ...]:
    """Newest first, each the parent of the one before it; the last is the table's first."""
    parents = [*(number for number, _, _ in made[1:]), None]
    return tuple(SnapshotFacts(n, p, op, {}, at) for (n, op, at), p in zip(made, parents, strict=True))


@pytest.mark.parametrize(
    ("at", "first"),
    [(5, 1), (10, 1), (11, 2), (20, 3), (21, 4), (30, 4), (31, None)],
)
def test_of_commits_of_one_millisecond_iceberg_begins_with_the_newest(at, first):
    history = snapshots((4, "append", 30), (3, "append", 20), (2, "append", 20), (1, "append", 10))
    found = first_read(history, at)
    assert (found.id if found else None) == first


@pytest.mark.parametrize(
    ("operations", "ignore", "seeded"),
    [
        (["append"], False, False),
        (["append", "replace", "append"], False, False),
        (["append", "delete"], True, False),
        (["append", "delete"], False, True),
        (["append", "overwrite"], True, True),
        (["overwrite", "append"], False, True),
    ],
)
def test_a_seed_is_for_tables_whose_commits_do_not_make_up_their_rows(operations, ignore, seeded):
    made = [(number, operation, number) for number, operation in enumerate(operations, 1)]
    table = TableFacts("u", {}, snapshots(*reversed(made)), ())
    start = from_first_row(table, "lake.s.seed", ignore_deletes=ignore)
    assert (start.seed is not None) is seeded
    if seeded:
        assert (start.snapshot, start.at) == (len(made), len(made) + 1)
