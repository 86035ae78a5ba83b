{{ config(materialized='ephemeral') }}
select id as customer_id, name, {{ dbt_utils.generate_surrogate_key(['id', 'name']) }} as customer_key
from {{ source('raw', 'Customers-EU') }}
