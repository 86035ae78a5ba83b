/*---
materialized: ephemeral
streams: {shop.events: {watermark: {column: moment, as: cast(at as timestamp), delay: 10 minutes, max_future: 1 day}}}
---*/
select id, moment, upper(kind) as kind from {{ source('shop', 'events') }}
