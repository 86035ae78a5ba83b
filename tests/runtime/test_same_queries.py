"""Edits that leave a query the same, over real state: the table has the rows of one that had the query from the start."""

from __future__ import annotations

import pytest

from tests.lab import Lab
from tests.runtime import twins
from tests.runtime.twins import E, P

pytestmark = pytest.mark.nightly


def windowed(select: str, group: str = "hour", *, where: str = "", watermark: str = "at", time: str = "at") -> str:
    header = f"streams: {{shop.events: {{watermark: {watermark} delay 10 minutes}}}}\nwindows: {{hour: 'tumbling({time}, 1 hour)'}}"
    return f"/*---\n{header}\n---*/\nselect hour.start as h, {select} from {E} e {where} group by {group}"


def chained(inner: str, outer: str) -> str:
    window = "window(at, '10 minutes')"
    return f"""/*---\nstreams: {{shop.events: {{watermark: at delay 10 minutes}}}}\n---*/
with m as (select {window} as w, {inner} from {E} group by {window})
select window(w, '1 hour').start as h, {outer} from m group by window(w, '1 hour')"""


def joined(condition: str, *, kind: str = "join", where: str = "") -> str:
    header = (
        "streams: {shop.events: {watermark: at delay 10 minutes}, shop.pays: {watermark: paid_at delay 10 minutes}}"
    )
    return f"/*---\n{header}\n---*/\nselect e.id, e.kind, e.amount, p.sum, p.tag from {E} e {kind} {P} p on {condition} {where}"


TIMES = "p.paid_at between e.at and e.at + interval 1 hour"
TURNED = "e.at + interval 1 hour >= p.paid_at and e.at <= p.paid_at"
# By name: the query with which the state begins, and the one that resumes.
SAME = {
    "chain_inside": (chained("max(id) as x, min(id) as n", "sum(x) as xs, sum(n) as ns"),
                     chained("min(id) as n, max(id) as x", "sum(x) as xs, sum(n) as ns")),
    "chain_outside": (chained("max(id) as x, min(id) as n", "max(x) as xs, min(n) as ns"),
                      chained("max(id) as x, min(id) as n", "min(n) as ns, max(x) as xs")),
    "chain_both": (chained("max(id) as x, min(id) as n", "max(x) as xs, min(n) as ns"),
                   chained("min(id) as n, max(id) as x", "min(n) as ns, max(x) as xs")),
    "lateral": (windowed("max(id) as x, x + 1 as more, min(id) as n"), windowed("min(id) as n, max(id) as x, x + 1 as more")),
    "lateral_between": (windowed("max(id) as x, x + min(id) as more, sum(id) as n"),
                        windowed("sum(id) as n, max(id) as x, x + min(id) as more")),
    "synonyms": (windowed("mean(amount) as m, std(amount) as d, every(id >= 0) as a, first_value(id) as f"),
                 windowed("avg(amount) as m, stddev_samp(amount) as d, bool_and(id >= 0) as a, first(id) as f")),
    "synonyms_moved": (windowed("sum(length(kind)) as l, sum(id) as ids"),
                       windowed("sum(id) as ids, sum(char_length(kind)) as l")),
    "synonyms_of_calls_moved": (windowed("mean(id) as l, mean(amount) as m"), windowed("avg(amount) as m, avg(id) as l")),
    "renamed_and_moved": (windowed("sum(x) as a, sum(y) as b").replace(E, f"(select *, id * 2 as x, id + 1 as y from {E})"),
                          windowed("sum(q) as b, sum(p) as a").replace(E, f"(select *, id * 2 as p, id + 1 as q from {E})")),
    "turned_and_moved": (windowed("sum(if(id > 5, 1, 2)) as a, sum(if(id < 3, 1, 4)) as b"),
                         windowed("sum(if(3 > id, 1, 4)) as b, sum(if(5 < id, 1, 2)) as a")),
    "key_twice": (windowed("kind, count(*) as n", "hour, kind, kind"), windowed("kind, count(*) as n", "hour, kind")),
    "key_twice_first": (windowed("kind, count(*) as n", "kind, hour, kind"), windowed("kind, count(*) as n", "kind, hour")),
    "constant_key": (windowed("'x' as tag, kind, count(*) as n", "hour, tag, kind, 1 = 1"),
                     windowed("'x' as tag, kind, count(*) as n", "hour, kind")),
    "cast_key": (windowed("kind, sum(id) as n", "hour, kind"),
                 windowed("cast(kind as string) as kind, sum(cast(id as int)) as n", "hour, cast(kind as string)")),
    "cast_field": (windowed("sum(more.v) as n"), windowed("sum(cast(more.v as double)) as n")),
    "in_for_or": (windowed("count(*) as n", where="where kind = 'a' or kind = 'cc'"),
                  windowed("count(*) as n", where="where kind in ('cc', 'a')")),
    "renamed_time": (windowed("count(*) as n", watermark="at + interval 1 minute as t", time="t"),
                     windowed("count(*) as n", watermark="at + interval 1 minute as event_time", time="event_time")),
    "on_moved": (joined(f"e.id = p.id and {TIMES}"), joined(f"{TURNED} and p.id = e.id")),
    "on_moved_left": (joined(f"e.id = p.id and e.kind = p.note and {TIMES}", kind="left join"),
                      joined(f"p.id = e.id and {TURNED} and p.note = e.kind", kind="left join")),
    "where_moved": (joined(TIMES, where="where e.id = p.id and e.id > 2"), joined(TURNED, where="where 2 < e.id and p.id = e.id")),
}  # fmt: skip


@pytest.mark.spark
def test_the_same_query_resumes_to_the_rows_of_a_table_that_had_it_from_the_start(lab: Lab) -> None:
    before, after = ({name: pair[side] for name, pair in SAME.items()} for side in (0, 1))
    built = twins.build(lab, before, after)
    assert {event["node"]: event["message"] for event in built.events if event.get("level") == "error"} == {}
    notes = [(built.model(name)["note"], built.model(name + twins.FRESH)["note"]) for name in SAME]
    assert [pair for pair in notes if pair[0] != pair[1]] == []
    assert twins.wrong(lab, [*SAME]) == {}
    assert all(lab.rows(name) for name in SAME)
