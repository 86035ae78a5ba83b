{{ config(severity='warn', tags=['nightly']) }}
select * from {{ ref('customers') }} where orders < 0
