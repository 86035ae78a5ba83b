/*---
description: The rows of each second, even and odd.
streams: [clock.ticks]
windows:
  second: tumbling(timestamp, 1 second)
---*/
select second.start as second, value % 2 = 0 as even, count(*) as n
from {{ source('clock', 'ticks') }}
group by second, value % 2 = 0
