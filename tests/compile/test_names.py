"""Names that two nodes share: each node is there all the same, or the collision is an error with both places."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api.project import with_adapted_tests
from engine.compile.selection.select_nodes import select
from engine.node_ids import repeated, shown_name
from tests.project.small_projects import FROM, check, clean, compiled, model

A = model("columns: {b_c: {tests: [unique]}}", f"select id as b_c {FROM}\n", "a")
A_B = model("columns: {c: {tests: [unique]}}", f"select id as c {FROM}\n", "a_b")
POSITIVE = "tests: [{expression: {expression: amount > 0, name: positive%s}}]"
SINGULAR = "select id from {{ ref('a') }} where amount <= 0\n"
STORED = "{{ config(store_failures=true) }}"


def test_tests_of_two_models_with_one_name_are_two_tests(tmp_path: Path) -> None:
    manifest = clean(tmp_path, {**A, **A_B})
    assert sorted((test.name, test.model, test.column) for test in manifest.tests) == [
        ("unique_a_b_c", "model.a", "b_c"), ("unique_a_b_c", "model.a_b", "c")]  # fmt: skip
    assert len({test.id for test in manifest.tests}) == 2
    assert {shown_name(test.id) for test in manifest.tests} == {"unique_a_b_c"}
    assert select(manifest, ["unique_a_b_c"]).nodes == [test.id for test in manifest.tests]
    one = manifest.tests[0].id
    assert select(manifest, [one.removeprefix("test.")]).nodes == [one]
    assert [len(manifest.tests_of(i)) for i in ("model.a", "model.a_b")] == [1, 1]


def test_names_that_users_give_may_be_shared(tmp_path: Path) -> None:
    given = POSITIVE % ""
    files = {**model(given), **model(given, name="b"), "tests/positive.sql": SINGULAR}
    manifest = clean(tmp_path, files)
    assert sorted((test.name, test.model, test.kind) for test in manifest.tests) == [
        ("positive", "model.a", "expression"), ("positive", "model.a", "singular"), ("positive", "model.b", "expression"),
    ]  # fmt: skip
    assert "test.positive" in manifest.nodes


def test_an_id_stays_when_the_arguments_of_the_test_change(tmp_path: Path) -> None:
    ids = [clean(tmp_path, model(POSITIVE.replace("> 0", sign) % "")).tests[0].id for sign in ("> 0", "> 1")]
    assert ids[0] == ids[1]


def test_tests_of_sources_and_models_are_told_apart(tmp_path: Path) -> None:
    source = "sources: [{name: %s, tables: [{name: %s, format: json, path: d, schema: id int, columns: {id: {tests: [unique]}}}]}]"
    files = {"sources/x.yml": source % ("a", "b_c"), "sources/y.yml": source % ("a_b", "c")}
    tests = clean(tmp_path, files).tests
    assert [test.name for test in tests] == ["source_unique_a_b_c_id"] * 2
    assert {test.model for test in tests} == {"source.a.b_c", "source.a_b.c"}


def test_a_column_of_any_spelling_gives_a_test_a_plain_name(tmp_path: Path) -> None:
    header = "columns: {item.name: {tests: [not_null]}, item_name: {tests: [not_null]}}"
    manifest = clean(tmp_path, model(header, f"select item, id as item_name {FROM}\n"))
    assert {test.column: test.name for test in manifest.tests} == {
        "item.name": "not_null_a_item_name", "item_name": "not_null_a_item_name_2"}  # fmt: skip


TABLES = [
    ({**model(POSITIVE % ", store_failures: true"), **model(POSITIVE % ", store_failures: true", name="b")},
     ("duplicate-table models/b.sql:2:10 the test 'positive' and the test 'positive' (models/a.sql:2:10) both write "
      "lake.main_test_failures.positive")),
    ({**model(POSITIVE % ", store_failures: true"), "tests/positive.sql": f"{STORED}\n{SINGULAR}"},
     ("duplicate-table tests/positive.sql:1:1 the test 'positive' and the test 'positive' (models/a.sql:2:10) both write "
      "lake.main_test_failures.positive")),
    ({**model("schema: test_failures\nalias: positive"), **model(POSITIVE % ", store_failures: true", name="b")},
     ("duplicate-table models/b.sql:2:10 the test 'positive' and 'a' (models/a.sql) both write "
      "lake.main_test_failures.positive")),
    ({**model(""), **model("", name="a__g2")},
     "duplicate-table models/a__g2.sql:1:1 'a__g2' writes lake.main.a__g2, a name that 'a' (models/a.sql) needs"),
    ({**model(""), **model("alias: a__seed1_orders", name="b")},
     "duplicate-table models/b.sql:2:8 'b' writes lake.main.a__seed1_orders, a name that 'a' (models/a.sql) needs"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "finding"), TABLES)
def test_a_table_has_one_writer(tmp_path: Path, files: dict[str, str | bytes], finding: str) -> None:
    check(tmp_path, files, finding)


def test_a_name_with_the_suffix_of_a_staging_table_is_free_where_nothing_needs_it(tmp_path: Path) -> None:
    assert len(clean(tmp_path, {**model("", name="b"), **model("", name="a__g2")}).models) == 2


def test_failing_rows_that_an_option_keeps_are_kept_apart(tmp_path: Path) -> None:
    result = compiled(tmp_path, {**A, **A_B, "tests/unique_a_b_c.sql": "select * from {{ ref('a') }} where false\n"})
    ids = [test.id for test in result.manifest.tests]
    adapted = with_adapted_tests(result.manifest, ids, result.target, store_failures=True, warnings_fail=False)
    tables = {str(test.stored) for test in adapted.tests}
    assert len(tables) == len(ids) == 3


def test_a_second_node_of_an_id_is_noticed() -> None:
    (finding,) = repeated(["model.a", "test.x.0", "model.b", "test.x.0"])
    assert (finding.code, finding.message) == ("duplicate-name", "2 nodes have the id 'test.x.0'")
