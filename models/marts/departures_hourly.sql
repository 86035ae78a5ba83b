/*---
description: >-
  Departures and mean delay per airport and hour of the schedule. An hour is written once, when the watermark
  has passed its end; a flight that leaves more than 30 minutes behind all others may come too late to count.
streams:
  ops.departures:
    watermark: data.scheduled_at as scheduled_at delay 30 minutes
    dedup: [id]
    max_files_per_trigger: 4          # small batches, so that the watermark moves while rows are under way
windows:
  hour: tumbling(scheduled_at, 1 hour)
output_mode: append
partition_by: [day(window_start)]
tags: [hourly]
columns:
  window_start: {description: Begin of the hour (UTC)., tests: [not_null]}
  origin: {description: IATA code., tests: [not_null, {relationships: {to: airports, field: faa}}]}
  departures: Flights that left.
  mean_delay: Minutes.
---*/
select
    hour.start as window_start,
    data.origin as origin,
    count(*) as departures,
    avg(data.departure_delay) as mean_delay
from {{ source('ops', 'departures') }}
where type = 'flight.departed'
group by hour, data.origin
