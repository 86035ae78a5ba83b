/*---
description: Clicks of a page that come within five minutes of each other.
streams: [web.clicks]
windows:
  w: session(timestamp, 5 minutes)
---*/
select w.start as window_start, w.end as window_end, key, count(*) as clicks
from {{ source('web', 'clicks') }}
group by w, key
