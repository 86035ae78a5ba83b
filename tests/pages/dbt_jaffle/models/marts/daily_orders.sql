{{ config(materialized='incremental', unique_key='ordered_on', incremental_strategy='delete+insert') }}

select
    cast({{ dbt.date_trunc('day', 'ordered_at') }} as date) as ordered_on,
    count(*) as orders,
    sum(amount) as sales
from {{ ref('stg_orders') }}
where status = 'placed'
{% if is_incremental() %}
-- orders may arrive three days late
and ordered_at >= (select max(ordered_on) - interval 3 day from {{ this }})
{% endif %}
group by 1
