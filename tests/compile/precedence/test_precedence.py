"""Expressions are grouped as Spark groups them: by fixture pairs, and every pair of operators by Spark's own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlglot.errors import ParseError

from engine.compile.sql.dialect import parse_text
from tests.compile.precedence.groups import of_spark, of_tree, texts
from tests.fixtures import Pair, read_pairs
from tests.lab import LabSession

_PAIRS = read_pairs(Path(__file__).parent, "fixtures.sql")


@pytest.mark.parametrize("pair", _PAIRS, ids=str)
def test_operators_are_grouped_as_spark_does(pair: Pair) -> None:
    assert _groups(pair.given) == _groups(pair.expected)


@pytest.mark.parametrize("text", ["a is null = b", "a in (1) <> b", "a between b and c like d"])
def test_where_spark_needs_brackets_the_text_is_rejected(text: str) -> None:
    with pytest.raises(ParseError, match="Brackets"):
        parse_text(text)


@pytest.mark.nightly
@pytest.mark.spark
def test_every_pair_of_operators_is_grouped_as_by_sparks_parser(lab_session: LabSession) -> None:
    parser = lab_session.spark._jsparkSession.sessionState().sqlParser()
    different = []
    for text in texts():
        try:
            spark: Any = of_spark(parser.parseExpression(text).toJSON())
        except Exception:  # noqa: BLE001  a syntax error of Spark's; what compile makes of it cannot be built
            continue
        if _groups(text) != spark:
            different.append((text, spark, _groups(text)))
    assert not different, different[:5]
    assert len(texts()) > 3_000


def _groups(text: str) -> Any:
    try:
        return of_tree(parse_text(text))
    except ParseError as error:
        return str(error)
