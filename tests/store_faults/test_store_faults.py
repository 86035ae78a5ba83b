"""A short run of the faults of a store: see `python -m tests.store_faults`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.postgres import Postgres
from tests.services.s3 import S3Server
from tests.store_faults.rounds import passing_faults, refusals, suspensions, world

pytestmark = pytest.mark.spark


@pytest.mark.nightly
def test_tables_are_right_after_some_faults_of_each_kind(
    s3_server: S3Server, postgres_server: Postgres, tmp_path: Path
) -> None:
    with world(tmp_path, s3_server.start(), postgres_server.start(), 7) as made:
        suspensions(made, 2)
        refusals(made, 2)
        passing_faults(made, 20)
    assert made.tally.found == []
    assert made.tally.total >= 24
