"""Tables whose files are in an object store."""

from __future__ import annotations

import pytest

from tests.catalogs.test_builds import BATCH, DOWNSTREAM, LATEST, PLAIN, STAGED, VIEW
from tests.lab import EVENTS, event
from tests.object_store.conftest import StoreLab

pytestmark = pytest.mark.spark


def test_a_project_builds_and_plans_shows_maintains_and_drops(stored: StoreLab) -> None:
    lab = stored
    lab.write("sources/shop.yml", EVENTS)
    models = {
        "plain": PLAIN,
        "latest": LATEST,
        "downstream": DOWNSTREAM,
        "batch": BATCH,
        "counted": VIEW,
        "staged": STAGED,
    }
    for name, text in models.items():
        lab.model(name, text)
    lab.land("a", [event(1), event(2)])
    lab.build()
    assert lab.ids("plain") == [1, 2] == lab.ids("latest") == lab.ids("staged")
    assert [row["twice"] for row in lab.rows("downstream")] == [2.0, 2.0]
    before = lab.snapshots()

    second = lab.build()
    assert {m["message"] for m in second.events if m["event"] == "ModelFinished"} == {"nothing new"}
    assert lab.snapshots() == before

    lab.land("b", [event(2, 5, amount=7.0), event(3)])
    assert lab.run("plan").code == 0
    lab.build()
    assert lab.ids("plain") == [1, 2, 2, 3]
    assert {row["id"]: row["amount"] for row in lab.rows("latest")} == {1: 1.0, 2: 7.0, 3: 1.0}
    assert lab.rows("batch") == [{"kind": "paid", "n": 3}]
    shown = lab.run("show", "latest", "--table", "--limit", "2")
    assert shown.code == 0, shown.text

    assert lab.run("maintain").code == 0
    assert lab.ids("plain") == [1, 2, 2, 3]

    lab.build("-f", "-s", "latest+")
    assert {row["id"]: row["amount"] for row in lab.rows("latest")} == {1: 1.0, 2: 7.0, 3: 1.0}
    assert lab.run("docs", "generate").code == 0

    (lab.root / "models" / "downstream.sql").unlink()
    folder = f"warehouse/{lab.schema.replace('.', '/')}"
    assert lab.server is not None
    assert lab.server.keys(lab.bucket, f"{folder}/downstream/")
    dropped = lab.run("drop", "downstream", "--yes")
    assert dropped.code == 0, dropped.text
    assert lab.table("downstream") is None
    assert lab.server.keys(lab.bucket, f"{folder}/downstream/") == []
    assert lab.ids("plain") == [1, 2, 2, 3]
    assert not list(lab.catalog.path.rglob("*.parquet"))
    for name in (lab.server.access_key_id, lab.server.secret_access_key):
        assert planted(lab, name) == []


def planted(lab: StoreLab, secret: str) -> list[str]:
    """Where a secret is: files of the project, its state, its lake and its artifacts, and objects of its tables."""
    assert lab.server is not None
    files = [path for path in lab.root.rglob("*") if path.is_file()]
    found = [str(path) for path in files if secret.encode() in path.read_bytes()]
    client = lab.server.client()
    keys = lab.server.keys(lab.bucket)
    objects = {key: client.get_object(Bucket=lab.bucket, Key=key)["Body"].read() for key in keys}
    return [*found, *(key for key, content in objects.items() if secret.encode() in content)]
