"""What the plan says of the columns of an edited query beside those of its table, where compile knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Manifest, Model
from engine.errors import Diagnostic
from engine.lake.catalog.iceberg_types import spark_struct
from engine.lake.schema_match import type_text
from engine.lake.table_facts import TableFacts
from engine.plan import ActionKind, DeployedModel, PlanOptions, Reset, make_plan
from engine.plan.comparison import Change, Comparison
from engine.plan.tables.column_checks import given_before, model_struct, spark_document
from engine.state import ModelState
from tests.column_edits import CHANGED
from tests.plan.deployed import SOURCE, batch, deployed, file, streaming, table
from tests.plan.test_plan import manifest

A = file("a")
FROM = "{{ source('shop', 'events') }}"
# Spark's types, each as the metadata of a table has it.
METADATA: Mapping[str, Any] = {
    "int": "int", "bigint": "long", "double": "double", "float": "float", "string": "string", "boolean": "boolean",
    "date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp", "binary": "binary",
    "decimal(8,6)": "decimal(8,6)", "decimal(10,1)": "decimal(10, 1)", "decimal(12,2)": "decimal(12,2)", "variant": "variant",
}  # fmt: skip


def text(columns: str, settings: str = "") -> str:
    return f"/*---\nstreams: [shop.events]\n{settings}\n---*/\nselect {columns} from {FROM}\n"


def metadata(document: Any) -> Any:
    """A type in Spark's JSON as the metadata of a table has it."""
    if isinstance(document, str):
        return METADATA[type_text(document)]
    match document["type"]:
        case "struct":
            fields = [{"name": f["name"], "type": metadata(f["type"]), "required": False} for f in document["fields"]]
            return {"type": "struct", "fields": fields}
        case "array":
            return {"type": "list", "element": metadata(document["elementType"]), "element-required": False}
    return {"type": "map", "key": metadata(document["keyType"]), "value": metadata(document["valueType"])}


def made(model: Model, **changes: Any) -> TableFacts:
    """The table that a model's query would make."""
    now = model_struct(model)
    assert now is not None, model.columns
    fields = tuple(metadata(now)["fields"])
    names = tuple((field["name"], "") for field in fields)
    return replace(table(model), columns=names, fields=fields, **changes)


def known_of(model: Model, **changes: Any) -> DeployedModel:
    found = streaming(model, [A])
    assert found.state is not None
    columns = tuple(column.name for column in model.columns)
    known = made(model, **changes)
    return replace(found, state=replace(found.state, columns=columns), table=known, written=known)


def edited(root: Path, before: str, after: str, **options: Any) -> list[Diagnostic]:
    """The refusals of a model whose table was made by another text."""
    old = manifest(root, before).model("m")
    now = manifest(root, after)
    action = make_plan(now, ["model.m"], deployed(now, {"m": known_of(old)}, [A]), PlanOptions(**options)).actions
    return list(action["model.m"].refusals)


@pytest.mark.parametrize("name", CHANGED)
def test_a_type_that_the_table_cannot_hold_is_rejected(tmp_path: Path, name: str) -> None:
    settings, before, after, path, there, given = CHANGED[name]
    (found,) = edited(tmp_path, text(f"id, {before}", settings), text(f"id, {after}", settings))
    assert found.code == "table-schema"
    assert f"'{path}' is {there} in lake.s.m and {given} in the query" in found.message
    assert found.location is not None
    assert "engine build -f -s m" in found.hint


def test_new_and_missing_columns_are_named_together(tmp_path: Path) -> None:
    (found,) = edited(tmp_path, text("id, kind, struct(id as a, kind as b) as s"),
                      text("id, amount, struct(id as a, amount as c) as s"))  # fmt: skip
    assert found.message == (
        "lake.s.m has no column amount, s.c; lake.s.m has the column kind, which the query no longer returns; "
        "lake.s.m has the field s.b, which the query no longer returns"
    )


