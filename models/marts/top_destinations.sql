/*---
description: The ten destinations with most departures so far, rewritten in each micro-batch.
streams: [flights]
output_mode: complete
acknowledge: [unbounded-complete]   # there are a hundred destinations
columns:
  destination: {description: IATA code., tests: [not_null, unique]}
---*/
select
    destination,
    count(*) as departures,
    max(departure_delay) as longest_delay
from {{ ref('flights') }}
group by destination
order by departures desc, destination asc
limit 10
