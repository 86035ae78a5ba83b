"""A model over change records merges them as their source says: what is inferred, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.nodes.model_settings import History, Write
from tests.lab import REPOSITORY
from tests.pages.page_blocks import blocks_of
from tests.project.small_projects import check, clean, compiled, findings, line, model

SOURCE = """\
sources:
  - name: crm
    tables:
      - name: customers
        format: json
        path: landing/customers
        value: {format: debezium, key: [id, region]}
        schema: "id int, region string, name string"
      - name: log
        format: json
        path: landing/log
        value: {format: debezium, key: []}
        schema: "line string"
"""
FROM = "from {{ source('crm', 'customers') }}"
STREAM = "streams: [crm.customers]\n"


def files(header: str = STREAM, sql: str = f"select * {FROM}", name: str = "a") -> dict[str, str | bytes]:
    return {"sources/crm.yml": SOURCE, **model(header, sql, name)}


def written(root: Path, header: str = STREAM, sql: str = f"select * {FROM}") -> Write:
    return clean(root, files(header, sql)).model("a").write


def test_three_lines_are_a_merged_table(tmp_path: Path) -> None:
    made = clean(tmp_path, files()).model("a")
    write = made.write
    assert (write.unique_key, write.sequence_by, write.delete_when, write.exclude) == (
        ("id", "region"), ("_position",), "_op = 'd'", ("_op", "_unavailable")
    )  # fmt: skip
    assert [column.name for column in made.columns] == ["id", "region", "name", "_position", "_changed_at"]


@pytest.mark.parametrize(
    "sql",
    [
        f"select region as land, id as number, upper(name) as name, _op as op, _position as at {FROM}",
        f"with c as (select * {FROM}) select c.region as land, c.id as number, _op as op, _position as at from c",
        f"select land, number, op, at from (select region land, id number, _op op, _position at {FROM})",
    ],
)
def test_columns_may_have_other_names(sql: str, tmp_path: Path) -> None:
    write = written(tmp_path, sql=sql)
    assert (write.unique_key, write.sequence_by, write.delete_when, write.exclude) == (
        ("number", "land"), ("at",), "`op` = 'd'", ("op",)
    )  # fmt: skip


def test_versions_begin_with_the_time_of_a_change(tmp_path: Path) -> None:
    write = written(tmp_path, f"{STREAM}history: true\nexclude: [name]\n")
    assert (write.history, write.sequence_by) == (History.VERSIONS, ("_changed_at", "_position"))
    assert write.exclude == ("name", "_op", "_unavailable")


OWN = f"{STREAM}unique_key: [id, region]\nsequence_by: _position\ndelete_when: _op = 'x'\n"


@pytest.mark.parametrize("header", [f"{STREAM}output_mode: append\n", OWN])
def test_a_header_that_says_how_rows_are_written_is_followed(header: str, tmp_path: Path) -> None:
    write = written(tmp_path, header, f"select * {FROM} where name is not null")
    assert write.exclude == ()
    assert write.delete_when == ("_op = 'x'" if header == OWN else None)


def test_rows_of_a_table_without_a_key_are_added(tmp_path: Path) -> None:
    write = written(tmp_path, "streams: [crm.log]\n", "select line from {{ source('crm', 'log') }}")
    assert (write.unique_key, write.delete_when) == ((), None)


def test_a_batch_model_reads_changes_as_rows(tmp_path: Path) -> None:
    assert written(tmp_path, "materialized: table\n").unique_key == ()


def test_deletes_meet_all_expectations(tmp_path: Path) -> None:
    header = f"{STREAM}expectations: [{{name: named, check: name <> '', on_fail: drop}}]\n"
    (expectation,) = clean(tmp_path, files(header)).model("a").expectations
    assert expectation.check == "_op = 'd' or arrays_overlap(`_unavailable`, array('name')) or (name <> '')"


def test_values_that_were_not_sent_are_known_by_the_columns_they_are_computed_from(tmp_path: Path) -> None:
    names = "upper(name) as big, concat(name, id) as label, 7 as k, _op as op, _position, _unavailable as u"
    values = written(tmp_path, sql=f"select id, region, {names} {FROM}").unavailable
    assert values is not None
    assert (values.column, values.insert_when) == ("u", "`op` IN ('c', 'r')")
    assert values.computed_from == {"big": ("name",), "label": ("name", "id"), "op": ("_op",)}


def test_a_query_without_their_names_has_all_values(tmp_path: Path) -> None:
    assert written(tmp_path, sql=f"select id, region, name, _op, _position {FROM}").unavailable is None


@pytest.mark.parametrize(
    "sql",
    [
        f"select * {FROM} where name <> ''",
        f"with c as (select * {FROM} where id > 0) select * from c",
        f"select id, region, max(name) as name, max(_op) as _op {FROM} group by id, region",
        f"select max(_position) as p {FROM}",
        f"select * {FROM} union all select * {FROM}",
        f"select a.* {FROM} a join {{{{ source('crm', 'log') }}}} on line = name",
        f"select distinct * {FROM}",
        f"select * {FROM} limit 5",
        f"select id, region, _op, _position, explode(array(1, 2)) as n {FROM}",
    ],
)
def test_a_query_that_loses_deletes_is_refused(sql: str, tmp_path: Path) -> None:
    assert "change-query" in {found.code for found in findings(tmp_path, files(sql=sql))}


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        (f"select id, region, name {FROM}", "'_position', '_op'"),
        (f"select id + 1 as id, region, _op, _position {FROM}", "'id'"),
        (f"select region, cast(id as string) as id, _op, _position {FROM}", "'id'"),
    ],
)
def test_a_column_by_which_changes_are_merged_is_needed(sql: str, missing: str, tmp_path: Path) -> None:
    message = f"the SELECT lacks {missing}, by which changes of 'crm.customers' are merged"
    check(tmp_path, files(sql=sql), f"change-columns models/a.sql:4:8 {message}", "or select *")


def test_a_merged_table_is_no_stream(tmp_path: Path) -> None:
    both = {**files(), **model("streams: [a]\n", "select * from {{ ref('a') }}", "b")}
    (found,) = findings(tmp_path, both)
    assert (found.code, found.node) == ("stream-not-streamable", "b")


def test_through_an_ephemeral_model_nothing_is_inferred(tmp_path: Path) -> None:
    inner = files(f"{STREAM}materialized: ephemeral\n")
    both = {**inner, **model("streams: [a]\n", "select * from {{ ref('a') }}", "b")}
    assert {found.code for found in findings(tmp_path, both)} == {"change-query"}


@pytest.mark.parametrize("key", ["history: true", "exclude: [name]", "deletes_remembered: 1 day"])
def test_without_changes_a_key_is_needed_as_before(key: str, tmp_path: Path) -> None:
    plain = SOURCE.replace("value: {format: debezium, key: [id, region]}\n        ", "")
    found = findings(tmp_path, {**files(f"{STREAM}{key}\n"), "sources/crm.yml": plain})
    assert [one.code for one in found] == ["setting-needs"]


DECLARED = {
    "value: {format: debezium}": "missing-key a value of format 'debezium' needs 'key'",
    "value: {format: debezium, key: [no]}": "unknown-column the key names 'no', which the schema does not have",
    "value: {format: debezium, key: [id], subject: x}": "unknown-key a value of format 'debezium' has no key 'subject'",
    "value: {format: debezium, key: 7}": "wrong-type 'key' must be a list",
    "value: {format: debezium, key: [id], on_truncate: skip}": "bad-value 'on_truncate' cannot be 'skip'",
    "value: {format: debezium, key: [], on_truncate: apply}": "setting-conflict 'on_truncate: apply' needs the columns of a key, because it deletes rows of the merged table",
    "value: {format: debezium, key: [id], flattened: true}": "setting-needs 'flattened' needs one 'topic', because offsets order the changes of a key",
    "value: {format: avro}": "bad-value 'avro' is not a value format",
}


@pytest.mark.parametrize("value", DECLARED)
def test_a_declaration_with_a_fault(value: str, tmp_path: Path) -> None:
    source = SOURCE.replace("value: {format: debezium, key: [id, region]}", value)
    (found,) = compiled(tmp_path, {"sources/crm.yml": source}).manifest.errors
    assert f"{found.code} {found.message}" == DECLARED[value]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("on_tombstone: ignore", ""),
        ("on_tombstone: delete", "setting-needs"),
        ("on_tombstone: delete\n        key: [id]", ""),
        ("on_tombstone: delete\n        key: [no]", "unknown-column"),
        ("on_tombstone: ignore\n        key: [id]", "setting-needs"),
        ("on_tombstone: delete\n        key: [id]\n        value: {format: debezium, key: [id]}", "setting-conflict"),
        ("on_tombstone: skip", "bad-value"),
        ("on_tombstone: bad_record\n        value: {format: debezium, key: [id]}", "setting-conflict"),
    ],
)
def test_tombstones_of_a_topic(body: str, code: str, tmp_path: Path) -> None:
    project = "name: shop\ntargets: {dev: {connections: {main: {bootstrap_servers: 'localhost:9092'}}}}\n"
    source = f"""\
