"""Which edits may begin with the windows that are not written yet: where the table's windows are certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.plan.edits.open_windows import Windows, can_follow, windows_of
from tests.plan.edit_cases import CHAINED, COMPUTED, COUNTED, DEDUP, DISTINCT, HELD, INNER, SESSIONS, UPDATED, manifest

SLIDING = COUNTED.replace("tumbling(at, 1 hour)", "sliding(at, 1 hour, 30 minutes)")
SHIFTED = COUNTED.replace("tumbling(at, 1 hour)", "tumbling(at, 1 hour, 15 minutes)")
NARROW = COUNTED.replace("1 hour", "15 minutes")
DROPPING = COUNTED.replace("delay 10 minutes", "delay 10 minutes, dedup: [id]")
OTHER = COMPUTED.replace("cast(at as timestamp)", "cast(at as timestamp) + interval 1 hour")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (COUNTED, Windows("at", 3_600_000)), (NARROW, Windows("at", 900_000)), (DROPPING, Windows("at", 3_600_000)),
        (HELD, Windows("at", 3_600_000)), (SLIDING, None), (SHIFTED, None), (SESSIONS, None),
        (CHAINED, None), (UPDATED, None), (INNER, None), (DEDUP, None), (DISTINCT, None),
    ],
)  # fmt: skip
def test_the_windows_of_a_query(tmp_path: Path, query: str, found: Windows | None) -> None:
    assert windows_of(manifest(tmp_path, query).model("m").facts) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "follows"),
    [
        (COUNTED, NARROW, True), (COUNTED, COUNTED.replace("max(", "min("), True),
        (COUNTED, COUNTED.replace("delay 10", "delay 30"), True), (COUNTED, DROPPING, True),
        (COUNTED, UPDATED, False), (UPDATED, COUNTED, False), (SESSIONS, COUNTED, False), (COMPUTED, OTHER, False),
    ],
)  # fmt: skip
def test_what_can_follow(tmp_path: Path, before: str, after: str, follows: bool) -> None:
    facts = [manifest(tmp_path / name, text).model("m").facts for name, text in (("old", before), ("new", after))]
    assert can_follow(*facts) is follows
