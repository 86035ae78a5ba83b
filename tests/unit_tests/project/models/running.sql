/*---
streams: {shop.events: {watermark: at delay 30 minutes}}
windows: {hour: "tumbling(at, 1 hour)"}
output_mode: update
unique_key: [window_start]
---*/
select hour.start as window_start, count(*) as n from {{ source('shop', 'events') }} group by hour
