/*---
description: Every word of every line, with the time the line came.
streams: [desk.lines]
---*/
select word, received_at
from (
    select explode(split(lower(value), '[^a-z]+')) as word, _metadata.received_at as received_at
    from {{ source('desk', 'lines') }}
)
where word <> ''
