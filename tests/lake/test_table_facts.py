"""What is another table to those who read it, and to the one who wrote it: every change that an engine can make."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from engine.lake.table_facts import TableFacts, TableMetadata, ViewFacts, names_refs

ID = {"id": 1, "name": "id", "type": "int", "required": False, "doc": "Its number."}
ITEM = {"type": "struct", "fields": [{"id": 4, "name": "sku", "type": "string", "required": False}]}
ITEMS = {
    "id": 2,
    "name": "items",
    "type": {"type": "list", "element-id": 3, "element": ITEM, "element-required": False},
}
ITEMS["required"] = False
BY_KEY = {"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "int", "value-required": False}
KEYED = {"id": 5, "name": "keyed", "type": BY_KEY, "required": False}
SNAPSHOTS = [
    {"snapshot-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {"operation": "append"}},
    {"snapshot-id": 2, "parent-snapshot-id": 1, "timestamp-ms": 2, "schema-id": 0, "summary": {"operation": "append"}},
]
CONTENT: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "00000000-0000-4000-8000-000000000001",
    "location": "file:///lake/orders",
    "schemas": [{"schema-id": 0, "type": "struct", "fields": [ID, ITEMS, KEYED]}],
    "current-schema-id": 0,
    "snapshots": SNAPSHOTS,
    "current-snapshot-id": 2,
    "refs": {"main": {"snapshot-id": 2, "type": "branch"}, "audit": {"snapshot-id": 1, "type": "tag"}},
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "properties": {"owner": "sales"},
}
PART = {"source-id": 1, "field-id": 1000, "transform": "bucket[4]", "name": "id_bucket"}
SORT = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
Edit = Callable[[dict[str, Any]], Any]


def fields(content: dict[str, Any]) -> list[dict[str, Any]]:
    return content["schemas"][0]["fields"]  # type: ignore[no-any-return]


def of_field(number: int, **changes: Any) -> Edit:
    return lambda content: fields(content)[number].update(changes)


def in_type(number: int, **changes: Any) -> Edit:
    return lambda content: fields(content)[number]["type"].update(changes)


def of_item(**changes: Any) -> Edit:
    return lambda content: fields(content)[1]["type"]["element"]["fields"][0].update(changes)


def set_ref(name: str, snapshot: int) -> Edit:
    return lambda content: content["refs"].update({name: {"snapshot-id": snapshot, "type": "tag"}})


# For whom each is another table: those who read it, those who read its tags too, and who wrote it.
BOTH, TAGS, WRITER, NOBODY = {"read", "tags", "made"}, {"tags"}, {"made"}, set[str]()
EDITS: dict[str, tuple[Edit, set[str]]] = {
    "nothing": (lambda _: None, NOBODY),
    "dropped and created": (lambda c: c.update({"table-uuid": "00000000-0000-4000-8000-000000000002"}), {"read", "tags"}),
    "a commit": (lambda c: c.update({"current-snapshot-id": 1}), {"read", "tags"}),
    "all rows gone": (lambda c: c.update({"current-snapshot-id": -1}), {"read", "tags"}),
    "a column dropped": (lambda c: fields(c).pop(), BOTH),
    "a column added": (lambda c: fields(c).append({"id": 9, "name": "x", "type": "int", "required": False}), BOTH),
    "a column dropped and added": (of_field(0, id=9), BOTH),
    "a column renamed": (of_field(0, name="number"), BOTH),
    "columns reordered": (lambda c: fields(c).reverse(), BOTH),
    "a type promoted": (of_field(0, type="long"), BOTH),
    "a column required": (of_field(0, required=True), BOTH),
    "a default for rows before": (of_field(0, **{"initial-default": 7}), BOTH),
    "another default for rows to come": (of_field(0, **{"write-default": 7}), NOBODY),
    "a comment": (of_field(0, doc="Another."), NOBODY),
    "a nested field dropped and added": (of_item(id=9), BOTH),
    "a nested field renamed": (of_item(name="code"), BOTH),
    "a nested field promoted": (of_item(type="binary"), BOTH),
    "a comment of a nested field": (of_item(doc="Another."), NOBODY),
    "another element of a list": (in_type(1, **{"element-id": 9}), BOTH),
    "another value of a map": (in_type(2, **{"value-id": 9}), BOTH),
    "another key of a map": (in_type(2, **{"key-id": 9}), BOTH),
    "values of a map required": (in_type(2, **{"value-required": True}), BOTH),
    "a tag moved": (set_ref("audit", 2), TAGS),
    "a tag made": (set_ref("more", 1), TAGS),
    "a tag dropped": (lambda c: c["refs"].pop("audit"), TAGS),
    "a tag of maintenance": (set_ref("engine_reader", 1), NOBODY),
    "a name mapping for files without ids": (lambda c: c["properties"].update({"schema.name-mapping.default": "[]"}), BOTH),
    "another property": (lambda c: c["properties"].update({"write.format.default": "orc"}), NOBODY),
    "another partitioning": (
        lambda c: c.update({"partition-specs": [{"spec-id": 1, "fields": [PART]}], "default-spec-id": 1}), WRITER),
    "the same partitioning by another number": (
        lambda c: c.update({"partition-specs": [{"spec-id": 1, "fields": []}], "default-spec-id": 1}), NOBODY),
    "another order": (
        lambda c: c.update({"sort-orders": [{"order-id": 1, "fields": [SORT]}], "default-sort-order-id": 1}), WRITER),
    "an old snapshot expired": (lambda c: c["snapshots"].pop(0), NOBODY),
    "another format": (lambda c: c.update({"format-version": 3}), NOBODY),
    # REGISTER of older metadata keeps the UUID.
    "registered as it was before a column": (lambda c: (fields(c).pop(), c.update({"current-snapshot-id": 1})), BOTH),
}  # fmt: skip


def facts(content: dict[str, Any], branch: str | None = None) -> TableFacts:
    return TableMetadata(Path("/lake"), content).facts(branch, None)


@pytest.mark.parametrize("what", EDITS)
def test_what_is_another_table_and_for_whom(what: str) -> None:
    edit, wanted = EDITS[what]
    content = deepcopy(CONTENT)
    edit(content)
    before, after = facts(deepcopy(CONTENT)), facts(content)
    found = {
        "read": before.position() != after.position(),
        "tags": before.position(refs=True) != after.position(refs=True),
        "made": before.shape != after.shape,
    }
    assert {who for who, differs in found.items() if differs} == wanted


def test_a_tag_of_a_replaced_table_is_read_with_the_columns_of_its_snapshot() -> None:
    content = deepcopy(CONTENT)
    later = {"schema-id": 1, "type": "struct", "fields": [{**ID, "id": 8}]}
    content["schemas"].append(later)
    content["snapshots"].append(
        {"snapshot-id": 3, "timestamp-ms": 3, "schema-id": 1, "summary": {"operation": "append"}}
    )
    content["refs"]["engine_staged"] = {"snapshot-id": 3, "type": "branch"}
    staged = facts(content, "engine_staged")
    assert staged.shape["columns"] != facts(content).shape["columns"]
    content["current-schema-id"] = 1
    assert facts(content).shape["columns"] == staged.shape["columns"]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select * from t version as of 'x'", True),
        ("select * from t VERSION/**/AS\nOF 'x'", True),
        ("select * from t timestamp as of '2024-01-01'", True),
        ("select id, often from t where office = 1", False),
    ],
)
def test_a_query_names_tags_by_a_clause_only(sql: str, names: bool) -> None:
    assert names_refs(sql) is names


def test_columns_that_were_replaced_are_found_inside_others() -> None:
    content = deepcopy(CONTENT)
    now = deepcopy(content["schemas"][0])
    now["schema-id"] = 1
    now["fields"][0]["id"] = 8
    now["fields"][1]["type"]["element"]["fields"][0]["id"] = 9
    now["fields"][2]["name"] = "by_key"
    content.update({"schemas": [content["schemas"][0], now], "current-schema-id": 1})
    table = facts(content)
    assert table.replaced_columns(0) == [("id",), ("items", "element", "sku")]
    assert table.replaced_columns(1) == table.replaced_columns(None) == table.replaced_columns(7) == []


VIEW: dict[str, Any] = {
    "view-uuid": "a",
    "schemas": [{"schema-id": 0, "fields": [ID]}],
    "versions": [
        {
            "version-id": 1,
            "schema-id": 0,
            "representations": [{"type": "sql", "sql": "select id from x", "dialect": "spark"}],
            "default-namespace": ["s"],
        }
    ],
    "current-version-id": 1,
}
VIEW_EDITS: dict[str, tuple[Edit, bool]] = {
    "another uuid": (lambda v: v.update({"view-uuid": "b"}), True),
    "another text": (lambda v: v["versions"][0]["representations"][0].update(sql="select id + 1 as id from x"), True),
    "another namespace": (lambda v: v["versions"][0].update({"default-namespace": ["t"]}), True),
    "another type": (lambda v: v["schemas"][0]["fields"][0].update(type="long"), True),
    "another comment": (lambda v: v["schemas"][0]["fields"][0].update(doc="Another."), False),
    "the same query as another version": (
        lambda v: (v["versions"][0].update({"version-id": 2}), v.update({"current-version-id": 2})),
        False,
    ),
    "a property": (lambda v: v.update(properties={"a": "b"}), False),
}


@pytest.mark.parametrize("what", VIEW_EDITS)
def test_a_view_is_its_query(what: str) -> None:
    edit, differs = VIEW_EDITS[what]
    content = deepcopy(VIEW)
    edit(content)
    assert (ViewFacts.from_metadata(VIEW).shape != ViewFacts.from_metadata(content).shape) is differs
