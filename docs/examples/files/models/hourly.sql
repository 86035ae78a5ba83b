/*---
description: What was sold in each hour.
streams:
  orders: {watermark: at delay 1 hour}
windows:
  hour: tumbling(at, 1 hour)
---*/
select hour.start as hour, item, count(*) as orders, sum(price) as turnover
from {{ ref('orders') }}
group by hour, item
