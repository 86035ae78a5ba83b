/*---
description: Clicks of each page in every ten minutes.
streams: [web.clicks]
windows:
  w: tumbling(timestamp, 10 minutes)
---*/
select w.start as window_start, w.end as window_end, key, count(*) as clicks
from {{ source('web', 'clicks') }}
group by w, key
