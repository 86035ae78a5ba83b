/*---
description: >-
  Every flight with its landing. A flight without a landing within 12 hours of its departure was diverted; it is written
  without one when the watermark has passed those 12 hours.
streams:
  flights: {watermark: departed_at delay 9 hours}       # events are held back for up to 8 hours
  ops.arrivals: {watermark: data.landed_at as landed_at delay 9 hours}
columns:
  flight_id:
    description: As in flights.
    tests: [not_null, unique]
  departed_at: Actual departure.
  landed_at: NULL for a diverted flight.
  arrival_delay: Minutes; negative when the flight came early.
  caught_up: Minutes of the delay at departure that were made up on the way.
data_tests:
  - expression: {name: lands_within_12_hours, expression: landed_at is null or landed_at <= departed_at + interval 12 hours}
---*/
select
    f.flight_id,
    f.carrier,
    f.origin,
    f.destination,
    f.departed_at,
    a.landed_at,
    a.data.arrival_delay,
    f.departure_delay - a.data.arrival_delay as caught_up
from {{ ref('flights') }} as f
left join {{ source('ops', 'arrivals') }} as a
    on
        f.flight_id = a.data.flight_id
        and a.landed_at between f.departed_at and f.departed_at + interval 12 hours
