/*---
description: Every order once, however often it was landed.
streams:
  shop.orders:
    watermark: at delay 1 hour
    dedup: [id]
partition_by: [day(at)]
---*/
select id, at, item, price from {{ source('shop', 'orders') }}
