"""`engine plan --diff`: what an edit changes, in the normal form, a line for each clause, item and setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.sql.normalize import spelling_of
from engine.plan.edits.definition_diff import definition_diff, definition_lines
from tests.plan.test_plan import PLAIN, WINDOWED, header, manifest

QUERY = """with late as (select carrier, count(*) as n from flights where delay in (select d from bounds) group by carrier)
select l.carrier, l.n, 'a,  b (' as text from late as l left join carriers c on l.carrier = c.code
union all select 1, 2, max(x) over (partition by y order by z)"""
LINES = """\
with late as (
  select carrier,
  count(*) as n
  from flights
  where delay in (
    select d
    from bounds
  )
  group by carrier
)
select l.carrier,
l.n,
'a,  b (' as text
from late as l
left join carriers as c on l.carrier = c.code
union all
select 1,
2,
max(x) over (partition by y order by z)"""
MERGED = "/*---\nstreams: [shop.events]\nunique_key: id\n---*/\nselect id, kind from {{ source('shop', 'events') }}"
SAME = PLAIN.replace("select id", "SELECT\n   id /* a comment */").replace("<>", "!=")
OTHER = PLAIN.replace("'x'", "'X'")


def test_a_query_has_a_line_for_each_clause_and_item() -> None:
    assert definition_lines({"sql": spelling_of(QUERY)}) == LINES.split("\n")


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (PLAIN, SAME, ()),
        (PLAIN, OTHER, ("  from {{ source('shop', 'events') }}", "- where kind <> 'x'", "+ where kind <> 'X'")),
        (PLAIN, PLAIN.replace("select id", "select id, kind"), ("- select id", "+ select id,", "+ kind")),
        (MERGED, MERGED.replace("key: id", "key: [id, kind]"), ('- write.unique_key: ["id"]', '+ write.unique_key: ["id", "kind"]')),
        (
            header() + WINDOWED, header(size="2 hours", delay="5 minutes") + WINDOWED,
            ("- inputs.shop.events.watermark.delay: 10 minutes", "+ inputs.shop.events.watermark.delay: 5 minutes"),
        ),
    ],
)  # fmt: skip
def test_what_an_edit_changes(tmp_path: Path, before: str, after: str, lines: tuple[str, ...]) -> None:
    facts = [manifest(tmp_path, text).model("m").facts for text in (before, after)]
    found = definition_diff(*facts)
    assert set(lines) <= set(found), found
    assert bool(lines) == bool(found)
    assert {line[:2] for line in found} <= {"+ ", "- ", "  ", ".."}
    assert definition_diff(facts[0], facts[0]) == ()


def test_brackets_of_any_query_have_lines_of_their_own() -> None:
    nested = "select n from (with a as (select 1 as n) select n from a) as b"
    lines = ["select n", "from (", "  with a as (", "    select 1 as n", "  )", "  select n", "  from a", ") as b"]
    assert definition_lines({"sql": spelling_of(nested)}) == lines


def test_parts_of_a_list_are_called_by_their_names_or_places() -> None:
    facts = {"inputs": [{"name": "shop.a", "dedup": ["id"]}, {"name": "shop.b"}], "sort_by": [{"column": "id"}, "at"]}
    found = definition_lines(facts)
    assert 'inputs.shop.a.dedup: ["id"]' in found
    assert [line for line in found if line.startswith("sort_by")] == ["sort_by.0.column: id", "sort_by.1: at"]
