"""Which columns of other models an edit affects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Manifest
from engine.plan.changed_values import query_changes
from engine.plan.edits.affected_columns import affected_exposures, affected_models, affected_text
from tests.project.small_projects import clean, orders_with

pytestmark = pytest.mark.slow

ORDERS = (
    "select id, upper(kind) as kind, amount, amount * 2 as twice from {{ source('shop', 'orders') }} where id > 0\n"
)
MODELS = {
    "orders": ORDERS,
    "by_kind": "select kind, sum(amount) as total from {{ ref('orders') }} group by kind\n",
    "wide": "select id, kind || '!' as label, amount from {{ ref('orders') }}\n",
    "labels": "select label from {{ ref('wide') }}\n",
    "ids": "select id from {{ ref('orders') }} where amount > 3\n",
    "apart": "select 1 as one\n",
}


def _orders(root: Path, text: str, below: dict[str, str] | None = None) -> tuple[Manifest, Mapping[str, Any]]:
    """A project, and the facts of its orders."""
    models = {**(MODELS if below is None else below), "orders": text}
    files = {f"models/{name}.sql": sql for name, sql in models.items()}
    manifest = clean(root, {**files, **orders_with("id int, kind string, amount double")})
    return manifest, manifest.model("orders").facts


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (("upper(kind)", "lower(kind)"), "affects by_kind (its rows), labels (label), wide (label)"),
        (("amount, ", "amount + 1 as amount, "), "affects by_kind (total), ids (its rows), wide (amount)"),
        (("amount * 2", "amount * 3"), ""),
        ((", amount * 2 as twice", ""), ""),
        (("twice from", "twice, 1 as one from"), ""),
        (("id > 0", "id > 1"), "affects by_kind (its rows), ids (its rows), labels (its rows), wide (its rows)"),
        (("select id", "select distinct id"), "affects by_kind (its rows), ids (its rows), labels (its rows), wide (its rows)"),
        (("select id, ", "SELECT  id,\n"), ""),
    ],
    ids=["column", "two-columns", "unread", "removed", "added", "filter", "distinct", "spelling"],
)  # fmt: skip
def test_an_edit(edited: tuple[str, str], expected: str, tmp_path: Path) -> None:
    before = _orders(tmp_path / "before", ORDERS)[1]
    manifest, _ = _orders(tmp_path / "after", ORDERS.replace(*edited))
    found = affected_models(manifest, manifest.model("orders"), before)
    names = sorted(affected_text(tuple(sorted(found, key=lambda one: one.name))))
    assert names == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("percentile_cont(0.5) within group (order by amount)", "percentile_disc(0.5) within group (order by amount)"),
        ("to_char(sum(amount), '999')", "to_char(sum(amount), '000')"),
        ("max_by(kind, amount)", "min_by(kind, amount)"),
        ("percentile(amount, 0.5, 1)", "percentile(amount, 0.5, 2)"),
    ],
)
def test_functions_that_sqlglot_writes_as_one_are_two(was: str, now: str, tmp_path: Path) -> None:
    sql = f"select kind, {was} as middle, count(*) as n from {{{{ source('shop', 'orders') }}}} group by kind\n"
    below = {
        "one": "select kind, middle from {{ ref('orders') }}\n",
        "two": "select kind, n from {{ ref('orders') }}\n",
    }
    before = _orders(tmp_path / "before", sql, below)[1]
    manifest, after = _orders(tmp_path / "after", sql.replace(was, now), below)
    found = affected_models(manifest, manifest.model("orders"), before)
    assert list(affected_text(found)) == ["affects one (middle)"]
    shown = query_changes(before, after)
    assert [line[0] for line in shown] == ["-", "+"]
    assert shown[0][1:] != shown[1][1:]
    assert "PERCENTILE_APPROX" not in "".join(shown)


SOURCE = "{{ source('shop', 'orders') }}"


@pytest.mark.parametrize(
    ("sql", "read", "columns"),
    [
        (f"select upper(kind) as kind2, kind2 || 'x' as both from {SOURCE}\n", "both", ("both",)),
        (f"select upper(kind) as word, count(*) as n from {SOURCE} group by word\n", "n", None),
        (f"select upper(kind) as word, count(*) as n from {SOURCE} group by 1\n", "n", None),
        (f"select upper(kind) as word, count(*) as n from {SOURCE} group by all\n", "n", None),
        (f"select upper(kind) as word, id from {SOURCE} order by 1 limit 2\n", "id", None),
        (f"select upper(kind) as word, id from {SOURCE} order by 2 limit 2\n", "word", ("word",)),
        (f"select upper(kind) as word, 'word' as n from {SOURCE} where amount > 1 -- word\n", "word", ("word",)),
        (ORDERS.replace("select", "select distinct"), "id", None),
    ],
    ids=[
        "part-of-another-column",
        "alias-as-group-key",
        "place-as-group-key",
        "all",
        "place-in-order",
        "other-place",
        "string",
        "distinct",
    ],
)
def test_what_follows_from_a_column_within_its_query(
    sql: str, read: str, columns: tuple[str, ...] | None, tmp_path: Path
) -> None:
    below = {"all": f"select {read} from {{{{ ref('orders') }}}}\n"}
    before = _orders(tmp_path / "before", sql, below)[1]
    manifest, _ = _orders(tmp_path / "after", sql.replace("upper", "lower"), below)
    (found,) = affected_models(manifest, manifest.model("orders"), before)
    assert (found.name, found.columns) == ("all", columns)


@pytest.mark.parametrize(
    ("edited", "columns"),
    [
        (("upper(kind)", "lower(kind)"), ("word",)),
        (("where id > 0", "where id > 1"), None),
        (("amount + 1", "amount + 2"), ()),
    ],
    ids=["column", "filter", "unread"],
)
def test_an_edit_of_an_ephemeral_model(
    edited: tuple[str, str], columns: tuple[str, ...] | None, tmp_path: Path
) -> None:
    """It is inside the query of the model that reads it, whose own text stays what it was."""
    text = f"select id, upper(kind) as word_, amount + 1 as more from {SOURCE} where id > 0"

    def project(name: str, inner: str) -> Manifest:
        files = {
            "models/inner.sql": f"/*---\nmaterialized: ephemeral\n---*/\n{inner}\n",
            "models/orders.sql": "select id, word_ as word from {{ ref('inner') }}\n",
            "models/all.sql": "select id as number, word from {{ ref('orders') }}\n",
        }
        return clean(tmp_path / name, {**files, **orders_with("id int, kind string, amount double")})

    manifest = project("after", text.replace(*edited))
    found = affected_models(manifest, manifest.model("orders"), project("before", text).model("orders").facts)
    assert [one.columns for one in found if one.name == "all"] == ([] if columns == () else [columns])


def test_a_column_of_a_column_of_a_column(tmp_path: Path) -> None:
    sql = f"select upper(kind) as first, first || 'x' as second, second || 'y' as third from {SOURCE}\n"
    below = {"all": "select third from {{ ref('orders') }}\n"}
    before = _orders(tmp_path / "before", sql, below)[1]
    manifest, _ = _orders(tmp_path / "after", sql.replace("upper", "lower"), below)
    assert [one.columns for one in affected_models(manifest, manifest.model("orders"), before)] == [("third",)]


def test_an_edit_of_what_takes_rows_out_affects_all(tmp_path: Path) -> None:
    rule = "/*---\nexpectations: [{name: some, check: id > 0, on_fail: drop}]\n---*/\n"
    before = _orders(tmp_path / "before", rule + ORDERS)[1]
    manifest, _ = _orders(tmp_path / "after", rule.replace("> 0", "> 1") + ORDERS)
    found = affected_models(manifest, manifest.model("orders"), before)
    assert {one.name: one.columns for one in found} == dict.fromkeys(MODELS.keys() - {"orders", "apart"})


def test_many_are_counted(tmp_path: Path) -> None:
    below = {f"m{number}": "select id from {{ ref('orders') }}\n" for number in range(9)}
    before = _orders(tmp_path / "before", ORDERS, below)[1]
    manifest, _ = _orders(tmp_path / "after", ORDERS.replace("select id", "select id + 1 as id"), below)
    (text,) = affected_text(affected_models(manifest, manifest.model("orders"), before))
    assert text.endswith(" and 3 more")


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (("upper(kind)", "lower(kind)"), ("of_labels", "of_orders")),
        (("amount * 2", "amount * 3"), ("of_orders",)),
        ((", amount * 2 as twice", ""), ("of_orders",)),
        (("twice from", "twice, 1 as one from"), ()),
        (("id > 0", "id > 1"), ("of_labels", "of_orders")),
    ],
    ids=["column", "unread", "removed", "added", "filter"],
)
def test_exposures(edited: tuple[str, str], expected: tuple[str, ...], tmp_path: Path) -> None:
    """One that reads the edited model, or one that the edit affects; a new column is read by none."""
    before = _orders(tmp_path / "before", ORDERS)[1]
    readers = {"of_orders": "orders", "of_labels": "labels", "of_apart": "apart"}
    text = "exposures:\n" + "".join(
        f"  - {{name: {name}, type: ml, owner: {{name: x}}, depends_on: [{model}]}}\n"
        for name, model in readers.items()
    )
    files = {f"models/{name}.sql": sql for name, sql in {**MODELS, "orders": ORDERS.replace(*edited)}.items()}
    columns = orders_with("id int, kind string, amount double")
    manifest = clean(tmp_path / "after", {**files, **columns, "models/readers.yml": text})
    model = manifest.model("orders")
    found = affected_models(manifest, model, before)
    exposures = affected_exposures(manifest, model, before, found)
    assert exposures == expected
    word = "exposures" if len(expected) > 1 else "exposure"
    assert list(affected_text((), exposures)) == [f"read by the {word} {', '.join(expected)}"][: len(expected)]