@pytest.mark.parametrize(
    ("settings", "before", "after"),
    [
        ("", "id, amount", "ID, Amount"),
        ("", "cast(id as bigint) as v", "id as v"),
        ("", "id as v", "cast(id as bigint) as v"),
        ("", "id as v", "cast(id as smallint) as v"),
        ("on_schema_change: append_columns", "id, kind", "id, amount"),
        ("on_schema_change: ignore", "id, kind", "id, amount"),
        ("", "id, kind as v", "id, cast(null as string) as v"),
        # What compile only takes a type to be, as of a part of a time, does not reject.
        ("", "id, cast(id as decimal(8,6)) as v", "id, extract(hour from at) as v"),
        ("", "id, struct(kind as n) as v", "id, struct(extract(hour from at) as n) as v"),
        # Only Spark knows the name, or the type.
        ("", "id, kind", "id, kind, extract(hour from at)"),
        ("", "id, kind", "id, kind, from_json(kind, schema_of_json('[1]')) as v"),
    ],
)
def test_what_fits_or_is_not_known_is_left_to_the_build(tmp_path: Path, settings: str, before: str, after: str) -> None:
    old = manifest(tmp_path, text(before, settings)).model("m")
    now = manifest(tmp_path, text(after, settings))
    actions = make_plan(now, ["model.m"], deployed(now, {"m": known_of(old)}, [A]), PlanOptions()).actions
    assert actions["model.m"].refusals == ()
    assert actions["model.m"].kind is ActionKind.RESUME


@pytest.mark.slow
def test_a_table_that_is_rebuilt_takes_any_columns_and_one_that_is_reset_does_not(tmp_path: Path) -> None:
    before, after = (text(columns, "unique_key: id") for columns in ("id, kind", "id, amount as kind"))
    assert [f.code for f in edited(tmp_path, before, after)] == ["table-schema"]
    assert edited(tmp_path, before, after, full_refresh=True) == []
    assert [f.code for f in edited(tmp_path, before, after, reset=Reset(None))] == ["table-schema"]


def test_a_column_that_others_dropped_is_missed_though_the_model_is_unchanged(tmp_path: Path) -> None:
    now = manifest(tmp_path, text("id, kind"))
    known = known_of(now.model("m"))
    assert known.written is not None

    def refusals(**changes: Any) -> list[str]:
        found = replace(known, written=replace(known.written, **changes))  # type: ignore[type-var]
        actions = make_plan(now, ["model.m"], deployed(now, {"m": found}, [A]), PlanOptions()).actions
        return [refusal.message for refusal in actions["model.m"].refusals]

    assert refusals() == []
    fewer = {"columns": known.written.columns[:1], "fields": known.written.fields[:1]}
    assert refusals(**fewer) == ["lake.s.m has no column kind"]
    added = {
        "columns": (*known.written.columns, ("more", "int")),
        "fields": (*known.written.fields, {"name": "more", "type": "int"}),
    }
    assert refusals(**added) == []


READER = "/*---\nstreams: [m]\n---*/\nselect {} from {{{{ ref('m') }}}}\n"


@pytest.mark.slow
def test_a_table_that_is_read_counts_with_the_columns_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    reader = tmp_path / "models" / "reader.sql"
    reader.write_text(READER.format("*"))
    old = manifest(tmp_path, text("id, kind", "on_schema_change: ignore"))
    readers, upstream = known_of(old.model("reader")), known_of(old.model("m"))
    assert readers.checkpoint is not None
    assert readers.state is not None
    start = {"model.m": {"uuid": "u", "seed": None}}
    offsets = ({"snapshot_id": 1},)
    readers = replace(
        readers,
        checkpoint=replace(readers.checkpoint, offsets=offsets, started_offsets=offsets, logs=()),
        state=replace(readers.state, starts=start),
    )

    def codes(now: Manifest, selected: str = "model.reader") -> list[str]:
        there = deployed(now, {"m": upstream, "reader": readers}, [A])
        return [r.code for r in make_plan(now, [selected], there, PlanOptions()).actions[selected].refusals]

    # The query of `m` has another column now; its table has not, and a star gives what the table has.
    now = manifest(tmp_path, text("id, amount", "on_schema_change: ignore"))
    assert codes(now) == []
    # With the columns that compile takes it to have, the edited reader is rejected.
    reader.write_text(READER.format("id, kind, upper(kind) as loud"))
    assert codes(manifest(tmp_path, text("id, kind", "on_schema_change: ignore"))) == ["table-schema"]
    assert codes(manifest(tmp_path, text("id, cast(kind as string) as kind, amount", "on_schema_change: ignore"))) == []


