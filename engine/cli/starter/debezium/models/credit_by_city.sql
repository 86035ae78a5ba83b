/*---
description: The credit of all customers of a city.
---*/
select city, count(*) as customers, sum(credit) as credit
from {{ ref('customers') }}
group by city
