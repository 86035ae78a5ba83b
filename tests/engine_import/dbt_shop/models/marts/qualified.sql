select * from {{ ref('stg_orders') }}
qualify row_number() over (partition by order_id order by ordered_at desc) = 1
