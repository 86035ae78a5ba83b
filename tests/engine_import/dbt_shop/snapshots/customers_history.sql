{% snapshot customers_history %}
{{ config(target_schema='history', unique_key='id', strategy='timestamp', updated_at='changed_at') }}
select * from {{ source('raw', 'Customers-EU') }}
{% endsnapshot %}
