"""The static side of a stream is read fresh in each micro-batch, files too: Spark alone lists them once a query."""

from __future__ import annotations

import pytest

from tests.fault_injection.points import reached
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


@pytest.mark.parametrize(
    ("format_", "first", "second"),
    [
        ("json", '{"kind": "a", "name": "A"}\n', '{"kind": "b", "name": "B"}\n'),
        ("csv", "kind,name\na,A\n", "kind,name\nb,B\n"),
    ],
)
def test_a_file_that_lands_between_two_batches_is_seen_by_the_second(
    lab: Lab, format_: str, first: str, second: str
) -> None:
    lab.write("sources/shop.yml", EVENTS + KINDS.format(format=format_))
    lab.model("named", NAMED)
    for number, kind in enumerate("abb"):
        lab.land(str(number), [{"id": number, "kind": kind}])
    lab.write(f"landing/kinds/first.{format_}", first)
    # The first micro-batch has been written and Spark has not yet noted it.
    with reached("recorded", lambda *_: lab.write(f"landing/kinds/second.{format_}", second), times=1) as seen:
        assert lab.build().model("named")["batches"] == 3
    assert seen == ["named"]
    assert sorted((r["id"], r["name"]) for r in lab.rows("named")) == [(0, "A"), (1, "B"), (2, "B")]
