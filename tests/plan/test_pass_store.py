"""Where passes are kept: the user's own file, of hashes and times; anything else is nothing."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.plan.test_passes.pass_store import LastPass, read_passes, write_passes

ONE = LastPass("k1", "2026-11-23T10:00:00+00:00")
TWO = LastPass("k2", "2026-11-23T11:00:00+00:00")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return folder


def file(cache: Path) -> Path:
    return cache / "passes" / "dev.json"


def test_what_is_written_is_read_for_the_same_target(cache: Path) -> None:
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a", "test.b"])
    write_passes(cache, "dev", {"test.b": TWO}, (), ["test.a", "test.b"])
    assert read_passes(cache, "dev") == {"test.a": ONE, "test.b": TWO}
    assert read_passes(cache, "prod") == {}
    assert read_passes(None, "dev") == {}


def test_only_its_owner_reads_it(cache: Path) -> None:
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (cache / "passes").rglob("*")}
    assert modes == {"dev.json": 0o600, "lock": 0o600}
    assert stat.S_IMODE((cache / "passes").stat().st_mode) == 0o700


def test_a_failed_test_and_one_that_is_gone_are_forgotten(cache: Path) -> None:
    write_passes(cache, "dev", {"test.a": ONE, "test.b": ONE, "test.c": ONE}, (), ["test.a", "test.b", "test.c"])
    write_passes(cache, "dev", {}, {"test.b"}, ["test.a", "test.b"])
    assert read_passes(cache, "dev") == {"test.a": ONE}


BROKEN = [b"", b"{", b"[]", b"\xff\xfe", b'{"form": 1}', b'{"form": 1, "passes": {"test.a": {"key": 1, "at": ""}}}',
          b'{"form": 2, "passes": {"test.a": {"key": "k1", "at": ""}}}', b"[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_file_is_nothing_and_is_written_again(cache: Path, content: bytes) -> None:
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    file(cache).write_bytes(content)
    assert read_passes(cache, "dev") == {}
    write_passes(cache, "dev", {"test.a": TWO}, (), ["test.a"])
    assert read_passes(cache, "dev") == {"test.a": TWO}


def test_a_file_that_others_may_write_or_read_is_not_believed(cache: Path) -> None:
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    file(cache).chmod(0o644)
    assert read_passes(cache, "dev") == {}
    write_passes(cache, "dev", {"test.a": TWO}, (), ["test.a"])
    assert read_passes(cache, "dev") == {"test.a": TWO}
    (cache / "passes").chmod(0o777)
    assert read_passes(cache, "dev") == {}


def test_a_link_is_not_followed(cache: Path, tmp_path: Path) -> None:
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    elsewhere = tmp_path / "elsewhere.json"
    file(cache).rename(elsewhere)
    before = elsewhere.read_bytes()
    file(cache).symlink_to(elsewhere)
    assert read_passes(cache, "dev") == {}
    write_passes(cache, "dev", {"test.a": TWO}, (), ["test.a"])
    assert elsewhere.read_bytes() == before


def test_what_cannot_be_written_is_no_error(cache: Path) -> None:
    file(cache).mkdir(parents=True)
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    assert read_passes(cache, "dev") == {}
    other = cache / "other"
    other.mkdir(mode=0o700)
    (other / "passes").write_text("")
    write_passes(other, "dev", {"test.a": ONE}, (), ["test.a"])
    assert read_passes(other, "dev") == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is writable for root")
def test_a_folder_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.chmod(0o500)
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    assert read_passes(cache, "dev") == {}


def test_runs_at_once_keep_the_passes_of_each_other(cache: Path) -> None:
    names = [f"test.t{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: write_passes(cache, "dev", {name: ONE}, (), names), names))
    assert read_passes(cache, "dev") == dict.fromkeys(sorted(names), ONE)
    assert json.loads(file(cache).read_text())["form"] == 1
    assert not [path for path in (cache / "passes").iterdir() if path.suffix == ".tmp"]


def test_the_name_of_a_target_is_not_a_path(cache: Path) -> None:
    write_passes(cache, "../../dev", {"test.a": ONE}, (), ["test.a"])
    assert read_passes(cache, "../../dev") == {"test.a": ONE}
    assert {path.parent for path in cache.rglob("*.json")} == {cache / "passes"}
