"""Every record of the oracle: Spark 4.1.4's own verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.compile.streaming.check_query import check_text
from tests.fuzz.relations import RELATIONS, STRICTER

pytestmark = pytest.mark.slow

_ALL = json.loads((Path(__file__).parents[2] / "oracle" / "streaming_rules.json").read_text(encoding="utf-8"))
# STREAM and WATERMARK clauses are rejected whatever Spark says of them: headers have both.
CLAUSES = [record for record in _ALL if record["id"].startswith("native-")]
RECORDS = [record for record in _ALL if record not in CLAUSES]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_verdict_is_that_of_spark(record: dict[str, Any]) -> None:
    found = check_text(record["sql"], RELATIONS, record["mode"])
    errors = [f for f in found if f.is_error and f.code not in STRICTER]
    assert bool(errors) == (record["verdict"] == "rejected"), [(f.code, f.message) for f in errors] or record["message"]


def test_clauses_of_streams_are_rejected() -> None:
    codes = {record["id"]: [f.code for f in check_text(record["sql"], RELATIONS, record["mode"])] for record in CLAUSES}
    # `stream range(10)` is no relation, and Spark cannot parse it either.
    assert codes.pop("native-stream/stream-range:append") == ["not-streaming"]
    assert len(codes) == 13
    assert {code for found in codes.values() for code in found} == {"stream-clause"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_every_finding_has_a_place_and_a_rewrite(record: dict[str, Any]) -> None:
    for finding in check_text(record["sql"], RELATIONS, record["mode"]):
        assert finding.message
        assert finding.hint.endswith((".", ")"))
        assert 0 <= finding.offset < len(record["sql"])
