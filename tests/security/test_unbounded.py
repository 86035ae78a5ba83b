"""Files and stores of strangers without end: `--state DIR`, state in a project, listings and objects of S3."""

from __future__ import annotations

import gzip
import json
import os
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.addresses import web_address
from engine.bounds.http_exchange import BodyTooLargeError, exchange
from engine.errors import SetupError, StateError
from engine.lake.catalog.metadata_document import read_document
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.object_store import s3_client
from engine.object_store.s3_settings import S3Settings
from engine.sources.files import s3_files
from engine.state.blob_store import S3Store, content
from tests.lab import Lab
from tests.security import answers
from tests.security.answering import answering, endless

pytestmark = pytest.mark.slow


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    lab = Lab(tmp_path / "lab", None, capsys)
    lab.root = answers.project(tmp_path / "project")
    return lab


@pytest.fixture
def state(lab: Lab, tmp_path: Path) -> Path:
    """Copies of the artifacts of the project."""
    folder = tmp_path / "state"
    folder.mkdir()
    for name in answers.ARTIFACTS:
        (folder / name).write_bytes((lab.root / "target" / name).read_bytes())
    return folder


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


PLANTED: dict[str, Callable[[Path], Any]] = {
    "a link": _link, "a device": _zero, "a pipe": os.mkfifo, "a folder": Path.mkdir, "a terabyte": _large,
}  # fmt: skip


@pytest.mark.parametrize("name", answers.ARTIFACTS)
@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("term", ["state:modified", "result:error"])
def test_an_earlier_state_is_made_of_regular_files(lab: Lab, state: Path, what: str, name: str, term: str) -> None:
    (state / name).unlink()
    PLANTED[what](state / name)
    started = time.monotonic()
    result = lab.run("ls", "-s", term, "--state", str(state))
    assert (result.code, result.codes()) == (2, ["usage"]), result.text
    assert "earlier state" in result.text
    assert time.monotonic() - started < 10


def _nodes(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        for node in manifest["nodes"].values():
            node[key] = value

    return change


DEEP: Any = []
for _ in range(600):
    DEEP = [DEEP]
MANIFESTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "nodes that are a number": _nodes("depends_on", {"nodes": 5}),
    "a node that is a number": _nodes("depends_on", {"nodes": [5, None, ["a"]]}),
    "dependencies that are a text": _nodes("depends_on", {"nodes": "model.a"}),
    "columns that are numbers": _nodes("columns", {"id": 5, "x": [], "y": "z"}),
    "columns that are a list": _nodes("columns", [5]),
    "a config that is a list": _nodes("config", [5]),
    "meta that is a text": _nodes("meta", "x"),
    "our own that is a list": _nodes("meta", {"headrace": [5]}),
    "a deep config": _nodes("config", {"a": DEEP}),
    "a relation that is a list": _nodes("relation_name", ["a.b"]),
    "a unique id that is a number": _nodes("unique_id", 5),
}


@pytest.mark.parametrize("case", MANIFESTS)
@pytest.mark.parametrize(
    "selection", [("state:modified",), ("state:modified.config",), ("state:unmodified", "state:old")]
)
def test_a_hostile_manifest_is_compared_or_rejected(
    lab: Lab, state: Path, case: str, selection: tuple[str, ...]
) -> None:
    manifest = json.loads((state / "manifest.json").read_text())
    MANIFESTS[case](manifest)
    (state / "manifest.json").write_text(json.dumps(manifest))
    result = lab.run("ls", "-s", *selection, "--state", str(state))
    assert result.code in {0, 2}, result.text
    assert "internal-error" not in result.text


def test_names_of_tables_do_not_multiply(lab: Lab, state: Path) -> None:
    """Each table is replaced by the id of its model; here each id holds the next table many times."""
    manifest = json.loads((state / "manifest.json").read_text())
    node = manifest["nodes"]["model.small.b"]
    names = [f"a.{number:02}" for number in range(40)]
    for name, after in pairwise(names):
        unique = f"model.small.{after * 40}"
        manifest["nodes"][unique] = {"resource_type": "model", "relation_name": name}
        node["depends_on"]["nodes"].append(unique)
    node["raw_code"] = node["compiled_code"] = names[0]
    node["meta"] = {}
    (state / "manifest.json").write_text(json.dumps(manifest))
    started = time.monotonic()
    assert lab.run("ls", "-s", "state:modified", "--state", str(state)).code == 0
    assert time.monotonic() - started < 10


