select
    c.customer_id,
    c.customer_name,
    count(o.order_id) as orders,
    coalesce(sum(o.amount), 0) as lifetime_value
from {{ ref('stg_customers') }} as c
left join {{ ref('orders') }} as o on c.customer_id = o.customer_id and o.status <> 'returned'
group by 1, 2
