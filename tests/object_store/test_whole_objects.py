"""Objects of the state through a store that cuts off, alters, loses and repeats: whole, or the true reason."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from engine.errors import EngineError
from engine.object_store import whole_objects
from engine.object_store.s3_client import s3_client
from engine.object_store.whole_objects import SUM, sum_of
from engine.state.blob_store import S3Store
from tests.services.s3 import S3Server
from tests.services.s3_faults import Fault, FaultProxy, Request

pytestmark = pytest.mark.spark
CONTENT = b"v1\n" + b"0123456789" * 50


@dataclass(slots=True)
class Shaky:
    """A bucket through a proxy."""

    store: S3Store
    proxy: FaultProxy
    direct: S3Store


@pytest.fixture
def shaky(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shaky]:
    monkeypatch.setattr(whole_objects, "_PAUSES", (0.0, 0.0, 0.0))
    bucket = s3_server.start().bucket(f"b{uuid.uuid4().hex[:12]}")
    with FaultProxy(s3_server.port).running() as proxy:
        settings = replace(s3_server.settings, endpoint=proxy.endpoint)
        yield Shaky(S3Store(bucket, lambda: s3_client(settings)), proxy, S3Store(bucket, s3_server.client))


def once(fault: Fault, method: str) -> Callable[[Request], Fault | None]:
    """Choose the first request with a method."""
    left = [fault]
    return lambda request: left.pop() if request.method == method and left else None


@pytest.mark.parametrize("fault", [f for f in Fault if f is not Fault.REFUSE])
def test_what_happens_once_is_not_noticed(shaky: Shaky, fault: Fault) -> None:
    shaky.proxy.delay_seconds = 0.1
    shaky.proxy.begin(once(fault, "PUT"))
    assert shaky.store.put_if_absent("created", CONTENT)
    assert [f for _, f in shaky.proxy.done] == [fault]
    shaky.proxy.begin(once(fault, "PUT"))
    shaky.store.put("written", CONTENT)
    assert [f for _, f in shaky.proxy.done] == [fault]
    for key in ("created", "written"):
        shaky.proxy.begin(once(fault, "GET"))
        assert shaky.store.get(key) == CONTENT
        assert [f for _, f in shaky.proxy.done] == [fault]
    assert not shaky.store.put_if_absent("created", b"another")


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (Fault.TRUNCATE, "s3-unreachable", "the object was cut off"),
        (Fault.SHORTEN, "state-unreadable", "has another content than it was written with"),
        (Fault.REFUSE, "s3-denied", "refused by the proxy"),
    ],
)
def test_what_happens_each_time_is_the_reason(shaky: Shaky, fault: Fault, code: str, words: str) -> None:
    shaky.store.put("offsets/5", CONTENT)
    shaky.proxy.begin(lambda _: fault)
    with pytest.raises(EngineError) as caught:
        shaky.store.get("offsets/5")
    assert (caught.value.diagnostic.code, words in str(caught.value)) == (code, True), caught.value


def test_objects_without_a_sum_are_read_and_of_those_with_one_each_byte_counts(shaky: Shaky) -> None:
    client = shaky.direct.client()
    where = {"Bucket": shaky.store.bucket}
    client.put_object(**where, Key="old", Body=CONTENT)
    assert shaky.store.get("old") == CONTENT
    client.put_object(**where, Key="same", Body=CONTENT, Metadata={SUM: sum_of(CONTENT)})
    assert shaky.store.get("same") == CONTENT
    client.put_object(**where, Key="other", Body=CONTENT.replace(b"5", b"6", 1), Metadata={SUM: sum_of(CONTENT)})
    with pytest.raises(EngineError) as caught:
        shaky.store.get("other")
    assert caught.value.diagnostic.code == "state-unreadable"


def test_a_copy_has_the_content_and_its_sum(shaky: Shaky) -> None:
    shaky.store.put("a/1", CONTENT)
    assert shaky.store.copy("a/1", "b/1")
    assert not shaky.store.copy("a/2", "b/2")
    head = shaky.direct.client().head_object(Bucket=shaky.store.bucket, Key="b/1")
    assert (shaky.store.get("b/1"), head["Metadata"][SUM]) == (CONTENT, sum_of(CONTENT))
