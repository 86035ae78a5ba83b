"""Which queries give the same rows each time: decided by the functions that are called, not by words in the text."""

from __future__ import annotations

import pytest

from engine.compile.sql.determinism import deterministic_text

SAME = """
version
uuid
t.now
lower(rand)
'ship it now'
'now' as moment
status = 'now'
status in ('now', 'later')
case when done then 'now' else 'later' end
concat('now', status)
cast('now' as string)
unix_timestamp(at)
to_timestamp('2024-01-31')
`current_time`
user
"""
OTHER = """
current_timestamp
current_timestamp()
current_date
current_time
localtimestamp()
now()
curdate()
unix_timestamp()
date_format(now(), 'y')
rand()
rand(7)
randn()
uuid()
shuffle(items)
input_file_name()
monotonically_increasing_id()
current_user()
version()
cast('now' as timestamp)
timestamp'now'
to_date('today')
date_add('today', 1)
at > 'now'
at between '2024-01-01' and 'NOW'
day = 'today'
coalesce(at, 'now')
case when done then at else 'now' end
"""


@pytest.mark.parametrize("text", SAME.strip().splitlines())
def test_the_same_each_time(text: str) -> None:
    assert deterministic_text(f"select {text} from t")
    assert deterministic_text(text)


@pytest.mark.parametrize("text", OTHER.strip().splitlines())
def test_another_each_time(text: str) -> None:
    assert not deterministic_text(f"select {text} from t")
    assert not deterministic_text("select 1", text)


def test_a_sample_without_a_seed() -> None:
    assert not deterministic_text("select * from t tablesample (10 percent)")
    assert deterministic_text("select * from t tablesample (10 percent) repeatable (1)")
