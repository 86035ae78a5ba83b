"""Filters above steps that keep state: an edit of one continues where it decides about new rows only."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.plan import Change
from tests.plan.edit_cases import E, K, P, compare

pytestmark = pytest.mark.slow

HEADER = "streams: {shop.events: {watermark: at delay 10 minutes}%s}\n---\n"
TOTALS = f"select window(at, '10 minutes') as w, id, kind, sum(amount) as s from {E} group by window(at, '10 minutes'), id, kind"
OF_STREAMS = f"select m.s, p.sum from ({TOTALS}) m join {P} p on m.id = p.id and p.paid_at >= m.w.end"
OF_A_TABLE = f"select m.s, k.rank from ({TOTALS}) m join {K} k on m.kind = k.kind"
PAYS = ", shop.pays: {watermark: paid_at delay 10 minutes}"


@pytest.mark.parametrize(
    ("query", "before", "after", "change", "mixed"),
    [
        # A join of streams keeps rows that have passed the filter.
        (OF_STREAMS, "where m.s > 10", "where m.s > 20", Change.STATE_BREAKING, False),
        (OF_STREAMS, "", "where m.s > 20", Change.STATE_BREAKING, False),
        (OF_STREAMS, "where p.sum > 10", "where p.sum > 20", Change.STATE_BREAKING, False),
        # What a group computed is filtered behind it, and nothing further on keeps state.
        (OF_A_TABLE, "where m.s > 10", "where m.s > 20", Change.FORWARD, False),
        (OF_A_TABLE, "", "where m.s > 20", Change.FORWARD, False),
        (OF_A_TABLE, "where m.kind <> 'x'", "where m.kind <> 'y'", Change.FORWARD, True),
    ],
)
def test_a_filter_above_a_join_of_totals(
    tmp_path: Path, query: str, before: str, after: str, change: Change, mixed: bool
) -> None:
    header = HEADER % (PAYS if query is OF_STREAMS else "")
    found = compare(tmp_path, f"{header}{query} {before}", f"{header}{query} {after}")
    assert found.change is change
    assert any("include rows of both filters" in reason for reason in found.reasons) is mixed


COUNTED = f"select window(at, '1 hour') as w, kind, count(*) as n from {E} group by window(at, '1 hour'), kind"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("'x'", Change.UNCHANGED),
        ("'x' || 'y'", Change.UNCHANGED),
        ("1.5 + 1", Change.UNCHANGED),
        ("-(1.5)", Change.UNCHANGED),
        ("not true", Change.UNCHANGED),
        ("cast(null as string)", Change.UNCHANGED),
        ("id + 1", Change.STATE_BREAKING),
        ("not (id > 1)", Change.STATE_BREAKING),
        ("cast(id as string)", Change.STATE_BREAKING),
        # What a function gives of constants is not computed here.
        ("upper('x')", Change.STATE_BREAKING),
    ],
)
def test_spark_groups_by_no_constant(tmp_path: Path, key: str, change: Change) -> None:
    header = HEADER % ""
    assert compare(tmp_path, f"{header}{COUNTED}", f"{header}{COUNTED}, {key}").change is change
