select kind, sum(n) as n, current_date() as today from {{ ref('hourly') }} group by kind
