select
    id as order_id,
    customer as customer_id,
    status,
    cast({{ cents_to_euros('cents') }} as decimal(10, 2)) as amount,
    ordered_at,
    updated_at
from {{ source('ecom', 'raw_orders') }}
