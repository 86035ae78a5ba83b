"""What a project does in the catalogs of real servers, as it does in a local one."""

from __future__ import annotations

import pytest

from tests.catalogs.conftest import CatalogLab
from tests.catalogs.life_cycle import build_plan_show_maintain_and_drop

pytestmark = pytest.mark.spark


def test_a_project_builds_and_plans_shows_maintains_and_drops(shared: CatalogLab) -> None:
    schema = shared.catalog.path / shared.schema.replace(".", "/")
    build_plan_show_maintain_and_drop(shared, lambda table: list((schema / table).rglob("*.parquet")))
    assert shared.table("plain") is not None
