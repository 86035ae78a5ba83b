select 1 as id, cast(2.5 as double) as price, '{{ var("currency") }}' as currency
