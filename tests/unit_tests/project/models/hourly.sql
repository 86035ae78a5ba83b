/*---
streams: {shop.events: {watermark: at delay 30 minutes}}
windows: {hour: "tumbling(at, 1 hour)"}
---*/
select hour.start as window_start, kind, count(*) as n, sum(amount) as total
from {{ source('shop', 'events') }} where {{ big('amount') }}
group by hour, kind
