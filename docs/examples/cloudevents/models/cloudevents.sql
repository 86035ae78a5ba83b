/*---
title: cloudevents data
description: Every event of the topic, once; each build takes what came since the one before.
tags: [cloudevents]
streams: [kafka.cloudevents]
partition_by: [source, hour(_timestamp) as hour]
table_properties:
  write.metadata.previous-versions-max: 10
  history.expire.max-snapshot-age-ms: 7200000
---*/
select {{ set_type({'time': 'timestamp'}) }}, cast(time as timestamp) as _timestamp
from {{ source('kafka', 'cloudevents') }}
