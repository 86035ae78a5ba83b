/*---
description: Mean delay of an airport over the last three hours, for every hour. Each flight counts in three windows.
streams:
  flights: {watermark: scheduled_at delay 30 minutes}
windows:
  recent: sliding(scheduled_at, 3 hours, 1 hour)
tags: [hourly]
columns:
  origin: IATA code.
  ended_at: {description: End of the three hours (UTC)., tests: [not_null]}
---*/
select
    origin,
    recent.end as ended_at,
    count(*) as departures,
    round(avg(departure_delay), 1) as mean_delay
from {{ ref('flights') }}
group by recent, origin
