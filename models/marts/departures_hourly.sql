/*---
description: >-
  Departures and mean delay per airport and hour of the schedule. An hour is written once, when the watermark
  has passed its end; a flight that leaves more than 30 minutes behind all others may come too late to count.
streams:
  flights: {watermark: scheduled_at delay 30 minutes}
windows:
  hour: tumbling(scheduled_at, 1 hour)
partition_by: [day(window_start)]
tags: [hourly]
contract: true                      # other teams read it: exactly these columns and types
columns:
  window_start: {type: timestamp, description: Begin of the hour (UTC)., tests: [not_null]}
  origin: {type: string, description: IATA code., tests: [not_null, {relationships: {to: airports, field: faa}}]}
  departures: {type: bigint, description: Flights that left.}
  mean_delay: {type: double, description: Minutes.}
---*/
select
    hour.start as window_start,
    origin,
    count(*) as departures,
    avg(departure_delay) as mean_delay
from {{ ref('flights') }}
group by hour, origin
