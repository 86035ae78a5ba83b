/*---
streams:
  shop.events: {watermark: at delay 10 minutes}
  shop.payments: {watermark: paid_at delay 20 minutes}
---*/
select e.kind, p.sum
from {{ source('shop', 'events') }} e full join {{ source('shop', 'payments') }} p
  on p.order_id = e.id and p.paid_at between e.at and e.at + interval 1 hour
