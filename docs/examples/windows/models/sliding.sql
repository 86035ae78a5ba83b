/*---
description: The same, in windows of ten minutes that begin every five.
streams: [web.clicks]
windows:
  w: sliding(timestamp, 10 minutes, 5 minutes)
---*/
select w.start as window_start, w.end as window_end, key, count(*) as clicks
from {{ source('web', 'clicks') }}
group by w, key
