/*---
streams: [cleaned]
windows: {day: "tumbling(moment, 1 day)"}
---*/
select day.start as day, count(*) as n from {{ ref('cleaned') }} group by day