@pytest.mark.nightly_cases("a terabyte")
@pytest.mark.parametrize("what", PLANTED)
def test_a_file_of_the_state_is_regular_and_bounded(tmp_path: Path, what: str) -> None:
    PLANTED[what](tmp_path / "model.json")
    with pytest.raises(OSError, match=r"model\.json"):
        content(tmp_path / "model.json")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(s3_client, "ATTEMPTS", 1)
    s3_client.s3_client.cache_clear()


def settings(url: str) -> S3Settings:
    return S3Settings(url, "us-east-1", "id", "a-secret-key", path_style_access=True)


def page(number: int) -> bytes:
    entry = f"<Contents><Key>folder/{number}</Key><LastModified>2026-11-24T00:00:00.000Z</LastModified><Size>5</Size></Contents>"
    return (
        "<ListBucketResult><Name>bucket</Name><IsTruncated>true</IsTruncated>"
        f"<NextContinuationToken>{number}</NextContinuationToken>{entry}</ListBucketResult>"
    ).encode()


def test_a_listing_of_endless_pages_ends(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "MAX_PAGES", 20)
    numbers = iter(range(10**9))

    def write(handler: Any) -> None:
        data = page(next(numbers))
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    with answering({"GET /bucket": write}) as server:
        store = S3Store("bucket", lambda: s3_client.s3_client(settings(server.url)))
        for ask in (
            lambda: list(s3_files.walk("s3a://bucket/folder", settings(server.url))),
            lambda: store.keys("folder"),
            lambda: store.entries("folder"),
        ):
            with pytest.raises(SetupError, match="pages"):
                ask()


SLOW = {
    "a byte at a time": endless(b"<", pause=0.05),
    "without end": endless(b"<a></a>" * 1000),
    "gzip": endless(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}, limit=2),
    "not XML": b"\0",
    "XML that is broken": b"<ListBucketResult><Contents></Key></ListBucketResult>",
    "other XML": b"<a/>",
    "entries that are none": b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
    "sizes that are none": b"<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
}


@pytest.mark.parametrize("case", SLOW)
def test_a_listing_that_is_none_is_a_diagnostic(quick: None, case: str) -> None:
    with answering({"GET /bucket": SLOW[case]}) as server:
        started = time.monotonic()
        try:
            assert list(s3_files.walk("s3a://bucket", settings(server.url))) == []
        except SetupError as error:
            found = error.diagnostic.code
        else:
            found = "s3-unreachable" if case == "other XML" else ""
        assert found == "s3-unreachable"
        assert time.monotonic() - started < 10


def test_a_listing_without_end_is_not_read_to_its_end(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(s3_client, "_MAX_BYTES", 1 << 16)
    with answering({"GET /bucket": endless(b"<a></a>" * 1000)}) as server:
        started = time.monotonic()
        with pytest.raises(SetupError, match="s3-unreachable"):
            list(s3_files.walk("s3a://bucket", settings(server.url)))
        assert time.monotonic() - started < 20


def test_what_is_unpacked_takes_no_more_memory_than_it_may() -> None:
    packed = gzip.compress(bytes(50_000_000))
    headers = {"Content-Encoding": "gzip", "Content-Length": str(len(packed))}
    with answering({"GET /": endless(packed, headers=headers, limit=len(packed))}) as server:
        tracemalloc.start()
        try:
            with pytest.raises(BodyTooLargeError):
                exchange(
                    "GET", web_address(server.url), {}, timeout=20, deadline=time.monotonic() + 20, most_bytes=1 << 20
                )
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("what", ["metadata", "state"])
def test_an_object_without_end_is_not_read_to_its_end(quick: None, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.state.blob_store.MOST_BYTES", 1 << 20)
    monkeypatch.setattr("engine.lake.catalog.metadata_document.METADATA_BYTES", 1 << 20)
    monkeypatch.setattr(s3_client, "ANSWER_SECONDS", 30.0)
    with answering({"GET /bucket/x": endless(b" " * 65536, headers={"Content-Length": str(6 << 30)})}) as server:
        started = time.monotonic()
        if what == "state":
            store = S3Store("bucket", lambda: s3_client.s3_client(settings(server.url)))
            with pytest.raises((SetupError, StateError), match="more than"):
                store.get("x.json")
        else:
            with pytest.raises(ValueError, match="too large"):
                read_document(ObjectWarehouse("s3://bucket", lambda: settings(server.url)), "s3://bucket/x.json")
        assert time.monotonic() - started < 10


def test_an_error_in_place_of_an_object_is_a_diagnostic_however_it_is_sent(quick: None) -> None:
    def broken(handler: Any) -> None:
        handler.send_response(404)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"no length of a chunk\r\n")

    with answering({"GET /bucket/x": broken}) as server, pytest.raises((SetupError, OSError)):
        read_document(ObjectWarehouse("s3://bucket", lambda: settings(server.url)), "s3://bucket/x.json")
