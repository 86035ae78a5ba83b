"""Edits of queries that keep state, and what becomes of each: the specification of what may continue over a state.

docs/edits.md is made from them (`tests.plan.edits_page`).
"""

from __future__ import annotations

from pathlib import Path

from engine.compile import Manifest
from engine.plan import Comparison, LastWriter
from engine.plan.compare_models import compare_model
from tests.lab import PROJECT
from tests.project.small_projects import clean, model

SOURCES = """
sources:
  - name: shop
    tables:
      - {name: events, format: json, path: events, schema: "%s"}
      - {name: pays, format: json, path: pays, schema: "id int, paid_at timestamp, sum double, note string"}
      - {name: kinds, format: json, path: kinds, schema: "kind string, name string, rank int"}
"""
EVENTS = "id int, at timestamp, kind string, amount double, other timestamp, data struct<v:double>"
E, P, K = (f"{{{{ source('shop', '{name}') }}}}" for name in ("events", "pays", "kinds"))

APPEND = "windows: {hour: 'tumbling(at, 1 hour)'}"
COUNTED = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as hour_start, kind, count(*) as n, sum(amount) as total, max(amount) as top
from {E}
where id > 0
group by hour, kind
having count(*) > 1
"""
SESSIONS = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{s: 'session(at, 5 minutes)'}}
---
select s.start as begins, s.end as ends, kind, count(*) as n from {E} group by s, kind
"""
DEDUP = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes, dedup: [id]}}}}
---
select id, kind from {E}
"""
JOIN = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}, shop.pays: {{watermark: paid_at delay 10 minutes}}}}
---
select e.id, e.kind, p.sum
from {E} e left join {P} p on e.id = p.id and p.paid_at between e.at and e.at + interval 1 hour
"""
HALF = f"""
streams: {{shop.events: {{}}, shop.pays: {{watermark: paid_at delay 10 minutes}}}}
---
select e.id, e.kind, p.sum
from {E} e join {P} p on e.id = p.id and p.paid_at between e.at and e.at + interval 1 hour
"""
CHAIN = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
---
with m as (select window(at, '10 minutes') as w, sum(amount) as s from {E} group by window(at, '10 minutes'))
select window(w, '1 hour').start as h, max(s) as top from m group by window(w, '1 hour')
"""
CHAINED = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
---
with m as (select window(at, '10 minutes') as w, sum(amount) as s, max(amount) as t from {E} group by window(at, '10 minutes'))
select window(w, '1 hour').start as h, max(s) as top, sum(t) as most from m group by window(w, '1 hour')
"""
LATERAL = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as hour_start, count(*) as n, n * 2 as twice, sum(amount) as total from {E} group by hour
"""
WORDS = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as `select`, kind as `group`, count(*) as `from`, sum(amount) as `order` from {E} group by hour, kind
"""
STATISTICS = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as hour_start, avg(amount) as m, stddev(amount) as d, some(id > 3) as a, sum(length(kind)) as l from {E} group by hour
"""
COMPUTED = f"""
streams: {{shop.events: {{watermark: cast(at as timestamp) as ts delay 10 minutes}}}}
windows: {{hour: 'tumbling(ts, 1 hour)'}}
---
select hour.start as hour_start, count(*) as n from {E} group by hour
"""
FIELD = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as hour_start, sum(data.v) as total from {E} group by hour
"""
ENDLESS = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
windows: {{s: 'session(at, 5 minutes)'}}
output_mode: complete
---
select s.start as begins, s.end as ends, kind, count(*) as n from {E} group by s, kind
"""
INNER = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}, shop.pays: {{watermark: paid_at delay 10 minutes}}}}
---
select e.id, e.kind, p.sum from {E} e join {P} p
on p.paid_at between e.at and e.at + interval 1 hour where e.id = p.id and e.kind = p.note
"""
SIZES = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as hour_start, sum(size(split(kind, ','))) as total from {E} group by hour
"""
UPDATED = COUNTED.replace(APPEND, APPEND + "\nunique_key: [hour_start, kind]")
TOTALS = f"""
streams: [shop.events]
output_mode: complete
---
select kind, count(*) as n, sum(id) as ids from {E} group by kind order by n desc limit 10
"""
DISTINCT = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
---
select distinct at, kind from {E}
"""
RANKED = f"""
streams: [shop.events]
output_mode: update
unique_key: [kind]
---
with g as (select kind, count(*) as n from {E} group by kind)
select g.kind, g.n, k.rank from g join {K} k on g.kind = k.kind where k.rank > 1
"""
STATIC = f"""
streams: [shop.events]
---
select e.id, k.top from {E} e join (select kind, max(rank) as top from {K} group by kind) k on e.kind = k.kind
"""
HELD = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
{APPEND}
---
select hour.start as hour_start, k.name, count(*) as n
from {E} e join {K} k on e.kind = k.kind group by hour, k.name
"""


def manifest(root: Path, text: str, schema: str = EVENTS) -> Manifest:
    header, _, sql = text.strip().partition("---\n")
    project = PROJECT.format(lake=".engine/lake", schema="s")
    return clean(root, {"project.yml": project, "sources/shop.yml": SOURCES % schema, **model(header, sql, "m")})


def compare(root: Path, before: str, after: str, schema: str = EVENTS) -> Comparison:
    old, new = manifest(root, before).model("m"), manifest(root, after, schema)
    assert old.facts != new.model("m").facts, "nothing was edited"
    return compare_model(new, new.model("m"), LastWriter(old.fingerprint, old.facts))


def edited(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


BITS = edited(COUNTED, ("sum(amount)", "sum(id | 4 & 2)"))
SAME = {
    "letter case of a field": (FIELD, [("data.v", "DATA.`V`")]),
    "the brackets that Spark adds": (BITS, [("id | 4 & 2", "id | (4 & 2)")]),
    "an alias of the table": (COUNTED, [(f"from {E}", f"from {E} as e")]),
    "qualified columns": (COUNTED, [(f"from {E}", f"from {E} e"), ("sum(amount)", "sum(e.amount)"), ("id > 0", "e.id > 0")]),
    "the order of the SELECT list": (COUNTED, [("count(*) as n, sum(amount) as total", "sum(amount) as total, count(*) as n")]),
    "a renamed window": (COUNTED, [("{hour:", "{h:"), ("hour.start", "h.start"), ("by hour", "by h")]),
    "grouped by the start": (COUNTED, [("by hour,", "by hour.start,")]),
    "grouped by an alias": (COUNTED, [("by hour,", "by hour_start,")]),
    "grouped by position": (COUNTED, [("by hour, kind", "by 1, 2")]),
    "grouped by ALL": (COUNTED, [("by hour, kind", "by all")]),
    "another spelling of a window": (COUNTED, [("1 hour", "60 minutes")]),
    "another spelling of a delay": (COUNTED, [("10 minutes", "600 seconds")]),
    "count(1)": (COUNTED, [("count(*) as n", "count(1) as n")]),
    "a CTE": (COUNTED, [("select hour.start", f"with q as (select * from {E} where id > 0)\nselect hour.start"),
              (f"from {E}\nwhere id > 0\ngroup", "from q\ngroup")]),
    "a subquery": (COUNTED, [(f"from {E}\nwhere id > 0", f"from (select * from {E} where id > 0) q")]),
    "another spelling of a gap": (SESSIONS, [("5 minutes", "300 seconds")]),
    "another spelling of a bound": (JOIN, [("interval 1 hour", "interval '60' minute")]),
    "aliases of a join": (JOIN, [(" e left", " a left"), ("e.", "a."), ("p.sum", "p.sum as sum")]),
    "the SELECT list of a join": (JOIN, [("e.id, e.kind, p.sum", "p.sum, e.kind, e.id")]),
    "an alias of what is distinct": (DISTINCT, [(f"distinct at, kind from {E}", f"distinct e.at, e.kind from {E} e")]),
    "CTEs of a join in its order": (JOIN, [("select e.id", f"with a as (select * from {E}), q as (select * from {P})\nselect e.id"),
                                    (f"from {E} e", "from a e"), (f"join {P} p", "join q p")]),
    "the order inside a chain": (CHAINED, [("sum(amount) as s, max(amount) as t", "max(amount) as t, sum(amount) as s")]),
    "both orders of a chain": (CHAINED, [("sum(amount) as s, max(amount) as t", "max(amount) as t, sum(amount) as s"),
                               ("max(s) as top, sum(t) as most", "sum(t) as most, max(s) as top")]),
    "the order with an alias of the same SELECT": (LATERAL, [("count(*) as n, n * 2 as twice, sum(amount) as total",
                                                              "sum(amount) as total, count(*) as n, n * 2 as twice")]),
    "a column named by a reserved word": (WORDS, [(f"from {E}", f"from {E} as e")]),
    "the order of columns named by reserved words": (WORDS, [("count(*) as `from`, sum(amount) as `order`",
                                                              "sum(amount) as `order`, count(*) as `from`")]),
    "avg and mean": (STATISTICS, [("avg(amount)", "mean(amount)")]),
    "stddev and stddev_samp": (STATISTICS, [("stddev(amount)", "stddev_samp(amount)")]),
    "std and stddev": (STATISTICS, [("stddev(amount)", "std(amount)")]),
    "some and bool_or": (STATISTICS, [("some(id > 3)", "bool_or(id > 3)")]),
    "any and some": (STATISTICS, [("some(id > 3)", "any(id > 3)")]),
    "a synonym inside an aggregate": (STATISTICS, [("length(kind)", "char_length(kind)")]),
    "a group key twice": (COUNTED, [("by hour, kind", "by hour, kind, kind")]),
    "a group key no longer twice": (edited(COUNTED, ("by hour, kind", "by kind, hour, kind")), [("by kind, hour, kind", "by kind, hour")]),
    "a constant as group key": (COUNTED, [("by hour, kind", "by hour, kind, 'x'")]),
    "a constant of the SELECT as group key": (edited(COUNTED, ("kind, count", "kind, 'x' as tag, count"), ("by hour, kind", "by hour, tag, kind")),
                                              [("by hour, tag, kind", "by hour, kind")]),
    "conditions of a join in another order": (JOIN, [("e.id = p.id and p.paid_at between e.at and e.at + interval 1 hour",
                                              "p.paid_at <= e.at + interval 1 hour and e.id = p.id and p.paid_at >= e.at")]),
    "conditions of a join turned": (JOIN, [("e.id = p.id and p.paid_at between e.at and e.at + interval 1 hour",
                                    "p.id = e.id and e.at <= p.paid_at and e.at + interval 1 hour >= p.paid_at")]),
    "a cast to the type it has": (COUNTED, [("sum(amount)", "sum(cast(amount as double))"), ("by hour, kind", "by hour, cast(kind as string)"),
                                  ("kind, count", "cast(kind as string) as kind, count")]),
    "a cast of a field to the type it has": (FIELD, [("data.v", "cast(data.v as double)")]),
    "IN for OR": (edited(COUNTED, ("id > 0", "kind = 'a' or kind = 'b'")), [("kind = 'a' or kind = 'b'", "kind in ('b', 'a')")]),
    "a turned filter": (COUNTED, [("id > 0", "0 < id")]),
    "the words of a filter in another order": (edited(COUNTED, ("id > 0", "(id > 0 or kind = 'a')")), [("id > 0 or kind = 'a'", "'a' = kind or id > 0")]),
    "a renamed column of a watermark": (COMPUTED, [("as ts delay", "as event_time delay"), ("(ts,", "(event_time,")]),
    "a renamed column of a watermark of a dedup": (edited(COMPUTED, ("delay 10 minutes", "delay 10 minutes, dedup: [id]")),
                                                   [("as ts delay", "as event_time delay"), ("(ts,", "(event_time,")]),
    "a chain in other words": (CHAIN, [("select window(at, '10 minutes') as w, sum(amount) as s", ("select sum(amount) as s, "
                               "window(at, '600 seconds') as w")), ("from m group", "from m as x group")]),
}  # fmt: skip
FORWARD = {
    "HAVING changed": (COUNTED, [("count(*) > 1", "count(*) > 2 and max(amount) < 9")], "filter count(*) > 2 was added"),
    "HAVING removed": (COUNTED, [("having count(*) > 1", "")], "filter count(*) > 1 was removed"),
    "a filter above a static join that uses an aggregate": (RANKED, [("k.rank > 1", "k.rank > 1 and g.n > 2")], "was added"),
    "HAVING in update mode": (UPDATED, [("count(*) > 1", "sum(amount) > 2")], "was added"),
    "a larger delay": (COUNTED, [("delay 10 minutes", "delay 1 hour")], "from 10 minutes to 1 hour"),
    "a smaller delay": (SESSIONS, [("delay 10 minutes", "delay 30 seconds")], "from 10 minutes to 30 seconds"),
    "a delay in update mode": (UPDATED, [("delay 10 minutes", "delay 1 hour")], "from 10 minutes to 1 hour"),
    "a delay of dedup": (DEDUP, [("delay 10 minutes", "delay 1 hour")], "from 10 minutes to 1 hour"),
    "a delay of a join": (JOIN, [("at delay 10 minutes}, shop.p", "at delay 20 minutes}, shop.p")], "to 20 minutes"),
    "a watermark for the other side of a join": (HALF, [("shop.events: {}", "shop.events: {watermark: at delay 10 minutes}")],
                                                 "a watermark on at was added to 'shop.events'"),
    "a session gap": (SESSIONS, [("5 minutes", "20 minutes")], "gap of the session window changed"),
    "a filter before an append aggregate": (COUNTED, [("id > 0", "id > 5")], "include rows of both filters"),
    "HAVING over a key": (COUNTED, [("count(*) > 1", "count(*) > 1 and kind = 'a'")], "include rows of both filters"),
    "a filter behind a dedup": (DEDUP, [(f"from {E}", f"from {E} where kind = 'a'")], "was added"),
    "another expression over aggregates": (COUNTED, [("count(*) as n", "count(*) * 2 as n")], "column 'n' changed"),
    "a column no longer returned": (COUNTED, [("max(amount) as top", "max(amount) as total2"), ("sum(amount) as total,",
                                    "sum(amount) as top,")], "no longer returns column 'total'"),
    "the number of a LIMIT": (TOTALS, [("limit 10", "limit 20")], "LIMIT changed from 10 to 20"),
    "ORDER BY": (TOTALS, [("order by n desc", "order by n")], "ORDER BY changed"),
}  # fmt: skip
ADDITIVE = {
    "a renamed output": (COUNTED, [("as total", "as amounts")], "new column 'amounts' (sum(events.amount))"),
    "a derived column": (COUNTED, [("count(*) as n,", "sum(amount) / count(*) as mean, count(*) as n,")], "mean"),
    "an aggregate once more": (COUNTED, [("count(*) as n,", "count(*) as n, count(*) as again,")], "again"),
    "one more column of a dedup": (DEDUP, [("id, kind", "id, kind, amount")], "new column 'amount'"),
    "a column from what a join has": (JOIN, [("p.sum", "p.sum, p.sum * 2 as twice")], "twice"),
}  # fmt: skip
BREAKING = {
    "letter case of a name in JSON": (edited(COUNTED, ("max(amount)", "max(to_json(struct(amount as Price)))")), [("Price", "price")], "Price"),
    "letter case of a map's key": (edited(COUNTED, ("max(amount)", "max(map(kind, id).A)")), [(".A)", ".a)")], "max("),
    "letter case of a text": (edited(COUNTED, ("max(amount)", "max(concat(kind, 'A'))")), [("'A'", "'a'")], "'A'"),
    "brackets against Spark's precedence": (BITS, [("id | 4 & 2", "(id | 4) & 2")], "sum(events.id | (4 & 2)) to sum((events.id | 4) & 2)"),
    "another function": (COUNTED, [("sum(amount)", "max(amount) + min(amount)")], "sum(events.amount) to min(events.amount)"),
    "another argument": (COUNTED, [("sum(amount)", "sum(amount * 1000)")], "sum(events.amount) to sum(events.amount * 1000)"),
    "count(*) to count(v)": (COUNTED, [("count(*)", "count(amount)")], "count(*) to count(events.amount)"),
    "IGNORE NULLS": (edited(COUNTED, ("max(amount)", "first(amount)")), [("first(amount)", "first(amount) ignore nulls")], "IGNORE"),
    "a filter above a static join of groups": (RANKED, [("k.rank > 1", "k.rank > 1 and g.kind <> 'a'")], "was added upstream of GROUP BY"),
    "a FILTER": (COUNTED, [("sum(amount)", "sum(amount) filter (where id > 3)")], "FILTER"),
    "DISTINCT-like collects": (edited(COUNTED, ("max(amount)", "collect_list(amount)")), [("collect_list", "collect_set")], "collect_"),
    "one more aggregate": (COUNTED, [("max(amount) as top", "max(amount) as top, min(amount) as low")], "min(events.amount) was added to GROUP BY"),
    "one aggregate less": (COUNTED, [(", max(amount) as top", "")], "max(events.amount) was removed from GROUP BY"),
    "an aggregate only in HAVING": (COUNTED, [("count(*) > 1", "min(amount) > 1")], "min(events.amount)"),
    "other keys": (COUNTED, [("by hour, kind", "by hour, id"), ("kind, count", "id, count")], "became"),
    "swapped keys": (COUNTED, [("by hour, kind", "by kind, hour")], "became events.kind, window("),
    "swapped keys by ALL": (edited(COUNTED, ("by hour, kind", "by all")),
                            [("hour.start as hour_start, kind,", "kind, hour.start as hour_start,")], "became"),
    "one key less": (COUNTED, [("by hour, kind", "by hour"), ("kind, count", "count")], "became"),
    "the size of a window": (COUNTED, [("1 hour", "2 hours")], "from window(events.at, '1 hour') to window(events.at, '2 hours')"),
    "the start of a window": (COUNTED, [("1 hour)", "1 hour, 5 minutes)")], "window(events.at, '1 hour', '1 hour', '5 minutes')"),
    "tumbling to sliding": (COUNTED, [("tumbling(at, 1 hour)", "sliding(at, 1 hour, 30 minutes)")], "'30 minutes'"),
    "tumbling to session": (COUNTED, [("tumbling(at, 1 hour)", "session(at, 1 hour)")], "session_window(events.at"),
    "another event time": (COUNTED, [("watermark: at", "watermark: other"), ("(at,", "(other,")], "from at to other"),
    "a filter in update mode": (UPDATED, [("id > 0", "id > 5")], "filter events.id > 5 was added upstream of GROUP BY"),
    "HAVING over a key in update mode": (UPDATED, [("count(*) > 1", "kind = 'a'")], "events.kind = 'a' was added upstream of"),
    "a filter in complete mode": (TOTALS, [("group by kind", "where id > 5 group by kind")], "was added upstream of"),
    "dedup keys": (DEDUP, [("[id]", "[id, kind]")], "from id to id, kind"),
    "dedup removed": (DEDUP, [(", dedup: [id]", "")], "no longer keeps state"),
    "a CTE that moves a stream to the front": (JOIN, [("select e.id", f"with q as (select * from {P})\nselect e.id"),
                                               (f"join {P} p", "join q p")], "order shop.pays, shop.events"),
    "a join of another kind": (JOIN, [("left join", "join")], "the left join is now a inner join"),
    "the bound of a join": (JOIN, [("1 hour", "2 hours")], "INTERVAL '2' HOUR"),
    "a filter on one side of a join": (JOIN, [("interval 1 hour", "interval 1 hour\nwhere e.id > 5")], "upstream of the left join"),
    "one more column of a join": (JOIN, [("p.sum", "p.sum, p.note")], "to pays.id, pays.paid_at, pays.sum, pays.note"),
    "a column that only a filter had": (edited(JOIN, ("interval 1 hour", "interval 1 hour\nwhere e.other > e.at and p.note = 'x'")),
                                        [("p.sum", "p.note as sum")], "pays.paid_at, pays.sum to pays.id, pays.paid_at, pays.note"),
    "one column less of a join": (JOIN, [("e.kind, ", "")], "buffers of its left side"),
    "the other side of a join": (edited(JOIN, ("left join", "join")), [(f"{E} e join {P} p", f"{P} p join {E} e")], "became"),
    "columns of DISTINCT": (DISTINCT, [("at, kind", "at, kind, id")], "columns of DISTINCT changed"),
    "the order of DISTINCT": (DISTINCT, [("at, kind", "kind, at")], "columns of DISTINCT changed"),
    "LIMIT removed": (TOTALS, [(" limit 10", "")], "LIMIT"),
    "no state any more": (COUNTED, [("hour.start as hour_start, kind, count(*) as n, sum(amount) as total, max(amount) as top",
                          "id"), ("group by hour, kind\nhaving count(*) > 1", ""), (APPEND, "")], "no longer keeps state"),
    "a filter inside a chain": (CHAIN, [("from m group", "from m where s > 1 group")], "was added upstream of"),
    "the gap of a session in complete mode": (ENDLESS, [("5 minutes", "20 minutes")], "gap of the session window changed from 5 minutes to 20"),
    "a cast that loses the event time of a window": (UPDATED, [("(at, 1 hour)", "(cast(at as timestamp), 1 hour)")], "event"),
    "equalities of a join in another order": (edited(JOIN, ("e.id = p.id", "e.id = p.id and e.kind = p.note")),
                                              [("e.id = p.id and e.kind = p.note", "e.kind = p.note and e.id = p.id")], "changed their order"),
    "equalities of an inner join's WHERE in another order": (INNER, [("e.id = p.id and e.kind = p.note", "e.kind = p.note and e.id = p.id")], "changed their order"),
    "the type of a cast": (COUNTED, [("sum(amount)", "sum(cast(amount as float))")], "CAST(events.amount AS FLOAT)"),
    "IN of other types": (edited(UPDATED, ("id > 0", "id = '1' or id = 2")), [("id = '1' or id = 2", "id in ('1', 2)")], "filter"),
    "size and array_size": (SIZES, [("(size(", "(array_size(")],
                             "sum(size(split(events.kind, ','))), calls another function of Spark now"),
    "a static input of an aggregate": (HELD, [("e.kind = k.kind", "e.kind = k.name")], "join condition changed"),
    "an order that no SELECT list has": (edited(COUNTED, ("sum(amount) as total", "sum(amount) + max(amount) as total")),
                                         [("sum(amount) + max(amount)", "max(amount) + sum(amount)"), (", max(amount) as top", "")], "order"),
}  # fmt: skip
