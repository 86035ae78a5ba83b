/*---
materialized: view
---*/
select kind, max(n) as n from {{ ref('totals') }} group by kind
