"""A column that an input gains is a change of those of its readers only that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import Model
from engine.compile.nodes.fingerprint import definition_hash
from engine.plan.comparable_facts import comparable, names_column
from tests.project.small_projects import clean, model

pytestmark = pytest.mark.slow

SOURCES = """
sources:
  - name: shop
    tables:
      - {name: events, format: %s, path: events, schema: "id int, at timestamp, kind string, amount double%s"}
"""
STREAM = "streams: {{{name}: {{watermark: at delay 10 minutes}}}}\n"
WINDOW = "windows: {hour: 'tumbling(at, 1 hour)'}"
UNREAD = {
    "names": "select hour.start as h, count(*) as n from {T} group by hour",
    "an inner star": "with q as (select * from {T}) select hour.start as h, sum(amount) as n from q group by hour",
    "stars inside one another": "select hour.start as h, max(kind) as k from (select q.*, 1 as one from (select * from {T}) q) group by hour",
    "a star of which a column is left out": "with q as (select * except (kind) from {T}) select hour.start as h, sum(amount) as n from q group by hour",
    "a product": "select hour.start as h, sum(amount * 2) as n from {T} group by hour",
}  # fmt: skip
READ = {
    "a star": "select distinct * from {T}",
    "a name": "select hour.start as h, max(more) as n from {T} group by hour",
    "a name in a filter": "select hour.start as h, count(*) as n from {T} where more is null group by hour",
    "a star as an argument": "select hour.start as h, max(to_json(struct(*))) as n from {T} group by hour",
    "a star in a filter": "select hour.start as h, count(*) as n from {T} where hash(*) > 0 group by hour",
    "a struct of all": "select hour.start as h, count(*) as n from (select struct(*) as s, at from {T}) where s is not null group by hour",
    "DISTINCT inside": "select hour.start as h, count(*) as n from (select distinct * from {T}) group by hour",
    "a set of rows": "select hour.start as h, count(*) as n from (select * from {T} union select * from {T}) group by hour",
    "GROUP BY ALL": "with q as (select *, hour.start as h, count(*) as n from {T} group by all) select h, n from q",
}  # fmt: skip


def readers(root: Path, query: str, more: str, kind: str = "json") -> tuple[Model, Model]:
    """The models that have a query over a source and over a model, of which both have more columns."""
    files = {"project.yml": "name: lab\n", "sources/shop.yml": SOURCES % (kind, more)}
    files |= model("streams: [shop.events]", "select * from {{ source('shop', 'events') }}", "stage")
    window = WINDOW if "hour" in query else ""
    for name, ref, of in (
        ("of_source", "shop.events", "source('shop', 'events')"),
        ("of_model", "stage", "ref('stage')"),
    ):
        files |= model(STREAM.format(name=ref) + window, query.replace("{T}", f"{{{{ {of} }}}}"), name)
    manifest = clean(root, files)
    return manifest.model("of_source"), manifest.model("of_model")


@pytest.mark.parametrize("name", UNREAD)
def test_a_query_that_does_not_read_a_new_column_is_what_it_was(tmp_path: Path, name: str) -> None:
    for old, new in zip(
        readers(tmp_path, UNREAD[name], ""), readers(tmp_path, UNREAD[name], ", more string"), strict=True
    ):
        assert (new.fingerprint, definition_hash(new.facts)) == (old.fingerprint, definition_hash(old.facts)), new.name


@pytest.mark.parametrize("name", READ)
def test_a_query_that_reads_a_new_column_has_changed(tmp_path: Path, name: str) -> None:
    # Before the column is there, what names it reads another one.
    before = readers(tmp_path, READ[name].replace("more", "kind"), "")
    for old, new in zip(before, readers(tmp_path, READ[name], ", more string"), strict=True):
        assert new.fingerprint != old.fingerprint, new.name


@pytest.mark.parametrize(
    "query",
    [
        "from {T} |> where id > 1",
        "from {T} |> where id > 1 |> drop kind",
        "table {T}",
        "with q as (select id from {T}) table {T}",
    ],
)
def test_all_columns_are_handed_on_without_a_star(tmp_path: Path, query: str) -> None:
    (old, _), (new, _) = readers(tmp_path, query, ""), readers(tmp_path, query, ", more string")
    assert new.fingerprint != old.fingerprint
    (old, _), (new, _) = (readers(tmp_path, query, f", more {kind}") for kind in ("int", "string"))
    assert new.fingerprint != old.fingerprint
    assert names_column(new.facts, "more")


@pytest.mark.parametrize(
    "query",
    [
        "select id from {T} natural join {T} as u",
        "select a from {T} pivot (max(amount) for kind in ('x' as a))",
        "select v from {T} unpivot (v for k in (amount))",
        "select identifier('mo' || 're') as more from {T}",
    ],
)
def test_what_decides_on_rows_by_all_columns_reads_them(tmp_path: Path, query: str) -> None:
    sql = query.replace("{T}", "{{ source('shop', 'events') }}")
    found = []
    for kind in ("int", "string"):
        files = {"project.yml": "name: lab\n", "sources/shop.yml": SOURCES % ("json", f", more {kind}")}
        found.append(clean(tmp_path, files | model("materialized: table", sql, "batch")).model("batch"))
    assert found[0].fingerprint != found[1].fingerprint


@pytest.mark.parametrize("relation", ["{T} as f(a, b)", "({T}) as f(a, b)", "{T} f(a, b)"])
def test_names_by_place_read_the_columns_whose_names_are_not_in_the_text(tmp_path: Path, relation: str) -> None:
    sql = f"select b from {relation}".replace("{T}", "{{ source('shop', 'events') }}")
    found = []
    for kind in ("double", "string"):
        sources = SOURCES.replace("id int, at timestamp, kind string, amount double", f"id int, amount {kind}")
        files = {"project.yml": "name: lab\n", "sources/shop.yml": sources % ("json", "")}
        found.append(clean(tmp_path, files | model("materialized: table", sql, "batch")).model("batch"))
    assert found[0].fingerprint != found[1].fingerprint
    assert comparable(found[0].facts, found[1].facts) != comparable(found[1].facts, found[0].facts)
    assert names_column(found[0].facts, "amount")


@pytest.mark.parametrize("read", [True, False])
def test_a_name_of_several_words_is_read_where_the_query_has_it(tmp_path: Path, read: bool) -> None:
    query = "select hour.start as h, max(`the kind`) as n from {T} group by hour"
    query = query if read else query.replace("`the kind`", "kind")
    old, new = (readers(tmp_path, query, f", `the kind` {kind}") for kind in ("int", "string"))
    assert [one.fingerprint != other.fingerprint for one, other in zip(old, new, strict=True)] == [read, read]


def test_a_query_that_uses_the_type_of_a_column_has_changed_with_it(tmp_path: Path) -> None:
    query = UNREAD["an inner star"]
    old, new = readers(tmp_path, query, ", more int"), readers(tmp_path, query, ", more string")
    assert [one.fingerprint for one in old] == [one.fingerprint for one in new]
    used = query.replace("sum(amount)", "max(more)")
    old, new = readers(tmp_path, used, ", more int"), readers(tmp_path, used, ", more string")
    assert all(one.fingerprint != other.fingerprint for one, other in zip(old, new, strict=True))


def test_a_column_of_csv_counts_where_it_moves_one_that_is_read(tmp_path: Path) -> None:
    query = UNREAD["names"]
    old, _ = readers(tmp_path, query, "", "csv")
    behind, _ = readers(tmp_path, query, ", more string", "csv")
    assert behind.fingerprint == old.fingerprint
    moved = SOURCES.replace("id int, at", "more string, id int, at")
    files = {"project.yml": "name: lab\n", "sources/shop.yml": moved % ("csv", "")}
    files |= model(
        STREAM.format(name="shop.events") + WINDOW, query.replace("{T}", "{{ source('shop', 'events') }}"), "m"
    )
    assert clean(tmp_path, files).model("m").facts.inputs != old.facts.inputs
