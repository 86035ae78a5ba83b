{{ config(materialized='incremental') }}
select id, payload, created_at
from {{ source('raw', 'events') }}
{%- if is_incremental() %}
-- new rows only {# not all of them #}
where created_at > (select coalesce(max(created_at), '1900-01-01') from {{ this }})
{%- endif %}
