"""Queries over the streams of the oracle, in append mode: what Spark runs, and what it refuses (asked of 4.1)."""

from __future__ import annotations

RUNS = """
select wa.id, wb.v from wa join wb on not (wa.id <> wb.id or wa.v > wb.v)
select wa.id, wb.v from wa join wb on not (wa.id <> wb.id)
select wa.id, wb.v from wa join wb on not (not (wa.id = wb.id))
select wa.id, wb.v from wa join wb on not (wa.id <> wb.id or wb.ts > wa.ts + interval 10 minutes)
select wa.id, wb.v from wa join wb on not ((wa.id <> wb.id or wa.v = 1) and (wa.id <> wb.id or wa.v = 2))
select wa.id, wb.v from wa join wb on wa.v > wb.v where not (wa.id <> wb.id or wa.v = 7)
select wa.id, wb.v from wa join wb on not wa.id <> wb.id and wa.v > 1
select wa.id, wb.v from wa join wb on not (wa.id != wb.id or wb.ts < wa.ts)
select wa.id, wb.v from wa join wb on not (not (wa.id <=> wb.id) or wa.v > 1)
select wa.id, wb.v from wa join wb on (wa.id <> wb.id) = false
select wa.id, wb.v from wa join wb on (wa.id = wb.id) = true
select wa.id, wb.v from wa join wb on not (wa.id is distinct from wb.id)
select wa.id, wb.v from wa join wb on wa.id is not distinct from wb.id
select wa.id, wb.v from wa join wb on equal_null(wa.id, wb.id)
select wa.id, wb.v from wa join wb on wa.id = wb.id or false
select wa.id, wb.v from wa join wb on (wa.id = wb.id or 1 = 0) and wa.v > 1
select id, x from wa left join lateral explode(array(1, 2)) as t(x) on x > 1
select id, x from wa join lateral explode(array(1, 2)) as t(x) on x > 1
select id, x from wa left join lateral explode(array(1, 2)) as t(x) on x > id
select id, x from wa join lateral explode(array(1, 2)) as t(x) on id > 1
select id, x from wa left join lateral explode(array(1, 2)) as t(x) on id > 1
select id, x from wa left join lateral explode(array(1, 2)) as t(x) on x = id and id > 1
select id, x from wa left join lateral explode(array(1, 2)) as t(x) on false
select id, x from wa left join lateral (select explode(array(1, 2)) as x) t on x > 1
select id, x from wa join lateral (select explode(array(1, 2)) as x) t on x > 1
select id, x from wa left join lateral (select x from (select explode(array(1, 2)) as x) where x > 1) t
select wa.id, t.v from wa join lateral (select v from ba where ba.id = wa.id) t
select wa.id, t.v from wa left join lateral (select v from ba where ba.id = wa.id) t
select wa.id, t.v from wa left join lateral (select v from ba where ba.id = wa.id) t on t.v > 1
select wa.id, t.v from wa left join lateral (select v from ba where ba.id < wa.id) t
select wa.id, t.v from wa join lateral (select v from ba where ba.id < wa.id) t
select wa.id, t.v from wa left join lateral (select v from ba where ba.id = wa.id order by ts limit 1) t
select id, x, y from wa left join lateral explode(array(1, 2)) as t(x) on true left join lateral explode(array(3)) as u(y) on true
select id, x from wa join lateral explode_outer(array(1, 2)) as t(x)
select id, p, x from wa left join lateral posexplode(array(1, 2)) as t(p, x)
select id, x from wa left join lateral explode(array(1, 2)) as t(x) where x > 1
select id, x from wa left join lateral stack(2, 1, 2) as t(x)
select id, x from wa left join lateral range(3) as t(x)
select id, x from wa, lateral range(3) as t(x)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and wa.ts + interval '00:10:00' hour to second
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts >= wa.ts and wb.ts <= wa.ts + interval '10' minute
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and wa.ts + interval '0 00:10' day to minute
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= cast(wa.ts + interval 10 minutes as timestamp)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and cast(wb.ts as long) <= cast(wa.ts as long) + 600
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval 1 hour 10 minutes
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts - interval '-10' minute
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval '10:00' minute to second
select wa.id, wb.v from wa join wb on (wa.id = wb.id and wa.v = 1) or (wa.id = wb.id and wa.v = 2)
select wa.id, wb.v from wa join wb on (wa.id = wb.id and wa.v = 1) or (wb.id = wa.id and wa.v = 2)
select wa.id, wb.v from wa join wb on (wa.id = wb.id and wa.v = wb.v) or (wa.id = wb.id and wa.s = wb.s)
select wa.id, wb.v from wa join wb on wa.id = wb.id or (wa.id = wb.id and wa.v = 2)
select wa.id, wb.v from wa join wb on true where (wa.id = wb.id and wa.v = 1) or (wa.id = wb.id and wb.v = 2)
select window(ts, '10 minutes', '5 minutes', '-1 minute') w, count(*) n from wa group by 1
select window(ts, '10 minutes', '10 minutes', '-1 minute') w, count(*) n from wa group by 1
select window(ts, '1 week', '1 week', '4 days') w, count(*) n from wa group by 1
select window_time(w) t, n from (select window(ts, '10 minutes') w, count(*) n from wa group by 1)
select session_window(ts, case when id > 1 then '5 minutes' else '10 minutes' end) w, id, count(*) n from wa group by 1, 2
select session_window(ts, if(id > 1, '5 minutes', '10 minutes')) w, id, count(*) n from wa group by 1, 2
select session_window(ts, s) w, id, count(*) n from wa group by 1, 2
select session_window(ts, '0 minutes') w, id, count(*) n from wa group by 1, 2
select session_window(ts, '-5 minutes') w, id, count(*) n from wa group by 1, 2
select id, x from wa left join lateral explode(array(1, 2)) as t(x)
select id, x from wa left join lateral explode(array(1, 2)) as t(x) on true
select id, x from wa join lateral explode(array(1, 2)) as t(x)
select id, x from wa, lateral explode(array(1, 2)) as t(x)
select id, x from wa left join lateral (select explode(array(1, 2)) as x) t
select id, x from wa left join lateral (select id as x) t
select id, x from wa lateral view outer explode(array(1, 2)) t as x
select id, x from wa lateral view explode(array(1, 2)) t as x
select window(ts, '10 minutes') w, id, count(*) n from wa group by rollup(window(ts, '10 minutes'), id)
select window(ts, '10 minutes') w, id, count(*) n from wa group by window(ts, '10 minutes'), rollup(id)
select window(ts, '10 minutes') w, id, count(*) n from wa group by window(ts, '10 minutes'), cube(id, v)
select window(ts, '10 minutes') w, id, v, count(*) n from wa group by rollup((window(ts, '10 minutes'), id), v)
select window(ts, '10 minutes') w, id, count(*) n from wa group by cube(window(ts, '10 minutes'), id)
select window(ts, '10 minutes') w, id, count(*) n from wa group by grouping sets ((window(ts, '10 minutes')), (window(ts, '10 minutes'), id))
select ts, id, count(*) n from wa group by ts, rollup(id)
select window(ts, '10 minutes') w, id, count(*) n from wa group by window(ts, '10 minutes'), id with rollup
select session_window(ts, '5 minutes') w, id, count(*) n from wa group by session_window(ts, '5 minutes'), rollup(id)
select session_window(ts, '5 minutes') w, id, v, count(*) n from wa group by session_window(ts, '5 minutes'), v, rollup(id)
select session_window(ts, '5 minutes') w, id, v, count(*) n from wa group by session_window(ts, '5 minutes'), v, cube(id)
select window_time(w) t, count(*) n from (select window(ts, '10 minutes') w from wa) group by window_time(w)
select w, max(window_time(w)) t, count(*) n from (select window(ts, '10 minutes') w from wa) group by w
select w.end, window_time(w) t from (select window(ts, '10 minutes') w from wa)
select window(ts, '10 minutes').end e, count(*) n from wa group by window(ts, '10 minutes')
select wa.id, wb.v from wa join wb on (wa.id = wb.id and wa.v = 1) or (wa.id = wb.id and wa.v = 2) or (wa.id = wb.id and wa.v = 3)
select wa.id, wb.v from wa join wb on (upper(wa.s) = upper(wb.s) and wa.v = 1) or (upper(wa.s) = upper(wb.s) and wa.v = 2)
select wa.id, wb.v from wa left join wb on wb.ts <= wa.ts + interval 1 hour and ((wa.id = wb.id and wa.v = 1) or (wa.id = wb.id and wa.v = 2))
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts - interval '-00:10:00' hour to second
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval '1 02:03:04.5' day to second
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval '1 02' day to hour
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval '02:03' hour to minute
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= (wa.ts + interval 10 minutes) + interval 1 hour
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= interval 10 minutes + wa.ts
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + (- interval 10 minutes)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval -10 minutes
select id, x from wa left join lateral explode(array(id, 2)) as t(x)
select id, x from wa cross join lateral explode(array(1, 2)) as t(x)
select session_window(ts, case when ts > timestamp'2024-01-01' - interval 1 day then '5 minutes' else '10 minutes' end) w, id, count(*) n from wa group by 1, 2
select window(ts, '10 minutes', '5 minutes', '-299 seconds') w, count(*) n from wa group by 1
select window(ts, '1 day', '1 day', '-1 hour') w, count(*) n from wa group by 1
""".strip().splitlines()

