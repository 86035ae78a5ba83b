"""Edits of queries that keep state, and what becomes of each: the specification of what may continue over a state.

docs/edits.md is made from them (`tests.plan.edits_page`).
"""

from __future__ import annotations

from pathlib import Path

from engine.compile import Manifest
from engine.plan import Comparison, LastWriter
from engine.plan.compare_models import compare_model
from tests.fixtures import read_rows
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


def _read_edits(part: str) -> dict[str, tuple[str, list[tuple[str, str]], str]]:
    """Return the query of each edit, the pairs of texts that it replaces, and words of what is said."""
    edits = {}
    for name, query, first, pairs, words in read_rows(Path(__file__).with_name("edits.txt"), part, 5):
        edits[name] = (edited(globals()[query], *_pairs(first)), _pairs(pairs), words)
    return edits


def _pairs(text: str) -> list[tuple[str, str]]:
    for name, place in {"<events>": E, "<pays>": P, "<kinds>": K, "<windows>": APPEND}.items():
        text = text.replace(name, place)
    # A line of the file has no blanks at its end: an arrow with nothing behind it removes.
    pairs = (pair.partition(" ->") for pair in text.split(" ; ") if pair)
    return [(old, new.removeprefix(" ")) for old, _, new in pairs]


BITS = edited(COUNTED, ("sum(amount)", "sum(id | 4 & 2)"))
SAME = {name: (before, pairs) for name, (before, pairs, _) in _read_edits("same").items()}
FORWARD = _read_edits("forward")
ADDITIVE = _read_edits("additive")
BREAKING = _read_edits("breaking")
