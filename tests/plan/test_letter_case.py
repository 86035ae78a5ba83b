"""Edits of letter case and backticks: what Spark distinguishes is changed, and what it does not is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import Manifest
from engine.compile.nodes.fingerprint import definition_hash
from engine.plan import Change, Comparison, LastWriter
from engine.plan.compare_models import compare_model
from tests.lab import PROJECT
from tests.project.small_projects import clean, model

pytestmark = pytest.mark.slow

SOURCES = """
sources:
  - name: shop
    tables:
      - {name: events, format: %s, path: events, schema: "%s"}
"""
SCHEMA = (
    "id int, at timestamp, v int, m map<string, int>, s struct<A: int, B: struct<C: int>>, xs array<struct<A: int>>"
)
E = "{{ source('shop', 'events') }}"
WINDOWED = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, 1 hour)'}}
---
select hour.start as begins, %s as k, sum(%s) as total from {E} group by hour, %s
"""
KEYED = f"""
streams: [shop.events]
unique_key: [k]
sequence_by: at
---
select %s as k, at, v from {E}
"""
# Expressions that Spark distinguishes.
OTHER = {
    "keys of a map": ("m.A", "m.a"),
    "keys of a map in brackets": ("m['A']", "m['a']"),
    "names in a struct": ("to_json(struct(v as Price))", "to_json(struct(v as price))"),
    "a column in a struct": ("to_json(struct(V))", "to_json(struct(v))"),
    "a column in arrays_zip": ("to_json(arrays_zip(xs, Xs))", "to_json(arrays_zip(xs, xs))"),
    "names of a tuple": ("to_json((v, Id))", "to_json((v, id))"),
    "names of a type": ("to_json(cast(s as struct<X: int, Y: struct<C: int>>))", "to_json(cast(s as struct<x: int, Y: struct<C: int>>))"),
    "the type of a schema": ("from_json('{}', 'A int').a", "from_json('{}', 'a int').a"),
    "a name of named_struct": ("to_json(named_struct('A', v))", "to_json(named_struct('a', v))"),
    "a path": ("get_json_object('{}', '$.A')", "get_json_object('{}', '$.a')"),
    "another function": ("percentile_cont(0.5) within group (order by v)", "percentile_disc(0.5) within group (order by v)"),
    "a cast that may fail": ("cast('x' as int)", "try_cast('x' as int)"),
    "a backslash": (r"'\\d'", r"'\d'"),
}  # fmt: skip
# And those that it does not.
SAME = {
    "a column": ("V", "v"),
    "a column in backticks": ("`v`", "v"),
    "a function": ("UPPER(cast(v as string))", "upper(CAST(v AS STRING))"),
    "brackets": ("abs((v))", "abs(v)"),
    "a comment": ("v /* so many */ + 1", "v + 1"),
    "another sign": ("if(v != 1, 1, 2)", "if(v <> 1, 1, 2)"),
    "letters of a number": ("v + 1L", "v + 1l"),
}  # fmt: skip


def manifest(root: Path, text: str, schema: str = SCHEMA, format_: str = "json") -> Manifest:
    header, _, sql = text.strip().partition("---\n")
    project = PROJECT.format(lake=".engine/lake", schema="s")
    files = {
        "project.yml": project,
        "sources/shop.yml": SOURCES % (format_, schema),
        "models/base.sql": f"select * from {E}",
    }
    return clean(root, {**files, **model(header, sql, "m")})


def compared(before: Manifest, after: Manifest) -> Comparison:
    old, new = before.model("m"), after.model("m")
    return compare_model(after, new, LastWriter(old.fingerprint, old.facts))


def edits(root: Path, pattern: str, pair: tuple[str, str], times: int = 1) -> tuple[Manifest, Manifest]:
    one, other = (manifest(root, pattern % ((text,) * times)) for text in pair)
    return one, other


def both_ways(root: Path, pattern: str, pair: tuple[str, str], times: int = 1) -> list[Change]:
    one, other = edits(root, pattern, pair, times)
    return [compared(one, other).change, compared(other, one).change]


BATCH = f"---\nselect %s as k from {E}"
VIEW = "materialized: view\n---\nselect %s as k from {{ ref('base') }}"
# Spark does not group by what is a constant.
CONSTANT = ("a cast that may fail", "a backslash")
AGGREGATES = [name for name in OTHER if name not in {"another function", *CONSTANT}]


@pytest.mark.parametrize("name", OTHER)
def test_a_batch_table_and_a_view_are_made_again(tmp_path: Path, name: str) -> None:
    assert both_ways(tmp_path, BATCH, OTHER[name]) == [Change.REBUILT] * 2
    one, other = edits(tmp_path, VIEW, OTHER[name])
    assert one.model("m").fingerprint != other.model("m").fingerprint
    assert compared(one, other).change is Change.REBUILT
    assert definition_hash(one.model("m").facts) != definition_hash(other.model("m").facts)


