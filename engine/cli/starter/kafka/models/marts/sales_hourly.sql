/*---
description: Number and value of the orders of each hour and product.
streams:
  orders:
    watermark: ordered_at delay 10 minutes
windows:
  hour: tumbling(ordered_at, 1 hour)
columns:
  hour_start: {description: Start of the hour (UTC)., tests: [not_null]}
  product: What was sold.
  orders: Number of orders.
  sales: Their value in euros.
---*/
select
    hour.start as hour_start,
    product,
    count(*) as orders,
    sum(amount) as sales
from {{ ref('orders') }}
group by hour, product
