"""Where passes are kept: the user's own file, of hashes and times; anything else is nothing."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.plan.test_passes.known_passes import LastPass, read_passes, write_passes
from tests.lab import REPOSITORY

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


WRITES = """
import json, resource, signal, sys
from pathlib import Path
from engine.plan.test_passes.known_passes import LastPass, read_passes, write_passes
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    Path(sys.argv[1], "probe").write_text("x")
except OSError as error:
    print(error.strerror)
write_passes(Path(sys.argv[1]), "dev", {"test.b": LastPass("k2", "now")}, (), ["test.a", "test.b"])
print(*read_passes(Path(sys.argv[1]), "dev"))
"""


@pytest.mark.slow
def test_a_disk_that_takes_nothing_is_no_error_and_keeps_what_was_there(cache: Path) -> None:
    write_passes(cache, "dev", {"test.a": ONE}, (), ["test.a"])
    done = subprocess.run(
        [sys.executable, "-c", WRITES, str(cache)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=REPOSITORY,
    )
    assert done.stdout.split("\n") == ["File too large", "test.a", ""]


@pytest.mark.slow
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
