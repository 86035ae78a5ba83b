/*---
description: Every departure once. Duplicates that arrive within a day of the first copy are dropped.
streams:
  ops.departures:
    watermark: data.scheduled_at as scheduled_at delay 1 day
    dedup: [id]
partition_by: [day(scheduled_at)]
expectations:
  - name: plausible_delay
    check: coalesce(departure_delay, 0) <= 420
    on_fail: quarantine             # to flights__quarantine
    description: Longer ones are checked by hand; most belong to the flight of another day.
columns:
  flight_id: {description: Unique per flight and day., tests: [not_null, unique]}
  carrier: {description: Two-letter code of the airline., tests: [not_null]}
  tailnum: Registration of the aircraft.
  origin:
    description: IATA code of the airport of departure.
    tests: [not_null, {accepted_values: {values: [EWR, JFK, LGA]}}]
  destination: IATA code of the airport of arrival.
  scheduled_at: Planned departure, the event time.
  departed_at: Actual departure.
  departure_delay: Minutes; negative when the flight left early.
  distance: Miles.
---*/
select
    id as flight_id,
    data.carrier,
    data.flight,
    data.tailnum,
    data.origin,
    data.destination,
    scheduled_at,
    data.departed_at,
    data.departure_delay,
    data.distance
from {{ source('ops', 'departures') }}
where type = 'flight.departed'
