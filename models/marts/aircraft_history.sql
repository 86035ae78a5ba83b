/*---
description: >-
  Every flight of an aircraft, from its departure (`valid_from`) to the next one (`valid_to`). One that arrives late splits
  the interval that it falls into.
streams: [flights]
unique_key: tailnum
sequence_by: [departed_at, flight_id]
history: true
columns:
  tailnum: {description: Registration of the aircraft., tests: [not_null]}
---*/
select
    tailnum,
    flight_id,
    origin,
    destination,
    departed_at
from {{ ref('flights') }}
where tailnum is not null
