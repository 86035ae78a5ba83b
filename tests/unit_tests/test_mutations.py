"""A join bound, a session gap and an order of versions that are broken on purpose turn their tests red."""

from __future__ import annotations

import pytest

from tests.lab import Lab
from tests.unit_tests.test_runs import copied

pytestmark = pytest.mark.spark

MUTATIONS = {
    "paid.sql": ("interval 1 hour", "interval 10 minutes"),
    "visits.sql": ("session(at, 20 minutes)", "session(at, 15 minutes)"),
    "last_of.sql": ("delete_when: kind = 'gone'", "delete_when: kind = 'lost'"),
}


def test_a_mutation_is_seen(lab: Lab) -> None:
    copied(lab)
    for file, (old, new) in MUTATIONS.items():
        path = lab.root / "models" / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    result = lab.run("test", "-s", "unit_test:outer_join unit_test:sessions_merge unit_test:newest_wins")
    statuses = {e["node"]: e["status"] for e in result.events if e["event"] == "TestFinished"}
    assert statuses == {
        "unit_test.paid.outer_join": "fail",
        "unit_test.visits.sessions_merge": "fail",
        "unit_test.last_of.newest_wins": "fail",
    }
