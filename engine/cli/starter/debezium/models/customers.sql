/*---
description: The customers as they are now.
streams: [crm.customers]
columns:
  customer_id: {description: Unique., tests: [not_null, unique]}
---*/
select * from {{ source('crm', 'customers') }}
