"""Mistakes in unit tests are found by the compiler, each at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import read_rows
from tests.project.small_projects import clean, findings, line, only, sql

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
pytestmark = pytest.mark.slow

HOURLY = sql("""
    /*---
    streams: {shop.orders: {watermark: ts delay 10 minutes}}
    windows: {hour: "tumbling(ts, 1 hour)"}
    ---*/
    select hour.start as hour, count(*) as n from {{ ref('shop.orders') }} group by hour
""").replace("ref('shop.orders')", "source('shop', 'orders')")
RANKING = sql("""
    /*---
    streams: [shop.orders]
    output_mode: complete
    ---*/
    select id, count(*) as n from {{ source('shop', 'orders') }} group by id
""")
CUSTOMERS = "select id, name from {{ source('shop', 'customers') }}\n"
HEAD = "unit_tests:\n  - name: t\n    model: {model}\n"
GOOD = "    given: {shop.orders: [{id: a}]}\n"
MODELS = {
    "models/hourly.sql": HOURLY,
    "models/ranking.sql": RANKING,
    "models/customers.sql": CUSTOMERS,
    "tests/fixtures/orders.csv": "id,ts\na,2013-01-01 10:00:00\n",
    "tests/fixtures/more/orders_of_noon.csv": "id,ts\n\nb,noon\n",
    "tests/fixtures/twice.csv": "id\n",
    "tests/fixtures/more/twice.csv": "id\n",
}

# Name of the model, the rest of the test, what is found.
FAULTS = read_rows(FIXTURE, "mistakes", 4)


@pytest.mark.parametrize(("name", "model", "body", "expected"), FAULTS, ids=[name for name, *_ in FAULTS])
def test_a_mistake_is_told_at_its_place(tmp_path: Path, name: str, model: str, body: str, expected: str) -> None:
    found = findings(tmp_path, {**MODELS, "tests/t.yml": HEAD.format(model=model) + body})
    assert line(only(tuple(d for d in found if d.is_error))) == expected


def test_rows_can_stand_in_a_file(tmp_path: Path) -> None:
    forms = {
        "file": "[{input: shop.orders, format: csv, fixture: orders}]",
        "here": "{shop.orders: [{id: a, ts: 2013-01-01 10:00:00}]}",
    }
    read = []
    for name, given in forms.items():
        text = f"{HEAD.format(model='hourly')}    given: {given}\n    expect: []\n"
        (test,) = clean(tmp_path / name, {**MODELS, "tests/t.yml": text}).unit_tests
        read.append([rows.rows for rows in test.steps[0].given])
    assert read[0] == read[1] != []


def test_a_name_twice_is_an_error_and_the_same_name_for_two_models_is_none(tmp_path: Path) -> None:
    test = HEAD.format(model="customers") + "    expect: []\n"
    other = test.removeprefix("unit_tests:\n").replace("customers", "ranking") + "    given: {shop.orders: []}\n"
    manifest = clean(tmp_path / "two", {**MODELS, "tests/t.yml": test + other})
    assert [t.id for t in manifest.unit_tests] == ["unit_test.customers.t", "unit_test.ranking.t"]
    found = only(tuple(d for d in findings(tmp_path / "twice", {**MODELS, "tests/a.yml": test, "tests/b.yml": test})
                       if d.is_error))  # fmt: skip
    assert line(found) == "duplicate-name tests/b.yml:2:5 the unit test 't' of 'customers' is defined twice"
    assert "tests/a.yml:2" in found.hint


def test_a_delay_that_cannot_be_read_is_one_mistake_and_hides_no_other(tmp_path: Path) -> None:
    text = HOURLY.replace("delay 10 minutes}", "delay 10, dedup: [id]}").replace("count(*)", "sum(amonut)")
    unit = (
        HEAD.format(model="hourly")
        + GOOD.replace("    given", "    steps:\n      - given")
        + "      - flush\n    expect: []\n"
    )
    found = findings(tmp_path, {**MODELS, "models/hourly.sql": text, "tests/t.yml": unit})
    assert [line(d) for d in found if d.is_error] == [
        "bad-duration models/hourly.sql:2:36 '10' is not a duration",
        "unknown-column models/hourly.sql:5:32 column 'amonut' not found",
    ]


def test_a_header_that_cannot_be_read_is_the_only_mistake(tmp_path: Path) -> None:
    text = HOURLY.replace("windows: {", "windows: {{")
    unit = (
        HEAD.format(model="hourly")
        + "    steps:\n      - given: {shop.orders: [{id: a}]}\n      - flush\n      - restart\n"
        + "    expect: {rows: [], late: 1, watermark: 2013-01-01 10:00:00}\n"
    )
    found = findings(tmp_path, {**MODELS, "models/hourly.sql": text, "tests/t.yml": unit})
    assert [(d.code, d.location and d.location.file) for d in found if d.is_error] == [
        ("yaml-syntax", "models/hourly.sql")
    ]
