/*---
streams: [shop.events]
---*/
select id, kind from {{ source('shop', 'events') }}
