"""What a turn of `--watch` runs, from the plan and from what was edited."""

from __future__ import annotations

import pytest

from engine.api.watched_project import nodes_due
from engine.compile import Manifest
from engine.errors import Diagnostic
from engine.node_ids import shown_name
from engine.plan import Action, ActionKind, Plan
from tests.project.small_projects import ORDERS, clean

FILES: dict[str, str | bytes] = {
    "models/orders.sql": f"/*---\ncolumns: {{id: {{tests: [not_null]}}}}\n---*/\n{ORDERS}",
    "models/ids.sql": "/*---\ncolumns: {id: {tests: [unique]}}\n---*/\nselect id from {{ ref('orders') }}\n",
    "models/customers.sql": "select id, name from {{ source('shop', 'customers') }}\n",
    "sources/more.yml": "sources:\n  - name: more\n    tables:\n      - {name: rows, format: json, path: landing/rows, "
    "schema: id string, columns: {id: {tests: [not_null]}}}\n",
    "models/rows.sql": "select id from {{ source('more', 'rows') }}\n",
    "tests/units.yml": "unit_tests:\n"
    "  - {name: one, model: ids, given: {orders: [{id: a}]}, expect: [{id: a}]}\n"
    "  - {name: two, model: customers, given: {shop.customers: [{id: b}]}, expect: [{id: b}]}\n",
}
ORDERS_, IDS, CUSTOMERS, ROWS = "model.orders", "model.ids", "model.customers", "model.rows"
NOT_NULL, UNIQUE, ONE, TWO = (
    "test.not_null_orders_id.a0fe0444db",
    "test.unique_ids_id.d70d99787c",
    "unit_test.ids.one",
    "unit_test.customers.two",
)
SOURCE_TEST = "test.source_not_null_more_rows_id.08ca61b292"
NODES = (SOURCE_TEST, ORDERS_, NOT_NULL, ONE, IDS, UNIQUE, TWO, CUSTOMERS, ROWS)
REFUSAL = Diagnostic("model-changed", "no")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return clean(tmp_path_factory.mktemp("shop"), FILES)


def plan(**known: bool | Diagnostic | None) -> Plan:
    """The plan of NODES: unchanged but for what is said by name, without what is before the last dot."""
    actions = {}
    for node in NODES:
        word = known.get(shown_name(node).rpartition(".")[2], True)
        refusals, unchanged = ((word,), None) if isinstance(word, Diagnostic) else ((), word)
        kind = ActionKind.RESUME if node.startswith("model.") else ActionKind.TEST
        actions[node] = Action(node, kind, refusals=refusals, unchanged=unchanged)
    return Plan(actions)


CASES = {
    "nothing": ({}, set(), []),
    "an edit that changes nothing": ({}, {ORDERS_, ONE}, []),
    "work": ({"customers": False}, set(), [CUSTOMERS]),
    "work, and what is downstream": (
        {"orders": False, "not_null_orders_id": None, "ids": None, "unique_ids_id": None},
        set(),
        [ORDERS_, NOT_NULL, IDS, UNIQUE],
    ),
    "an edited model with its unit test": ({"ids": False, "one": None, "unique_ids_id": None}, {IDS}, [ONE, IDS, UNIQUE]),
    "a topic that may have more": ({"customers": None}, set(), []),
    "a topic that may have more, edited": ({"customers": None}, {CUSTOMERS}, [CUSTOMERS]),
    "a test that is never kept": ({"two": None}, set(), []),
    "a test that failed": ({"two": None}, {TWO}, [TWO]),
    "a test of a source that a model reads again": ({"source_not_null_more_rows_id": None, "rows": False}, set(), [SOURCE_TEST, ROWS]),
    "a test of a source, of which nothing is known": ({"source_not_null_more_rows_id": None}, set(), []),
    "rejected": ({"ids": REFUSAL}, set(), [IDS]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_due(manifest: Manifest, name: str) -> None:
    known, touched, due = CASES[name]
    assert nodes_due(manifest, plan(**known), touched) == due  # type: ignore[arg-type]


def test_without_the_cache_the_tests_of_what_is_due_run_too(manifest: Manifest) -> None:
    assert nodes_due(manifest, plan(ids=False), {ONE}, no_cache=True) == [ONE, IDS, UNIQUE]
    assert nodes_due(manifest, plan(), {TWO, NOT_NULL}, no_cache=True) == [NOT_NULL, TWO]
    assert nodes_due(manifest, plan(), set(), no_cache=True) == []
