"""Which clauses and columns of a query an edit changed."""

from __future__ import annotations

import pytest

from engine.plan.edits.changed_clauses import changed_clauses, with_clauses
from tests.plan.facts_by_hand import facts

QUERY = "select id, sum(a) as total from t where a > 1 group by id"
_MIDDLE = "percentile_cont(0.5) within group (order by a)"
CONT = f"select id, {_MIDDLE} as m from t group by id having {_MIDDLE} > 1 order by {_MIDDLE}"
PIPE = "from t |> where a > 1 |> select id |> aggregate count(*) as n group by id"
CTE = "with q as (select id, a from t where a > 1) select id from q"
UNION = "select id from t union all select id from u where id > 1"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (QUERY, QUERY.replace("a > 1", "a > 2"), ("WHERE",)),
        (QUERY, QUERY.replace("sum(a)", "max(a)"), ("column 'total'",)),
        (CONT, CONT.replace("_cont", "_disc"), ("column 'm'", "HAVING", "ORDER BY")),
        (QUERY, QUERY.replace("total", "most"), ("removed column 'total'", "new column 'most'")),
        (QUERY, QUERY.replace("id, sum(a) as total", "sum(a) as total, id"), ("the order of the columns",)),
        (QUERY, QUERY + ", a having count(*) > 1", ("GROUP BY", "HAVING")),
        (QUERY, QUERY.replace("from t", "from u"), ("FROM",)),
        (QUERY, QUERY.replace("from t", "from t join u on t.id = u.id"), ("JOIN",)),
        (QUERY, QUERY.replace("select", "select distinct") + " order by 1 limit 3", ("DISTINCT", "ORDER BY", "LIMIT")),
        (CTE, CTE.replace("a > 1", "a > 2"), ("WHERE of CTE 'q'",)),
        (PIPE, PIPE.replace("a > 1", "a > 2"), ("WHERE of the subquery in FROM",)),
        (PIPE, PIPE.replace("as n", "as m"), ("removed column 'n'", "new column 'm'")),
        (CTE, CTE.replace("with q", "with r as (select 1 as x), q"), ("new CTE 'r'",)),
        (UNION, UNION.replace("id > 1", "id > 2"), ("WHERE of a branch of UNION",)),
        (UNION, QUERY, ()),
        (QUERY, QUERY, ()),
        (QUERY, "select ((", ()),
        (QUERY, QUERY.replace("id,", "id, a, b, c, d, e, f, g,"), (*(f"new column '{name}'" for name in "abcde"), "2 more")),
    ],
)  # fmt: skip
def test_an_edit(before: str, after: str, expected: tuple[str, ...]) -> None:
    assert changed_clauses(facts(sql=before), facts(sql=after)) == expected


def test_an_ephemeral_model_is_named() -> None:
    before, after = (facts(sql="select a", inlined={"e": {"sql": f"select {n} as a"}}) for n in (1, 2))
    assert changed_clauses(before, after) == ("column 'a' of the ephemeral model 'e'",)


def test_a_sentence() -> None:
    assert with_clauses("the query changed", facts(sql="select 1 as a"), facts(sql="select 2 as a")) == (
        "the query changed (column 'a')"
    )
    assert with_clauses("the query changed", None, facts(sql="select 2 as a")) == "the query changed"
