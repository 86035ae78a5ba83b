/*---
description: The customers as they are now.
streams: [crm.customer_changes]
unique_key: customer_id
sequence_by: changed_at
delete_when: op = 'd'
columns:
  customer_id: {description: Unique., tests: [not_null, unique]}
  changed_at: Time of the last change (UTC).
---*/
select customer_id, name, city, op, changed_at
from {{ source('crm', 'customer_changes') }}
