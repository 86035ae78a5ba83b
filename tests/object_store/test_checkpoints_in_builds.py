"""Builds whose checkpoint cannot be written or was written by another: nothing is committed, and the reason is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.lab import EVENTS, event
from tests.object_store.conftest import StoreLab
from tests.services.s3_faults import Fault, FaultProxy, Request
from tests.store_faults.rounds import errors

pytestmark = pytest.mark.spark
PLAIN = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"
COUNTED = """/*---
streams: [shop.events]
unique_key: [kind]
output_mode: update
---*/
select kind, count(*) as n from {{ source('shop', 'events') }} group by kind
"""


@pytest.fixture
def proxy(stored: StoreLab) -> Iterator[FaultProxy]:
    """A project with its state in the bucket, which it reaches through a proxy; its tables are there directly."""
    assert stored.server is not None
    with FaultProxy(stored.server.port).running() as made:
        path = stored.root / "project.yml"
        project = yaml.safe_load(path.read_text())
        target = project["targets"]["dev"]
        target["state"], target["s3"]["endpoint"] = f"s3a://{stored.bucket}/engine-state", made.endpoint
        path.write_text(yaml.safe_dump(project))
        stored.write("sources/shop.yml", EVENTS)
        hadoop = stored.session.spark._jsc.hadoopConfiguration()  # type: ignore[union-attr]
        # A file system of its own, which is not that of other tests.
        for key, value in {"endpoint": made.endpoint, "impl.disable.cache": "true"}.items():
            hadoop.set(f"fs.s3a.{key}", value)
        try:
            yield made
        finally:
            hadoop.unset("fs.s3a.impl.disable.cache")


def refused(*ending: str) -> Callable[[Request], Fault | None]:
    """Refuse each PUT of objects with such an ending."""
    return lambda request: Fault.REFUSE if request.method == "PUT" and request.key.endswith(ending) else None


@pytest.mark.gate
def test_a_build_whose_checkpoint_is_refused_commits_nothing_and_says_so(stored: StoreLab, proxy: FaultProxy) -> None:
    lab = stored
    lab.model("plain", PLAIN)
    lab.model("counted", COUNTED)
    lab.land("a", [event(1), event(2)])
    lab.build()
    before = lab.snapshots()

    lab.land("b", [event(3)])
    proxy.begin(refused("/offsets/1", ".changelog"))
    result = lab.run("build")
    keys = {request.key.rpartition("/")[2] for request, _ in proxy.done}
    assert (result.code, errors(result)) == (1, {"s3-denied"}), result.text
    assert keys & {"1", "2.changelog"}, proxy.done
    assert lab.snapshots() == before
    # State alone: the offsets of the micro-batch are there, and it must not be committed without its state.
    proxy.begin(refused(".changelog"))
    result = lab.run("build", "-s", "counted")
    assert (result.code, errors(result)) == (1, {"s3-denied"}), result.text
    assert [request.key.endswith(".changelog") for request, _ in proxy.done].count(True) >= 1
    assert lab.snapshots() == before
    proxy.begin()
    lab.build()
    assert lab.ids("plain") == [1, 2, 3]
    assert sum(row["n"] for row in lab.rows("counted")) == 3


@pytest.mark.gate
def test_offsets_that_another_run_wrote_meanwhile_are_not_overwritten(stored: StoreLab, proxy: FaultProxy) -> None:
    lab = stored
    lab.model("plain", PLAIN)
    lab.land("a", [event(1)])
    lab.build()
    before = lab.snapshots()
    assert lab.server is not None
    client, found = lab.server.client(), {}

    def written_first(request: Request) -> None:
        """What another machine writes while this one sleeps between its look and its write."""
        if request.method == "PUT" and request.key.endswith("/offsets/1") and not found:
            first = client.get_object(Bucket=lab.bucket, Key=request.key.replace("/offsets/1", "/offsets/0"))
            found[request.key] = first["Body"].read()
            client.put_object(Bucket=lab.bucket, Key=request.key, Body=found[request.key])

    lab.land("b", [event(2)])
    proxy.begin(before=written_first)
    result = lab.run("build")
    assert found
    assert (result.code, errors(result)) == (1, {"state-unwritable"}), result.text
    assert "another run" in result.text
    assert lab.snapshots() == before
    (key,) = found
    assert client.get_object(Bucket=lab.bucket, Key=key)["Body"].read() == found[key]
