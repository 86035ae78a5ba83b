/*---
description: Every version of each customer, with the time in which it was the current one.
streams: [crm.customers]
history: true
---*/
select * from {{ source('crm', 'customers') }}
