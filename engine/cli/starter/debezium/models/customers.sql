/*---
description: The customers as they are now.
streams: [crm.customers]
columns:
  customer_id: {description: Unique., tests: [not_null, unique]}
---*/
select customer_id, name, city, credit, since, _op, _position, _changed_at
from {{ source('crm', 'customers') }}
