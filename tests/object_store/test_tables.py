"""Tables whose files are in an object store."""

from __future__ import annotations

import pytest

from tests.catalogs.life_cycle import build_plan_show_maintain_and_drop
from tests.object_store.conftest import StoreLab

pytestmark = pytest.mark.spark


@pytest.mark.nightly
def test_a_project_builds_and_plans_shows_maintains_and_drops(stored: StoreLab) -> None:
    server, schema = stored.server, stored.schema.replace(".", "/")
    assert server is not None
    build_plan_show_maintain_and_drop(stored, lambda table: server.keys(stored.bucket, f"warehouse/{schema}/{table}/"))
    assert not list(stored.catalog.path.rglob("*.parquet"))
    for name in (server.access_key_id, server.secret_access_key):
        assert planted(stored, name) == []


def planted(lab: StoreLab, secret: str) -> list[str]:
    """Where a secret is: files of the project, its state, its lake and its artifacts, and objects of its tables."""
    assert lab.server is not None
    files = [path for path in lab.root.rglob("*") if path.is_file()]
    found = [str(path) for path in files if secret.encode() in path.read_bytes()]
    client = lab.server.client()
    keys = lab.server.keys(lab.bucket)
    objects = {key: client.get_object(Bucket=lab.bucket, Key=key)["Body"].read() for key in keys}
    return [*found, *(key for key, content in objects.items() if secret.encode() in content)]
