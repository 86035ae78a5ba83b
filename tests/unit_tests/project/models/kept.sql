/*---
materialized: table
history: true
unique_key: kind
check: all
deletes: close
---*/
select kind, upper(label) as label from {{ source('shop', 'names') }}
