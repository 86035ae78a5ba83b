/*---
description: Flights and long delays of each airline.
materialized: table
publish: on_tests_pass              # readers see the new rows when the tests below have passed
columns:
  carrier: {tests: [not_null, unique]}
  long_delays: {tests: [{expression: {expression: "<= flights"}}]}
---*/
select
    f.carrier,
    a.airline,
    count(*) as flights,
    count_if(f.departure_delay >= {{ var('long_delay_minutes') }}) as long_delays
from {{ ref('flights') }} as f
left join {{ ref('airlines') }} as a on f.carrier = a.carrier
group by f.carrier, a.airline
