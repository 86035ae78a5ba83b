{{ config(materialized='view', meta={'owner': 'sales'}) }}

with source as (
    select * from {{ source('raw', 'orders') }}
)

select
    id as order_id,
    customer_id,
    kind,
    {{ cents_to_units('amount_cents') }} as amount,
    {{ dbt.date_trunc('day', 'ordered_at') }} as ordered_on,
    ordered_at,
    {% if is_incremental() %} 1 {% else %} 0 {% endif %} as never_incremental
from source
where amount_cents >= {{ var('least_amount') }}
