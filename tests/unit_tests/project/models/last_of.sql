/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'gone'
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
