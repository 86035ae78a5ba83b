"""SQL of each warehouse and Spark's: what is replaced, what stays, and what is noted with its line."""

from __future__ import annotations

import pytest

from engine.compile.sql.dialect import parse_text
from engine_import.dialects.translate import WAREHOUSES, translated
from tests.engine_import.dialects.translations import NOTED, PAIRS, UNCHANGED


@pytest.mark.slow
@pytest.mark.parametrize(("adapter", "text", "expected"), PAIRS)
def test_what_differs_is_replaced_at_its_place(adapter: str, text: str, expected: str) -> None:
    translation = translated(text, adapter)
    assert translation.text == expected
    assert translation.notes == ()


@pytest.mark.parametrize(("adapter", "text", "expected"), PAIRS)
def test_a_translation_is_sql_of_spark(adapter: str, text: str, expected: str) -> None:
    if "{" not in expected and expected.casefold().startswith(("select", "with")):
        assert parse_text(expected) is not None


@pytest.mark.parametrize("adapter", sorted(WAREHOUSES))
@pytest.mark.parametrize("text", UNCHANGED)
def test_what_means_the_same_stays_as_it_is(adapter: str, text: str) -> None:
    translation = translated(text, adapter)
    assert translation.text == text
    assert translation.notes == ()


@pytest.mark.parametrize(("adapter", "text", "expected"), NOTED)
def test_what_may_give_other_rows_is_noted_at_its_line(adapter: str, text: str, expected: str) -> None:
    (note,) = translated(text, adapter).notes
    line, words = expected.split(" ", 1)
    assert note.line == int(line)
    assert words in note.message


@pytest.mark.parametrize("adapter", ["spark", "databricks", "", "another"])
def test_an_adapter_that_is_not_known_is_not_translated(adapter: str) -> None:
    text = "select safe_cast(a as int64), from t qualify x = 1"
    assert translated(text, adapter).text == text


@pytest.mark.parametrize(
    "text", ["select (a", "select 'a", "select {% if a %}({% else %}[{% endif %} 1 )", "\ue000", ""]
)
def test_a_text_that_cannot_be_read_stays(text: str) -> None:
    assert translated(text, "bigquery").text == text
