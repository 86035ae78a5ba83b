"""`refresh: incremental` where a build could not do it, and what a rejected build says of the other models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.compile import Manifest
from engine.errors import Diagnostic, Level
from engine.plan import Action, ActionKind, DeployedModel, PlanOptions, make_plan
from engine.plan.actions.action import refused_build
from engine.plan.new_checkpoint import ways
from engine.plan.refresh.refresh_choice import refused_query
from engine.state import Phase
from tests.plan.deployed import batch, deployed, file, streaming, table
from tests.plan.test_actions import TOTAL, project
from tests.plan.test_plan import PLAIN, WINDOWED, header

pytestmark = pytest.mark.slow

A = file("a")
BY_ID = (
    "/*---\nrefresh: incremental\npartition_by: [id]\n---*/\nselect id, count(*) as n from {{ ref('m') }} group by id"
)


def of_total(root: Path, text: str = BY_ID, *, built: bool = True, **state: object) -> Action:
    """What becomes of a batch table over a stream that has two commits, of which it has read the first."""
    now = project(root, m=PLAIN, total=text)
    upstream = streaming(now.model("m"), [A])
    assert upstream.table is not None
    total = batch(now.model("total"), {"model.m": upstream.table.position()})
    assert total.state is not None
    total = replace(total, state=replace(total.state, **state)) if built else DeployedModel()  # type: ignore[arg-type]
    grown = table(now.model("m"), snapshots=2)
    upstream = replace(upstream, table=grown, written=grown)
    known = deployed(now, {"m": upstream, "total": total}, [A])
    return make_plan(now, ["model.total"], known, PlanOptions()).actions["model.total"]


def test_a_table_that_would_be_computed_in_full_is_rejected_where_that_was_forbidden(tmp_path: Path) -> None:
    action = of_total(tmp_path)
    (refusal,) = action.refusals
    assert (action.kind, refusal.code) == (ActionKind.REBUILD, "refresh-not-incremental")
    assert "did not record the exact snapshots" in refusal.message
    assert "engine build -f -s total" in refusal.hint


def test_the_first_build_and_a_repeated_one_may_be_full(tmp_path: Path) -> None:
    first = of_total(tmp_path, built=False)
    assert (first.kind, first.refusals) == (ActionKind.CREATE, ())
    assert of_total(tmp_path, phase=Phase.BUILDING).refusals == ()
    assert of_total(tmp_path, BY_ID.replace("incremental", "auto")).refusals == ()


def test_a_query_that_can_never_be_incremental_is_rejected_at_once(tmp_path: Path) -> None:
    clock = BY_ID.replace("count(*)", "max(year(now()))")
    for built in (False, True):
        (refusal,) = of_total(tmp_path, clock, built=built).refusals
        assert "it reads the clock" in refusal.message


def of_query(root: Path, query: str, part: str = "id") -> Diagnostic | None:
    """Why a query over a stream of events can only be computed in full; None: it need not."""
    events = "/*---\nstreams: [shop.events]\n---*/\nselect * from {{ source('shop', 'events') }}"
    now = project(root, m=events, total=f"/*---\nrefresh: incremental\npartition_by: [{part}]\n---*/\n{query}")
    return refused_query(now, now.model("total"))


@pytest.mark.parametrize(
    "query",
    [
        "select id, sum(amount) s from {{ ref('m') }} group by id",
        "select id, sum(amount)::double from {{ ref('m') }} group by id",
        "select id, sum(amount)::double s, count(*) n from {{ ref('m') }} group by (id)",
        "select id, rank() over (partition by id order by amount nulls first) as n from {{ ref('m') }}",
        "select id, amount from (select id, amount, rank() over (partition by id order by amount) as n from {{ ref('m') }}) where n <= 3",
        "select a, b from (select id, amount, rank() over (partition by id order by amount) from {{ ref('m') }}) as t(a, b, n) where n <= 3",
        "with t as (select *, rank() over (partition by id order by amount) n from {{ ref('m') }}) select id, amount from t where n = 1",
    ],
)  # fmt: skip
def test_a_query_may_be_incremental_however_it_is_written(tmp_path: Path, query: str) -> None:
    assert of_query(tmp_path, query, "a" if query.startswith("select a,") else "id") is None


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select c as id, count(*) as n from {{ ref('m') }} as x(a, b, c, d) group by c", "a list of columns"),
        ("select identifier('id') as id, count(*) as n from {{ ref('m') }} group by 1", "IDENTIFIER"),
        *(
            (
                f"select a.id from {{{{ ref('m') }}}} a {join} join {{{{ ref('m') }}}} b on a.id = b.id",
                f": {join.upper()} JOIN is not followed",
            )
            for join in ("semi", "left semi", "anti", "left anti", "full", "full outer", "right")
        ),
    ],
)
def test_a_query_that_hides_its_columns_is_not_incremental(tmp_path: Path, query: str, reason: str) -> None:
    refusal = of_query(tmp_path, query)
    assert refusal is not None
    assert reason in refusal.message


def test_without_partitions_that_say_which_rows_change_it_is_not_incremental(tmp_path: Path) -> None:
    query = "select id, count(*) as n from {{ ref('m') }} group by id"
    refusal = of_query(tmp_path / "by", query, "n")
    assert refusal is not None
    assert "rows that belong together may have several values of 'n'" in refusal.message
    now = project(tmp_path / "none", m=PLAIN, total=BY_ID.replace("partition_by: [id]\n", ""))
    refusal = refused_query(now, now.model("total"))
    assert refusal is not None
    assert "it has no 'partition_by'" in refusal.message
    assert refusal.hint.startswith("Set partition_by")


def rejected(root: Path, **others: str) -> tuple[Manifest, list[str]]:
    """The project with an edit of `m` that cannot continue, and what is said of the build."""
    old = project(root, m=header() + WINDOWED).model("m")
    now = project(root, m=header(size="2 hours") + WINDOWED, **others)
    known = {"m": streaming(old, [A])}
    if "same" in others:
        known["same"] = streaming(now.model("same"), [A])
    found = refused_build(now, make_plan(now, now.order, deployed(now, known, [A]), PlanOptions()))
    assert found is not None
    return now, [d.message for d in found.diagnostics if d.level is Level.NOTE]


def test_what_could_be_built_without_a_rejected_model_has_work_to_do(tmp_path: Path) -> None:
    tested = "/*---\ncolumns: [{name: id, tests: [not_null]}]\n---*/\n"
    _, notes = rejected(tmp_path, same=PLAIN, new=tested + PLAIN.partition("---*/\n")[2], reader=TOTAL)
    assert [note.rpartition(": ")[2] for note in notes] == ["new"]
    assert notes[0].startswith("nothing was started, because 1 model is rejected")


def test_where_nothing_else_would_be_built_nothing_is_said_of_it(tmp_path: Path) -> None:
    assert rejected(tmp_path, reader=TOTAL)[1] == []
    assert rejected(tmp_path, same=PLAIN)[1] == []


def test_the_ways_to_a_new_checkpoint_say_what_becomes_of_the_rows(tmp_path: Path) -> None:
    plain = project(tmp_path, m=PLAIN)
    (found,) = ways(plain, plain.model("m"))
    assert found.endswith("engine build -s m --reset-checkpoint now")
    keyed = project(tmp_path, m=PLAIN.replace("streams", "unique_key: id\nstreams"))
    found = ways(keyed, keyed.model("m"))[-1]
    assert "keys that the query no longer returns stay" in found
    text = "/*---\nstreams: [shop.events]\noutput_mode: complete\n---*/\nselect id, count(*) as n from {{ source('shop', 'events') }} group by id"
    complete = project(tmp_path, m=text)
    (found,) = ways(complete, complete.model("m"))
    assert "the table is rewritten" in found
    assert found.endswith("engine build -s m --reset-checkpoint earliest")