def test_partitions_that_are_kept_have_the_columns_of_the_table(tmp_path: Path) -> None:
    parts = "/*---\nmaterialized: table\noverwrite: partitions\npartition_by: [day]\n---*/\nselect {} as day, id from "
    old = manifest(tmp_path, parts.format("to_date(at)") + FROM).model("m")
    known = made(old)
    found = replace(batch(old, {SOURCE: {}}), table=known, written=known)
    now = manifest(tmp_path, parts.format("kind") + FROM)
    actions = make_plan(now, ["model.m"], deployed(now, {"m": found}, [A]), PlanOptions()).actions["model.m"]
    (refusal,) = actions.refusals
    assert "'day' is date in lake.s.m and string in the query" in refusal.message
    whole = manifest(tmp_path, parts.replace("overwrite: partitions\n", "").format("kind") + FROM)
    actions = make_plan(whole, ["model.m"], deployed(whole, {"m": found}, [A]), PlanOptions()).actions["model.m"]
    assert actions.refusals == ()


def test_another_meaning_of_types_is_left_to_spark(tmp_path: Path) -> None:
    old, new = text("id, kind"), text("id, kind, amount", "pre_hook: 'create temporary function f as ''x.F'''")
    now = manifest(tmp_path, old)
    known = known_of(now.model("m"))
    now = manifest(tmp_path, new)
    action = make_plan(now, ["model.m"], deployed(now, {"m": known}, [A]), PlanOptions()).actions["model.m"]
    assert [r.code for r in action.refusals if r.code == "table-schema"] == []


@pytest.mark.parametrize(
    "type_",
    [
        "int",
        "bigint",
        "decimal(38,9)",
        "array<map<string,struct<a:double,b:timestamp_ntz>>>",
        "struct<a:array<binary>>",
    ],
)
def test_a_type_has_one_text_both_ways(type_: str) -> None:
    document = spark_document(type_)
    assert document is not None
    assert type_text(document) == type_


def test_what_no_table_holds_and_spark_lacks_is_not_known() -> None:
    assert [spark_document(t) for t in (None, "interval day", "array<interval day>", "time(6)")] == [None] * 4
    assert spark_document("struct<a:tinyint>") == {"type": "struct", "fields": [{"name": "a", "type": "integer"}]}
    assert spark_struct([{"name": "a", "type": "time"}]) is None
    assert spark_struct([{"name": "a", "type": {"type": "list", "element": "geometry"}}]) is None


@pytest.mark.slow
def test_a_reader_of_an_edited_table_is_rejected_where_that_is_built_before_it(tmp_path: Path) -> None:
    joined = text("e.id, s.* except (id)").replace(FROM, f"{FROM} e join {{{{ ref('static') }}}} s on s.id = e.id")
    static = tmp_path / "models" / "static.sql"
    static.parent.mkdir()
    static.write_text("select id, 7 as more from range(5)")
    old = manifest(tmp_path, joined)
    known = made(old.model("static"))
    found = {
        "m": known_of(old.model("m")),
        "static": replace(batch(old.model("static"), {}), table=known, written=known),
    }

    def messages(*selected: str) -> list[str]:
        now = manifest(tmp_path, joined)
        actions = make_plan(now, selected, deployed(now, found, [A]), PlanOptions()).actions
        return [refusal.message for refusal in actions["model.m"].refusals]

    assert messages("model.static", "model.m") == []
    static.write_text("select id, 7 as other from range(5)")
    assert messages("model.static", "model.m") == [
        "lake.s.m has no column other; lake.s.m has the column more, which the query no longer returns"
    ]
    # Without it the table has the columns of before.
    assert messages("model.m") == []
    again = made(manifest(tmp_path, joined).model("static"))
    found["static"] = replace(found["static"], table=again, written=again)
    assert len(messages("model.m")) == 1
    found["static"] = replace(found["static"], table=known, written=known)
    static.write_text("/*---\npublish: on_tests_pass\n---*/\nselect id, 7 as other from range(5)")
    assert messages("model.static", "model.m") == []


@pytest.mark.parametrize(
    ("columns", "change", "refresh", "expected"),
    [
        (("Id", "kind"), Change.FORWARD, False, {"id", "kind"}),
        # An earlier version did not note them: those of the table count once the query was edited.
        ((), Change.UNCHANGED, False, set()),
        ((), Change.FORWARD, False, None),
        ((), Change.UNCHANGED, True, None),
        ((), None, False, None),
        (None, Change.NEW, False, set()),
        (None, None, False, set()),
    ],
)
def test_the_columns_that_a_query_gave_before(
    columns: tuple[str, ...] | None, change: Change | None, refresh: bool, expected: set[str] | None
) -> None:
    state = None if columns is None else ModelState("lake.s.m", columns=columns)
    comparison = None if change is None else Comparison(change)
    assert given_before(state, comparison, refresh=refresh) == expected
