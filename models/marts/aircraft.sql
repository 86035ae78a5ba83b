/*---
description: Where each aircraft went last. A departure that is told late does not replace a newer one.
streams: [ops.departures]
unique_key: tailnum
sequence_by: [departed_at, flight_id]
columns:
  tailnum: {description: Registration of the aircraft., tests: [not_null, unique]}
  destination: IATA code of the airport it went to.
---*/
select
    data.tailnum,
    id as flight_id,
    data.carrier,
    data.origin,
    data.destination,
    data.departed_at
from {{ source('ops', 'departures') }}
where type = 'flight.departed' and data.tailnum is not null
