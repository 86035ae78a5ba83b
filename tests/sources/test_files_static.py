"""The static side of a stream is read fresh in each micro-batch, files too: Spark alone lists them once a query."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.runtime.writer import BatchWriter
from tests.lab import EVENTS, Lab

pytestmark = pytest.mark.spark

KINDS = """      - name: kinds
        format: {format}
        path: landing/kinds
        schema: "kind string, name string"
"""
NAMED = """/*---
streams:
  shop.events: {max_files_per_trigger: 1}
---*/
select id, name from {{ source('shop', 'events') }} left join {{ source('shop', 'kinds') }} using (kind)
"""


def during_first_batch(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> list[int]:
    """Let something happen when the first micro-batch has been written and Spark has not yet noted it."""
    seen: list[int] = []
    record = BatchWriter.record

    def recording(self: BatchWriter, **changes: object) -> None:
        record(self, **changes)
        if "batch" in changes:
            seen.append(int(str(changes["batch"])))
            if len(seen) == 1:
                happens()

    monkeypatch.setattr(BatchWriter, "record", recording)
    return seen


@pytest.mark.parametrize(
    ("format_", "first", "second"),
    [
        ("json", '{"kind": "a", "name": "A"}\n', '{"kind": "b", "name": "B"}\n'),
        ("csv", "kind,name\na,A\n", "kind,name\nb,B\n"),
    ],
)
def test_a_file_that_lands_between_two_batches_is_seen_by_the_second(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, format_: str, first: str, second: str
) -> None:
    lab.write("sources/shop.yml", EVENTS + KINDS.format(format=format_))
    lab.model("named", NAMED)
    for number, kind in enumerate("abb"):
        lab.land(str(number), [{"id": number, "kind": kind}])
    lab.write(f"landing/kinds/first.{format_}", first)
    with monkeypatch.context() as patch:
        seen = during_first_batch(patch, lambda: lab.write(f"landing/kinds/second.{format_}", second))
        lab.build()
    assert seen == [0, 1, 2]
    assert sorted((r["id"], r["name"]) for r in lab.rows("named")) == [(0, "A"), (1, "B"), (2, "B")]
