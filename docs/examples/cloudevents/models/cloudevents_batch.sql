/*---
title: cloudevents data
description: What the topic holds now; a build replaces the partitions that it has rows for, and leaves the others.
tags: [cloudevents]
materialized: table
overwrite: partitions
partition_by: [source, hour(_timestamp) as hour]
table_properties:
  write.metadata.previous-versions-max: 10
  history.expire.max-snapshot-age-ms: 7200000
---*/
select {{ set_type({'time': 'timestamp'}) }}, cast(time as timestamp) as _timestamp
from {{ source('kafka', 'cloudevents_so_far') }}
