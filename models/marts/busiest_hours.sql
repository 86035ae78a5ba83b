/*---
description: The hours with most departures, all airports together.
materialized: view
columns:
  window_start: {tests: [unique]}
---*/
select
    window_start,
    sum(departures) as departures,
    round(sum(mean_delay * departures) / sum(departures), 1) as mean_delay
from {{ ref('departures_hourly') }}
group by window_start
order by departures desc, window_start asc
limit 20