@pytest.mark.parametrize("name", CONSTANT)
def test_another_constant_beside_the_keys_of_groups_is_another_column(tmp_path: Path, name: str) -> None:
    pattern = WINDOWED.replace("sum(%s)", "sum(v)")
    assert both_ways(tmp_path, pattern, OTHER[name], 2) == [Change.FORWARD] * 2


@pytest.mark.parametrize("name", AGGREGATES)
def test_groups_by_another_key_do_not_go_on(tmp_path: Path, name: str) -> None:
    pattern = WINDOWED.replace("sum(%s)", "sum(v)")
    assert both_ways(tmp_path, pattern, OTHER[name], 2) == [Change.STATE_BREAKING] * 2


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_of_another_value_do_not_go_on(tmp_path: Path, name: str) -> None:
    pattern = WINDOWED.replace("%s as k, sum(%s)", "max(%s)").replace("hour, %s", "hour")
    assert both_ways(tmp_path, pattern, OTHER[name]) == [Change.STATE_BREAKING] * 2


def test_another_aggregate_does_not_go_on(tmp_path: Path) -> None:
    pattern = WINDOWED.replace("%s as k, sum(%s)", "%s").replace("hour, %s", "hour")
    assert both_ways(tmp_path, pattern, OTHER["another function"]) == [Change.STATE_BREAKING] * 2
    for pair in (
        ("any_value(v)", "first(v)"), ("max_by(v, id)", "min_by(v, id)"), ("first(v, true)", "first(v, false)"),
        ("approx_percentile(v, 0.5)", "percentile(v, 0.5)"), ("count(v)", "count_if(v > 0)"),
        ("percentile(v, 0.5)", "percentile(v, 0.5, id)"), ("percentile(v, 0.5, v)", "percentile(v, 0.5, id)"),
        ("first(v)", "first(v, not false)"), ("max(date_format(at, 'yyyy'))", "max(date_format(at, 'YYYY'))"),
    ):  # fmt: skip
        assert both_ways(tmp_path, pattern, pair) == [Change.STATE_BREAKING] * 2, pair


@pytest.mark.parametrize("name", AGGREGATES)
def test_another_key_of_a_table_is_another_table(tmp_path: Path, name: str) -> None:
    assert both_ways(tmp_path, KEYED, OTHER[name]) == [Change.KEY_CHANGED] * 2


@pytest.mark.parametrize("name", SAME)
def test_letter_case_that_means_nothing_is_unchanged(tmp_path: Path, name: str) -> None:
    assert both_ways(tmp_path, BATCH, SAME[name]) == [Change.UNCHANGED] * 2
    assert both_ways(tmp_path, WINDOWED, SAME[name], 3) == [Change.UNCHANGED] * 2
    assert both_ways(tmp_path, KEYED, SAME[name]) == [Change.UNCHANGED] * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2024", "`2024`"),
        ("cast(null as int)", "cast(`null` as int)"),
        ("current_date", "`current_date`"),
        ("cast(true as int)", "cast(`true` as int)"),
    ],
)
def test_backticks_that_make_a_column_of_a_constant_count(tmp_path: Path, one: str, other: str) -> None:
    schema = f"{SCHEMA}, `{other.split('`')[1]}` int"
    pair = [manifest(tmp_path, BATCH % text, schema) for text in (one, other)]
    assert [compared(*pair).change, compared(*pair[::-1]).change] == [Change.REBUILT] * 2
    pair = [manifest(tmp_path, WINDOWED % (text, "v", "k"), schema) for text in (one, other)]
    assert Change.UNCHANGED not in {compared(*pair).change, compared(*pair[::-1]).change}


def test_keys_of_json_have_letter_case(tmp_path: Path) -> None:
    for schema in (SCHEMA.replace("v int", "V int"), SCHEMA.replace("A: int", "a: int")):
        for pattern, change in (
            (WINDOWED % ("s.a", "v", "s.a"), Change.STATE_BREAKING),
            (BATCH % "s.a + v", Change.REBUILT),
        ):
            pair = [manifest(tmp_path, pattern, said) for said in (SCHEMA, schema)]
            assert [compared(*pair).change, compared(*pair[::-1]).change] == [change] * 2


def test_columns_of_parquet_have_none(tmp_path: Path) -> None:
    pair = [
        manifest(tmp_path, WINDOWED % ("id", "v", "id"), said, "parquet")
        for said in (SCHEMA, SCHEMA.replace("v int", "V int"))
    ]
    assert [compared(*pair).change, compared(*pair[::-1]).change] == [Change.UNCHANGED] * 2


def test_fields_of_a_struct_are_found_in_any_letter_case(tmp_path: Path) -> None:
    assert both_ways(tmp_path, WINDOWED, ("s.B.C", "S.b.c"), 3) == [Change.UNCHANGED] * 2


def test_an_alias_that_is_called_as_is_another_column(tmp_path: Path) -> None:
    pattern = (
        f"streams: {{shop.events: {{watermark: at delay 10 minutes}}}}\n---\nselect distinct at%s, v as k from {E}"
    )
    assert Change.UNCHANGED not in both_ways(tmp_path, pattern, ("", " as"))
