"""Spark's files of a checkpoint in a bucket: created once, compared when they are read, and what fails is an error."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from engine.object_store.s3_settings import hadoop_conf
from engine.object_store.whole_objects import SUM, sum_of
from tests.lab import LabSession
from tests.services.s3 import S3Server
from tests.services.s3_faults import Fault, FaultProxy, Request

pytestmark = pytest.mark.spark
FOLDER = "lake/shop/paid/1/checkpoint.3"


@dataclass(slots=True)
class Files:
    """The manager of a checkpoint's files in a bucket, through a proxy."""

    jvm: Any
    conf: Any
    manager: Any
    proxy: FaultProxy
    server: S3Server
    bucket: str

    def path(self, name: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"s3a://{self.bucket}/{FOLDER}/{name}")

    def write(self, name: str, content: bytes, *, over: bool = False) -> None:
        out = self.manager.createAtomic(self.path(name), over)
        out.write(bytearray(content))
        out.close()

    def read(self, name: str) -> bytes:
        stream = self.manager.open(self.path(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def object(self, name: str) -> tuple[bytes, str]:
        """What the store has, with the sum in its headers."""
        found = self.server.client().get_object(Bucket=self.bucket, Key=f"{FOLDER}/{name}")
        return found["Body"].read(), found["Metadata"].get(SUM, "")


@pytest.fixture
def files(lab_session: LabSession, s3_server: S3Server) -> Iterator[Files]:
    spark = lab_session.spark
    jvm, bucket = spark._jvm, s3_server.start().bucket(f"b{uuid.uuid4().hex[:12]}")
    with FaultProxy(s3_server.port, delay_seconds=0.1).running() as proxy:
        conf = jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
        settings = hadoop_conf(replace(s3_server.settings, endpoint=proxy.endpoint))
        short = {"fs.s3a.impl": "headrace.StateObjects", "fs.s3a.impl.disable.cache": "true", "fs.s3a.retry.limit": "1",
                 "fs.s3a.retry.interval": "10ms", "fs.s3a.attempts.maximum": "1"}  # fmt: skip
        for key, value in {**settings, **short}.items():
            conf.set(key.removeprefix("spark.hadoop."), value)
        root = jvm.org.apache.hadoop.fs.Path(f"s3a://{bucket}/{FOLDER}")
        yield Files(jvm, conf, jvm.headrace.CheckpointFiles(root, conf), proxy, s3_server, bucket)


def nth(fault: Fault, method: str, number: int = 1) -> Callable[[Request], Fault | None]:
    """Choose one request with a method."""
    left = [number]

    def choose(request: Request) -> Fault | None:
        left[0] -= request.method == method
        return fault if request.method == method and left[0] == 0 else None

    return choose


def test_a_file_is_created_once_and_carries_its_sum(files: Files) -> None:
    files.write("offsets/0", b"v1\nfirst")
    assert files.object("offsets/0") == (b"v1\nfirst", sum_of(b"v1\nfirst"))
    # Whoever asked before whether it is there, and slept since.
    with pytest.raises(Py4JJavaError, match=r"FileAlreadyExistsException.* was written by another run"):
        files.write("offsets/0", b"v1\nwoken")
    assert files.read("offsets/0") == b"v1\nfirst"
    files.write("state/0/0/1.changelog", b"one", over=True)
    files.write("state/0/0/1.changelog", b"two", over=True)
    assert files.read("state/0/0/1.changelog") == b"two"
    cancelled = files.manager.createAtomic(files.path("offsets/1"), False)
    cancelled.write(bytearray(b"half"))
    cancelled.cancel()
    cancelled.close()
    assert not files.manager.exists(files.path("offsets/1"))


@pytest.mark.parametrize("over", [False, True])
def test_a_write_that_is_refused_is_an_error(files: Files, over: bool) -> None:
    files.proxy.begin(nth(Fault.REFUSE, "PUT"))
    with pytest.raises(Py4JJavaError, match=r"the checkpoint file s3a://\S+/offsets/7 cannot be written: .*403"):
        files.write("offsets/7", b"lost", over=over)
    assert not files.manager.exists(files.path("offsets/7"))


@pytest.mark.parametrize("fault", [Fault.LOSE, Fault.DUPLICATE, Fault.BREAK, Fault.DELAY])
def test_a_write_whose_answer_was_lost_or_that_came_twice_is_done(files: Files, fault: Fault) -> None:
    files.proxy.begin(nth(fault, "PUT"))
    files.write("offsets/2", b"v1\nonce")
    assert [f for _, f in files.proxy.done] == [fault]
    assert files.object("offsets/2")[0] == b"v1\nonce"


@pytest.mark.parametrize("fault", [Fault.TRUNCATE, Fault.SHORTEN, Fault.LOSE, Fault.DUPLICATE])
def test_a_read_that_is_cut_off_once_is_read_again(files: Files, fault: Fault) -> None:
    files.write("commits/2", b"v1\n{}" * 1000)
    files.proxy.begin(nth(fault, "GET"))
    assert files.read("commits/2") == b"v1\n{}" * 1000
    assert [f for _, f in files.proxy.done] == [fault]


@pytest.mark.parametrize("fault", [Fault.TRUNCATE, Fault.SHORTEN])
def test_a_read_that_is_cut_off_each_time_says_so(files: Files, fault: Fault) -> None:
    files.write("commits/2", b"v1\n{}" * 1000)
    files.proxy.begin(lambda request: fault if request.method == "GET" else None)
    with pytest.raises(Py4JJavaError, match=r"the object store cut s3a://\S+/commits/2 off: [0-9]+ of 5000 bytes came"):
        files.read("commits/2")


def test_another_content_is_an_error_and_objects_without_a_sum_are_read(files: Files) -> None:
    client, key = files.server.client(), f"{FOLDER}/offsets/4"
    client.put_object(Bucket=files.bucket, Key=key, Body=b"v1\n7")
    assert files.read("offsets/4") == b"v1\n7"
    client.put_object(Bucket=files.bucket, Key=key, Body=b"v1\n8", Metadata={SUM: sum_of(b"v1\n7")})
    with pytest.raises(Py4JJavaError, match="has another content than it was written with"):
        files.read("offsets/4")


def test_large_files_go_over_the_disk_and_can_be_read_from_anywhere(files: Files) -> None:
    content = bytes(range(256)) * (20_000)
    files.write("state/0/0/2.changelog", content, over=True)
    assert files.object("state/0/0/2.changelog") == (content, sum_of(content))
    stream = files.manager.open(files.path("state/0/0/2.changelog"))
    stream.seek(len(content) - 2)
    assert (stream.read(), stream.read(), stream.read()) == (254, 255, -1)
    stream.seek(256 * 7 + 9)
    assert (stream.read(), stream.getPos()) == (9, 256 * 7 + 10)
    stream.close()


def test_what_rocksdb_reads_and_writes_by_itself_is_compared_too(files: Files, tmp_path: Any) -> None:
    system = files.path("state").getFileSystem(files.conf)
    assert system.getClass().getName() == "headrace.StateObjects"
    local = files.jvm.org.apache.hadoop.fs.Path
    (tmp_path / "a.sst").write_bytes(b"table" * 1000)
    system.copyFromLocalFile(local(str(tmp_path / "a.sst")), files.path("state/0/0/SSTs/a.sst"))
    assert files.object("state/0/0/SSTs/a.sst") == (b"table" * 1000, sum_of(b"table" * 1000))
    for number, fault in enumerate((Fault.TRUNCATE, Fault.SHORTEN)):
        files.proxy.begin(nth(fault, "GET"))
        system.copyToLocalFile(files.path("state/0/0/SSTs/a.sst"), local(str(tmp_path / f"{number}.sst")))
        assert (tmp_path / f"{number}.sst").read_bytes() == b"table" * 1000
        files.proxy.begin(nth(fault, "GET"))
        stream = system.open(files.path("state/0/0/SSTs/a.sst"))
        assert bytes(stream.readAllBytes()) == b"table" * 1000
        stream.close()
        assert [f for _, f in files.proxy.done] == [fault]
