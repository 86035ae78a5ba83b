/*---
streams: [shop.events]
unique_key: id
sequence_by: at
history: true
---*/
select id, at, kind from {{ source('shop', 'events') }}
