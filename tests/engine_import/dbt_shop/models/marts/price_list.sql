select * from {{ ref('prices') }} union all select id, price, 'old' from {{ ref('prices', v=1) }}
