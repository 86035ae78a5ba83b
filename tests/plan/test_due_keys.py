"""Which edits of a model's header make a built table, stream or view due: one row for each key of the schema."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.compile import Manifest, Materialized, Model
from engine.lake.table_facts import TableFacts, ViewFacts
from engine.plan import Action, DeployedModel, LastWriter
from engine.plan.actions.descriptions import comments_of
from engine.plan.actions.unchanged import batch_inputs_now
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.schema.all_blocks import BLOCKS
from engine.schema.config_key import ConfigBlock
from engine.schema.model_keys import MODEL
from tests.lab import EVENTS, PROJECT
from tests.plan.deployed import batch, deployed, file, streaming, table
from tests.plan.test_actions import plan
from tests.project.small_projects import clean

A = file("a")
BASE = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind, amount from {{ source('shop', 'events') }}"
ROWS = "select id, at, kind, amount from {}"
GROUPS = "select kind, count(*) as n from {} group by kind"
FROM = {"stream": "{{ source('shop', 'events') }}", "table": "{{ ref('base') }}", "view": "{{ ref('base') }}"}
HEADERS: dict[str, dict[str, Any]] = {
    "stream": {"streams": {"shop.events": {}}},
    "table": {"materialized": "table"},
    "view": {"materialized": "view"},
}
SAME, DUE, NO = "unchanged", "due", "rejected"
PRICE = {"name": "paid", "check": "amount > 0"}
KEYED = {"unique_key": "id", "sequence_by": "at"}
EXTRACT = {"unique_key": "id", "history": True, "check": "all", "deletes": "close"}
MARK = {"streams": {"shop.events": {"watermark": "at delay 5 minutes"}}}


def mark(**keys: str) -> dict[str, Any]:
    return {"streams": {"shop.events": {"watermark": {"column": "at", "delay": "5 minutes", **keys}}}}


@dataclass(frozen=True)
class Row:
    """An edit of the header, and what becomes of each kind; a kind that cannot have the key is not named."""

    after: dict[str, Any]
    stream: str = ""
    table: str = ""
    view: str = ""
    before: dict[str, Any] = field(default_factory=dict)
    sql: str = ROWS


def everywhere(after: dict[str, Any], result: str, **changes: Any) -> Row:
    return Row(after, result, result, result, **changes)


def of_tables(after: dict[str, Any], stream: str, table: str, **changes: Any) -> Row:
    return Row(after, stream, table, **changes)


def of_test(**config: Any) -> Row:
    """Tests are nodes of their own: their passes are kept apart."""
    before, after = ({"columns": {"id": {"tests": [{"not_null": said}]}}} for said in ({}, config))
    return everywhere(after, SAME, before=before)


TYPED = {"id": {"type": "int"}, "at": {"type": "timestamp"}, "kind": {"type": "string"}, "amount": {"type": "double"}}


def of_check(stream: str = SAME, table: str = DUE, **changes: Any) -> Row:
    return of_tables({"expectations": [{**PRICE, **changes}]}, stream, table, before={"expectations": [PRICE]})


TEST_KEYS: dict[str, Any] = {
    "name": "ids", "description": "All have one.", "severity": "warn", "error_if": "> 5", "warn_if": "> 5",
    "where": "id > 1", "limit": 5, "store_failures": True, "tags": ["x"], "meta": {"a": "b"}, "enabled": False,
}  # fmt: skip
REJECTED = ("fail_calc", "store_failures_as", "schema", "database", "alias")
ROWS_OF: dict[tuple[str, str], list[Row]] = {
    **{("data_test", key): [of_test(**{key: value})] for key, value in TEST_KEYS.items()},
    **{("test_config", key): [of_test(config={key: value})] for key, value in TEST_KEYS.items()},
    # Keys of dbt that are answered with an error.
    **{(block, key): [Row({})] for block in ("data_test", "test_config") for key in REJECTED},
    ("data_test", "arguments"): [everywhere(
        {"columns": {"kind": {"tests": [{"accepted_values": {"arguments": {"values": ["a", "b"]}}}]}}}, SAME,
        before={"columns": {"kind": {"tests": [{"accepted_values": {"arguments": {"values": ["a"]}}}]}}})],
    ("data_test", "config"): [of_test(config={"severity": "warn"})],
    # For people.
    ("model", "title"): [everywhere({"title": "Sales"}, SAME)],
    ("model", "meta"): [everywhere({"meta": {"owner": "sales"}}, SAME)],
    ("model", "acknowledge"): [everywhere({"acknowledge": ["window-week"]}, SAME)],
    # Comments, which an ALTER writes.
    ("model", "description"): [everywhere({"description": "One row a sale."}, DUE)],
    ("model", "columns"): [everywhere({"columns": {"id": {"description": "Its number."}}}, DUE)],
    ("column", "description"): [everywhere({"columns": {"id": {"description": "Its number."}}}, DUE)],
    ("column", "name"): [everywhere({"columns": [{"name": "id", "description": "Its number."}]}, DUE)],
    ("model", "persist_docs"): [
        everywhere({"description": "New."}, DUE, before={"persist_docs": False, "description": "Old."}),
        everywhere({"persist_docs": False, "description": "One."}, SAME, before={"description": "One."}),
    ],
    ("persist_docs", "relation"): [
        everywhere({"description": "One.", "persist_docs": {"relation": True}}, DUE,
                   before={"description": "One.", "persist_docs": {"relation": False}})],
    ("persist_docs", "columns"): [
        everywhere({"columns": {"id": {"description": "One."}}, "persist_docs": {"columns": True}}, DUE,
                   before={"columns": {"id": {"description": "One."}}, "persist_docs": {"columns": False}})],
    # A property of the table, which an ALTER sets.
    ("model", "tags"): [Row({"tags": ["x"]}, DUE, DUE, SAME)],
    ("model", "table_properties"): [of_tables({"table_properties": {"a": "b"}}, DUE, DUE)],
    ("model", "format_version"): [
        of_tables({"format_version": 3}, DUE, DUE),
        # There is no way back.
        of_tables({"format_version": 2}, SAME, SAME, before={"format_version": 3}),
    ],
    # What the columns must be: the query of a stream is held to it when it starts.
    ("column", "type"): [Row({"columns": {"id": {"type": "int"}}}, SAME, DUE, DUE)],
    ("column", "data_type"): [Row({"columns": {"id": {"data_type": "int"}}}, SAME, DUE, DUE)],
    ("column", "tests"): [everywhere({"columns": {"id": {"tests": ["unique"]}}}, SAME)],
    ("column", "data_tests"): [everywhere({"columns": {"id": {"data_tests": ["unique"]}}}, SAME)],
    # A name that the table does not have means nothing any more.
    ("column", "renamed_from"): [of_tables({"columns": {"id": {"renamed_from": "before"}}}, SAME, SAME)],
    ("column", "meta"): [everywhere({"columns": {"id": {"meta": {"a": "b"}}}}, SAME)],
    ("model", "contract"): [
        Row({"contract": True, "columns": TYPED}, SAME, DUE, DUE, before={"columns": TYPED})],
    ("contract", "enforced"): [
        Row({"contract": {"enforced": True}, "columns": TYPED}, SAME, DUE, DUE, before={"columns": TYPED})],
    ("model", "tests"): [everywhere({"tests": [{"expression": {"expression": "id > 0"}}]}, SAME)],
    ("model", "data_tests"): [everywhere({"data_tests": [{"expression": {"expression": "id > 0"}}]}, SAME)],
    # What a row must satisfy: new rows of a stream.
    ("model", "expectations"): [of_tables({"expectations": [PRICE]}, SAME, DUE)],
    ("expectation", "name"): [of_check(name="costs")],
    ("expectation", "check"): [of_check(check="amount > 1")],
    ("expectation", "on_fail"): [
        of_check(on_fail="fail"), of_check(DUE, on_fail="drop"), of_check(DUE, on_fail="quarantine")],
    ("expectation", "description"): [of_check(SAME, SAME, description="All are.")],
    # How files are written: those to come of a stream.
    ("model", "sort_by"): [of_tables({"sort_by": ["id"]}, SAME, DUE)],
    ("model", "write_options"): [of_tables({"write_options": {"target-file-size-bytes": 1000000}}, SAME, DUE)],
    ("model", "partition_by"): [of_tables({"partition_by": ["kind"]}, NO, DUE)],
    # Another table.
    ("model", "materialized"): [
        Row({"materialized": "view"}, table=NO), Row({"materialized": "table"}, view=NO)],
    ("model", "schema"): [everywhere({"schema": "marts"}, DUE)],
    ("model", "alias"): [everywhere({"alias": "sales"}, DUE)],
    ("model", "enabled"): [everywhere({"enabled": False}, "")],
    ("model", "overwrite"): [Row({"overwrite": "partitions", "partition_by": ["kind"]}, table=DUE,
                                 before={"partition_by": ["kind"]})],
    ("model", "refresh"): [Row({"refresh": "full"}, table=SAME)],
    # What of an extract becomes a version, from the next one on.
    ("model", "check"): [Row({**EXTRACT, "check": ["amount"]}, table=DUE, before=EXTRACT)],
    ("model", "deletes"): [Row({**EXTRACT, "deletes": "ignore"}, table=DUE, before=EXTRACT)],
    ("model", "on_empty_extract"): [Row({**EXTRACT, "on_empty_extract": "close"}, table=DUE, before=EXTRACT)],
    # How rows reach the table of a stream.
    ("model", "unique_key"): [Row(KEYED, NO)],
    ("model", "sequence_by"): [Row({"unique_key": "id", "sequence_by": "amount"}, NO, before=KEYED)],
    ("model", "delete_when"): [Row({**KEYED, "delete_when": "kind = 'void'"}, NO, before=KEYED)],
    ("model", "deletes_remembered"): [
        Row({**KEYED, "delete_when": "kind = 'void'", "deletes_remembered": "30 days"}, SAME,
            before={**KEYED, "delete_when": "kind = 'void'"})],
    ("model", "history"): [Row({**KEYED, "history": True}, NO, before=KEYED)],
    ("model", "exclude"): [Row({**KEYED, "exclude": ["kind"]}, NO, before=KEYED)],
    ("model", "output_mode"): [Row({"output_mode": "complete"}, NO, before={"output_mode": "update"}, sql=GROUPS)],
    # How a stream is read.
    ("model", "streams"): [Row({"streams": {"shop.more": {}}}, NO, sql=ROWS.replace("{}", "{} where id > 0"))],
    ("stream", "watermark"): [Row(MARK, DUE)],
    ("watermark", "column"): [Row(mark(**{"as": "at", "column": "later"}), DUE, before=mark(**{"as": "at", "column": "when_at"}))],
    ("watermark", "as"): [Row(mark(**{"as": "at + interval 1 hour", "column": "event_time"}), DUE, before=mark())],
    ("watermark", "delay"): [Row(mark(delay="6 minutes"), DUE, before=mark())],
    ("watermark", "max_future"): [Row(mark(max_future="1 hour"), DUE, before=mark())],
    ("watermark", "on_null"): [Row(mark(on_null="drop"), DUE, before=mark())],
    ("stream", "dedup"): [
        Row({"streams": {"shop.events": {"watermark": "at delay 5 minutes", "dedup": ["id"]}}}, NO, before=MARK)],
    ("stream", "max_files_per_trigger"): [Row({"streams": {"shop.events": {"max_files_per_trigger": 4}}}, SAME)],
    ("stream", "on_upstream_delete"): [
        Row({"streams": {"base": {"on_upstream_delete": "ignore"}}}, SAME, before={"streams": {"base": {}}})],
    ("stream", "on_bad_record"): [Row({"streams": {"shop.events": {"on_bad_record": "drop"}}}, SAME)],
    ("model", "windows"): [
        Row({**MARK, "windows": {"hour": "tumbling(at, 2 hours)"}}, NO,
            before={**MARK, "windows": {"hour": "tumbling(at, 1 hour)"}},
            sql="select hour.start as at, count(*) as n from {} group by hour")],
    # Frozen at the first start, and said as a note.
    ("model", "state_store"): [Row({**MARK, "state_store": {"partitions": 8}}, SAME, before=MARK)],
    ("state_store", "partitions"): [
        Row({"state_store": {"partitions": 8}}, SAME, before={"state_store": {"partitions": 4}})],
    ("state_store", "provider"): [
        Row({"state_store": {"provider": "hdfs"}}, SAME, before={"state_store": {"provider": "rocksdb"}})],
    # When and whether it is built.
    ("model", "publish"): [of_tables({"publish": "on_tests_pass"}, SAME, SAME)],
    ("model", "on_schema_change"): [of_tables({"on_schema_change": "append_columns"}, SAME, SAME)],
    ("model", "full_refresh"): [of_tables({"full_refresh": False}, SAME, SAME)],
    ("model", "trigger"): [Row({"trigger": "every 30 seconds"}, SAME)],
    ("model", "schedule"): [of_tables({"schedule": "0 6 * * *"}, SAME, SAME)],
    ("model", "stalled_after"): [Row({"stalled_after": "2 hours"}, SAME)],
    # Of a table that never was, or has its name already.
    ("model", "renamed_from"): [of_tables({"renamed_from": "before"}, SAME, SAME)],
    ("model", "keep_previous"): [Row({"keep_previous": "1 day"}, SAME)],
    ("model", "explain"): [everywhere({"explain": True}, DUE)],
    # Hooks of a stream run with each build.
    ("model", "pre_hook"): [
        everywhere({"pre_hook": ["set spark.sql.ansi.enabled = false"]}, DUE),
        everywhere({"pre_hook": ["insert into x select 1"]}, DUE)],
    ("model", "post_hook"): [
        everywhere({"post_hook": ["delete from {{ this }} where id is null"]}, DUE),
        Row({"post_hook": ["select 2"]}, "", DUE, DUE, before={"post_hook": ["select 1"]})],
}  # fmt: skip


def keys_of(block: ConfigBlock, seen: set[str]) -> list[tuple[str, str]]:
    found = []
    for key in block.keys:
        found.append((block.name, key.name))
        if key.block and key.block not in seen:
            seen.add(key.block)
            found += keys_of(BLOCKS[key.block], seen)
    return found


def test_every_key_has_a_row() -> None:
    assert set(ROWS_OF) == set(keys_of(MODEL, {MODEL.name}))


def project(root: Path, kind: str, header: dict[str, Any], sql: str) -> Manifest:
    said = {**HEADERS[kind], **header}
    source = FROM[kind]
    if kind == "stream" and (name := next(iter(said["streams"]))) != "shop.events":
        source = "{{ ref('base') }}" if name == "base" else "{{ source('shop', 'more') }}"
    more = EVENTS.replace("sources:\n", "").replace("  - name: shop\n    tables:\n", "").replace("events", "more")
    return clean(
        root,
        {
            "project.yml": PROJECT.format(lake=".engine/lake", schema="s"),
            "sources/shop.yml": EVENTS + more,
            "models/base.sql": BASE,
            "models/m.sql": f"/*---\n{yaml.safe_dump(said)}---*/\n{sql.format(source)}",
        },
    )


def as_made(model: Model) -> TableFacts:
    wanted = comments_of(model).columns or {}
    docs = tuple((column.name, wanted.get(column.name.lower(), "")) for column in model.columns)
    return replace(table(model), format_version=model.write.format_version or 2, docs=docs)


def built(manifest: Manifest, base: DeployedModel) -> DeployedModel:
    """What there is of the model once it was built."""
    model = manifest.model("m")
    if model.streaming:
        found = streaming(model, [A])
        if model.inputs[0].node == "model.base":
            assert found.state is not None
            checkpoint = CheckpointFacts(
                Path("c"), "a-query", 0, 0, offsets=({"snapshot_id": 1},), has_beginnings=True, logs=()
            )
            starts = {"model.base": {"uuid": "u", "seed": None}}
            found = replace(found, checkpoint=checkpoint, state=replace(found.state, starts=starts))
        made = as_made(model)
        return replace(found, table=made, written=made)
    inputs = batch_inputs_now(manifest, model, deployed(manifest, {"base": base}, [A]))
    found = batch(model, inputs)
    if model.materialized is Materialized.VIEW:
        wanted = comments_of(model)
        properties = {"comment": wanted.table} if wanted.table else {}
        view = ViewFacts(
            properties, tuple((c.name, (wanted.columns or {}).get(c.name.lower(), "")) for c in model.columns)
        )
        return DeployedModel(found.state, LastWriter(model.fingerprint, model.facts), view=view)
    made = as_made(model)
    return replace(found, table=made, written=made)


def result(action: Action) -> str:
    return NO if action.refusals else {True: SAME, False: DUE, None: "unknown"}[action.unchanged]


CASES = [
    (key, number, kind)
    for key, rows in ROWS_OF.items()
    for number, row in enumerate(rows)
    for kind in HEADERS
    if getattr(row, kind)
]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "number", "kind"), CASES, ids=[f"{k[0]}.{k[1]}-{n}-{kind}" for k, n, kind in CASES])
def test_what_an_edit_of_a_key_makes_due(tmp_path: Path, key: tuple[str, str], number: int, kind: str) -> None:
    row = ROWS_OF[key][number]
    old = project(tmp_path, kind, row.before, row.sql)
    base = streaming(old.model("base"), [A])
    known = built(old, base)
    again = plan(old, deployed(old, {"base": base, "m": known}, [A])).actions["model.m"]
    assert (result(again), again.reasons) == (SAME, ()), "what was built has nothing to do"
    new = project(tmp_path, kind, row.after, row.sql)
    action = plan(new, deployed(new, {"base": base, "m": known}, [A])).actions["model.m"]
    assert result(action) == getattr(row, kind), action.reasons
    if result(action) == DUE:
        assert action.reasons
        assert "the query changed" not in action.reasons
