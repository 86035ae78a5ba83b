{{
    config(
        materialized='incremental',
        unique_key=['ordered_on', 'kind'],
        incremental_strategy='merge',
    )
}}

select ordered_on, kind, sum(amount) as sales, max(ordered_at) as updated_at
from {{ ref('stg_orders') }}
{% if is_incremental() %}
where ordered_at > (select max(updated_at) from {{ this }})
{% endif %}
group by 1, 2
