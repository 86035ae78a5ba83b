"""Where the items of a SELECT are, and their texts, from its tokens."""

from __future__ import annotations

import pytest

from engine.compile.columns.column_texts import projections, starts
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.select_items import item_places


def shown(text: str) -> tuple[list[str], list[str]]:
    """The text of each item, and the first word of what is found where it starts."""
    tokens = tokenize(text)
    tree = parse_tokens(tokens, text)[0]
    assert tree is not None
    places = item_places(tokens)
    items = projections(text, places, tree)
    begins = starts(text, places, tree, [f"c{n}" for n in range(len(items))])
    return items, [text[begin:].split(maxsplit=1)[0].rstrip(",") for begin in begins]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("select a, b as c from t", ["a", "b"]),
        ("select a x, f(a, b)[0] as y, 'x, from' `z` from t", ["a", "f(a, b)[0]", "'x, from'"]),
        ("select -- one\n a /* two */ as b, /* three */ c -- four\nfrom t", ["a", "c"]),
        ("select distinct a, b from t", ["a", "b"]),
        ("select /*+ broadcast(t) */ distinct a from t", ["a"]),
        ("with w as (select x, y from u) select a from w", ["a"]),
        ("select a from t union all select b, c from u", ["a"]),
        ("select a, (select max(b) from u) as m from t", ["a", "(select max(b) from u)"]),
        ("select case when a then b end as c, a is null as d from t", ["case when a then b end", "a is null"]),
        ("select 1 as a, 2", ["1", "2"]),
        # The columns of a pipe are those of its last operator.
        ("from t |> select a |> extend b + 1 as c", []),
        ("select a from t |> where a > 1", []),
        ("from t |> select a |> select b + 1 as c, d", ["b + 1", "d"]),
        ("from t |> where a > 1 |> select *, (select 1) as b", ["*", "(select 1)"]),
        ("with q as (select a from t) table q", []),
        # Words that are names here, and clauses elsewhere.
        ("select window(ts, '1 hour') as w, count(*) n from t group by 1", ["window(ts, '1 hour')", "count(*)"]),
        ("select window.start as a, window.end from t", ["window.start", "window.end"]),
        ("select offset, value, t.offset as o, a.limit from t", ["offset", "value", "t.offset", "a.limit"]),
        ("select a as window, b from t window w as (order by a)", ["a", "b"]),
        ("select sum(a) over w as s from t window w as (order by a)", ["sum(a) over w"]),
        # A star has no text but itself.
        ("select *, a as b from t", ["*", "a"]),
        ("select * except (a, b), t.*, c from t", ["*", "t.*", "c"]),
        ("select * from t except select a from u", ["*"]),
        ("select * from t", ["*"]),
        # Inside brackets, and where there is no SELECT, nothing is known.
        ("(select a from t) union all (select b from u)", []),
        ("values (1)", []),
    ],
)
def test_the_text_of_each_item(text: str, items: list[str]) -> None:
    found, begins = shown(text)
    assert found == items
    if not any("*" in item for item in items):
        assert begins == [item.split()[0].rstrip(",") if item else "" for item in items]
