"""A query over state that is written again as a pipe: it continues where it means the same, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.plan import Change, LastWriter
from engine.plan.compare_models import Comparison, compare_model
from tests.project.small_projects import clean, model
from tests.projects import sources_yaml

SOURCES = sources_yaml(
    events={"path": "events", "schema": "id bigint, at timestamp, kind string, amount double"},
    paid={"path": "paid", "schema": "event bigint, at timestamp, sum double"},
)
HOUR = "streams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(at, 1 hour)'}"
DEDUP = "streams: {shop.events: {watermark: at delay 10 minutes, dedup: [id]}}"
BOTH = "streams: {shop.events: {watermark: at delay 10 minutes}, shop.paid: {watermark: at delay 10 minutes}}"
COUNTED = "select hour.start as h, kind, sum(amount) as total from EVENTS where amount > 1 group by hour, kind"
JOINED = (
    "select e.id, p.sum from EVENTS e join PAID p on e.id = p.event and p.at between e.at and e.at + interval 1 hour "
    "where e.amount > 1"
)


@pytest.mark.parametrize(
    ("header", "select", "pipe"),
    [
        (HOUR, COUNTED,
         ("from EVENTS |> where amount > 1 |> aggregate sum(amount) as total group by hour, kind "
         "|> select hour.start as h, kind, total")),
        (HOUR, COUNTED,
         ("from EVENTS |> select at, kind, amount |> where amount > 1 |> aggregate sum(amount) as total group by hour, kind "
         "|> extend hour.start as h |> select h, kind, total")),
        (DEDUP, "select id, kind from EVENTS where amount > 1", "from EVENTS |> where amount > 1 |> select id, kind"),
        (BOTH, JOINED,
         ("from EVENTS |> as e |> join PAID p on e.id = p.event and p.at between e.at and e.at + interval 1 hour "
         "|> where e.amount > 1 |> select e.id, p.sum")),
    ],
)  # fmt: skip
def test_the_same_query_continues(tmp_path: Path, header: str, select: str, pipe: str) -> None:
    found = _compared(tmp_path, header, select, pipe)
    assert (found.change, found.refusal) == (Change.UNCHANGED, None)


@pytest.mark.parametrize(
    ("pipe", "reason"),
    [
        (("from EVENTS |> where amount > 1 |> set kind = upper(kind) |> aggregate sum(amount) as total group by hour, kind "
         "|> select hour.start as h, kind, total"), "upper(events.kind)"),
        (("from EVENTS |> set amount = amount * 2 |> where amount > 1 |> aggregate sum(amount) as total group by hour, kind "
         "|> select hour.start as h, kind, total"), "sum(events.amount * 2)"),
    ],
)  # fmt: skip
def test_a_step_that_changes_what_the_state_holds_is_rejected(tmp_path: Path, pipe: str, reason: str) -> None:
    found = _compared(tmp_path, HOUR, COUNTED, pipe)
    assert found.refusal is not None
    assert reason in found.refusal.message


def _compared(root: Path, header: str, before: str, after: str) -> Comparison:
    manifests = []
    for name, sql in (("before", before), ("after", after)):
        text = sql.replace("EVENTS", "{{ source('shop', 'events') }}").replace("PAID", "{{ source('shop', 'paid') }}")
        files = {"project.yml": "name: lab\n", "sources/shop.yml": SOURCES, **model(header, text, "m")}
        manifests.append(clean(root / name, files))
    old, new = (manifest.model("m") for manifest in manifests)
    return compare_model(manifests[1], new, LastWriter(old.fingerprint, old.facts))
