"""Declared columns and contracts that fit, and what only a build can compare."""

from __future__ import annotations

import pytest

from tests.lab import Lab
from tests.project.small_projects import FROM, clean, findings, lines

QUERY = f"select id, amount, item, cast(1 as smallint) as small, count(*) as n {FROM} group by all"
LOST = "sources: [{name: lost, tables: [{name: t, format: json, path: x, schema: 'id string'}]}]\n"


def model(header: str, sql: str = QUERY) -> dict[str, str | bytes]:
    return {"models/a.sql": f"/*---\n{header.rstrip()}\n---*/\n{sql}"}


FITTING = [
    "columns: {id: {type: string}, amount: {type: double}, n: {type: long}}",
    "columns: {small: {type: smallint}}",
    "columns: {small: {type: int}}",
    "columns: {ID: {type: STRING}, item: {type: 'struct<NAME string, price: double>'}}",
    "columns: [{name: id, data_type: string}, {name: n}]",
    "columns: {id: an id}",
    (
        "contract: true\ncolumns: {id: {type: string}, amount: {type: double}, n: {type: bigint}, small: {type: int},\n"
        "  item: {type: 'struct<name: string, price: double>'}}"
    ),
    (
        "contract: {enforced: true}\ncolumns: {id: {type: string}, amount: {type: double}, n: {type: bigint},\n"
        "  small: {type: int}, item: {type: 'struct<name: string, price: double>'}}"
    ),
    "columns: {item.price: Before tax., Item.Name: {type: string}}",
]


@pytest.mark.parametrize("header", FITTING)
def test_what_fits(header, tmp_path):
    assert clean(tmp_path, model(header))


def test_the_hint_for_a_missing_column_can_be_pasted(tmp_path):
    header = (
        "contract: true\ncolumns: {id: {type: string}, amount: {type: double}, n: {type: bigint}, small: {type: int}}"
    )
    (found,) = findings(tmp_path, model(header))
    assert found.hint == 'Add item: {type: "struct<name:string,price:double>"}, or remove it from the query.'
    assert clean(tmp_path, model(header.removesuffix("}") + ', item: {type: "struct<name:string,price:double>"}}'))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "select from_json(id, schema_of_json('1')) as id, {{ safe_cast('1', 'int') }} as n {o}",
        "select *, i as x from (select id as i, from_json(id, schema_of_json('1')) as id {o})",
    ],
)
def test_a_type_that_is_not_known_is_no_fault(sql, tmp_path):
    header = "columns: {id: {type: binary}}"
    assert clean(tmp_path, model(header, sql.replace("{o}", FROM)))


def test_a_column_whose_name_only_spark_knows_leaves_the_names_open(tmp_path):
    header = "contract: true\ncolumns: {id: {type: %s}, more: {type: int}}"
    sql = f"select id, ts + interval 1 hour {FROM}"
    assert clean(tmp_path, model(header % "string", sql))
    assert lines(findings(tmp_path, model(header % "int", sql))) == [
        "column-type models/a.sql:3:22 the column 'id' is declared int, but the query returns string"
    ]


def test_a_contract_does_not_list_what_the_table_does_not_have(tmp_path):
    header = (
        "streams: [shop.orders]\nunique_key: id\nsequence_by: ts\nexclude: amount\nhistory: true\ncontract: true\n"
        "columns: {id: {type: string}, ts: {type: timestamp}, item: {type: 'struct<name: string, price: double>'},\n"
        "  valid_from: {type: timestamp}, is_current: {type: boolean}}"
    )
    assert clean(tmp_path, model(header, f"select * {FROM}"))


@pytest.mark.spark
class TestBuild:
    """What compile cannot know is asked again before a table is touched."""

    SQL = "select id, from_json(kind, schema_of_json('{\"a\": 1}')) as n from {{ source('shop', 'events') }}"

    @pytest.mark.parametrize("streams", ["", "streams: [shop.events]\n"])
    def test_the_contract_is_checked_before_a_table_is_made(self, lab: Lab, streams: str) -> None:
        lab.land("one", [{"id": 1, "at": "2024-01-01T00:00:00Z", "kind": '{"a": 7}', "amount": 1.0}])
        header = f"{streams}contract: true\ncolumns: {{id: {{type: int}}, n: {{type: 'struct<a: %s>'}}}}\n"
        lab.model("a", f"/*---\n{header % 'string'}---*/\n{self.SQL}")
        assert lab.run("compile").code == 0
        result = lab.run("build")
        assert result.code == 1
        assert result.codes() == ["column-type"]
        assert "is declared struct<a:string>, but the query returns struct<a:bigint>" in result.text
        assert lab.table("a") is None
        lab.model("a", f"/*---\n{header % 'bigint'}---*/\n{self.SQL}")
        lab.build()
        assert lab.rows("a") == [{"id": 1, "n": {"a": 7}}]
