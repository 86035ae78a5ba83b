"""How long 1,000 ordinary models take (eight columns, a join, a CTE): python -m tests.compile.columns.measure."""

from __future__ import annotations

import gc
import time

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import columns_of
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.sql.dialect import parse_text

MODEL = """with recent as (
    select f.flight_id, f.carrier, f.origin, f.destination, f.departure_delay, f.scheduled_at, f.data.tail as tail
    from `@ref flights_{0}` as f
    where f.departure_delay > {0} and f.carrier is not null
)
select
    r.carrier,
    a.name as airline,
    r.origin,
    hour.start as window_start,
    count(*) as flights,
    avg(r.departure_delay) as mean_delay,
    coalesce(max(r.departure_delay), 0) as worst,
    round(sum(case when r.departure_delay > 60 then 1 else 0 end) / count(*), 2) as late_share
from recent as r
left join `@source ref.airlines` as a on a.carrier = r.carrier
group by r.carrier, a.name, r.origin, hour
"""
FLIGHTS = (
    ("flight_id", "string"),
    ("carrier", "string"),
    ("origin", "string"),
    ("destination", "string"),
    ("scheduled_at", "timestamp"),
    ("departure_delay", "int"),
    ("distance", "int"),
    ("data", "struct<tail: string, seats: int>"),
)
AIRLINES = InputColumns("source.ref.airlines", (("carrier", "string"), ("name", "string")))
WINDOWS = {"hour": TimeWindow("tumbling", "scheduled_at", "1 hours")}


def main(count: int = 1000) -> None:
    texts = [MODEL.format(number) for number in range(count)]
    begin = time.process_time()
    trees = [parse_text(text) for text in texts]
    parsing = time.process_time() - begin
    inputs = [
        {f"@ref flights_{n}": InputColumns(f"model.flights_{n}", FLIGHTS), "@source ref.airlines": AIRLINES}
        for n in range(count)
    ]
    gc.collect()
    gc.freeze()
    times = []
    for _ in range(3):
        begin = time.process_time()
        for tree, known, text in zip(trees, inputs, texts, strict=True):
            columns_of(tree, known, WINDOWS, text)
        times.append(time.process_time() - begin)
    print(f"parsing {parsing / count * 1000:.2f} ms a model, columns and lineage {min(times) / count * 1000:.2f} ms")


if __name__ == "__main__":
    main()
