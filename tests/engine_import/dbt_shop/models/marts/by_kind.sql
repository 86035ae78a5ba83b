{{ config(materialized='materialized_view') }}
select kind, count(*) as orders from {{ ref('daily_sales') }} group by kind
