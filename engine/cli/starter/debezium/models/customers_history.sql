/*---
description: Every version of each customer, with the time in which it was the current one.
streams: [crm.customers]
history: true
---*/
select customer_id, name, city, credit, since, _op, _position, _changed_at
from {{ source('crm', 'customers') }}
