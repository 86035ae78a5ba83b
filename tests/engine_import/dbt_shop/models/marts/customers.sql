{{ config(materialized='table', post_hook="delete from {{ this }} where customer_id is null") }}
select c.customer_id, c.name, k.country, count(o.order_id) as orders
from {{ ref('stg_customers') }} c
left join {{ ref('stg_orders') }} o on o.customer_id = c.customer_id
left join {{ ref('countries') }} k on k.customer_id = c.customer_id
{{ dbt_utils.group_by(3) }}
