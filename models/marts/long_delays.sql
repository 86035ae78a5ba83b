/*---
description: Departures that were late by an hour or more, as they become known.
streams: [flights]
columns:
  flight_id: {tests: [not_null, unique]}
---*/
select
    flight_id,
    carrier,
    origin,
    destination,
    scheduled_at,
    departure_delay
from {{ ref('flights') }}
where departure_delay >= {{ var('long_delay_minutes') }}
