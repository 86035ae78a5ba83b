/*---
description: Airlines with their names. It has no table; its SQL becomes part of the models that read it.
materialized: ephemeral
---*/
select
    carrier,
    name as airline
from {{ source('reference', 'airlines') }}
