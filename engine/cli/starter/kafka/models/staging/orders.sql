/*---
description: Each order once.
streams:
  shop.orders:
    dedup: [order_id]
columns:
  order_id: {description: Unique., tests: [not_null, unique]}
  amount: {description: Value in euros., tests: [{expression: {expression: "> 0"}}]}
---*/
select order_id, product, amount, ordered_at
from {{ source('shop', 'orders') }}
