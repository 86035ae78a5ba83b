/*---
streams: [last_of_log]
output_mode: complete
---*/
select kind, count(*) as n from {{ ref('last_of_log') }} group by kind order by n desc limit 2