REFUSED = """
select wa.id, wb.v from wa left join wb on not (wa.id <> wb.id or wb.ts > wa.ts + interval 10 minutes)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and not (wb.ts > wa.ts + interval 10 minutes or wb.ts < wa.ts)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and not wb.ts not between wa.ts and wa.ts + interval 10 minutes
select wa.id, wb.v from wa left join wb on not (wa.ts <> wb.ts or wa.id > 5)
select wa.id, wb.v from wa left join wb on not (wa.ts <> wb.ts)
select wa.id, wb.v from wa left join wb on not (wa.id <> wb.id or wa.ts <> wb.ts)
select wa.id, wb.v from wa join wb on not (wa.id = wb.id)
select wa.id, wb.v from wa join wb on not (wa.id = wb.id and wa.v = wb.v)
select wa.id, wb.v from wa join wb on not (wa.id <> wb.id and wa.v <> wb.v)
select wa.id, wb.v from wa join wb on (wa.id = wb.id) is true
select wa.id, wb.v from wa join wb on (wa.id <> wb.id) is false
select wa.id, wb.v from wa join wb on (wa.id <> wb.id) is not true
select wa.id, wb.v from wa join wb on if(wa.id = wb.id, true, false)
select wa.id, wb.v from wa join wb on case when wa.id = wb.id then true else false end
select wa.id, wb.v from wa join wb on wa.id in (wb.id)
select wa.id, wb.v from wa join wb on wa.id in (wb.id, wb.id)
select wa.id, wb.v from wa join wb on not (wa.id not in (wb.id))
select wa.id, wb.v from wa join wb on (wa.id, wa.v) in ((wb.id, wb.v))
select wa.id, wb.v from wa left join wb on not (wa.id <> wb.id) and not (wb.ts > wa.ts + interval 10 minutes)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and not (wb.ts >= wa.ts + interval 10 minutes)
select wa.id, wb.v from wa full join wb on not (wa.id <> wb.id or wb.ts > wa.ts + interval 10 minutes or wb.ts < wa.ts)
select wa.id, wb.v from wa right join wb on not (wa.id <> wb.id or wb.ts < wa.ts)
select wa.id, wb.v from wa right join wb on not (wa.id <> wb.id or not (wb.ts >= wa.ts))
select id, x from wa left join lateral (select id as x) t on x > 1
select id, x from wa left join lateral (select id + 1 as x) t on x > 1
select id, x from wa join lateral (select id + 1 as x) t on x > 1
select id, x from wa join lateral (select id + 1 as x where id > 1) t
select id, x from wa left join lateral (select id + 1 as x where id > 1) t
select wa.id, t.v from wa join lateral (select max(v) v from ba where ba.id = wa.id) t
select wa.id, t.v from wa left join lateral (select max(v) v from ba where ba.id = wa.id) t
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and wa.ts + make_dt_interval(0, 0, 10, 0)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and wa.ts + interval 1 month
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and wa.ts + make_interval(0, 0, 0, 0, 0, 10, 0)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and dateadd(minute, 10, wa.ts)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts between wa.ts and timestampadd(minute, 10, wa.ts)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts - wa.ts between interval 0 minutes and interval 10 minutes
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts - wa.ts <= interval 10 minutes
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= date_add(wa.ts, 1)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and unix_timestamp(wb.ts) <= unix_timestamp(wa.ts) + 600
select wa.id, wb.v from wa left join wb on wa.id = wb.id and not (wb.ts > wa.ts + interval 10 minutes)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval 10 minutes * 2
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + '10 minutes'
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= coalesce(wa.ts, wa.ts) + interval 10 minutes
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + wa.v * interval 1 minute
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= timestamp '2024-01-01'
select wa.id, wb.v from wa left join wb on wa.id = wb.id and date_trunc('hour', wb.ts) <= wa.ts
select wa.id, wb.v from wa join wb on wa.id = wb.id or wa.v = wb.v
select wa.id, wb.v from wa left join wb on (wa.id = wb.id and wb.ts <= wa.ts + interval 1 hour and wa.v = 1) or (wa.id = wb.id and wb.ts <= wa.ts + interval 1 hour and wa.v = 2)
select window(ts, '10 minutes', '5 minutes', '-6 minutes') w, count(*) n from wa group by 1
select window(ts, '10 minutes', '5 minutes', '5 minutes') w, count(*) n from wa group by 1
select window(ts, '10 minutes', '5 minutes', '-5 minutes') w, count(*) n from wa group by 1
select window(ts, '-10 minutes') w, count(*) n from wa group by 1
select window(ts, '10 minutes', '-5 minutes') w, count(*) n from wa group by 1
select window(ts, '0 minutes') w, count(*) n from wa group by 1
select window(ts, interval 10 minutes) w, count(*) n from wa group by 1
select window(ts, '1 month') w, count(*) n from wa group by 1
select window, window_time(window) t, count(*) n from wa group by window(ts, '10 minutes')
select window(ts, '10 minutes') w, window_time(window) t, count(*) n from wa group by window(ts, '10 minutes')
select window_time(window(ts, '10 minutes')) t, count(*) n from wa group by window(ts, '10 minutes')
select window_time(w) t, count(*) n from (select window(ts, '10 minutes') w from wa) group by w
select w, window_time(w) t, count(*) n from (select window(ts, '10 minutes') w, id from wa) group by w
select session_window(ts, case when id > 1 then interval 5 minutes else interval 10 minutes end) w, id, count(*) n from wa group by 1, 2
select session_window(ts, interval 5 minutes) w, id, count(*) n from wa group by 1, 2
select id, x from wa left join lateral (select max(v) as x from ba where ba.id = wa.id) t
select id, count(*) n from wa group by rollup(id)
select window, window_time(window) t, count(*) n from wa group by window(ts, '10 minutes'), window_time(window)
select window, window_time(window) t, count(*) n from ba group by window(ts, '10 minutes')
select wa.id, wb.v from wa join wb on (wa.id = wb.id and wa.v = 1) or (wa.id = wb.id and wa.v = 2) or wa.v = 3
select wa.id, wb.v from wa left join wb on (wa.id = wb.id and wa.ts = wb.ts and wa.v = 1) or (wa.id = wb.id and wa.ts = wb.ts and wa.v = 2)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval '1' month
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts + interval '1-2' year to month
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wa.ts - wb.ts >= interval 0 minutes
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= wa.ts - (interval 10 minutes - interval 1 hour)
select wa.id, wb.v from wa left join wb on wa.id = wb.id and wb.ts <= date '2024-01-01'
""".strip().splitlines()
