/*---
description: Every version of each customer, with the time in which it was the current one.
streams: [crm.customer_changes]
unique_key: customer_id
sequence_by: changed_at
delete_when: op = 'd'
history: true
---*/
select customer_id, name, city, op, changed_at
from {{ source('crm', 'customer_changes') }}
