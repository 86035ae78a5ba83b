select * from {{ ref('customers') }} order by orders desc
