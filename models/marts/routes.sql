/*---
description: Flights and delay of each route so far.
materialized: table
partition_by: [origin]              # a build computes only the origins again whose flights changed
columns:
  origin: {tests: [not_null]}
  destination: {tests: [not_null]}
---*/
select
    f.origin,
    f.destination,
    a.airport as destination_airport,
    count(*) as flights,
    {{ share('f.departure_delay >= ' ~ var('long_delay_minutes')) }} as late_share,
    round(avg(f.departure_delay), 1) as mean_delay
from {{ ref('flights') }} as f
left join {{ ref('airports') }} as a on f.destination = a.faa
group by f.origin, f.destination, a.airport
