/*---
streams: {shop.events: {watermark: at delay 30 minutes}}
windows: {visit: "session(at, 20 minutes)"}
---*/
select visit.start as began, visit.end as ended, kind, count(*) as n
from {{ source('shop', 'events') }} group by visit, kind
