"""What a source of Iceberg may say: every mistake has one message, at its place, with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.nodes.guarantee import GuaranteeLevel, guarantees
from engine.compile.nodes.model_settings import OnUpstreamDelete
from engine.lake.snapshot_history import first_read, from_first_row
from engine.lake.table_facts import SnapshotFacts, TableFacts
from tests.fixtures import read_rows
from tests.project.small_projects import clean, compiled, findings, line, lines, only

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
STREAM = "/*---\nstreams: [s.t]\n---*/\nselect * from {{ source('s', 't') }}"
WHOLE = "select id from {{ source('s', 't') }}"


def files(body: str, sql: str = STREAM) -> dict[str, str | bytes]:
    indented = "".join(f"        {text}\n" for text in body.split("\n"))
    return {"sources/x.yml": f"sources:\n  - name: s\n    tables:\n      - name: t\n{indented}", "models/a.sql": sql}


GOOD = "format: iceberg\nschema: id int\n"
FAULTS = read_rows(FIXTURE, "iceberg", 3)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "finding", "hint"), FAULTS, ids=[fault[1][:70] for fault in FAULTS])
def test_a_mistake_is_named_at_its_place(body, finding, hint, tmp_path):
    found = only(tuple(d for d in findings(tmp_path, files(body.replace("{good}", GOOD), WHOLE)) if d.is_error))
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


@pytest.mark.parametrize(("at", "first"), [(5, 1), (10, 1), (11, 2), (20, 3), (21, 4), (30, 4), (31, None)])
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
