"""A string in double quotes that equals a column: Spark reads a constant, and nobody sees it."""

from __future__ import annotations

import pytest

from tests.project.small_projects import clean, compiled, only

FROM = " from {{ source('shop', 'orders') }}"


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ('select "amount"' + FROM, "amount"),
        ('select "AMOUNT" as a' + FROM, "amount"),
        (f'select id{FROM} where "amount" = 1', "amount"),
        (f'with a as (select id as product{FROM}) select "product" from a', "product"),
        (f'select n from (select id as n{FROM}) group by n, "n"', "n"),
    ],
)
def test_it_is_a_warning_with_the_name_in_backticks(tmp_path, sql, name):
    found = only(compiled(tmp_path, {"models/a.sql": sql}).manifest.diagnostics)
    assert (found.code, found.is_error) == ("string-for-column", False)
    assert found.location is not None
    assert (found.location.line, found.location.column) == (1, sql.index('"') + 1)
    assert f"`{name}`" in found.hint


@pytest.mark.parametrize(
    "sql",
    [
        "select 'amount' as a" + FROM,
        'select "another" as a' + FROM,
        "select id, 'x' as \"status\"".replace('"', "`") + FROM,
        'select "web" as web' + FROM,
        'select id -- "amount"\n' + FROM,
    ],
)
def test_other_strings_are_none(tmp_path, sql):
    clean(tmp_path, {"models/a.sql": sql})


def test_the_columns_of_a_model_count_as_well(tmp_path):
    files = {
        "models/a.sql": "select id as product" + FROM,
        "models/b.sql": "select \"product\" as p from {{ ref('a') }}",
    }
    found = only(compiled(tmp_path, files).manifest.diagnostics)
    assert (found.code, found.node) == ("string-for-column", "b")