sources:
  - name: bus
    tables:
      - name: orders
        format: kafka
        connection: main
        topic: orders
        schema: id int
        {body}
"""
    errors = compiled(tmp_path, {"project.yml": project, "sources/bus.yml": source}).manifest.errors
    assert [found.code for found in errors] == ([code] if code else [])


def test_other_files_have_no_change_records(tmp_path: Path) -> None:
    source = SOURCE.replace("format: json\n        path: landing/log", "format: csv\n        path: landing/log")
    (found,) = compiled(tmp_path, {"sources/crm.yml": source}).manifest.errors
    assert "'value' is for files of JSON, not of csv" in line(found)


def test_a_column_of_a_change_is_not_declared(tmp_path: Path) -> None:
    source = SOURCE.replace("region string, name string", "region string, _OP string")
    (found,) = compiled(tmp_path, {"sources/crm.yml": source}).manifest.errors
    assert found.code == "setting-conflict"


def test_the_page_declares_what_it_says(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "debezium.md").read_text(encoding="utf-8")
    blocks = {block.file: block.text for block in blocks_of(page) if block.file}
    project = "name: shop\ntargets: {dev: {connections: {main: {bootstrap_servers: 'localhost:9092'}}}}\n"
    write = clean(tmp_path, {**blocks, "project.yml": project}).model("customers").write
    said = {
        "unique_key": write.unique_key[0], "sequence_by": write.sequence_by[0], "delete_when": str(write.delete_when),
        "exclude": f"[{', '.join(write.exclude)}]",
    }  # fmt: skip
    assert "".join(f"    {key}: {text}\n" for key, text in said.items()) in page
