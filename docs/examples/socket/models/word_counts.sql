/*---
description: How often each word came so far.
---*/
select word, count(*) as times from {{ ref('words') }} group by word
