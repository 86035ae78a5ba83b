"""State in a real bucket: what holds of a folder and of the smallest store holds of it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.object_store.s3_client import s3_client
from engine.object_store.s3_settings import S3Settings
from engine.state import checkpoint
from engine.state.blob_store import S3Store, Store
from engine.state.lease import GONE_AFTER
from engine.state.object_path import ObjectPath
from tests.services.s3 import S3Server
from tests.state import test_lease, test_objects, test_state_path

pytestmark = pytest.mark.spark
test_files = test_objects.test_files_are_written_read_listed_and_removed
test_one_of_several_wins = test_objects.test_of_several_that_create_a_file_one_wins
test_a_lease_is_kept_and_let_go = test_lease.test_a_holder_that_is_there_keeps_it_and_one_that_ended_lets_it_go_at_once
test_a_lease_is_taken_over = test_lease.test_one_that_is_gone_is_followed_by_one_of_many_and_cannot_come_back
test_a_run_renews_one_file = test_lease.test_a_run_renews_one_file_for_all_its_tables


def in_bucket(server: S3Server) -> ObjectPath:
    name = server.start().bucket(f"state-{uuid.uuid4().hex[:8]}")
    return ObjectPath(S3Store(name, server.client), "engine/state")


@pytest.fixture
def bucket(s3_server: S3Server) -> ObjectPath:
    return in_bucket(s3_server)


@pytest.fixture
def store(bucket: ObjectPath) -> Store:
    return bucket.as_store()


def test_a_checkpoint_is_read_like_one_on_the_disk(bucket: ObjectPath, tmp_path: Path) -> None:
    local, remote = test_state_path.written(tmp_path / "state"), test_state_path.written(bucket)
    assert test_state_path.read(remote) == test_state_path.read(local)
    # Hadoop makes objects for folders, which are no files.
    bucket.store.put("engine/state/lake/shop/paid/1/checkpoint/commits/", b"")
    assert test_state_path.read(remote) == test_state_path.read(local)
    for folder in (local, remote):
        folder.discard(1)
    assert test_state_path.read(remote) == test_state_path.read(local)


def test_more_than_a_page_is_listed_and_removed(bucket: ObjectPath) -> None:
    for number in range(1003):
        (bucket.store).put(f"many/{number}", b"")
    bucket.store.put("many-others/1", b"")
    assert len(bucket.store.list("many")) == len(bucket.store.keys("many")) == 1003
    bucket.store.delete("many")
    assert (bucket.store.list("many"), bucket.store.list("many-others")) == ((), ("1",))


def test_how_old_a_file_is_says_the_store(store: Store) -> None:
    store.put("a", b"x")
    age = store.age("a")
    assert age is not None
    assert 0 <= age < GONE_AFTER
    assert store.age("b") is None


def test_a_store_that_is_away_is_not_an_empty_one(s3_server: S3Server) -> None:
    away = S3Settings("http://127.0.0.1:9", "us-east-1", "key", "secret", path_style_access=True)
    root = ObjectPath(S3Store("state", lambda: s3_client(away)), "engine")
    for ask in (checkpoint.last_committed, checkpoint.query_id, checkpoint.standing, checkpoint.settings):
        with pytest.raises(SetupError) as caught:
            ask(root)
        assert caught.value.diagnostic.code == "s3-unreachable"
    missing = ObjectPath(S3Store("no-such-bucket", s3_server.start().client), "engine")
    with pytest.raises(SetupError) as denied:
        checkpoint.last_committed(missing)
    assert denied.value.diagnostic.code == "s3-missing"
