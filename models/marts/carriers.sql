/*---
description: Flights and long delays of each airline.
materialized: table
columns:
  carrier: {tests: [not_null, unique]}
---*/
with delayed as (
    select carrier, count(*) as long_delays
    from {{ ref('long_delays') }}
    group by carrier
)
select
    f.carrier,
    n.name as airline,
    count(*) as flights,
    coalesce(max(d.long_delays), 0) as long_delays
from {{ ref('flights') }} as f
left join {{ source('reference', 'airlines') }} as n on n.carrier = f.carrier
left join delayed as d on d.carrier = f.carrier
group by f.carrier, n.name
