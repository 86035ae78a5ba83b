/*---
description: Airports with their names.
materialized: table
columns:
  faa: {description: IATA code., tests: [not_null, unique]}
---*/
select
    faa,
    name as airport,
    lat as latitude,
    lon as longitude
from {{ source('reference', 'airports') }}
