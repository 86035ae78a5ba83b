{{ config(materialized='incremental', unique_key='order_id') }}

select order_id, customer_id, status, amount, ordered_at, updated_at
from (
    select *, row_number() over (partition by order_id order by updated_at desc) as newest
    from {{ ref('stg_orders') }}
    {% if is_incremental() %}
    where updated_at > (select max(updated_at) from {{ this }})
    {% endif %}
) as changes
where newest = 1
