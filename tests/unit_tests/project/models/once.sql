/*---
streams: {shop.events: {watermark: at delay 1 hour, dedup: [id]}}
expectations: [{name: positive, check: amount > 0, on_fail: quarantine}]
---*/
select e.id, e.at, e.kind, n.label, e.amount, current_timestamp() as seen_at
from {{ source('shop', 'events') }} e left join {{ source('shop', 'names') }} n on n.kind = e.kind
