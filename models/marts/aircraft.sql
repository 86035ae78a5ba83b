/*---
description: Where each aircraft went last. A departure that arrives late does not replace a newer one.
streams: [flights]
unique_key: tailnum
sequence_by: [departed_at, flight_id]
columns:
  tailnum: {description: Registration of the aircraft., tests: [not_null, unique]}
  destination: IATA code of the airport it went to.
---*/
select
    tailnum,
    flight_id,
    carrier,
    origin,
    destination,
    departed_at
from {{ ref('flights') }}
where tailnum is not null
